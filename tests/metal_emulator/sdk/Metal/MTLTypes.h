#pragma once
#pragma clang system_header
#import <Foundation/Foundation.h>
typedef struct {
    NSUInteger width, height, depth;
} MTLSize;
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
    MTLSize s = {width, height, depth};
    return s;
}
typedef uint64_t MTLTimestamp;
@protocol MTLDevice
, MTLCommandBuffer, MTLCommandQueue, MTLBuffer, MTLLibrary, MTLFunction, MTLComputePipelineState,
    MTLIndirectCommandBuffer;
