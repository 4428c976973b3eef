// Indirect command buffers: compute commands encoded once and executed many times.
#import "fake.h"

using namespace fakemetal;

@interface FMIndirectCommand : NSObject <MTLIndirectComputeCommand> {
  @public
    FMIndirectCommandBuffer* owner;
    NSUInteger index;
}
@end
@implementation FMIndirectCommand
- (Dispatch&)command {
    return owner->commands[index];
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)p {
    if (owner->descriptor.inheritPipelineState)
        invalid("indirect command: the pipeline is inherited, it cannot be set");
    if (!p.supportIndirectCommandBuffers)
        invalid("indirect command: the pipeline was made without supportIndirectCommandBuffers");
    self.command.bindings.pipeline = (FMPipeline*)p;
    owner->retained.push_back(p);
}
- (void)setKernelBuffer:(id<MTLBuffer>)b offset:(NSUInteger)o atIndex:(NSUInteger)i {
    if (owner->descriptor.inheritBuffers) invalid("indirect command: buffers are inherited, they cannot be set");
    if (i >= owner->descriptor.maxKernelBufferBindCount)
        invalid("setKernelBuffer: index " + std::to_string(i) + " is not below maxKernelBufferBindCount " +
                std::to_string(owner->descriptor.maxKernelBufferBindCount));
    set_buffer(self.command.bindings, (FMBuffer*)b, o, i, "setKernelBuffer");
}
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i {
    set_threadgroup_memory(self.command.bindings, n, i, "setThreadgroupMemoryLength");
}
- (void)dispatch:(MTLSize)grid group:(MTLSize)t type:(MTLIndirectCommandType)type {
    if (!(owner->descriptor.commandTypes & type))
        invalid("indirect command: its type is not among the buffer's commandTypes");
    if (owner->encoded[index]) invalid("indirect command: it must be reset before it is encoded again");
    self.command.grid = grid;
    self.command.group = t;
    owner->encoded[index] = true;
}
- (void)concurrentDispatchThreadgroups:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    [self dispatch:MTLSizeMake(g.width * t.width, g.height * t.height, g.depth * t.depth)
             group:t
              type:MTLIndirectCommandTypeConcurrentDispatch];
}
- (void)concurrentDispatchThreads:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    [self dispatch:g group:t type:MTLIndirectCommandTypeConcurrentDispatchThreads];
}
- (void)setBarrier {
    owner->barrier_before[index] = true;
}
- (void)clearBarrier {
    owner->barrier_before[index] = false;
}
- (void)reset {
    self.command = Dispatch();
    owner->encoded[index] = owner->barrier_before[index] = false;
}
- (void)setCommand:(Dispatch)d {
    owner->commands[index] = d;
}
@end

@implementation FMIndirectCommandBuffer
- (NSUInteger)size {
    return commands.size();
}
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)i {
    if (i >= commands.size())
        invalid("indirectComputeCommandAtIndex: " + std::to_string(i) + " of " + std::to_string(commands.size()));
    FMIndirectCommand* c = [FMIndirectCommand new];
    c->owner = self;
    c->index = i;
    return c;
}
- (void)resetWithRange:(NSRange)r {
    for (NSUInteger i = r.location; i < r.location + r.length; ++i) [[self indirectComputeCommandAtIndex:i] reset];
}
- (NSUInteger)allocatedSize {
    return commands.size() * 256;
}
- (MTLResourceOptions)resourceOptions {
    return MTLResourceStorageModeShared;
}
- (MTLStorageMode)storageMode {
    return MTLStorageModeShared;
}
- (MTLHazardTrackingMode)hazardTrackingMode {
    return MTLHazardTrackingModeUntracked;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)s {
    (void)s;
    return MTLPurgeableStateNonVolatile;
}
@end

@implementation MTLIndirectCommandBufferDescriptor
- (instancetype)init {
    _inheritPipelineState = _inheritBuffers = YES;
    return self;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLIndirectCommandBufferDescriptor* d = [MTLIndirectCommandBufferDescriptor new];
    d.commandTypes = self.commandTypes;
    d.inheritPipelineState = self.inheritPipelineState;
    d.inheritBuffers = self.inheritBuffers;
    d.maxKernelBufferBindCount = self.maxKernelBufferBindCount;
    d.maxKernelThreadgroupMemoryBindCount = self.maxKernelThreadgroupMemoryBindCount;
    return d;
}
@end
