#include "engine/loaded_model.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "engine/records.h"
#include "plan/spread.h"

namespace akunu {

LoadedModel::LoadedModel(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
                         std::uint32_t context, const Progress& progress, std::uint64_t memory)
    : source_(std::move(source)),
      device_(std::move(device)),
      config_(spread(std::move(config), device_->traits().cards)),
      context_(context ? context : std::min(config_.context_length, kDefaultContext)) {
    if (context_ > config_.context_length) {
        throw InvalidArgumentError("context " + std::to_string(context_) + " is more than the model's " +
                                   std::to_string(config_.context_length));
    }
    if (const auto left = device_->memory_left(); left && source_->total_bytes() / device_->traits().cards > *left) {
        throw DeviceError("the weights have " + std::to_string(source_->total_bytes() / 1'000'000) + " MB, and " +
                          std::to_string(*left / 1'000'000) + " MB of the device's memory are left");
    }
    total_bytes_ = source_->total_bytes();
    // Some of the device's memory is for programs, and for others.
    memory_limit_ = memory ? memory : device_->memory() / 20 * 17;
    const bool experts = std::ranges::any_of(
        config_.blocks, [](const auto& block) { return std::holds_alternative<ExpertsConfig>(block.mixer); });
    const bool needed = total_bytes_ > memory_limit_ / 8 * 7;
    pages_experts_ = experts && device_->traits().pages_experts && (memory || needed);
    has_limit_ = memory > 0;
    Loader loader(*device_, *source_, progress, config_.encoder || config_.audio || config_.image, pages_experts_,
                  needed);
    model_ = std::make_unique<Model>(config_, loader);
    loader.finish();
    memory_.weights = loader.owned_bytes();
    memory_.weights_mapped = loader.mapped_bytes();
    owned_ = loader.take_memory();
    if (memory_.weights_mapped == 0) source_.reset();
}

void LoadedModel::hold_experts() {
    const std::uint64_t used = memory_.weights + memory_.kv_cache + memory_.scratch;
    if (used > memory_limit_ && (has_limit_ || pages_experts_)) {
        throw DeviceError("the model takes " + std::to_string(used / 1'000'000) + " MB of memory" +
                          (pages_experts_ ? " without its experts" : "") + ", and the limit is " +
                          std::to_string(memory_limit_ / 1'000'000) +
                          " MB: give more memory, or a smaller context or kv_memory");
    }
    if (!pages_experts_) return;
    memory_.weights += device_->hold_experts(memory_limit_ - used);
}

void LoadedModel::prepare_kernels(const Progress& progress) {
    device_->prepare_kernels([&](std::string_view what) {
        if (progress) progress(total_bytes_, total_bytes_, what);
    });
}

Binding LoadedModel::own(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose, MemoryKind kind) {
    owned_.emplace_back(*device_, std::max<std::uint64_t>(bytes, 64), kind);
    memory_.*purpose += bytes;
    return owned_.back().at();
}

Binding LoadedModel::allocate_kv_of_one_step(std::uint64_t pages, std::uint64_t sequences) {
    StepBuffers& s = step_;
    s.kv_types = model_->kv_of_one_step(*device_);
    std::uint64_t page_bytes = 64;
    for (const Kept& kept : model_->keeps(*device_, s.kv_types)) {
        if (kept.owner == Kept::Owner::kPage) page_bytes = std::max(page_bytes, kept.bytes);
    }
    page_bytes = aligned(page_bytes);
    const Binding cache = own(pages * page_bytes, &MemoryUse::scratch, MemoryKind::kDevice);
    const Binding tables = own(sequences * s.max_pages * sizeof(u32), &MemoryUse::scratch);
    s.kv.assign(config_.blocks.size(), {cache, tables, s.max_pages, static_cast<std::uint32_t>(page_bytes / 4)});
    return tables;
}

void LoadedModel::allocate_activations(std::uint32_t rows, const Tables& tables, const Tables& adapted, bool apart) {
    Lifetimes lifetimes;
    const auto add = [&](const Activations& a, const Tables& tables_of) {
        for (const DispatchTable& t : tables_of({*device_, config_, a, step_})) a.add_lifetimes(t, lifetimes);
    };
    model_->reserve(*device_, activations_, context_);
    activations_.measure(*device_, rows);
    add(activations_, tables);
    if (adapted) {
        Activations wide;
        wide.widen();
        model_->reserve(*device_, wide, context_);
        wide.measure(*device_, rows);
        add(wide, adapted);
    }
    memory_.add_activations(activations_, activations_.allocate(*device_, apart ? nullptr : &lifetimes));
}

}  // namespace akunu
