// Residency sets. Nothing is ever unwired here: what is kept is which buffers a request has made resident.
#include <algorithm>

#import "fake.h"

using namespace fakemetal;

namespace {
using Allocations = std::vector<id<MTLAllocation>>;

void count(const Allocations& all, int n) {
    for (id<MTLAllocation> a : all) {
        if ([(id)a isKindOfClass:[FMBuffer class]]) ((FMBuffer*)a)->resident += n;
        add(kResident, n);
    }
}
bool holds(const Allocations& all, id<MTLAllocation> a) { return std::find(all.begin(), all.end(), a) != all.end(); }
}  // namespace

@interface FMResidencySet : NSObject <MTLResidencySet> {
    std::mutex mutex;
    Allocations staged, committed, resident;
}
@end
@implementation FMResidencySet
- (uint64_t)allocatedSize {
    std::lock_guard lock(mutex);
    uint64_t n = 0;
    for (id<MTLAllocation> a : committed) n += a.allocatedSize;
    return n;
}
- (NSUInteger)allocationCount {
    std::lock_guard lock(mutex);
    return committed.size();
}
// What was committed after it waits for the next request: stricter than Metal may be.
- (void)requestResidency {
    std::lock_guard lock(mutex);
    add(kResidencyRequests);
    count(resident, -1);
    resident = committed;
    count(resident, 1);
}
- (void)endResidency {
    std::lock_guard lock(mutex);
    count(resident, -1);
    resident.clear();
}
- (void)commit {
    std::lock_guard lock(mutex);
    committed = staged;
    count(resident, -1);
    std::erase_if(resident, [&](id<MTLAllocation> a) { return !holds(committed, a); });
    count(resident, 1);
}
- (BOOL)containsAllocation:(id<MTLAllocation>)a {
    std::lock_guard lock(mutex);
    return holds(committed, a);
}
- (void)addAllocation:(id<MTLAllocation>)a {
    std::lock_guard lock(mutex);
    if (!holds(staged, a)) staged.push_back(a);
}
- (void)removeAllocation:(id<MTLAllocation>)a {
    std::lock_guard lock(mutex);
    std::erase(staged, a);
}
- (void)removeAllAllocations {
    std::lock_guard lock(mutex);
    staged.clear();
}
- (void)dealloc {
    count(resident, -1);
}
@end
@implementation MTLResidencySetDescriptor
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLResidencySetDescriptor* d = [MTLResidencySetDescriptor new];
    d.label = self.label;
    d.initialCapacity = self.initialCapacity;
    return d;
}
@end

id<MTLResidencySet> FMNewResidencySet() { return [FMResidencySet new]; }
