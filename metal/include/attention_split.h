// Decode attention: one row against a run of blocks of kSplitKeys keys of one KV head, for all query heads of its group, so
// that each key and value is read once. Scores of kScoreKeys keys are in threadgroup memory; from one such part of the run
// to the next the softmax is a running one. attention_merge.metal joins the runs; a run that is the only one writes the
// result itself.
//
// Loops over the arrays of a thread are unrolled, with a condition where the function constants allow fewer: an index that
// is not known when the kernel is compiled would put the array into memory.
#pragma once

#include <metal_stdlib>

#include "activation.h"
#include "attention_kv.h"
#include "buffer_index.h"

enum SplitSizes : u32 {
    kScoreKeys = 128,  // keys that a threadgroup takes at once
    kLanesPerKey = 8,  // each with every 8th quad of the key
    kKeysPerLane = 4,  // taken together, so that a quad of q is read once for them
    kReducedHeads = 4,  // heads whose outputs are summed over the threads at a time
};

// Scores of the keys [begin, begin + kScoreKeys), into scores[head][key - begin]; `q` is [head][kMaxDim / 4]. SIMD-groups
// take turns, so that a run of few keys is shared as well.
template <typename Kv, uint kMaxDim, uint kMaxGroup>
static inline void split_scores(device const uchar* cache, KvHead keys, threadgroup const float4* q, uint begin, uint first,
                                uint end, float cap, uint lane, uint simdgroup, threadgroup float* scores) {
    constexpr uint kAtOnce = 32 / kLanesPerKey * kKeysPerLane;
    for (uint at = simdgroup * kAtOnce; at < kScoreKeys; at += kAttentionSimdgroups * kAtOnce) {
        if (begin + at >= end) {
            for (uint g = 0; g < kGroup; ++g) {
                if (lane < kAtOnce) scores[g * kScoreKeys + at + lane] = kMasked;
            }
            continue;
        }
        float sum[kKeysPerLane][kMaxGroup];
        KvRow rows[kKeysPerLane];
        bool seen[kKeysPerLane];
        const uint mine = at + lane / kLanesPerKey;  // and every 32 / kLanesPerKey-th behind
#pragma clang loop unroll(full)
        for (uint j = 0; j < kKeysPerLane; ++j) {
            const uint key = begin + mine + j * (32 / kLanesPerKey);
            seen[j] = key >= first && key < end;
            rows[j] = keys.at(seen[j] ? key : first);
#pragma clang loop unroll(full)
            for (uint g = 0; g < kMaxGroup; ++g) sum[j][g] = 0.0f;
        }
        for (uint quad = lane % kLanesPerKey; quad < head_quads(); quad += kLanesPerKey) {
            float4 k[kKeysPerLane];
#pragma clang loop unroll(full)
            for (uint j = 0; j < kKeysPerLane; ++j) k[j] = Kv::Keys::load(cache, rows[j], quad);
#pragma clang loop unroll(full)
            for (uint g = 0; g < kMaxGroup; ++g) {
                if (g >= kGroup) continue;
                const float4 x = q[g * (kMaxDim / 4) + quad];
#pragma clang loop unroll(full)
                for (uint j = 0; j < kKeysPerLane; ++j) sum[j][g] += metal::dot(x, k[j]);
            }
        }
#pragma clang loop unroll(full)
        for (uint g = 0; g < kMaxGroup; ++g) {
            if (g >= kGroup) continue;
#pragma clang loop unroll(full)
            for (uint j = 0; j < kKeysPerLane; ++j) {
                float s = sum[j][g];
                for (ushort step = kLanesPerKey / 2; step > 0; step /= 2) s += metal::simd_shuffle_xor(s, step);
                if (lane % kLanesPerKey == 0) {
                    const uint key = mine + j * (32 / kLanesPerKey);
                    scores[g * kScoreKeys + key] = seen[j] ? soft_cap(s, cap) : kMasked;
                }
            }
        }
    }
}

// What is known of a head after some keys: the maximum of its scores, the sum of their exponentials, and what the last
// part multiplies earlier outputs with.
struct SplitHead {
    float top, sum, keep;
};

// scores = exp(scores - max), by one SIMD-group; `top` and `sum` are those of the keys before.
static inline SplitHead split_softmax(threadgroup float* scores, float top, float sum, uint lane) {
    constexpr uint kEach = kScoreKeys / 32;
    const float before = top;
    float s[kEach], added = 0.0f;
#pragma clang loop unroll(full)
    for (uint i = 0; i < kEach; ++i) {
        s[i] = scores[i * 32 + lane];
        top = metal::max(top, s[i]);
    }
    top = metal::simd_max(top);
#pragma clang loop unroll(full)
    for (uint i = 0; i < kEach; ++i) {
        const float e = s[i] > kMasked ? metal::exp(s[i] - top) : 0.0f;
        scores[i * 32 + lane] = e;
        added += e;
    }
    const float keep = before > kMasked ? metal::exp(before - top) : 0.0f;
    return {top, sum * keep + metal::simd_sum(added), keep};
}

// Grid: splits x groups, or parts of them. Of a window, split 0 is the one in which it begins; the grid may have one split
// too many, which then has no keys.
template <typename Kv, uint kMaxDim, uint kMaxGroup>
[[kernel]] void attention_split(device const float* q [[buffer(0)]],
                                device const uchar* cache [[buffer(1)]],
                                device float* partials [[buffer(2)]],
                                device const Row* rows [[buffer(3)]],
                                device const uint* pages [[buffer(4)]],
                                device const float* sinks [[buffer(5), function_constant(kHasSinks)]],
                                device float* out_f32 [[buffer(6)]],
                                device half* out_f16 [[buffer(7)]],
                                constant AttentionParams& p [[buffer(kParamsIndex)]],
                                uint2 group [[threadgroup_position_in_grid]],
                                uint2 groups [[threadgroups_per_grid]],
                                uint tid [[thread_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    constexpr uint kTogether = kMaxGroup < kReducedHeads ? kMaxGroup : uint(kReducedHeads);
    constexpr uint kQueryQuads = kMaxGroup * kMaxDim / 4, kSumQuads = kTogether * kAttentionThreads;
    threadgroup float4 shared[kQueryQuads > kSumQuads ? kQueryQuads : kSumQuads];  // q, later sums over threads
    threadgroup float scores[kMaxGroup * kScoreKeys];
    threadgroup SplitHead heads[kMaxGroup];

    const uint slot = rows[0].slot, position = last_key(p, rows[0]);
    const KvHead keys = key_head<Kv>(pages, p, slot, kv_of(p, group.y));
    const KvHead values = value_head<Kv>(pages, p, slot, kv_of(p, group.y));
    const uint window_first = first_key(position, p.window), first_block = window_first / kSplitKeys;
    const uint blocks = split_blocks(position, p.window, kSplitKeys);
    const bool only = groups.x == 1;
    const uint splits = only ? 1 : split_count(blocks, kMostSplits);
    const uint from = (first_block + split_begin(group.x, blocks, splits)) * kSplitKeys;
    const uint to = metal::min(position + 1, (first_block + split_begin(group.x + 1, blocks, splits)) * kSplitKeys);

    q += ulong(group.y) * kGroup * kHeadDim;
    for (uint i = tid; i < kGroup * head_quads(); i += kAttentionThreads) {
        const uint g = i / head_quads(), quad = i % head_quads();
        shared[g * (kMaxDim / 4) + quad] = load_head_quad(q + g * kHeadDim, quad * 4) * p.scale;
    }
    if (tid < kGroup) {
        heads[tid].top = kMasked;
        heads[tid].sum = 0.0f;
    }
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);

    // A thread has one quad of the values, and every n-th key.
    const uint teams = kAttentionThreads / head_quads(), team = tid / head_quads(), quad = tid % head_quads();
    float4 out[kMaxGroup];
#pragma clang loop unroll(full)
    for (uint g = 0; g < kMaxGroup; ++g) out[g] = float4(0.0f);
    for (uint begin = from; begin < to; begin += kScoreKeys) {
        const uint first = metal::max(window_first, begin), end = metal::min(to, begin + kScoreKeys);
        split_scores<Kv, kMaxDim, kMaxGroup>(cache, keys, shared, begin, first, end, p.softcap, lane, simdgroup, scores);
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        for (uint g = simdgroup; g < kGroup; g += kAttentionSimdgroups) {
            const SplitHead now = split_softmax(scores + g * kScoreKeys, heads[g].top, heads[g].sum, lane);
            metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (lane == 0) {
                heads[g].top = now.top;
                heads[g].sum = now.sum;
                heads[g].keep = now.keep;
            }
        }
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
        for (uint g = 0; g < kMaxGroup; ++g) {
            if (g < kGroup) out[g] *= heads[g].keep;
        }
        if (team < teams) {
            for (uint key = first + team; key < end; key += teams) {
                const float4 v = Kv::Values::load(cache, values.at(key), quad);
#pragma clang loop unroll(full)
                for (uint g = 0; g < kMaxGroup; ++g) {
                    if (g < kGroup) out[g] += scores[g * kScoreKeys + key - begin] * v;
                }
            }
        }
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }

    const uint room = split_room(context_of(p), kMostSplits);
    device float2* stats = (device float2*)(partials + ulong(p.n_heads) * room * kHeadDim);
    if (!only && tid < kGroup) stats[ulong(group.y * kGroup + tid) * room + group.x] = float2(heads[tid].top, heads[tid].sum);
#pragma clang loop unroll(full)
    for (uint g0 = 0; g0 < kMaxGroup; g0 += kTogether) {
        if (g0 >= kGroup) continue;
        const uint n = metal::min(kTogether, kGroup - g0);
#pragma clang loop unroll(full)
        for (uint g = 0; g < kTogether; ++g) shared[g * kAttentionThreads + tid] = out[g0 + g];
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        for (uint i = tid; i < n * kHeadDim; i += kAttentionThreads) {
            const uint g = i / kHeadDim, d = i % kHeadDim;
            float sum = 0.0f;
            for (uint t = 0; t < teams; ++t) sum += shared[g * kAttentionThreads + t * head_quads() + d / 4][d % 4];
            const uint head = group.y * kGroup + g0 + g;
            if (only) {
                const float total = heads[g0 + g].sum + sink_weight(sinks, head, heads[g0 + g].top);
                store_activation(sum / total, p.formats, out_f32, out_f16, ulong(head) * kHeadDim + d);
            } else {
                partials[(ulong(head) * room + group.x) * kHeadDim + d] = sum;
            }
        }
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
}
