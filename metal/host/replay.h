// Runs steps: several command buffers in flight, one behind the other by a fence, errors named.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>

#import "metal/host/encoder.h"
#import "metal/host/indirect.h"

namespace akunu::metal {

// How much a command buffer may hold: it ends at the next barrier behind that.
struct BufferLimit {
    double seconds;
    double bytes_per_second, flops_per_second;

    double seconds_of(const Cost& cost, const ReplayArgs& args) const {
        return std::max(cost_bytes(cost, args) / bytes_per_second, cost_flops(cost, args) / flops_per_second);
    }
};

// How many times as long as was predicted command buffers of a kind take, by those that have run: never less than once,
// since what is predicted is the most that a chip is known to reach.
class Pace {
  public:
    double times() const { return times_; }
    void measured(double predicted, double seconds) {
        if (predicted <= 0 || seconds <= 0) return;
        times_ = std::clamp((times_ + seconds / predicted) / 2, 1.0, kMost);
    }

  private:
    static constexpr double kMost = 10;
    double times_ = 1;
};

class Replay {
  public:
    // Chains run by `indirect` where it is given, which is slower to begin and cheaper per token.
    Replay(id<MTLDevice> device, id<MTLCommandQueue> queue, Residency& residency, const Resolver& resolver, void* dummy,
           Indirect* indirect, const BufferLimit& limit);
    ~Replay() { drain(); }

    // What the host does before this command of the first step is submitted, once those before it are.
    struct Errand {
        const Meanwhile& run;
        std::size_t before;
    };
    // As Device::replay, of a chain whose segments have these commands.
    std::uint32_t run(std::vector<StepCommand> commands, const Chain& chain, const Control& control, const Poll& poll,
                      const Errand& errand);
    // Waits until the GPU has let go of everything.
    void drain();

  private:
    struct Submitted {
        id<MTLCommandBuffer> buffer;
        std::uint64_t value;  // of the event, when it is done
        std::uint32_t first_step;
        double predicted;  // seconds, at a pace of 1
    };
    // How far a replay is.
    struct Cursor {
        std::uint32_t step = 0;
        std::size_t command = 0;
        auto operator<=>(const Cursor&) const = default;
    };
    // Submits up to `last`, or less if the work is to be cut; returns where it ended.
    Cursor submit(std::span<const StepCommand> commands, const Chain& chain, Cursor at, Cursor last, bool cut);
    void submit_indirect(std::uint32_t first, std::uint32_t last, double predicted);
    // Encodes one command buffer, chained to those before it; `encode` returns the seconds that it should take.
    template <typename Encode>
    void submit_buffer(std::uint32_t first_step, const Encode& encode);
    // Of chains of tokens, which wait for the memory, and of steps of many rows.
    Pace& pace(std::span<const StepCommand> commands) {
        return paces_[std::ranges::any_of(
            commands, [](const ReplayArgs& args) { return args.rows > args.sequences; }, &StepCommand::args)];
    }
    // False when it failed.
    bool wait(const Submitted& work, const std::function<void()>& meanwhile);
    [[noreturn]] void fail(std::span<const StepCommand> commands, const Chain& chain);
    const StepCommand* faulted(std::span<const StepCommand> commands, const Chain& chain, std::uint32_t step);

    id<MTLDevice> device_;
    id<MTLCommandQueue> queue_;
    Residency& residency_;
    id<MTLFence> fence_;        // orders command buffers on the GPU
    id<MTLSharedEvent> event_;  // tells the host how far they are
    const Resolver& resolver_;
    void* dummy_;
    Indirect* indirect_;
    BufferLimit limit_;
    std::array<Pace, 2> paces_;
    std::uint64_t value_ = 0;
    std::deque<Submitted> submitted_;
};

}  // namespace akunu::metal
