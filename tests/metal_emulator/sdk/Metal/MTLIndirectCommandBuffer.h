#pragma once
#pragma clang system_header
#include <Metal/MTLResource.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_OPTIONS(NSUInteger, MTLIndirectCommandType) {
    MTLIndirectCommandTypeDraw = 1,
    MTLIndirectCommandTypeDrawIndexed = 2,
    MTLIndirectCommandTypeConcurrentDispatch = 32,
    MTLIndirectCommandTypeConcurrentDispatchThreads = 64,
};
@interface MTLIndirectCommandBufferDescriptor : NSObject <NSCopying>
@property(nonatomic) MTLIndirectCommandType commandTypes;
@property(nonatomic) BOOL inheritPipelineState;
@property(nonatomic) BOOL inheritBuffers;
@property(nonatomic) NSUInteger maxKernelBufferBindCount;
@property(nonatomic) NSUInteger maxKernelThreadgroupMemoryBindCount;
@end
@protocol MTLIndirectComputeCommand <NSObject>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)p;
- (void)setKernelBuffer:(id<MTLBuffer>)b offset:(NSUInteger)o atIndex:(NSUInteger)i;
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i;
- (void)concurrentDispatchThreadgroups:(MTLSize)g threadsPerThreadgroup:(MTLSize)t;
- (void)concurrentDispatchThreads:(MTLSize)g threadsPerThreadgroup:(MTLSize)t;
- (void)setBarrier;
- (void)clearBarrier;
- (void)reset;
@end
@protocol MTLIndirectCommandBuffer <MTLResource>
@property(readonly) NSUInteger size;
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)i;
- (void)resetWithRange:(NSRange)r;
@end
NS_ASSUME_NONNULL_END
