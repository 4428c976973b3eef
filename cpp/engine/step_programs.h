// StepPrograms: the programs of steps, each compiled when it runs first, and a step's segments.
#pragma once

#include <array>
#include <map>
#include <memory>

#include "engine/engine_context.h"

namespace akunu {

// The segments of a step, as they are put together.
class StepSegments {
  public:
    void add(const Program& program, const ReplayArgs& args) { all_.at(n_++) = {&program, args}; }
    Segments get() const { return std::span(all_).first(n_); }

  private:
    std::array<Segment, kMaxSegments> all_{};
    std::size_t n_ = 0;
};

class StepPrograms {
  public:
    explicit StepPrograms(const EngineContext& context) : engine_(context) {}

    const Program& body(const PlanContext& plan, Phase phase) {
        auto& p = bodies_[phase = engine_.compiled(phase)];
        if (!p) p = engine_.device.compile(engine_.model.body(plan, phase));
        return *p;
    }
    const Program& tail(const PlanContext& plan, const TailKey& key) {
        auto& p = tails_[key];
        if (!p) p = engine_.device.compile(engine_.model.tail(plan, key));
        return *p;
    }
    void forget() {
        bodies_.clear();
        tails_.clear();
    }

  private:
    const EngineContext& engine_;
    std::map<Phase, std::unique_ptr<Program>> bodies_;
    std::map<TailKey, std::unique_ptr<Program>> tails_;
};

}  // namespace akunu
