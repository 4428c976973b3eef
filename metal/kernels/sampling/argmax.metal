// The most likely token: the best of each slice of the vocabulary, then the best of those.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "sampling.h"
#include "tokens.h"

// scratch[slice] = best of its logits. Also the first pass of sample_select, where a row's `scratch` starts with a SampleList
// and its logits are followed by as many words.
constant bool FOR_SAMPLER [[function_constant(0)]];

kernel void best_slices_f32(
    device const uint* logits [[buffer(0)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device uchar* scratch [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSliceThreads / 32];
    const uint slice = at.x, row = at.y;
    logits += ulong(row) * p.vocab * (FOR_SAMPLER ? 2 : 1);
    const uint end = min(p.vocab, (slice + 1) * kSliceTokens);
    Ranked best = nothing();
    for (uint id = slice * kSliceTokens + thread_id; id < end; id += kSliceThreads) {
        best = better(best, ranked(rank_of(finite_bits(logits[id])), id));
    }
    best = group_best(best, shared, lane, simd, kSliceThreads / 32);
    scratch += row * (FOR_SAMPLER ? select_bytes(p.vocab) : best_bytes(p.vocab));
    device Ranked* out = (device Ranked*)(scratch + (FOR_SAMPLER ? sizeof(SampleList) : 0));
    if (thread_id == 0) {
        out[slice].key = best.key;
        out[slice].id = best.id;
    }
}

kernel void argmax_f32(
    device uint* sampled [[buffer(1)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device const Ranked* best [[buffer(kScratchIndex)]],
    uint row [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSliceThreads / 32];
    const uint slices = slice_count(p.vocab);
    best += ulong(row) * slices;
    const Ranked winner = best_of_slices(best, slices, shared, thread_id, lane, simd, kSliceThreads / 32);
    if (thread_id == 0) sampled[row] = winner.id;
}
