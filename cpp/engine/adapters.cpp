#include "engine/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/half.h"

namespace akunu {

namespace {

// Halves of values times a power of two, so that the greatest is near 1; `scale` takes its inverse.
class Halves {
  public:
    Halves(std::span<const float> values, float& scale) {
        float most = 0;
        for (const float v : values) most = std::max(most, std::fabs(v));
        int exponent = 0;
        if (most > 0) std::frexp(most, &exponent);
        factor_ = exponent;
        scale = std::ldexp(scale, exponent);
    }
    std::uint16_t operator()(float v) const { return float_to_half(std::ldexp(v, -factor_)); }

  private:
    int factor_ = 0;
};

}  // namespace

bool AdapterSlots::any() const { return std::ranges::find(used_, true) != used_.end(); }

std::uint64_t AdapterSlots::bytes() const {
    std::uint64_t n = slots_.size();
    for (const DeviceBuffer& b : scratch_) n += b.size();
    return n;
}

std::uint64_t AdapterSlots::part_bytes(std::size_t linear, std::uint32_t max_rank) const {
    const Linear& l = linears_[linear];
    return max_rank ? kAdapterHeadBytes + lora_a_bytes(max_rank, l.cols) + lora_b_bytes(max_rank, l.rows) : 0;
}

std::uint64_t AdapterSlots::slot_bytes(const std::vector<AdapterPlan::Layer>& parts) const {
    return parts.empty() ? 0 : parts.back().offset + part_bytes(parts.size() - 1, parts.back().max_rank);
}

std::vector<AdapterPlan::Layer> AdapterSlots::parts_with(std::span<const AdapterTensors> tensors) const {
    std::vector<AdapterPlan::Layer> parts = plan_.parts;
    parts.resize(linears_.size());
    for (const AdapterTensors& t : tensors) {
        std::uint32_t& rank = parts[t.linear - 1].max_rank;
        rank = std::max(rank, t.rank);
    }
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].offset = offset;
        offset += part_bytes(i, parts[i].max_rank);
    }
    return parts;
}

void AdapterSlots::check(std::span<const AdapterTensors> tensors) const {
    std::vector<bool> seen(linears_.size());
    for (const AdapterTensors& t : tensors) {
        if (t.linear == 0 || t.linear > linears_.size() || linears_[t.linear - 1].name.empty()) {
            throw InvalidArgumentError("an adapter's layer " + std::to_string(t.linear) + " is none of the model's");
        }
        const Linear& l = linears_[t.linear - 1];
        if (seen[t.linear - 1]) throw InvalidArgumentError("an adapter changes " + l.name + " twice");
        seen[t.linear - 1] = true;
        if (t.rank == 0 || t.rank > kMaxRank) {
            throw InvalidArgumentError("the adapter's rank in " + l.name + " is " + std::to_string(t.rank) +
                                       ", expected 1.." + std::to_string(kMaxRank));
        }
        if (t.a.size() != std::uint64_t{t.rank} * l.cols || t.b.size() != std::uint64_t{t.rank} * l.rows) {
            throw InvalidArgumentError("the adapter's matrices in " + l.name + " have " + std::to_string(t.a.size()) +
                                       " and " + std::to_string(t.b.size()) + " elements, expected " +
                                       std::to_string(t.rank) + "x" + std::to_string(l.cols) + " and " +
                                       std::to_string(l.rows) + "x" + std::to_string(t.rank));
        }
        const auto finite = [](float v) { return std::isfinite(v); };
        if (!std::ranges::all_of(t.a, finite) || !std::ranges::all_of(t.b, finite) || !finite(t.scale)) {
            throw ModelFileError("the adapter's matrices in " + l.name + " hold NaN or an infinity");
        }
    }
}

void AdapterSlots::resize(Device& device, std::vector<AdapterPlan::Layer> parts, std::size_t slots,
                          std::uint32_t rows) {
    const std::uint64_t bytes = slot_bytes(parts), old_bytes = slot_bytes(plan_.parts);
    if (bytes / 4 > UINT32_MAX)
        throw InvalidArgumentError("an adapter of " + std::to_string(bytes) + " bytes is too large");
    DeviceBuffer fresh(device, std::max<std::uint64_t>(bytes * slots, 64), MemoryKind::kDevice);
    for (std::size_t s = 0; s < used_.size(); ++s) {
        if (!used_[s]) continue;
        std::vector<std::byte> from(old_bytes), to(bytes);
        device.download({slots_.at().buffer, s * old_bytes, old_bytes}, from);
        for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
            const AdapterPlan::Layer &old = plan_.parts[i], &part = parts[i];
            if (old.max_rank == 0) continue;
            const Linear& l = linears_[i];
            const std::byte* const a = from.data() + old.offset;
            std::byte* const b = to.data() + part.offset;
            const std::uint64_t a_bytes = std::uint64_t{old.max_rank} * l.cols * 2;
            std::memcpy(b, a, kAdapterHeadBytes + a_bytes);
            std::memcpy(b + kAdapterHeadBytes + lora_a_bytes(part.max_rank, l.cols),
                        a + kAdapterHeadBytes + lora_a_bytes(old.max_rank, l.cols),
                        std::uint64_t{old.max_rank} * l.rows * 2);
        }
        device.upload({fresh.at().buffer, s * bytes, bytes}, to);
    }
    std::uint32_t most = 0;
    for (const AdapterPlan::Layer& part : parts) most = std::max(most, part.max_rank);
    std::vector<DeviceBuffer> scratch;
    for (std::size_t i = 0; i < plan_.scratch.size(); ++i) {
        scratch.emplace_back(device, std::uint64_t{most} * rows * sizeof(float), MemoryKind::kDevice);
    }
    slots_ = std::move(fresh);
    scratch_ = std::move(scratch);
    used_.resize(slots);
    plan_.parts = std::move(parts);
    plan_.slots = slots_.at();
    plan_.slot_words = static_cast<std::uint32_t>(bytes / 4);
    for (std::size_t i = 0; i < scratch_.size(); ++i) plan_.scratch[i] = scratch_[i].at();
}

std::uint32_t AdapterSlots::add(Device& device, std::span<const AdapterTensors> tensors, std::uint32_t rows,
                                bool& changed) {
    check(tensors);
    auto parts = parts_with(tensors);
    auto free = static_cast<std::size_t>(std::ranges::find(used_, false) - used_.begin());
    changed = slot_bytes(parts) != slot_bytes(plan_.parts) || free == used_.size();
    if (free == kMaxAdapters) {
        throw InvalidArgumentError("the model has " + std::to_string(kMaxAdapters) +
                                   " adapters, and has room for no more: remove one");
    }
    if (changed)
        resize(device, std::move(parts), free == used_.size() ? std::max<std::size_t>(2 * free, 1) : used_.size(),
               rows);
    const std::uint64_t bytes = slot_bytes(plan_.parts);
    std::vector<std::byte> slot(bytes);
    for (const AdapterTensors& t : tensors) {
        const Linear& l = linears_[t.linear - 1];
        const AdapterPlan::Layer& part = plan_.parts[t.linear - 1];
        AdapterHead head{t.rank, t.scale};
        const Halves of_a(t.a, head.scale), of_b(t.b, head.scale);
        std::byte* const at = slot.data() + part.offset;
        auto* a = reinterpret_cast<std::uint16_t*>(at + kAdapterHeadBytes);
        auto* b = reinterpret_cast<std::uint16_t*>(at + kAdapterHeadBytes + lora_a_bytes(part.max_rank, l.cols));
        if (!std::isfinite(head.scale)) throw ModelFileError("the adapter's values in " + l.name + " are too large");
        for (std::size_t i = 0; i < t.a.size(); ++i) a[i] = of_a(t.a[i]);
        for (std::size_t r = 0; r < t.rank; ++r) {
            for (std::size_t n = 0; n < l.rows; ++n) b[r * l.rows + n] = of_b(t.b[n * t.rank + r]);
        }
        std::memcpy(at, &head, sizeof head);
    }
    device.upload({slots_.at().buffer, free * bytes, bytes}, slot);
    used_[free] = true;
    return static_cast<std::uint32_t>(free);
}

void AdapterSlots::remove(std::uint32_t slot) { used_.at(slot) = false; }

}  // namespace akunu
