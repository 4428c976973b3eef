// The device.
#include <time.h>

#include <cstring>

#import "fake.h"

using namespace fakemetal;

namespace fakemetal {
NSError* make_error(NSErrorDomain domain, NSInteger code, const std::string& text) {
    return [NSError errorWithDomain:domain code:code userInfo:@{NSLocalizedDescriptionKey : @(text.c_str())}];
}
double now_seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
}  // namespace fakemetal

@implementation FMFence
@end

@interface FMDevice : NSObject <MTLDevice>
@end
@implementation FMDevice
- (NSString*)name {
    return @(device_name().c_str());
}
- (uint64_t)registryID {
    return 0x100000A5Cull;
}
- (MTLSize)maxThreadsPerThreadgroup {
    return MTLSizeMake(1024, 1024, 1024);
}
- (BOOL)isLowPower {
    return NO;
}
- (BOOL)isHeadless {
    return NO;
}
- (BOOL)isRemovable {
    return NO;
}
- (BOOL)hasUnifiedMemory {
    return YES;
}
- (uint64_t)recommendedMaxWorkingSetSize {
    return static_cast<uint64_t>(setting(kWorkingSet));
}
- (NSUInteger)maxBufferLength {
    return static_cast<NSUInteger>(setting(kMaxBufferLength));
}
- (NSUInteger)maxThreadgroupMemoryLength {
    return 32768;
}
- (NSUInteger)currentAllocatedSize {
    return static_cast<NSUInteger>(counter(kAllocatedBytes));
}
- (MTLArgumentBuffersTier)argumentBuffersSupport {
    return MTLArgumentBuffersTier2;
}
- (NSArray<id<MTLCounterSet>>*)counterSets {
    return FMCounterSets();
}
- (BOOL)supportsFamily:(MTLGPUFamily)f {
    if (f >= MTLGPUFamilyApple1 && f <= MTLGPUFamilyApple10) return f - 1000 <= setting(kAppleFamily);
    return f == MTLGPUFamilyMac2 || f == MTLGPUFamilyMetal3 || (f >= MTLGPUFamilyCommon1 && f <= MTLGPUFamilyCommon3);
}
- (BOOL)supportsCounterSampling:(MTLCounterSamplingPoint)p {
    return p == MTLCounterSamplingPointAtStageBoundary;
}
- (void)sampleTimestamps:(MTLTimestamp*)cpu gpuTimestamp:(MTLTimestamp*)gpu {
    *cpu = *gpu = static_cast<MTLTimestamp>(now_seconds() * 1e9);
}
- (id<MTLCommandQueue>)newCommandQueue {
    return [[FMQueue alloc] init];
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)n {
    (void)n;
    return [[FMQueue alloc] init];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)n options:(MTLResourceOptions)o {
    return FMNewBuffer(n, o);
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)b length:(NSUInteger)n options:(MTLResourceOptions)o {
    FMBuffer* buffer = FMNewBuffer(n, o);
    if (buffer) memcpy(buffer->bytes, b, n);
    return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)b
                                   length:(NSUInteger)n
                                  options:(MTLResourceOptions)o
                              deallocator:(void (^)(void*, NSUInteger))d {
    return FMNewBufferNoCopy(b, n, o, d);
}
- (id<MTLEvent>)newEvent {
    return [FMEvent new];
}
- (id<MTLSharedEvent>)newSharedEvent {
    return [FMEvent new];
}
- (id<MTLFence>)newFence {
    return [FMFence new];
}
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor*)d error:(NSError* __autoreleasing*)e {
    (void)d;
    (void)e;
    return FMNewResidencySet();
}

- (id<MTLLibrary>)newDefaultLibrary {
    return nil;
}
- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)u error:(NSError* __autoreleasing*)e {
    return FMReadLibrary(u.path.UTF8String, e);
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)s options:(MTLCompileOptions*)o error:(NSError* __autoreleasing*)e {
    return FMNewLibrary(s, o, e);
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)f
                                                             error:(NSError* __autoreleasing*)e {
    return FMNewPipeline((FMFunction*)f, 0, false, e);
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)d
                                                             options:(MTLPipelineOption)o
                                                          reflection:(MTLComputePipelineReflection* __autoreleasing*)r
                                                               error:(NSError* __autoreleasing*)e {
    (void)r;
    const bool hit = FMArchivesHold(d);
    if (!hit && o & MTLPipelineOptionFailOnBinaryArchiveMiss) {
        if (e)
            *e = make_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInternalError,
                            "the archive has no such pipeline");
        return nil;
    }
    if (hit) add(kArchiveHits);
    return FMNewPipeline((FMFunction*)d.computeFunction, d.maxTotalThreadsPerThreadgroup,
                         d.supportIndirectCommandBuffers, e);
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)d
                                                 error:(NSError* __autoreleasing*)e {
    return FMReadArchive(d, e);
}
- (id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:(MTLIndirectCommandBufferDescriptor*)d
                                                       maxCommandCount:(NSUInteger)n
                                                               options:(MTLResourceOptions)o {
    (void)o;
    if (!n || n > 16384)
        invalid("newIndirectCommandBuffer: " + std::to_string(n) + " commands, 1 to 16384 are allowed");
    FMIndirectCommandBuffer* b = [FMIndirectCommandBuffer new];
    b->commands.resize(n);
    b->encoded.resize(n);
    b->barrier_before.resize(n);
    b->descriptor = [d copy];
    return b;
}
- (id<MTLCounterSampleBuffer>)newCounterSampleBufferWithDescriptor:(MTLCounterSampleBufferDescriptor*)d
                                                             error:(NSError* __autoreleasing*)e {
    if (!d.counterSet || !d.sampleCount || d.sampleCount > 4096) {  // Apple GPUs: 32 KB of samples
        if (e)
            *e = make_error(MTLLibraryErrorDomain, MTLLibraryErrorUnsupported,
                            "no counter set, or not 1 to 4096 samples");
        return nil;
    }
    FMCounterSampleBuffer* b = [FMCounterSampleBuffer new];
    b->samples.resize(d.sampleCount, MTLCounterErrorValue);
    return b;
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) { return [FMDevice new]; }
NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) { return @[ [FMDevice new] ]; }
