// The encoder of the no-op mode.
#import "fake.h"

@implementation FMNoopEncoder {
    FMCommandBuffer* owner;
}
- (instancetype)initFor:(FMCommandBuffer*)buffer {
    owner = buffer;
    [buffer begin:self];
    return self;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState> __unsafe_unretained)p {
    (void)p;
}
- (void)setBuffer:(id<MTLBuffer> __unsafe_unretained)b offset:(NSUInteger)o atIndex:(NSUInteger)i {
    (void)b;
    (void)o;
    (void)i;
}
- (void)setBufferOffset:(NSUInteger)o atIndex:(NSUInteger)i {
    (void)o;
    (void)i;
}
- (void)setBuffers:(const id<MTLBuffer> __unsafe_unretained[])b offsets:(const NSUInteger[])o withRange:(NSRange)r {
    (void)b;
    (void)o;
    (void)r;
}
- (void)setBytes:(const void*)b length:(NSUInteger)n atIndex:(NSUInteger)i {
    (void)b;
    (void)n;
    (void)i;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i {
    (void)n;
    (void)i;
}
- (void)dispatchThreadgroups:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    (void)g;
    (void)t;
}
- (void)dispatchThreads:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    (void)g;
    (void)t;
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer> __unsafe_unretained)b
                          indirectBufferOffset:(NSUInteger)o
                         threadsPerThreadgroup:(MTLSize)t {
    (void)b;
    (void)o;
    (void)t;
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)s {
    (void)s;
}
- (void)memoryBarrierWithResources:(const id<MTLResource> __unsafe_unretained[])r count:(NSUInteger)n {
    (void)r;
    (void)n;
}
- (void)useResource:(id<MTLResource> __unsafe_unretained)r usage:(MTLResourceUsage)u {
    (void)r;
    (void)u;
}
- (void)useResources:(const id<MTLResource> __unsafe_unretained[])r count:(NSUInteger)n usage:(MTLResourceUsage)u {
    (void)r;
    (void)n;
    (void)u;
}
- (void)updateFence:(id<MTLFence> __unsafe_unretained)f {
    (void)f;
}
- (void)waitForFence:(id<MTLFence> __unsafe_unretained)f {
    (void)f;
}
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer> __unsafe_unretained)b withRange:(NSRange)r {
    (void)b;
    (void)r;
}
- (void)insertDebugSignpost:(NSString* __unsafe_unretained)s {
    (void)s;
}
- (void)pushDebugGroup:(NSString* __unsafe_unretained)s {
    (void)s;
}
- (void)popDebugGroup {
}
- (void)endEncoding {
    owner->open_encoder = nil;
    owner = nil;
}
@end
