// GPU time of every command of a step.
#pragma once

#import "metal/host/encoder.h"

namespace akunu::metal {

class Profiler {
  public:
    Profiler(id<MTLDevice> device, id<MTLCommandQueue> queue, const Resolver& resolver, void* dummy)
        : device_(device), queue_(queue), resolver_(resolver), dummy_(dummy) {}

    // Runs the commands once, with an encoder for every one, and adds each one's seconds.
    void run(std::span<const StepCommand> commands, std::span<double> seconds);

  private:
    id<MTLCounterSet> timestamps() const;
    void with_counters(id<MTLCounterSet> set, std::span<const StepCommand> commands, std::span<double> seconds);
    void with_buffers(std::span<const StepCommand> commands, std::span<double> seconds);
    static void finish(id<MTLCommandBuffer> buffer, const StepCommand& first);

    id<MTLDevice> device_;
    id<MTLCommandQueue> queue_;
    const Resolver& resolver_;
    void* dummy_;
};

}  // namespace akunu::metal
