#import "metal/host/profile.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/error.h"

namespace akunu::metal {

namespace {

// A sample buffer holds 32 KB; a command takes two samples of 8 bytes.
constexpr std::size_t kCommandsPerBuffer = 1024;

}  // namespace

id<MTLCounterSet> Profiler::timestamps() const {
    if (![device_ supportsCounterSampling:MTLCounterSamplingPointAtStageBoundary]) return nil;
    for (id<MTLCounterSet> set in device_.counterSets) {
        if ([set.name isEqualToString:MTLCommonCounterSetTimestamp]) return set;
    }
    return nil;
}

void Profiler::run(std::span<const StepCommand> commands, std::span<double> seconds) {
    if (id<MTLCounterSet> set = timestamps()) {
        with_counters(set, commands, seconds);
    } else {
        with_buffers(commands, seconds);
    }
}

void Profiler::finish(id<MTLCommandBuffer> buffer, const StepCommand& first) {
    [buffer commit];
    [buffer waitUntilCompleted];
    if (buffer.status != MTLCommandBufferStatusError) return;
    throw DeviceError("the GPU failed while profiling table '" + first.table->phase + "': " + error_text(buffer.error));
}

void Profiler::with_counters(id<MTLCounterSet> set, std::span<const StepCommand> commands, std::span<double> seconds) {
    MTLTimestamp cpu_before = 0, gpu_before = 0, cpu_after = 0, gpu_after = 0;
    std::vector<double> ticks(commands.size());
    [device_ sampleTimestamps:&cpu_before gpuTimestamp:&gpu_before];
    for (std::size_t first = 0; first < commands.size(); first += kCommandsPerBuffer) {
        const std::size_t n = std::min(kCommandsPerBuffer, commands.size() - first);
        MTLCounterSampleBufferDescriptor* descriptor = [MTLCounterSampleBufferDescriptor new];
        descriptor.counterSet = set;
        descriptor.storageMode = MTLStorageModeShared;
        descriptor.sampleCount = 2 * n;
        NSError* error = nil;
        id<MTLCounterSampleBuffer> samples = [device_ newCounterSampleBufferWithDescriptor:descriptor error:&error];
        if (!samples) throw DeviceError("no GPU timestamps: " + error_text(error));
        id<MTLCommandBuffer> buffer = [queue_ commandBuffer];
        id<MTLFence> fence = [device_ newFence];  // nothing else keeps one encoder behind another
        for (std::size_t i = 0; i < n; ++i) {
            MTLComputePassDescriptor* pass = [MTLComputePassDescriptor computePassDescriptor];
            pass.dispatchType = MTLDispatchTypeSerial;
            pass.sampleBufferAttachments[0].sampleBuffer = samples;
            pass.sampleBufferAttachments[0].startOfEncoderSampleIndex = 2 * i;
            pass.sampleBufferAttachments[0].endOfEncoderSampleIndex = 2 * i + 1;
            id<MTLComputeCommandEncoder> compute = [buffer computeCommandEncoderWithDescriptor:pass];
            encode_alone(compute, fence, i == 0, resolver_, dummy_, commands[first + i], commands[first + i].args);
        }
        finish(buffer, commands[first]);
        NSData* data = [samples resolveCounterRange:NSMakeRange(0, 2 * n)];
        if (!data) throw DeviceError("the GPU's timestamps cannot be read");
        const auto* stamp = static_cast<const MTLCounterResultTimestamp*>(data.bytes);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint64_t begin = stamp[2 * i].timestamp, end = stamp[2 * i + 1].timestamp;
            if (begin == MTLCounterErrorValue || end == MTLCounterErrorValue) continue;
            ticks[first + i] = static_cast<double>(end - begin);
        }
    }
    [device_ sampleTimestamps:&cpu_after gpuTimestamp:&gpu_after];
    // The host's clock is in nanoseconds.
    const double tick = gpu_after > gpu_before
                            ? static_cast<double>(cpu_after - cpu_before) / static_cast<double>(gpu_after - gpu_before)
                            : 1;
    for (std::size_t i = 0; i < ticks.size(); ++i) seconds[i] += ticks[i] * tick * 1e-9;
}

void Profiler::with_buffers(std::span<const StepCommand> commands, std::span<double> seconds) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
        @autoreleasepool {
            id<MTLCommandBuffer> buffer = [queue_ commandBuffer];
            id<MTLComputeCommandEncoder> compute = [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
            encode_alone(compute, nil, true, resolver_, dummy_, commands[i], commands[i].args);
            finish(buffer, commands[i]);
            seconds[i] += buffer.GPUEndTime - buffer.GPUStartTime;
        }
    }
}

}  // namespace akunu::metal
