#pragma once
#pragma clang system_header
#include <Metal/MTLTypes.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_OPTIONS(NSUInteger, MTLPipelineOption) {
    MTLPipelineOptionNone = 0,
    MTLPipelineOptionBindingInfo = 1,
    MTLPipelineOptionBufferTypeInfo = 2,
    MTLPipelineOptionFailOnBinaryArchiveMiss = 4
};
@class MTLComputePipelineReflection;
@interface MTLBinaryArchiveDescriptor : NSObject <NSCopying>
@property(nullable, copy, nonatomic) NSURL* url;
@end
@class MTLComputePipelineDescriptor;
typedef NS_ENUM(NSUInteger, MTLBinaryArchiveError) {
    MTLBinaryArchiveErrorNone = 0,
    MTLBinaryArchiveErrorInvalidFile = 1,
    MTLBinaryArchiveErrorUnexpectedElement = 2,
    MTLBinaryArchiveErrorCompilationFailure = 3,
    MTLBinaryArchiveErrorInternalError = 4,
};
extern "C" NSErrorDomain const MTLBinaryArchiveDomain;
@protocol MTLBinaryArchive <NSObject>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)d
                                            error:(__autoreleasing NSError* _Nullable* _Nullable)e;
- (BOOL)serializeToURL:(NSURL*)u error:(__autoreleasing NSError* _Nullable* _Nullable)e;
@end
@interface MTLComputePipelineDescriptor : NSObject <NSCopying>
@property(nullable, copy, nonatomic) NSString* label;
@property(nullable, nonatomic, strong) id<MTLFunction> computeFunction;
@property(nonatomic) BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
@property(nonatomic) NSUInteger maxTotalThreadsPerThreadgroup;
@property(nonatomic) BOOL supportIndirectCommandBuffers;
@property(nullable, copy, nonatomic) NSArray<id<MTLBinaryArchive>>* binaryArchives;
@end
@protocol MTLComputePipelineState <NSObject>
@property(nullable, readonly) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength;
@property(readonly) BOOL supportIndirectCommandBuffers;
@end
NS_ASSUME_NONNULL_END
