// API calls one by one.  Misuse must end the process with a message that names it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include "cases.h"
#include "metal/control.h"

namespace sample {
namespace {
constexpr const char* kSource = R"(#include <metal_stdlib>
using namespace metal;
constant uint N [[function_constant(0)]];
constant bool HAS_BIAS [[function_constant(1)]];
struct P { uint a, b, c, d; };
kernel void add_one(device float* x [[buffer(0)]], constant P& p [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] += float(p.a); }
kernel void copy(device const float4* a [[buffer(0)]], device float4* b [[buffer(1)]], uint i [[thread_position_in_grid]]) { b[i] = a[i]; }
kernel void scratch(device float* x [[buffer(0)]], threadgroup float* t [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
    t[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); x[i] = t[31 - i]; }
kernel void sized(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = float(N); }
kernel void biased(device float* x [[buffer(0)]], device const float* b [[buffer(1), function_constant(HAS_BIAS)]], uint i [[thread_position_in_grid]]) {
    x[i] = HAS_BIAS ? b[i] : 7.0f; }
[[kernel, max_total_threads_per_threadgroup(64)]] void small(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 1.0f; }
kernel void patch(device uint* params [[buffer(0)]], uint i [[thread_position_in_grid]]) { params[0] += 1; }
)";
struct P {
    unsigned a, b, c, d;
};

/// A device, a queue, a library, one command buffer with an open encoder.
struct Scene {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    id<MTLCommandQueue> queue = [device newCommandQueue];
    id<MTLLibrary> library;
    id<MTLCommandBuffer> command;
    id<MTLComputeCommandEncoder> encoder;
    id<MTLBuffer> buffer = [device newBufferWithLength:1024 options:MTLResourceStorageModeShared];
    MTLSize one = MTLSizeMake(1, 1, 1), simd = MTLSizeMake(32, 1, 1);

    explicit Scene(MTLDispatchType type = MTLDispatchTypeSerial) {
        MTLCompileOptions* options = [MTLCompileOptions new];
        options.mathMode = MTLMathModeSafe;
        options.languageVersion = MTLLanguageVersion3_1;
        NSError* e = nil;
        library = [device newLibraryWithSource:@(kSource) options:options error:&e];
        if (!library) printf("%s\n", e.localizedDescription.UTF8String);
        memset(buffer.contents, 0, 1024);
        command = [queue commandBuffer];
        encoder = [command computeCommandEncoderWithDispatchType:type];
    }
    id<MTLComputePipelineState> pipeline(const char* name, MTLFunctionConstantValues* values = nil,
                                         bool indirect = false) {
        NSError* e = nil;
        id<MTLFunction> f = values ? [library newFunctionWithName:@(name) constantValues:values error:&e]
                                   : [library newFunctionWithName:@(name)];
        if (!f) {
            printf("function: %s\n", e.localizedDescription.UTF8String);
            return nil;
        }
        MTLComputePipelineDescriptor* d = [MTLComputePipelineDescriptor new];
        d.computeFunction = f;
        d.supportIndirectCommandBuffers = indirect;
        id<MTLComputePipelineState> p = [device newComputePipelineStateWithDescriptor:d
                                                                              options:MTLPipelineOptionNone
                                                                           reflection:nil
                                                                                error:&e];
        if (!p) printf("pipeline: %s\n", e.localizedDescription.UTF8String);
        return p;
    }
    void set(const char* name) { [encoder setComputePipelineState:pipeline(name)]; }
    void bind_add_one() {
        const P p{1, 0, 0, 0};
        set("add_one");
        [encoder setBuffer:buffer offset:0 atIndex:0];
        [encoder setBytes:&p length:sizeof p atIndex:1];
    }
    void finish() {
        [encoder endEncoding];
        [command commit];
        [command waitUntilCompleted];
    }
    float value(size_t i = 0) const { return static_cast<const float*>(buffer.contents)[i]; }
};

void two_encoders(bool with_fence);
void two_command_buffers(const char* between);

void add_misuse(Cases& c) {
    c["encoders_without_a_fence"] = [] { two_encoders(false); };
    c["command_buffers_without_a_fence"] = [] { two_command_buffers("nothing"); };
    c["command_buffers_with_a_fence_of_another"] = [] { two_command_buffers("another fence"); };
    c["indirect_encoded_twice"] = [] {
        Scene s;
        MTLIndirectCommandBufferDescriptor* d = [MTLIndirectCommandBufferDescriptor new];
        d.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
        d.inheritBuffers = d.inheritPipelineState = NO;
        d.maxKernelBufferBindCount = 4;
        id<MTLIndirectCommandBuffer> icb = [s.device newIndirectCommandBufferWithDescriptor:d
                                                                            maxCommandCount:1
                                                                                    options:0];
        id<MTLIndirectComputeCommand> command = [icb indirectComputeCommandAtIndex:0];
        [command setComputePipelineState:s.pipeline("copy", nil, true)];
        [command concurrentDispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
        [command concurrentDispatchThreadgroups:s.simd threadsPerThreadgroup:s.simd];
    };
    c["missing_binding"] = [] {
        Scene s;
        s.set("add_one");
        [s.encoder setBuffer:s.buffer offset:0 atIndex:0];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    };
    c["offset_past_end"] = [] {
        Scene s;
        s.set("add_one");
        [s.encoder setBuffer:s.buffer offset:1024 atIndex:0];
    };
    c["offset_misaligned"] = [] {
        Scene s;
        s.bind_add_one();
        [s.encoder setBufferOffset:2 atIndex:0];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    };
    c["vector_offset_misaligned"] = [] {
        Scene s;
        s.set("copy");
        [s.encoder setBuffer:s.buffer offset:8 atIndex:0];
        [s.encoder setBuffer:s.buffer offset:512 atIndex:1];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
    };
    c["buffer_index"] = [] {
        Scene s;
        [s.encoder setBuffer:s.buffer offset:0 atIndex:31];
    };
    c["constant_too_small"] = [] {
        Scene s;
        s.set("add_one");
        unsigned u = 1;
        [s.encoder setBuffer:s.buffer offset:0 atIndex:0];
        [s.encoder setBytes:&u length:4 atIndex:1];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    };
    c["set_bytes_too_long"] = [] {
        Scene s;
        std::vector<char> b(4097);
        [s.encoder setBytes:b.data() length:b.size() atIndex:0];
    };
    c["set_bytes_writable"] = [] {
        Scene s;
        s.bind_add_one();
        float f = 0;
        [s.encoder setBytes:&f length:4 atIndex:0];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
    };
    c["threadgroup_length_multiple"] = [] {
        Scene s;
        [s.encoder setThreadgroupMemoryLength:40 atIndex:0];
    };
    c["threadgroup_length_limit"] = [] {
        Scene s;
        [s.encoder setThreadgroupMemoryLength:32784 atIndex:0];
    };
    c["threadgroup_length_missing"] = [] {
        Scene s;
        s.set("scratch");
        [s.encoder setBuffer:s.buffer offset:0 atIndex:0];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    };
    c["too_many_threads"] = [] {
        Scene s;
        s.bind_add_one();
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:MTLSizeMake(1025, 1, 1)];
    };
    c["too_many_threads_for_kernel"] = [] {
        Scene s;
        s.set("small");
        [s.encoder setBuffer:s.buffer offset:0 atIndex:0];
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:MTLSizeMake(65, 1, 1)];
    };
    c["no_pipeline"] = [] {
        Scene s;
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    };
    c["open_encoder_at_commit"] = [] {
        Scene s;
        [s.command commit];
    };
    c["second_encoder"] = [] {
        Scene s;
        (void)[s.command computeCommandEncoder];
    };
    c["use_after_end"] = [] {
        Scene s;
        [s.encoder endEncoding];
        s.bind_add_one();
    };
    c["double_commit"] = [] {
        Scene s;
        s.bind_add_one();
        s.finish();
        [s.command commit];
    };
    c["encode_after_commit"] = [] {
        Scene s;
        s.finish();
        (void)[s.command computeCommandEncoder];
    };
    c["handler_after_commit"] = [] {
        Scene s;
        s.finish();
        [s.command addCompletedHandler:^(id<MTLCommandBuffer>){
        }];
    };
    c["wait_before_commit"] = [] {
        Scene s;
        [s.encoder endEncoding];
        [s.command waitUntilCompleted];
    };
    c["encoder_dropped"] = [] {
        @autoreleasepool {
            Scene s;
            s.encoder = nil;
            s.command = nil;
        }
    };
    c["signal_while_encoding"] = [] {
        Scene s;
        [s.command encodeSignalEvent:[s.device newSharedEvent] value:1];
    };
    c["no_copy_misaligned"] = [] {
        Scene s;
        std::vector<char> b(8192);
        (void)[s.device newBufferWithBytesNoCopy:b.data() + 8 length:4096 options:0 deallocator:nil];
    };
    c["buffer_freed_in_flight"] = [] {
        metal_emulator_set("delay_us", 50000);
        Scene s;
        [s.encoder endEncoding];
        id<MTLCommandBuffer> cb = [s.queue commandBufferWithUnretainedReferences];
        id<MTLComputeCommandEncoder> e = [cb computeCommandEncoder];
        [e setComputePipelineState:s.pipeline("small")];
        @autoreleasepool {
            id<MTLBuffer> b = [s.device newBufferWithLength:256 options:0];
            [e setBuffer:b offset:0 atIndex:0];
            [e dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
            [e endEncoding];
            [cb commit];
            b = nil;
        }
        [cb waitUntilCompleted];
    };
    c["host_writes_past_end"] = [] {
        Scene s;
        [s.encoder endEncoding];
        @autoreleasepool {
            id<MTLBuffer> b = [s.device newBufferWithLength:10 options:0];
            static_cast<char*>(b.contents)[11] = 1;
        }
    };
    c["icb_without_use_resource"] = [] {
        Scene s;
        MTLIndirectCommandBufferDescriptor* d = [MTLIndirectCommandBufferDescriptor new];
        d.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
        d.inheritBuffers = NO;
        d.inheritPipelineState = NO;
        d.maxKernelBufferBindCount = 4;
        id<MTLIndirectCommandBuffer> icb = [s.device newIndirectCommandBufferWithDescriptor:d
                                                                            maxCommandCount:1
                                                                                    options:0];
        id<MTLIndirectComputeCommand> cmd = [icb indirectComputeCommandAtIndex:0];
        [cmd setComputePipelineState:s.pipeline("patch", nil, true)];
        [cmd setKernelBuffer:s.buffer offset:0 atIndex:0];
        [cmd concurrentDispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
        [s.encoder executeCommandsInBuffer:icb withRange:NSMakeRange(0, 1)];
    };
    c["icb_pipeline_not_allowed"] = [] {
        Scene s;
        MTLIndirectCommandBufferDescriptor* d = [MTLIndirectCommandBufferDescriptor new];
        d.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
        d.inheritPipelineState = NO;
        [[[s.device newIndirectCommandBufferWithDescriptor:d maxCommandCount:1
                                                   options:0] indirectComputeCommandAtIndex:0]
            setComputePipelineState:s.pipeline("patch")];
    };
}

/// Two encoders add one to an untracked buffer; `fence` is between them.
void two_encoders(bool with_fence) {
    Scene s;
    s.buffer = [s.device newBufferWithLength:1024
                                     options:MTLResourceStorageModeShared | MTLResourceHazardTrackingModeUntracked];
    memset(s.buffer.contents, 0, 1024);
    id<MTLFence> fence = [s.device newFence];
    for (int i = 0; i < 3; ++i) {
        if (i) s.encoder = [s.command computeCommandEncoder];
        if (i && with_fence) [s.encoder waitForFence:fence];
        s.bind_add_one();
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
        if (with_fence) [s.encoder updateFence:fence];
        if (i < 2) [s.encoder endEncoding];
    }
    s.finish();
    printf("value=%g\n", static_cast<double>(s.value()));
}

/// Three command buffers of a queue add one to an untracked buffer; `between` keeps one behind the other.
void two_command_buffers(const char* between) {
    Scene s;
    [s.encoder endEncoding];
    metal_emulator_set("delay_us", 20000);  // so that the first is in flight when the next is committed
    s.buffer = [s.device newBufferWithLength:1024
                                     options:MTLResourceStorageModeShared | MTLResourceHazardTrackingModeUntracked];
    id<MTLFence> fence = [s.device newFence];
    id<MTLEvent> event = [s.device newEvent];
    for (uint64_t i = 0; i < 3; ++i) {
        s.command = [s.queue commandBuffer];
        if (!strcmp(between, "event")) [s.command encodeWaitForEvent:event value:i];
        s.encoder = [s.command computeCommandEncoder];
        if (!strcmp(between, "fence")) [s.encoder waitForFence:fence];
        if (!strcmp(between, "another fence")) [s.encoder waitForFence:[s.device newFence]];
        s.bind_add_one();
        [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
        if (strstr(between, "fence")) [s.encoder updateFence:fence];
        [s.encoder endEncoding];
        if (!strcmp(between, "event")) [s.command encodeSignalEvent:event value:i + 1];
        [s.command commit];
        if (!strcmp(between, "wait")) [s.command waitUntilCompleted];
    }
    [s.command waitUntilCompleted];
    printf("value=%g\n", static_cast<double>(s.value()));
}

/// A patch kernel and its user as indirect commands, executed twice.
void indirect() {
    Scene s;
    MTLIndirectCommandBufferDescriptor* d = [MTLIndirectCommandBufferDescriptor new];
    d.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
    d.inheritBuffers = NO;
    d.inheritPipelineState = NO;
    d.maxKernelBufferBindCount = 4;
    id<MTLBuffer> params = [s.device newBufferWithLength:16 options:0];
    memset(params.contents, 0, 16);
    id<MTLIndirectCommandBuffer> icb = [s.device newIndirectCommandBufferWithDescriptor:d maxCommandCount:4 options:0];
    id<MTLIndirectComputeCommand> a = [icb indirectComputeCommandAtIndex:0], b = [icb indirectComputeCommandAtIndex:1];
    [a setComputePipelineState:s.pipeline("patch", nil, true)];
    [a setKernelBuffer:params offset:0 atIndex:0];
    [a concurrentDispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
    [b setComputePipelineState:s.pipeline("add_one", nil, true)];
    [b setKernelBuffer:s.buffer offset:0 atIndex:0];
    [b setKernelBuffer:params offset:0 atIndex:1];
    [b setBarrier];
    [b concurrentDispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
    for (int i = 0; i < 2; ++i) {
        [s.encoder useResource:s.buffer usage:MTLResourceUsageRead | MTLResourceUsageWrite];
        [s.encoder useResource:params usage:MTLResourceUsageRead | MTLResourceUsageWrite];
        [s.encoder executeCommandsInBuffer:icb withRange:NSMakeRange(0, 4)];
    }
    s.finish();
    printf("value=%g status=%lu\n", static_cast<double>(s.value(31)), static_cast<unsigned long>(s.command.status));
}

/// Two queues that hand over to each other by a shared event, ten times.
void event_chain() {
    Scene s;
    [s.encoder endEncoding];
    id<MTLCommandQueue> other = [s.device newCommandQueue];
    id<MTLSharedEvent> event = [s.device newSharedEvent];
    const P p{1, 0, 0, 0};
    __block int handled = 0;
    id<MTLCommandBuffer> last = nil;
    for (uint64_t i = 0; i < 10; ++i) {
        id<MTLCommandBuffer> cb = i % 2 ? [other commandBuffer] : [s.queue commandBuffer];
        if (i) [cb encodeWaitForEvent:event value:i];
        id<MTLComputeCommandEncoder> e = [cb computeCommandEncoder];
        [e setComputePipelineState:s.pipeline("add_one")];
        [e setBuffer:s.buffer offset:0 atIndex:0];
        [e setBytes:&p length:sizeof p atIndex:1];
        [e dispatchThreads:MTLSizeMake(40, 1, 1) threadsPerThreadgroup:s.simd];
        [e endEncoding];
        [cb encodeSignalEvent:event value:i + 1];
        [cb addCompletedHandler:^(id<MTLCommandBuffer>) {
          __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
        }];
        [cb commit];
        last = cb;
    }
    const BOOL done = [event waitUntilSignaledValue:10 timeoutMS:20000];
    [last waitUntilCompleted];
    metal_emulator_drain();
    printf("done=%d value=%g beyond=%g handled=%d time=%d\n", done, static_cast<double>(s.value(39)),
           static_cast<double>(s.value(40)), handled, last.GPUEndTime >= last.GPUStartTime && last.GPUStartTime > 0);
}

void constants() {
    Scene s;
    MTLFunctionConstantValues* v = [MTLFunctionConstantValues new];
    id<MTLComputePipelineState> none = s.pipeline("sized");
    (void)s.pipeline("sized", v);
    const bool wrong = true;
    [v setConstantValue:&wrong type:MTLDataTypeBool atIndex:0];
    (void)s.pipeline("sized", v);
    [v reset];
    const unsigned n = 42;
    [v setConstantValue:&n type:MTLDataTypeUInt atIndex:0];
    [s.encoder setComputePipelineState:s.pipeline("sized", v)];
    [s.encoder setBuffer:s.buffer offset:0 atIndex:0];
    [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
    MTLFunctionConstantValues* off = [MTLFunctionConstantValues new];
    const bool no = false;
    [off setConstantValue:&no type:MTLDataTypeBool withName:@"HAS_BIAS"];
    [s.encoder setComputePipelineState:s.pipeline("biased", off)];
    [s.encoder setBuffer:s.buffer offset:64 atIndex:0];
    [s.encoder dispatchThreadgroups:s.one threadsPerThreadgroup:s.one];
    s.finish();
    printf("none=%d value=%g switched_off=%g\n", none != nil, static_cast<double>(s.value()),
           static_cast<double>(s.value(16)));
}

void timestamps() {
    Scene s;
    [s.encoder endEncoding];
    MTLCounterSampleBufferDescriptor* d = [MTLCounterSampleBufferDescriptor new];
    d.counterSet = s.device.counterSets[0];
    d.sampleCount = 4;
    NSError* e = nil;
    id<MTLCounterSampleBuffer> samples = [s.device newCounterSampleBufferWithDescriptor:d error:&e];
    id<MTLCommandBuffer> cb = [s.queue commandBuffer];
    for (NSUInteger i = 0; i < 2; ++i) {
        MTLComputePassDescriptor* pass = [MTLComputePassDescriptor computePassDescriptor];
        pass.sampleBufferAttachments[0].sampleBuffer = samples;
        pass.sampleBufferAttachments[0].startOfEncoderSampleIndex = 2 * i;
        pass.sampleBufferAttachments[0].endOfEncoderSampleIndex = 2 * i + 1;
        id<MTLComputeCommandEncoder> enc = [cb computeCommandEncoderWithDescriptor:pass];
        [enc setComputePipelineState:s.pipeline("small")];
        [enc setBuffer:s.buffer offset:0 atIndex:0];
        [enc dispatchThreadgroups:s.one threadsPerThreadgroup:s.simd];
        [enc endEncoding];
    }
    [cb commit];
    [cb waitUntilCompleted];
    const auto* t = static_cast<const uint64_t*>([samples resolveCounterRange:NSMakeRange(0, 4)].bytes);
    printf("ordered=%d set=%s\n", t[0] > 0 && t[0] <= t[1] && t[1] <= t[2] && t[2] <= t[3],
           s.device.counterSets[0].name.UTF8String);
}

void errors_name_the_encoder() {
    Scene s;
    [s.encoder endEncoding];
    MTLCommandBufferDescriptor* d = [MTLCommandBufferDescriptor new];
    d.errorOptions = MTLCommandBufferErrorOptionEncoderExecutionStatus;
    id<MTLCommandBuffer> cb = [s.queue commandBufferWithDescriptor:d];
    for (const char* name : {"first", "second", "third"}) {
        id<MTLComputeCommandEncoder> e = [cb computeCommandEncoder];
        e.label = @(name);
        const bool bad = !strcmp(name, "second");
        [e setComputePipelineState:s.pipeline("small")];
        [e setBuffer:s.buffer offset:0 atIndex:0];
        [e dispatchThreadgroups:MTLSizeMake(bad ? 4096 : 1, 1, 1) threadsPerThreadgroup:s.simd];
        [e endEncoding];
    }
    [cb commit];
    [cb waitUntilCompleted];
    printf("status=%lu code=%ld %s\n", static_cast<unsigned long>(cb.status), static_cast<long>(cb.error.code),
           cb.error.localizedDescription.UTF8String);
    for (id<MTLCommandBufferEncoderInfo> info in cb.error.userInfo[MTLCommandBufferEncoderInfoErrorKey])
        printf("%s=%ld\n", info.label.UTF8String, static_cast<long>(info.errorState));
}

void no_copy() {
    Scene s;
    [s.encoder endEncoding];
    void* m = mmap(nullptr, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __block int released = 0;
    @autoreleasepool {
        id<MTLBuffer> b = [s.device newBufferWithBytesNoCopy:m
                                                      length:16384
                                                     options:MTLResourceStorageModeShared
                                                 deallocator:^(void* p, NSUInteger n) {
                                                   released = p == m && n == 16384;
                                                 }];
        printf("same=%d length=%lu\n", b.contents == m, b.length);
    }
    printf("released=%d\n", released);
}

void blit() {
    Scene s;
    [s.encoder endEncoding];
    id<MTLBuffer> to = [s.device newBufferWithLength:1024 options:0];
    static_cast<float*>(s.buffer.contents)[3] = 5;
    id<MTLCommandBuffer> cb = [s.queue commandBuffer];
    id<MTLBlitCommandEncoder> e = [cb blitCommandEncoder];
    [e fillBuffer:to range:NSMakeRange(0, 1024) value:0];
    [e copyFromBuffer:s.buffer sourceOffset:8 toBuffer:to destinationOffset:0 size:16];
    [e endEncoding];
    [cb commit];
    [cb waitUntilCompleted];
    printf("%g %g %g\n", static_cast<double>(static_cast<float*>(to.contents)[0]),
           static_cast<double>(static_cast<float*>(to.contents)[1]),
           static_cast<double>(static_cast<float*>(to.contents)[100]));
}

void properties() {
    id<MTLDevice> d = MTLCreateSystemDefaultDevice();
    metal_emulator_set("apple_family", 8);
    metal_emulator_set_device_name("Apple M2 Pro");
    printf("%s apple8=%d apple9=%d metal3=%d unified=%d threads=%lu memory=%lu\n", d.name.UTF8String,
           [d supportsFamily:MTLGPUFamilyApple8], [d supportsFamily:MTLGPUFamilyApple9],
           [d supportsFamily:MTLGPUFamilyMetal3], d.hasUnifiedMemory, d.maxThreadsPerThreadgroup.width,
           d.maxThreadgroupMemoryLength);
    const NSUInteger before = d.currentAllocatedSize;
    id<MTLBuffer> b = [d newBufferWithLength:4096 options:0];
    b.label = @"weights";
    printf("allocated=%lu label=%s zeroed=%d\n", d.currentAllocatedSize - before, b.label.UTF8String,
           *static_cast<unsigned char*>(b.contents) == 0);
    printf("too_large=%d\n", [d newBufferWithLength:d.maxBufferLength + 1 options:0] != nil);
}

/// What one message to the no-op encoder costs the host, ns.
void message_cost() {
    metal_emulator_set("noop", 1);
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    id<MTLCommandQueue> queue = [device newCommandQueue];
    id<MTLBuffer> buffer = [device newBufferWithLength:1024 options:0];
    id<MTLCommandBuffer> cb = [queue commandBuffer];
    id<MTLComputeCommandEncoder> e = [cb computeCommandEncoder];
    constexpr int kCalls = 100000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kCalls; ++i)
            [e setBuffer:buffer offset:static_cast<NSUInteger>(i & 15) * 4 atIndex:static_cast<NSUInteger>(i & 7)];
        best = std::min(
            best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCalls);
    }
    [e endEncoding];
    [cb commit];
    [cb waitUntilCompleted];
    printf("ns_per_message=%.2f\n", best);
}

void archive() {
    @autoreleasepool {
        Scene s;
        [s.encoder endEncoding];
        NSError* e = nil;
        id<MTLBinaryArchive> a = [s.device newBinaryArchiveWithDescriptor:[MTLBinaryArchiveDescriptor new] error:&e];
        MTLComputePipelineDescriptor* d = [MTLComputePipelineDescriptor new];
        d.computeFunction = [s.library newFunctionWithName:@"small"];
        d.binaryArchives = @[ a ];
        char path[] = "/tmp/archiveXXXXXX";
        close(mkstemp(path));
        NSURL* url = [NSURL fileURLWithPath:@(path)];
        const BOOL added = [a addComputePipelineFunctionsWithDescriptor:d error:&e], written = [a serializeToURL:url
                                                                                                           error:&e];
        MTLBinaryArchiveDescriptor* read = [MTLBinaryArchiveDescriptor new];
        read.url = url;
        const bool again = [s.device newBinaryArchiveWithDescriptor:read error:&e] != nil;
        if (truncate(path, 0)) printf("cannot truncate\n");
        const bool broken = [s.device newBinaryArchiveWithDescriptor:read error:&e] != nil;
        remove(path);
        printf("added=%d written=%d again=%d broken=%d code=%ld\n", added, written, again, broken,
               static_cast<long>(e.code));
    }
}
}  // namespace

void add_usage_cases(Cases& c) {
    add_misuse(c);
    c["indirect"] = indirect;
    c["encoders_with_a_fence"] = [] { two_encoders(true); };
    c["command_buffers_with_a_fence"] = [] { two_command_buffers("fence"); };
    c["command_buffers_with_an_event"] = [] { two_command_buffers("event"); };
    c["command_buffers_with_a_wait"] = [] { two_command_buffers("wait"); };
    c["event_chain"] = event_chain;
    c["constants"] = constants;
    c["timestamps"] = timestamps;
    c["errors_name_the_encoder"] = errors_name_the_encoder;
    c["no_copy"] = no_copy;
    c["blit"] = blit;
    c["properties"] = properties;
    c["archive"] = archive;
    c["message_cost"] = message_cost;
    for (auto& [name, run] : c)
        run = [inner = run] {
            @autoreleasepool {
                inner();
            }
        };
}
}  // namespace sample
