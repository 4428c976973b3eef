// Adapters: the adapters of an engine (adapters.h has their memory), and which sequence has which. They come and go
// while sequences run. Steps in which no sequence has one run the programs that there are without them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/adapters.h"
#include "engine/engine_context.h"
#include "engine/step_programs.h"

namespace akunu {

class Adapters {
  public:
    explicit Adapters(const EngineContext& context) : engine_(context), programs_(context) {}

    // Adds an adapter and returns its number. Sequences that have none are computed as before. UnsupportedError where
    // the device has no kernels for adapters.
    std::uint32_t add(std::span<const AdapterTensors> tensors);
    // Throws where a sequence has it, or where there is none of this number.
    void remove(std::uint32_t number);

    // Throws where there is no such adapter.
    void check(const AdapterChoice& choice) const;
    // A slot's sequence has this adapter from now on, or none.
    void choose(std::uint32_t slot, const AdapterChoice& choice);

    // The programs of steps in which some sequence has an adapter, and what they are planned for.
    PlanContext plan() const;
    const Program& body(Phase phase) { return programs_.body(plan(), phase); }
    const Program& tail(const TailKey& key) { return programs_.tail(plan(), key); }
    // Whether some adapter changes the logits' layer: without one, tails are those without adapters.
    bool changes_tail() const;

  private:
    bool has(std::uint32_t number) const { return slots_ && slots_->has(number); }
    // Makes room for what programs with adapters have besides those without.
    void reserve();
    void count_memory();

    const EngineContext& engine_;
    StepPrograms programs_;
    std::unique_ptr<AdapterSlots> slots_;
    Binding choices_;
    std::uint64_t bytes_ = 0;
};

}  // namespace akunu
