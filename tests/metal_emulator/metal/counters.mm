// Timestamps by encoder: MTLCounterSampleBuffer at stage boundaries, as Apple GPUs offer it.
#import "fake.h"

using namespace fakemetal;

MTLCommonCounter const MTLCommonCounterTimestamp = @"GPUTimestamp";
MTLCommonCounterSet const MTLCommonCounterSetTimestamp = @"timestamp";

@interface FMCounter : NSObject <MTLCounter>
@end
@implementation FMCounter
- (NSString*)name {
    return MTLCommonCounterTimestamp;
}
@end
@interface FMCounterSet : NSObject <MTLCounterSet>
@end
@implementation FMCounterSet
- (NSString*)name {
    return MTLCommonCounterSetTimestamp;
}
- (NSArray<id<MTLCounter>>*)counters {
    return @[ [FMCounter new] ];
}
@end
NSArray<id<MTLCounterSet>>* FMCounterSets(void) { return @[ [FMCounterSet new] ]; }

@implementation FMCounterSampleBuffer
- (NSUInteger)sampleCount {
    return samples.size();
}
- (NSData*)resolveCounterRange:(NSRange)r {
    if (r.location + r.length > samples.size()) invalid("resolveCounterRange: beyond the samples");
    return [NSData dataWithBytes:samples.data() + r.location length:r.length * sizeof(uint64_t)];
}
@end
@implementation MTLCounterSampleBufferDescriptor
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLCounterSampleBufferDescriptor* d = [MTLCounterSampleBufferDescriptor new];
    d.counterSet = self.counterSet;
    d.label = self.label;
    d.storageMode = self.storageMode;
    d.sampleCount = self.sampleCount;
    return d;
}
@end
@implementation MTLComputePassSampleBufferAttachmentDescriptor
- (instancetype)init {
    _startOfEncoderSampleIndex = _endOfEncoderSampleIndex = MTLCounterDontSample;
    return self;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLComputePassSampleBufferAttachmentDescriptor* d = [MTLComputePassSampleBufferAttachmentDescriptor new];
    d.sampleBuffer = self.sampleBuffer;
    d.startOfEncoderSampleIndex = self.startOfEncoderSampleIndex;
    d.endOfEncoderSampleIndex = self.endOfEncoderSampleIndex;
    return d;
}
@end
@implementation MTLComputePassSampleBufferAttachmentDescriptorArray {
    MTLComputePassSampleBufferAttachmentDescriptor* item[4];
}
- (MTLComputePassSampleBufferAttachmentDescriptor*)objectAtIndexedSubscript:(NSUInteger)i {
    if (i >= 4) invalid("sampleBufferAttachments: index " + std::to_string(i) + " > 3");
    if (!item[i]) item[i] = [MTLComputePassSampleBufferAttachmentDescriptor new];
    return item[i];
}
@end
@implementation MTLComputePassDescriptor {
    MTLComputePassSampleBufferAttachmentDescriptorArray* attachments;
}
+ (MTLComputePassDescriptor*)computePassDescriptor {
    return [MTLComputePassDescriptor new];
}
- (MTLComputePassSampleBufferAttachmentDescriptorArray*)sampleBufferAttachments {
    if (!attachments) attachments = [MTLComputePassSampleBufferAttachmentDescriptorArray new];
    return attachments;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLComputePassDescriptor* d = [MTLComputePassDescriptor new];
    d.dispatchType = self.dispatchType;
    for (NSUInteger i = 0; i < 4; ++i) {
        d.sampleBufferAttachments[i].sampleBuffer = self.sampleBufferAttachments[i].sampleBuffer;
        d.sampleBufferAttachments[i].startOfEncoderSampleIndex =
            self.sampleBufferAttachments[i].startOfEncoderSampleIndex;
        d.sampleBufferAttachments[i].endOfEncoderSampleIndex = self.sampleBufferAttachments[i].endOfEncoderSampleIndex;
    }
    return d;
}
@end
