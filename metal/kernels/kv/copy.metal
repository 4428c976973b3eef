// Copies whole pages of the cache.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"

// Four words of a page per thread; grid: a page's quads x pairs of pages.
kernel void kv_copy(device const uint2* pairs [[buffer(0)]],
                    device uint* kv [[buffer(1)]],
                    constant KvCopyParams& p [[buffer(kParamsIndex)]],
                    uint2 at [[thread_position_in_grid]]) {
    const uint first = at.x * 4;
    device const uint* from = kv + ulong(pairs[at.y].x) * p.page_words;
    device uint* to = kv + ulong(pairs[at.y].y) * p.page_words;
    if (p.page_words % 4 == 0) {
        if (first < p.page_words) *(device uint4*)(to + first) = *(device const uint4*)(from + first);
        return;
    }
    for (uint i = first; i < min(first + 4, p.page_words); ++i) to[i] = from[i];
}
