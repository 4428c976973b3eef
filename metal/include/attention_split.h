// Decode attention: one row against kSplitKeys keys of one KV head, for all query heads of its group, so that each key
// and value is read once. Scores of the whole block are in threadgroup memory; attention_merge.metal joins the blocks.
#pragma once

#include <metal_stdlib>

#include "attention_kv.h"

enum SplitSizes : u32 {
    kSplitThreads = 128,
    kSplitSimdgroups = kSplitThreads / 32,
    kLanesPerKey = 8,  // each with every 8th quad of the key
    kKeysPerLane = 4,  // taken together, so that a quad of q is read once for them
    kReducedHeads = 4,  // heads whose outputs are summed over the threads at a time
};

// Scores of the keys [begin, begin + kSplitKeys), into scores[head][key - begin]; `q` is [head][kMaxDim / 4].
template <typename Kv, uint kMaxDim, uint kMaxGroup>
static inline void split_scores(device const uchar* keys, KvHead head, threadgroup const float4* q, uint begin, uint first,
                                uint end, float cap, uint lane, uint simdgroup, threadgroup float* scores) {
    constexpr uint kAtOnce = 32 / kLanesPerKey * kKeysPerLane, kPerSimdgroup = kSplitKeys / kSplitSimdgroups;
    for (uint at = simdgroup * kPerSimdgroup; at < (simdgroup + 1) * kPerSimdgroup; at += kAtOnce) {
        float sum[kKeysPerLane][kMaxGroup];
        KvRow rows[kKeysPerLane];
        bool seen[kKeysPerLane];
        const uint mine = at + lane / kLanesPerKey;  // and every 32 / kLanesPerKey-th behind
        for (uint j = 0; j < kKeysPerLane; ++j) {
            const uint key = begin + mine + j * (32 / kLanesPerKey);
            seen[j] = key >= first && key < end;
            rows[j] = head.at(seen[j] ? key : first);
            for (uint g = 0; g < kMaxGroup; ++g) sum[j][g] = 0.0f;
        }
        for (uint quad = lane % kLanesPerKey; quad < kHeadQuads; quad += kLanesPerKey) {
            float4 k[kKeysPerLane];
            for (uint j = 0; j < kKeysPerLane; ++j) k[j] = Kv::load(keys, rows[j], quad);
            for (uint g = 0; g < kMaxGroup; ++g) {
                if (g >= kGroup) break;
                const float4 x = q[g * (kMaxDim / 4) + quad];
                for (uint j = 0; j < kKeysPerLane; ++j) sum[j][g] += metal::dot(x, k[j]);
            }
        }
        for (uint g = 0; g < kMaxGroup; ++g) {
            if (g >= kGroup) break;
            for (uint j = 0; j < kKeysPerLane; ++j) {
                float s = sum[j][g];
                for (ushort step = kLanesPerKey / 2; step > 0; step /= 2) s += metal::simd_shuffle_xor(s, step);
                if (lane % kLanesPerKey == 0) {
                    const uint key = mine + j * (32 / kLanesPerKey);
                    scores[g * kSplitKeys + key] = seen[j] ? soft_cap(s, cap) : kMasked;
                }
            }
        }
    }
}

// scores = exp(scores - max) and their (max, sum), by one SIMD-group.
static inline float2 split_softmax(threadgroup float* scores, uint lane) {
    constexpr uint kEach = kSplitKeys / 32;
    float s[kEach], top = kMasked, sum = 0.0f;
    for (uint i = 0; i < kEach; ++i) {
        s[i] = scores[i * 32 + lane];
        top = metal::max(top, s[i]);
    }
    top = metal::simd_max(top);
    for (uint i = 0; i < kEach; ++i) {
        const float e = s[i] > kMasked ? metal::exp(s[i] - top) : 0.0f;
        scores[i * 32 + lane] = e;
        sum += e;
    }
    return float2(top, metal::simd_sum(sum));
}

// Grid: splits x KV heads. Of a window, split 0 is the one in which it begins.
template <typename Kv, uint kMaxDim, uint kMaxGroup>
[[kernel]] void attention_split(device const float* q [[buffer(0)]],
                                device const uchar* keys [[buffer(1)]],
                                device const uchar* values [[buffer(2)]],
                                device float* partials [[buffer(3)]],
                                constant AttentionParams& p [[buffer(8)]],
                                device const uint* page_table [[buffer(10), function_constant(kPaged)]],
                                uint2 group [[threadgroup_position_in_grid]],
                                uint tid [[thread_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    constexpr uint kTogether = kMaxGroup < kReducedHeads ? kMaxGroup : uint(kReducedHeads);
    constexpr uint kQueryQuads = kMaxGroup * kMaxDim / 4, kSumQuads = kTogether * kSplitThreads;
    threadgroup float4 shared[kQueryQuads > kSumQuads ? kQueryQuads : kSumQuads];  // q, later sums over threads
    threadgroup float scores[kMaxGroup * kSplitKeys];

    device const uint* pages = nullptr;
    if (kPaged) pages = page_table;
    const KvHead head = {pages, group.y, p.n_kv_heads, p.context};
    const uint last = p.position, window_first = first_key(last, p.window);
    const uint begin = (window_first / kSplitKeys + group.x) * kSplitKeys;
    // Keys of this block that are seen: none in a block behind the last key, which the grid may have with a window.
    const uint first = metal::min(metal::max(window_first, begin), last);
    const uint end = begin > last ? first : metal::min(last + 1, begin + kSplitKeys);
    const uint splits = split_count(p.context);

    q += ulong(group.y) * kGroup * kHeadDim;
    for (uint i = tid; i < kGroup * kHeadQuads; i += kSplitThreads) {
        const uint g = i / kHeadQuads, quad = i % kHeadQuads;
        shared[g * (kMaxDim / 4) + quad] = load_quad(q + g * kHeadDim, quad * 4) * p.scale;
    }
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);

    split_scores<Kv, kMaxDim, kMaxGroup>(keys, head, shared, begin, first, end, p.softcap, lane, simdgroup, scores);
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);

    device float2* stats = (device float2*)(partials + ulong(p.n_heads) * splits * kHeadDim);
    for (uint g = simdgroup; g < kGroup; g += kSplitSimdgroups) {
        const float2 max_sum = split_softmax(scores + g * kSplitKeys, lane);
        if (lane == 0) stats[ulong(group.y * kGroup + g) * splits + group.x] = max_sum;
    }
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);

    // A thread has one quad of the values, and every n-th key.
    const uint teams = kSplitThreads / kHeadQuads, team = tid / kHeadQuads, quad = tid % kHeadQuads;
    float4 out[kMaxGroup];
    for (uint g = 0; g < kMaxGroup; ++g) out[g] = float4(0.0f);
    if (team < teams) {
        for (uint key = first + team; key < end; key += teams) {
            const float4 v = Kv::load(values, head.at(key), quad);
            for (uint g = 0; g < kMaxGroup; ++g) {
                if (g >= kGroup) break;
                out[g] += scores[g * kSplitKeys + key - begin] * v;
            }
        }
    }
    for (uint g0 = 0; g0 < kMaxGroup; g0 += kTogether) {
        if (g0 >= kGroup) break;
        const uint n = metal::min(kTogether, kGroup - g0);
        for (uint g = 0; g < kTogether; ++g) shared[g * kSplitThreads + tid] = out[g0 + g];
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        for (uint i = tid; i < n * kHeadDim; i += kSplitThreads) {
            const uint g = i / kHeadDim, d = i % kHeadDim;
            float sum = 0.0f;
            for (uint t = 0; t < teams; ++t) sum += shared[g * kSplitThreads + t * kHeadQuads + d / 4][d % 4];
            partials[(ulong(group.y * kGroup + g0 + g) * splits + group.x) * kHeadDim + d] = sum;
        }
        threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
}
