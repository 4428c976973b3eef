#pragma once
#pragma clang system_header
#include <Metal/MTLCommandEncoder.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
    MTLCommandBufferStatusNotEnqueued = 0,
    MTLCommandBufferStatusEnqueued = 1,
    MTLCommandBufferStatusCommitted = 2,
    MTLCommandBufferStatusScheduled = 3,
    MTLCommandBufferStatusCompleted = 4,
    MTLCommandBufferStatusError = 5,
};
typedef NS_ENUM(NSUInteger, MTLCommandBufferError) {
    MTLCommandBufferErrorNone = 0,
    MTLCommandBufferErrorInternal = 1,
    MTLCommandBufferErrorTimeout = 2,
    MTLCommandBufferErrorPageFault = 3,
    MTLCommandBufferErrorAccessRevoked = 4,
    MTLCommandBufferErrorNotPermitted = 7,
    MTLCommandBufferErrorOutOfMemory = 8,
    MTLCommandBufferErrorInvalidResource = 9,
    MTLCommandBufferErrorMemoryless = 10,
    MTLCommandBufferErrorDeviceRemoved = 11,
    MTLCommandBufferErrorStackOverflow = 12,
};
typedef NS_OPTIONS(NSUInteger, MTLCommandBufferErrorOption) {
    MTLCommandBufferErrorOptionNone = 0,
    MTLCommandBufferErrorOptionEncoderExecutionStatus = 1
};
typedef NS_ENUM(NSInteger, MTLCommandEncoderErrorState) {
    MTLCommandEncoderErrorStateUnknown = 0,
    MTLCommandEncoderErrorStateCompleted = 1,
    MTLCommandEncoderErrorStateAffected = 2,
    MTLCommandEncoderErrorStatePending = 3,
    MTLCommandEncoderErrorStateFaulted = 4,
};
extern "C" NSErrorDomain const MTLCommandBufferErrorDomain;
extern "C" NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey;
@protocol MTLCommandBufferEncoderInfo <NSObject>
@property(readonly, nonatomic) NSString* label;
@property(readonly, nonatomic) MTLCommandEncoderErrorState errorState;
@end
@interface MTLCommandBufferDescriptor : NSObject <NSCopying>
@property(nonatomic) BOOL retainedReferences;
@property(nonatomic) MTLCommandBufferErrorOption errorOptions;
@end
typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer>);
@protocol MTLCommandBuffer <NSObject>
@property(readonly) id<MTLDevice> device;
@property(readonly) id<MTLCommandQueue> commandQueue;
@property(readonly) BOOL retainedReferences;
@property(readonly) MTLCommandBufferErrorOption errorOptions;
@property(nullable, copy, atomic) NSString* label;
@property(readonly) MTLCommandBufferStatus status;
@property(nullable, readonly) NSError* error;
@property(readonly) CFTimeInterval kernelStartTime, kernelEndTime;
@property(readonly) CFTimeInterval GPUStartTime, GPUEndTime;
- (void)enqueue;
- (void)commit;
- (void)addScheduledHandler:(MTLCommandBufferHandler)b;
- (void)addCompletedHandler:(MTLCommandBufferHandler)b;
- (void)waitUntilScheduled;
- (void)waitUntilCompleted;
- (nullable id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)t;
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)d;
- (void)encodeSignalEvent:(id<MTLEvent>)e value:(uint64_t)v;
- (void)encodeWaitForEvent:(id<MTLEvent>)e value:(uint64_t)v;
- (void)pushDebugGroup:(NSString*)s;
- (void)popDebugGroup;
@end
@protocol MTLCommandQueue <NSObject>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (nullable id<MTLCommandBuffer>)commandBuffer;
- (nullable id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
- (nullable id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)d;
- (void)addResidencySet:(id<MTLResidencySet>)s API_AVAILABLE(macos(15.0));
- (void)removeResidencySet:(id<MTLResidencySet>)s API_AVAILABLE(macos(15.0));
@end
NS_ASSUME_NONNULL_END
