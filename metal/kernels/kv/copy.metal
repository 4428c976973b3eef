// Copies whole records: pages of the cache, or states.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"

// Four words of a record per thread; grid: a record's quads x pairs of records.
kernel void copy_records(device const uint2* pairs [[buffer(0)]],
                         device uint* records [[buffer(1)]],
                         constant CopyRecordsParams& p [[buffer(kParamsIndex)]],
                         uint2 at [[thread_position_in_grid]]) {
    const uint first = at.x * 4;
    device const uint* from = records + ulong(pairs[at.y].x) * p.record_words;
    device uint* to = records + ulong(pairs[at.y].y) * p.record_words;
    if (p.record_words % 4 == 0) {
        if (first < p.record_words) *(device uint4*)(to + first) = *(device const uint4*)(from + first);
        return;
    }
    for (uint i = first; i < min(first + 4, p.record_words); ++i) to[i] = from[i];
}
