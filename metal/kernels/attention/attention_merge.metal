// Joins the blocks of attention_split: out = Σ exp(max_s - max)·out_s / Σ exp(max_s - max)·sum_s, a threadgroup per head.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "attention_kv.h"

enum MergeSizes : u32 {
    kMergeThreads = 128,
    kMergeSimdgroups = kMergeThreads / 32,
    kMaxDim = 256,
};

kernel void attention_merge(device const float* partials [[buffer(0)]],
                            device float* out_f32 [[buffer(1)]],
                            device half* out_f16 [[buffer(2)]],
                            constant AttentionParams& p [[buffer(8)]],
                            uint head [[threadgroup_position_in_grid]],
                            uint tid [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float sums[kMergeSimdgroups * kMaxDim];
    threadgroup float maxima[kMergeSimdgroups], totals[kMergeSimdgroups];
    const uint n = p.position / kSplitKeys - first_key(p.position, p.window) / kSplitKeys + 1;
    const uint splits = split_count(p.context);
    device const float* outs = partials + ulong(head) * splits * kHeadDim;
    device const float2* stats = (device const float2*)(partials + ulong(p.n_heads) * splits * kHeadDim);
    stats += ulong(head) * splits;

    float top = kMasked;
    for (uint s = tid; s < n; s += kMergeThreads) top = max(top, stats[s].x);
    top = simd_max(top);
    if (lane == 0) maxima[simdgroup] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(maxima[lane % kMergeSimdgroups]);

    // Each SIMD-group has every n-th split, each lane every 32nd element.
    float out[kMaxDim / 32], total = 0.0f;
    for (uint i = 0; i < kMaxDim / 32; ++i) out[i] = 0.0f;
    for (uint s = simdgroup; s < n; s += kMergeSimdgroups) {
        const float weight = exp(stats[s].x - top);
        total += weight * stats[s].y;
        for (uint i = 0; i * 32 + lane < kHeadDim; ++i) out[i] += weight * outs[ulong(s) * kHeadDim + i * 32 + lane];
    }
    for (uint i = 0; i * 32 + lane < kHeadDim; ++i) sums[simdgroup * kMaxDim + i * 32 + lane] = out[i];
    if (lane == 0) totals[simdgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    total = 0.0f;
    for (uint i = 0; i < kMergeSimdgroups; ++i) total += totals[i];
    for (uint d = tid; d < kHeadDim; d += kMergeThreads) {
        float sum = 0.0f;
        for (uint i = 0; i < kMergeSimdgroups; ++i) sum += sums[i * kMaxDim + d];
        store_activation(sum / total, p.formats, out_f32, out_f16, ulong(head) * kHeadDim + d);
    }
}
