#pragma once
#pragma clang system_header
#include <Metal/MTLCommandBuffer.h>
#include <Metal/MTLComputePipeline.h>
#include <Metal/MTLLibrary.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_ENUM(NSInteger, MTLGPUFamily) {
    MTLGPUFamilyApple1 = 1001,
    MTLGPUFamilyApple2 = 1002,
    MTLGPUFamilyApple3 = 1003,
    MTLGPUFamilyApple4 = 1004,
    MTLGPUFamilyApple5 = 1005,
    MTLGPUFamilyApple6 = 1006,
    MTLGPUFamilyApple7 = 1007,
    MTLGPUFamilyApple8 = 1008,
    MTLGPUFamilyApple9 = 1009,
    MTLGPUFamilyApple10 = 1010,
    MTLGPUFamilyMac2 = 2002,
    MTLGPUFamilyCommon1 = 3001,
    MTLGPUFamilyCommon2 = 3002,
    MTLGPUFamilyCommon3 = 3003,
    MTLGPUFamilyMetal3 = 5001,
    MTLGPUFamilyMetal4 = 5002,
};
typedef NS_ENUM(NSUInteger, MTLArgumentBuffersTier) { MTLArgumentBuffersTier1 = 0, MTLArgumentBuffersTier2 = 1 };
typedef void (^MTLNewLibraryCompletionHandler)(id<MTLLibrary> _Nullable, NSError* _Nullable);
typedef void (^MTLNewComputePipelineStateCompletionHandler)(id<MTLComputePipelineState> _Nullable, NSError* _Nullable);
@protocol MTLDevice <NSObject>
@property(readonly) NSString* name;
@property(readonly) uint64_t registryID;
@property(readonly) MTLSize maxThreadsPerThreadgroup;
@property(readonly, getter=isLowPower) BOOL lowPower;
@property(readonly, getter=isHeadless) BOOL headless;
@property(readonly, getter=isRemovable) BOOL removable;
@property(readonly) BOOL hasUnifiedMemory;
@property(readonly) uint64_t recommendedMaxWorkingSetSize;
@property(readonly) NSUInteger maxBufferLength;
@property(readonly) NSUInteger maxThreadgroupMemoryLength;
@property(readonly) NSUInteger currentAllocatedSize;
@property(readonly) MTLArgumentBuffersTier argumentBuffersSupport;
@property(nullable, readonly) NSArray<id<MTLCounterSet>>* counterSets;
- (BOOL)supportsFamily:(MTLGPUFamily)f;
- (BOOL)supportsCounterSampling:(MTLCounterSamplingPoint)p;
- (void)sampleTimestamps:(MTLTimestamp*)cpu gpuTimestamp:(MTLTimestamp*)gpu;
- (nullable id<MTLCommandQueue>)newCommandQueue;
- (nullable id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)n;
- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)n options:(MTLResourceOptions)o;
- (nullable id<MTLBuffer>)newBufferWithBytes:(const void*)b length:(NSUInteger)n options:(MTLResourceOptions)o;
- (nullable id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)b
                                            length:(NSUInteger)n
                                           options:(MTLResourceOptions)o
                                       deallocator:(void (^_Nullable)(void* pointer, NSUInteger length))d;
- (nullable id<MTLEvent>)newEvent;
- (nullable id<MTLSharedEvent>)newSharedEvent;
- (nullable id<MTLFence>)newFence;
- (nullable id<MTLLibrary>)newDefaultLibrary;
- (nullable id<MTLLibrary>)newLibraryWithSource:(NSString*)s
                                        options:(nullable MTLCompileOptions*)o
                                          error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLLibrary>)newLibraryWithURL:(NSURL*)u error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLComputePipelineState>)
    newComputePipelineStateWithFunction:(id<MTLFunction>)f
                                  error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)d
                                  options:(MTLPipelineOption)o
                               reflection:(__autoreleasing MTLComputePipelineReflection* _Nullable* _Nullable)r
                                    error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)d
                                                          error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:(MTLIndirectCommandBufferDescriptor*)d
                                                                maxCommandCount:(NSUInteger)n
                                                                        options:(MTLResourceOptions)o;
- (nullable id<MTLCounterSampleBuffer>)
    newCounterSampleBufferWithDescriptor:(MTLCounterSampleBufferDescriptor*)d
                                   error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (nullable id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor*)d
                                                        error:(__autoreleasing NSError* _Nullable* _Nullable)e
    API_AVAILABLE(macos(15.0));
@end
extern "C" _Nullable id<MTLDevice> MTLCreateSystemDefaultDevice(void) NS_RETURNS_RETAINED;
extern "C" NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) NS_RETURNS_RETAINED;
NS_ASSUME_NONNULL_END
