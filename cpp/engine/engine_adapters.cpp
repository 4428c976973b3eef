#include "engine/engine_adapters.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace akunu {

PlanContext Adapters::plan() const {
    PlanContext plan = engine_.plan(engine_.step);
    plan.adapters = &slots_->plan();
    return plan;
}

void Adapters::reserve() {
    engine_.activations.widen();
    engine_.model.reserve(engine_.device, engine_.activations, engine_.context);
    engine_.activations.measure(engine_.device, engine_.step.max_rows);
    engine_.memory.add_activations(engine_.activations, engine_.activations.allocate(engine_.device));
    const std::uint32_t parallel = engine_.sequences.size();
    if (!choices_) choices_ = engine_.own(std::uint64_t{parallel} * sizeof(AdapterChoice), &MemoryUse::scratch);
    std::fill_n(choices_.host<AdapterChoice>(), parallel, AdapterChoice{0, 1});
    slots_ = std::make_unique<AdapterSlots>(engine_.model.linears());
    slots_->set_choices(choices_);
}

std::uint32_t Adapters::add(std::span<const AdapterTensors> tensors) {
    if (const std::uint32_t cards = engine_.device.traits().cards; cards > 1) {
        throw UnsupportedError("adapters do not change a model on " + std::to_string(cards) +
                               " GPUs, of which each has a part; name one, as in device='cuda:0'");
    }
    if (!slots_) reserve();
    bool changed = false;
    std::uint32_t number = kMaxAdapters;
    try {
        number = slots_->add(engine_.device, tensors, engine_.step.max_rows, changed);
        if (changed) programs_.forget();
        for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) body(phase);
        if (changes_tail()) tail({});
    } catch (...) {
        if (changed) programs_.forget();
        if (number != kMaxAdapters) slots_->remove(number);
        if (!slots_->any()) slots_.reset();
        throw;
    }
    count_memory();
    return number;
}

void Adapters::remove(std::uint32_t number) {
    check({number + 1, 1});
    const auto has_it = [&](const Sequence& s) { return s.open && s.adapter.number == number + 1; };
    if (std::ranges::any_of(engine_.sequences, has_it)) {
        throw InvalidArgumentError("adapter " + std::to_string(number) + " is that of a sequence that runs");
    }
    slots_->remove(number);
    if (!slots_->any()) {
        programs_.forget();
        slots_.reset();
    }
    count_memory();
}

void Adapters::check(const AdapterChoice& choice) const {
    if (choice.number == 0 || has(choice.number - 1)) return;
    throw InvalidArgumentError("there is no adapter of number " + std::to_string(choice.number - 1));
}

void Adapters::choose(std::uint32_t slot, const AdapterChoice& choice) {
    engine_.sequences[slot].adapter = choice;
    if (choices_) choices_.host<AdapterChoice>()[slot] = choice;
}

bool Adapters::changes_tail() const {
    const std::uint32_t output = engine_.model.output_linear();
    return output != 0 && slots_->plan().parts.at(output - 1).max_rank != 0;
}

void Adapters::count_memory() {
    const std::uint64_t bytes = slots_ ? slots_->bytes() : 0;
    engine_.memory.weights += bytes - bytes_;
    bytes_ = bytes;
}

}  // namespace akunu
