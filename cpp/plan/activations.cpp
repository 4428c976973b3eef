#include "plan/activations.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace akunu {

Act rows_in(const Binding& f32, std::uint32_t dim) { return {f32, {}, dim, dim}; }

Act Act::divided(std::uint32_t n) const {
    if (n == 0 || dim % n != 0 || stride != dim) {
        throw Error("rows of " + std::to_string(dim) + " elements, " + std::to_string(stride) + " apart, cannot be " +
                    std::to_string(n) + " rows each: a defect of Akunu");
    }
    return {f32, {}, dim / n, dim / n, times * n};
}

Act Act::columns(std::uint32_t first, std::uint32_t n) const {
    if (std::uint64_t{first} + n > dim) {
        throw Error("rows of " + std::to_string(dim) + " elements have no columns " + std::to_string(first) + " to " +
                    std::to_string(std::uint64_t{first} + n) + ": a defect of Akunu");
    }
    const std::uint64_t skip = std::uint64_t{first} * sizeof(float);
    return {{f32.buffer, f32.offset + skip, f32.end() - f32.offset - skip}, {}, n, stride, times};
}

void Activations::reserve(const std::string& name, std::uint64_t dim, std::uint32_t formats, std::uint64_t per_row) {
    Need& n = needs_[name];
    n.dim = std::max(n.dim, dim);
    n.formats |= formats | (wide_ ? kActF32 : 0u);
    n.per_row = std::max(n.per_row, per_row);
}

void Activations::reserve_merged(const std::string& name, std::uint64_t dim, std::uint32_t formats,
                                 std::uint64_t rows_of_one) {
    const bool known = needs_.contains(name);
    reserve(name, dim, formats);
    std::uint64_t& rows = needs_[name].rows_of_one;
    rows = known ? std::min(rows, rows_of_one) : rows_of_one;
}

void Activations::reserve_bytes(const std::string& name, std::uint64_t bytes) {
    Need& n = needs_[name];
    n.bytes = std::max(n.bytes, bytes);
}

Binding Activations::add_part(const ActivationKey& part, std::uint64_t bytes, bool apart) {
    const auto [at, fresh] = parts_.try_emplace(part, Memory{std::max<std::uint64_t>(bytes, 64), apart, {}, 0});
    void* const handle = &at->second;
    if (fresh) handles_[handle] = &at->first;
    return {{.handle = handle, .size = at->second.bytes}};
}

const ActivationKey* Activations::part_of(const Binding& binding) const {
    const auto at = handles_.find(binding.buffer.handle);
    return at == handles_.end() ? nullptr : at->second;
}

void Activations::measure(const Device& device, std::uint64_t rows) {
    rows_ = rows;
    for (const auto& [name, n] : needs_) {
        std::uint64_t elements = 0;
        const std::uint64_t all = (rows + n.rows_of_one - 1) / n.rows_of_one * n.per_row;
        if (__builtin_mul_overflow(all, n.dim, &elements) || elements > (std::uint64_t{1} << 60)) {
            throw InvalidArgumentError("activation '" + name + "' of " + std::to_string(all) + "x" +
                                       std::to_string(n.dim) + " overflows 64 bits");
        }
        Act& a = acts_[name];
        const std::uint32_t compact = n.formats & ~kActF32;
        if (n.bytes && !a.f32) a.f32 = add_part({name, false}, n.bytes, true);
        if (n.formats & kActF32 && !a.f32) {
            a.f32 = add_part({name, false}, device.activation_bytes(kActF32, all, n.dim), false);
        }
        if (compact && !a.compact) {
            a.compact = add_part({name, true}, device.activation_bytes(compact, all, n.dim), false);
        }
    }
}

void Activations::add_lifetimes(const DispatchTable& table, Lifetimes& lifetimes) const {
    lifetimes.add(table, [this](const Binding& b) { return part_of(b); });
}

std::uint64_t Activations::allocate(Device& device, const Lifetimes* lifetimes) {
    // The largest first, so that the others find room in what they need.
    std::vector<std::pair<const ActivationKey*, Memory*>> wanted;
    for (auto& [part, memory] : parts_) {
        if (!memory.buffer.size) wanted.emplace_back(&part, &memory);
    }
    std::ranges::stable_sort(wanted, std::ranges::greater{}, [](const auto& w) { return w.second->bytes; });
    std::vector<std::vector<const ActivationKey*>> sharing;  // of the buffers that some may share
    std::vector<std::size_t> numbers;                        // of these buffers, among all
    std::uint64_t total = 0;
    for (const auto& [part, memory] : wanted) {
        const bool alone = !lifetimes || memory->apart || lifetimes->lives_outside(*part);
        const auto fits = [&](const auto& others) {
            return std::ranges::none_of(others, [&](const auto* other) { return lifetimes->overlap(*part, *other); });
        };
        const auto found = alone ? sharing.end() : std::ranges::find_if(sharing, fits);
        if (found != sharing.end()) {
            found->push_back(part);
            memory->shared = numbers[static_cast<std::size_t>(found - sharing.begin())];
            memory->buffer = owned_[memory->shared].at().buffer;
            continue;
        }
        memory->shared = owned_.size();
        owned_.emplace_back(device, memory->bytes, MemoryKind::kDevice);
        memory->buffer = owned_.back().at().buffer;
        total += memory->bytes;
        if (alone) continue;
        sharing.push_back({part});
        numbers.push_back(memory->shared);
    }
    return total;
}

bool Activations::shares() const {
    const auto has_memory = [](const auto& p) { return p.second.buffer.size != 0; };
    return static_cast<std::size_t>(std::ranges::count_if(parts_, has_memory)) > owned_.size();
}

std::uint64_t Activations::bytes_apart() const {
    std::uint64_t total = 0;
    for (const auto& [part, memory] : parts_) total += memory.buffer.size ? memory.bytes : 0;
    return total;
}

Binding Activations::memory(const std::string& name) const { return {parts_.at({name, false}).buffer}; }

void Activations::bind(DispatchTable& table) const {
    Lifetimes lifetimes;
    add_lifetimes(table, lifetimes);
    std::map<ActivationKey, const Memory*> used;
    for (DispatchCmd& c : table.commands) {
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            Binding& b = c.buffers[i];
            const ActivationKey* const part = b ? part_of(b) : nullptr;
            if (!part) continue;
            const Memory& memory = parts_.at(*part);
            if (!memory.buffer.size) return;  // a table that is only looked at
            used[*part] = &memory;
            b.bytes = b.end() - b.offset;
            b.buffer = memory.buffer;
        }
    }
    const auto shares = [&](const Memory* a, const Memory* b) { return a != b && a->shared == b->shared; };
    for (const auto& [part, memory] : used) {
        for (const auto& [other, others] : parts_) {
            if (!shares(memory, &others)) continue;
            if (!lifetimes.lives_outside(part) && !lifetimes.overlap(part, other)) continue;
            throw Error("table '" + table.phase + "' needs activation '" + part.name + "' beside '" + other.name +
                        "', which has its memory: a defect of Akunu");
        }
    }
}

}  // namespace akunu
