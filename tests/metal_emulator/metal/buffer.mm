// Buffers: guard pages around them, poison inside, limits.
#include <unistd.h>

#import "fake.h"

using namespace fakemetal;

@implementation FMBuffer
- (void)dealloc {
    if (in_flight)
        invalid("buffer '" + std::string(_label ? _label.UTF8String : "") +
                "' released while a command buffer that uses it is in flight");
    add(kBuffers, -1);
    if (!owned) {
        if (deallocator) deallocator(bytes, size);
        return;
    }
    if (const int64_t at = executor().check(bytes))
        invalid("write outside of buffer '" + std::string(_label ? _label.UTF8String : "") + "' of " +
                std::to_string(size) + " bytes, at byte " + std::to_string(at < 0 ? at : at - 1));
    add(kAllocatedBytes, -static_cast<int64_t>(size));
    executor().free(bytes);
}
- (NSUInteger)length {
    return size;
}
- (NSUInteger)allocatedSize {
    return (size + 16383) / 16384 * 16384;
}
- (uint64_t)gpuAddress {
    return reinterpret_cast<uint64_t>(bytes);
}
- (void*)contents {
    return (options & 0xF0) == MTLResourceStorageModePrivate ? nullptr : bytes;
}
- (MTLResourceOptions)resourceOptions {
    return options;
}
- (MTLStorageMode)storageMode {
    return static_cast<MTLStorageMode>(options >> 4 & 0xF);
}
- (MTLHazardTrackingMode)hazardTrackingMode {
    return options & MTLResourceHazardTrackingModeUntracked ? MTLHazardTrackingModeUntracked
                                                            : MTLHazardTrackingModeTracked;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)s {
    (void)s;
    return MTLPurgeableStateNonVolatile;
}
- (void)didModifyRange:(NSRange)r {
    if ((options & 0xF0) != MTLResourceStorageModeManaged) invalid("didModifyRange: on a buffer that is not managed");
    if (r.location + r.length > size) invalid("didModifyRange: beyond the buffer");
}
@end

FMBuffer* FMNewBuffer(NSUInteger size, MTLResourceOptions options) {
    if (size == 0 || size > static_cast<NSUInteger>(setting(kMaxBufferLength)) || fault_due(kFailAllocation))
        return nil;
    const int64_t limit = setting(kAllocationLimit);
    if (limit && counter(kAllocatedBytes) + static_cast<int64_t>(size) > limit) return nil;
    char* p = static_cast<char*>(executor().alloc(size, setting(kPoisonBuffers) ? 0xFF : 0));
    if (!p) return nil;
    FMBuffer* b = [FMBuffer new];
    b->bytes = p;
    b->size = size;
    b->owned = true;
    b->options = options;
    add(kBuffers);
    add(kAllocatedBytes, static_cast<int64_t>(size));
    return b;
}

FMBuffer* FMNewBufferNoCopy(void* p, NSUInteger size, MTLResourceOptions options,
                            void (^deallocator)(void*, NSUInteger)) {
    const auto page = static_cast<uintptr_t>(setting(kPageSize));
    if (reinterpret_cast<uintptr_t>(p) % page || size % page || !size)
        invalid("newBufferWithBytesNoCopy: pointer and length must be multiples of the page size " +
                std::to_string(page) + ", length is " + std::to_string(size));
    if (size > static_cast<NSUInteger>(setting(kMaxBufferLength)) || fault_due(kFailAllocation)) return nil;
    FMBuffer* b = [FMBuffer new];
    b->bytes = static_cast<char*>(p);
    b->size = size;
    b->options = options;
    b->deallocator = deallocator;
    add(kBuffers);
    return b;
}
