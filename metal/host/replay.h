// Runs tables: several command buffers in flight, chained by an event, errors named.
#pragma once

#include <deque>
#include <functional>

#import "metal/host/encoder.h"
#import "metal/host/indirect.h"

namespace akunu::metal {

class Replay {
  public:
    // Chains run by `indirect` where it is given, which is slower to begin and cheaper per token. A command buffer ends
    // at the next barrier when it holds more than `flops_per_buffer`.
    Replay(id<MTLDevice> device, const Resolver& resolver, void* dummy, Indirect* indirect, double flops_per_buffer);
    ~Replay() { drain(); }

    // As Device::replay.
    std::uint32_t run(const DispatchTable& table, const ReplayArgs& args, Control& control,
                      const std::function<bool()>& poll);
    // Waits until the GPU has let go of everything.
    void drain();

    id<MTLCommandQueue> queue() const { return queue_; }

  private:
    struct Submitted {
        id<MTLCommandBuffer> buffer;
        std::uint64_t value;  // of the event, when it is done
        std::uint32_t first_step;
    };
    // How far a replay is.
    struct Cursor {
        std::uint32_t step = 0;
        std::size_t command = 0;
    };
    // Submits up to step `last`, or less if the work is to be cut; returns where it ended.
    Cursor submit(const DispatchTable& table, const ReplayArgs& args, Cursor at, std::uint32_t last, bool cut);
    void submit_indirect(std::uint32_t first, std::uint32_t last);
    // Encodes one command buffer, chained to those before it.
    template <typename Encode>
    void submit_buffer(std::uint32_t first_step, const Encode& encode);
    // False when it failed.
    bool wait(const Submitted& work, const std::function<void()>& meanwhile);
    [[noreturn]] void fail(const DispatchTable& table, const ReplayArgs& args);
    std::string faulted_command(const DispatchTable& table, const ReplayArgs& args, std::uint32_t step);

    id<MTLDevice> device_;
    id<MTLCommandQueue> queue_;
    id<MTLSharedEvent> event_;
    const Resolver& resolver_;
    void* dummy_;
    Indirect* indirect_;
    double flops_per_buffer_;
    std::uint64_t value_ = 0;
    std::deque<Submitted> submitted_;
};

}  // namespace akunu::metal
