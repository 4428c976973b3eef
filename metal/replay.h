// Runs tables: several command buffers in flight, chained by an event, errors named.
#pragma once

#include <deque>
#include <functional>

#import "metal/encoder.h"
#import "metal/indirect.h"

namespace akunu::metal {

class Replay {
  public:
    // Chains run by `indirect` where it is given, which is slower to begin and cheaper per token.
    Replay(id<MTLDevice> device, const Plans& plans, void* dummy, Indirect* indirect);
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
    void submit(const DispatchTable& table, const ReplayArgs& args, std::uint32_t first, std::uint32_t last,
                Indirect* indirect);
    // False when it failed.
    bool wait(const Submitted& work, const std::function<void()>& meanwhile);
    [[noreturn]] void fail(const DispatchTable& table, const ReplayArgs& args);
    std::string faulted_command(const DispatchTable& table, const ReplayArgs& args, std::uint32_t step);

    id<MTLCommandQueue> queue_;
    id<MTLSharedEvent> event_;
    const Plans& plans_;
    void* dummy_;
    Indirect* indirect_;
    std::uint64_t value_ = 0;
    std::deque<Submitted> submitted_;
};

}  // namespace akunu::metal
