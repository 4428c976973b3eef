// Engine: adapters, which come and go while others run. Steps in which no text has one run the tables that there are
// without them.
#include <algorithm>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

std::uint32_t Engine::add_adapter(std::span<const AdapterTensors> tensors) {
    if (!adapters_) {
        activations_.widen();
        allocate_activations_again();
        if (!choices_) choices_ = own(std::uint64_t{parallel()} * sizeof(AdapterChoice), &MemoryUse::scratch);
        for (std::uint32_t slot = 0; slot < parallel(); ++slot) choices_.host<AdapterChoice>()[slot] = {0, 1};
        adapters_ = std::make_unique<AdapterSlots>(model_->linears());
        adapters_->set_choices(choices_);
    }
    bool changed = false;
    std::uint32_t number = kMaxAdapters;
    try {
        number = adapters_->add(*device_, tensors, step_.max_rows, changed);
        if (changed) forget_adapted();
        for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) body(phase, true);
        tail({}, true);
    } catch (...) {
        if (changed) forget_adapted();
        if (number != kMaxAdapters) adapters_->remove(number);
        if (!adapters_->any()) adapters_.reset();
        throw;
    }
    count_adapters();
    return number;
}

void Engine::remove_adapter(std::uint32_t number) {
    if (!adapters_ || !adapters_->has(number)) {
        throw InvalidArgumentError("there is no adapter of number " + std::to_string(number));
    }
    if (std::ranges::any_of(sequences_, [&](const Sequence& s) { return s.open && s.adapter.number == number + 1; })) {
        throw InvalidArgumentError("adapter " + std::to_string(number) + " is that of a text that runs");
    }
    adapters_->remove(number);
    if (!adapters_->any()) {
        forget_adapted();
        adapters_.reset();
    }
    count_adapters();
}

void Engine::forget_adapted() {
    adapted_bodies_.clear();
    adapted_tails_.clear();
}

void Engine::count_adapters() {
    const std::uint64_t bytes = adapters_ ? adapters_->bytes() : 0;
    memory_.weights += bytes - adapter_bytes_;
    adapter_bytes_ = bytes;
}

void Engine::allocate_activations_again() {
    model_->reserve(*device_, activations_, context_);
    memory_.scratch += activations_.allocate(*device_, step_.max_rows);
}

}  // namespace akunu
