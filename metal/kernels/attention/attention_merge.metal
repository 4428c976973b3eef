// Joins the partial results of keys that were split: out = Σ exp(max_s - max)·out_s / Σ exp(max_s - max)·sum_s, a
// threadgroup per row and head.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "attention_kv.h"
#include "buffer_index.h"

// Threadgroup memory of one merge.
struct MergeShared {
    float sums[kAttentionSimdgroups * kMaxHeadDim], maxima[kAttentionSimdgroups], totals[kAttentionSimdgroups];
};

// Merges `n` splits of the query `index` of `queries`; there is room for `splits` per query.
static inline void merge_splits(device const float* partials, uint n, uint splits, ulong index, ulong queries,
                                device const float* sinks, uint head, uint formats,
                                device float* out_f32, device half* out_f16, threadgroup MergeShared& shared, uint tid,
                                uint lane, uint simdgroup) {
    device const float* outs = partials + index * splits * kHeadDim;
    device const float2* stats = (device const float2*)(partials + queries * splits * kHeadDim) + index * splits;

    float top = kMasked;
    for (uint s = tid; s < n; s += kAttentionThreads) top = max(top, stats[s].x);
    top = simd_max(top);
    if (lane == 0) shared.maxima[simdgroup] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(shared.maxima[lane % kAttentionSimdgroups]);

    // Each SIMD-group has every n-th split, each lane every 32nd element.
    float out[kMaxHeadDim / 32], total = 0.0f;
#pragma clang loop unroll(full)
    for (uint i = 0; i < kMaxHeadDim / 32; ++i) out[i] = 0.0f;
    for (uint s = simdgroup; s < n; s += kAttentionSimdgroups) {
        const float weight = exp(stats[s].x - top);
        total += weight * stats[s].y;
#pragma clang loop unroll(full)
        for (uint i = 0; i < kMaxHeadDim / 32; ++i) {
            if (i * 32 + lane < kHeadDim) out[i] += weight * outs[ulong(s) * kHeadDim + i * 32 + lane];
        }
    }
#pragma clang loop unroll(full)
    for (uint i = 0; i < kMaxHeadDim / 32; ++i) {
        if (i * 32 + lane < kHeadDim) shared.sums[simdgroup * kMaxHeadDim + i * 32 + lane] = out[i];
    }
    if (lane == 0) shared.totals[simdgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    total = 0.0f;
    for (uint i = 0; i < kAttentionSimdgroups; ++i) total += shared.totals[i];
    total += sink_weight(sinks, head, top);
    for (uint d = tid; d < kHeadDim; d += kAttentionThreads) {
        float sum = 0.0f;
        for (uint i = 0; i < kAttentionSimdgroups; ++i) sum += shared.sums[i * kMaxHeadDim + d];
        store_activation(sum / total, formats, out_f32, out_f16, index * kHeadDim + d);
    }
}

// Of attention_split.
kernel void attention_merge(device const float* partials [[buffer(0)]],
                            device float* out_f32 [[buffer(1)]],
                            device half* out_f16 [[buffer(2)]],
                            device const Row* rows [[buffer(3)]],
                            device const float* sinks [[buffer(4), function_constant(kHasSinks)]],
                            constant AttentionParams& p [[buffer(kParamsIndex)]],
                            uint head [[threadgroup_position_in_grid]],
                            uint tid [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup MergeShared shared;
    const uint n = split_count(split_blocks(last_key(p, rows[0]), p.window, kSplitKeys), kMostSplits);
    merge_splits(partials, n, split_room(context_of(p), kMostSplits), head, p.n_heads, sinks, head, p.formats, out_f32, out_f16, shared,
                 tid, lane, simdgroup);
}

// Of attention on few rows: the second pass of one command, with its buffers.
kernel void attention_merge_rows(device float* out [[buffer(2)]],
                                 device const Row* rows [[buffer(3)]],
                                 device const float* sinks [[buffer(5), function_constant(kHasSinks)]],
                                 constant AttentionParams& p [[buffer(kParamsIndex)]],
                                 device const float* partials [[buffer(kScratchIndex)]],
                                 uint2 group [[threadgroup_position_in_grid]],
                                 uint tid [[thread_index_in_threadgroup]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup MergeShared shared;
    merge_splits(partials, batch_splits_used(p, rows), batch_split_count(context_of(p)), ulong(group.y) * p.n_heads + group.x,
                 ulong(p.rows) * p.n_heads, sinks, group.x, kActF32, out, nullptr, shared, tid, lane, simdgroup);
}

// Of attention_latent_split, whose values have more elements: a thread has every n-th of them.
kernel void attention_latent_merge(device const float* partials [[buffer(0)]],
                                   device float* out_f32 [[buffer(1)]],
                                   device half* out_f16 [[buffer(2)]],
                                   device const Row* rows [[buffer(3)]],
                                   constant AttentionParams& p [[buffer(kParamsIndex)]],
                                   uint head [[threadgroup_position_in_grid]],
                                   uint tid [[thread_index_in_threadgroup]]) {
    const uint n = min(split_blocks(last_key(p, rows[0]), 0, kLatentSplitKeys), kMostSplits), room = split_room(context_of(p), kMostSplits);
    device const float* outs = partials + ulong(head) * room * p.latent;
    device const float2* stats = (device const float2*)(partials + ulong(p.n_heads) * room * p.latent) + ulong(head) * room;
    float top = kMasked, total = 0.0f;
    for (uint s = 0; s < n; ++s) top = max(top, stats[s].x);
    for (uint s = 0; s < n; ++s) total += exp(stats[s].x - top) * stats[s].y;
    for (uint d = tid; d < p.latent; d += kAttentionThreads) {
        float sum = 0.0f;
        for (uint s = 0; s < n; ++s) sum += exp(stats[s].x - top) * outs[ulong(s) * p.latent + d];
        store_activation(sum / total, p.formats, out_f32, out_f16, ulong(head) * p.latent + d);
    }
}
