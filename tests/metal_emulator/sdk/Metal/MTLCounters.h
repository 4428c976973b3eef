#pragma once
#pragma clang system_header
#include <Metal/MTLResource.h>
NS_ASSUME_NONNULL_BEGIN
typedef NSString* MTLCommonCounter;
typedef NSString* MTLCommonCounterSet;
extern "C" MTLCommonCounter const MTLCommonCounterTimestamp;
extern "C" MTLCommonCounterSet const MTLCommonCounterSetTimestamp;
typedef struct {
    uint64_t timestamp;
} MTLCounterResultTimestamp;
#define MTLCounterErrorValue ((uint64_t)-1)
#define MTLCounterDontSample ((NSUInteger) - 1)
typedef NS_ENUM(NSUInteger, MTLCounterSamplingPoint) {
    MTLCounterSamplingPointAtStageBoundary = 0,
    MTLCounterSamplingPointAtDrawBoundary = 1,
    MTLCounterSamplingPointAtDispatchBoundary = 2,
    MTLCounterSamplingPointAtTileDispatchBoundary = 3,
    MTLCounterSamplingPointAtBlitBoundary = 4,
};
@protocol MTLCounter <NSObject>
@property(readonly, copy) NSString* name;
@end
@protocol MTLCounterSet <NSObject>
@property(readonly, copy) NSString* name;
@property(readonly, copy) NSArray<id<MTLCounter>>* counters;
@end
@interface MTLCounterSampleBufferDescriptor : NSObject <NSCopying>
@property(nullable, strong, nonatomic) id<MTLCounterSet> counterSet;
@property(copy, nonatomic) NSString* label;
@property(nonatomic) MTLStorageMode storageMode;
@property(nonatomic) NSUInteger sampleCount;
@end
@protocol MTLCounterSampleBuffer <NSObject>
@property(readonly) NSUInteger sampleCount;
- (nullable NSData*)resolveCounterRange:(NSRange)r;
@end
@interface MTLComputePassSampleBufferAttachmentDescriptor : NSObject <NSCopying>
@property(nullable, strong, nonatomic) id<MTLCounterSampleBuffer> sampleBuffer;
@property(nonatomic) NSUInteger startOfEncoderSampleIndex;
@property(nonatomic) NSUInteger endOfEncoderSampleIndex;
@end
@interface MTLComputePassSampleBufferAttachmentDescriptorArray : NSObject
- (MTLComputePassSampleBufferAttachmentDescriptor*)objectAtIndexedSubscript:(NSUInteger)i;
@end
typedef NS_ENUM(NSUInteger, MTLDispatchType) { MTLDispatchTypeSerial = 0, MTLDispatchTypeConcurrent = 1 };
@interface MTLComputePassDescriptor : NSObject <NSCopying>
+ (MTLComputePassDescriptor*)computePassDescriptor;
@property(nonatomic) MTLDispatchType dispatchType;
@property(readonly) MTLComputePassSampleBufferAttachmentDescriptorArray* sampleBufferAttachments;
@end
NS_ASSUME_NONNULL_END
