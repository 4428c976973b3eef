#pragma once
#pragma clang system_header
#include <Metal/MTLCounters.h>
#include <Metal/MTLEvent.h>
#include <Metal/MTLIndirectCommandBuffer.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_OPTIONS(NSUInteger, MTLBarrierScope) { MTLBarrierScopeBuffers = 1, MTLBarrierScopeTextures = 2 };
@protocol MTLCommandEncoder <NSObject>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (void)endEncoding;
- (void)insertDebugSignpost:(NSString*)s;
- (void)pushDebugGroup:(NSString*)s;
- (void)popDebugGroup;
@end
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
@property(readonly) MTLDispatchType dispatchType;
- (void)setComputePipelineState:(id<MTLComputePipelineState>)p;
- (void)setBuffer:(nullable id<MTLBuffer>)b offset:(NSUInteger)o atIndex:(NSUInteger)i;
- (void)setBufferOffset:(NSUInteger)o atIndex:(NSUInteger)i;
- (void)setBuffers:(const id<MTLBuffer> _Nullable __unsafe_unretained[_Nonnull])b
           offsets:(const NSUInteger[_Nonnull])o
         withRange:(NSRange)r;
- (void)setBytes:(const void*)b length:(NSUInteger)n atIndex:(NSUInteger)i;
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i;
- (void)dispatchThreadgroups:(MTLSize)g threadsPerThreadgroup:(MTLSize)t;
- (void)dispatchThreads:(MTLSize)g threadsPerThreadgroup:(MTLSize)t;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)b
                          indirectBufferOffset:(NSUInteger)o
                         threadsPerThreadgroup:(MTLSize)t;
- (void)memoryBarrierWithScope:(MTLBarrierScope)s;
- (void)memoryBarrierWithResources:(const id<MTLResource> _Nonnull __unsafe_unretained[_Nonnull])r count:(NSUInteger)n;
- (void)useResource:(id<MTLResource>)r usage:(MTLResourceUsage)u;
- (void)useResources:(const id<MTLResource> _Nonnull __unsafe_unretained[_Nonnull])r
               count:(NSUInteger)n
               usage:(MTLResourceUsage)u;
- (void)updateFence:(id<MTLFence>)f;
- (void)waitForFence:(id<MTLFence>)f;
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)b withRange:(NSRange)r;
@end
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)s
          sourceOffset:(NSUInteger)so
              toBuffer:(id<MTLBuffer>)d
     destinationOffset:(NSUInteger)o
                  size:(NSUInteger)n;
- (void)fillBuffer:(id<MTLBuffer>)b range:(NSRange)r value:(uint8_t)v;
- (void)optimizeIndirectCommandBuffer:(id<MTLIndirectCommandBuffer>)b withRange:(NSRange)r;
@end
NS_ASSUME_NONNULL_END
