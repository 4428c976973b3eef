// One sequence of an engine, for the drivers: a prompt in chunks, then chains.
#pragma once

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu::test {

class OneSequence {
  public:
    explicit OneSequence(Engine& engine) : engine_(engine), slot_(*engine.open()) {}
    ~OneSequence() { engine_.close(slot_); }
    OneSequence(const OneSequence&) = delete;
    OneSequence& operator=(const OneSequence&) = delete;

    std::uint32_t begin(std::span<const std::uint32_t> ids, const SamplerSettings& s, bool reuse) {
        return engine_.begin(slot_, ids, s, reuse);
    }
    // Runs the prompt; what is drawn after it.
    Produced prefill() {
        Produced out;
        while (sequence().prompting()) {
            const std::uint32_t left = sequence().known - sequence().length, rows = std::min(left, engine_.chunk());
            out = step({slot_, rows, rows == left, 1, {}}, 1, {});
        }
        return out;
    }
    // Up to n tokens, in one chain.
    Produced decode(std::uint32_t n, const Poll& poll = {}) {
        if (!sequence().pending()) throw InvalidArgumentError("decode without a token");
        const std::uint32_t steps = std::min({n, engine_.context() - sequence().length, kMaxChain});
        return steps == 0 ? Produced{} : step({slot_, 1, true, steps, {}}, steps, poll);
    }
    void truncate(std::uint32_t n) { engine_.truncate(slot_, n); }
    std::uint32_t position() const { return sequence().length; }
    std::span<const std::uint32_t> tokens() const { return engine_.tokens(slot_); }

  private:
    const Sequence& sequence() const { return engine_.sequence(slot_); }
    Produced step(const Part& part, std::uint32_t steps, const Poll& poll) {
        if (!engine_.reserve(part, steps)) throw DeviceError("no page is left");
        return engine_.step({&part, 1}, steps, poll)[0];
    }
    Engine& engine_;
    const std::uint32_t slot_;
};

}  // namespace akunu::test
