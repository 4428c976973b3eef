// GPU time of every command of a table.
#pragma once

#import "metal/host/encoder.h"

namespace akunu::metal {

class Profiler {
  public:
    Profiler(id<MTLDevice> device, id<MTLCommandQueue> queue, const Resolver& resolver, void* dummy)
        : device_(device), queue_(queue), resolver_(resolver), dummy_(dummy) {}

    // Runs the table once, with an encoder for every command, and adds each command's seconds.
    void run(const DispatchTable& table, const ReplayArgs& args, std::span<double> seconds);

  private:
    id<MTLCounterSet> timestamps() const;
    void with_counters(id<MTLCounterSet> set, const DispatchTable& table, const ReplayArgs& args,
                       std::span<double> seconds);
    void with_buffers(const DispatchTable& table, const ReplayArgs& args, std::span<double> seconds);
    static void finish(id<MTLCommandBuffer> buffer, const DispatchTable& table);

    id<MTLDevice> device_;
    id<MTLCommandQueue> queue_;
    const Resolver& resolver_;
    void* dummy_;
};

}  // namespace akunu::metal
