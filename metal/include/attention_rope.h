// q, k = rope(norm(q), norm(k)); pages[position] = k, v. A SIMD-group per head and row.
#pragma once

#include <metal_stdlib>

#include "attention_kv.h"
#include "buffer_index.h"
#include "core/head_norm.h"

// A head's elements as a lane holds them: the pairs i = lane, lane + 32, ... that turn, then what passes through. One lane
// reads and writes an element, so that heads can turn in place.
struct RopePairs {
    uint half_dim, rope_dim, style;
    uint first(uint i) const { return style == kRopeInterleaved ? 2 * i : i; }
    uint second(uint i) const { return style == kRopeInterleaved ? 2 * i + 1 : i + half_dim; }
};

// What is taken off a head's elements, and what they are multiplied with then.
struct HeadScale {
    float mean, scale;
};

static inline HeadScale head_scale(device const float* x, RopePairs pairs, uint norm, float eps, uint lane) {
    if (norm == kHeadNormNone) return {0.0f, 1.0f};
    float mean = 0.0f, sum = 0.0f;
    if (norm == kHeadNormLayer) {
        for (uint i = lane; i < pairs.half_dim; i += 32) mean += x[pairs.first(i)] + x[pairs.second(i)];
        for (uint d = pairs.rope_dim + lane; d < kHeadDim; d += 32) mean += x[d];
        mean = metal::simd_sum(mean) / float(kHeadDim);
    }
    for (uint i = lane; i < pairs.half_dim; i += 32) {
        const float a = x[pairs.first(i)] - mean, b = x[pairs.second(i)] - mean;
        sum += a * a + b * b;
    }
    for (uint d = pairs.rope_dim + lane; d < kHeadDim; d += 32) sum += (x[d] - mean) * (x[d] - mean);
    return {mean, metal::precise::rsqrt(metal::simd_sum(sum) / float(kHeadDim) + eps)};
}

// out = rope(norm(x)), of a head of q or of k, which are numbered through; `Out` is a pointer to device or threadgroup
// memory.
template <typename Out>
static inline void rope_head(device const float* x, uint head, device const float* norms, device const float2* table,
                             constant PrepareHeadsParams& p, uint lane, Out out) {
    const RopePairs pairs = {p.rope_dim / 2, p.rope_dim, p.style};
    const bool normed = p.qk_norm != kHeadNormNone;
    device const float* norm = norms + kHeadDim * (p.qk_norm == kHeadNormLayer ? head : uint(head >= p.n_heads));
    const HeadScale of = head_scale(x, pairs, p.qk_norm, p.eps, lane);
    for (uint i = lane; i < pairs.half_dim; i += 32) {
        const uint first = pairs.first(i), second = pairs.second(i);
        const float a = (x[first] - of.mean) * of.scale * (normed ? norm[first] : 1.0f);
        const float b = (x[second] - of.mean) * of.scale * (normed ? norm[second] : 1.0f);
        const float2 t = table[i];
        out[first] = a * t.x - b * t.y;
        out[second] = a * t.y + b * t.x;
    }
    for (uint d = pairs.rope_dim + lane; d < kHeadDim; d += 32) {
        out[d] = (x[d] - of.mean) * of.scale * (normed ? norm[d] : 1.0f);
    }
}

template <typename Kv>
[[kernel]] void prepare_heads(device float* q [[buffer(0)]],
                        device const float* k [[buffer(1)]],
                        device const float* v [[buffer(2)]],
                        device const float2* table [[buffer(3)]],
                        device uchar* cache [[buffer(4)]],
                        device const float* norms [[buffer(5)]],  // of q, of k
                        device const Row* rows [[buffer(6)]],
                        device const uint* pages [[buffer(7)]],
                        constant PrepareHeadsParams& p [[buffer(kParamsIndex)]],
                        uint2 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float staged[kAttentionSimdgroups * kMaxHeadDim];
    const uint head = group.x * kAttentionSimdgroups + simdgroup, row = group.y;
    table += ulong(row) * (p.rope_dim / 2);
    if (head < p.n_heads) {
        device float* x = q + (ulong(row) * p.n_heads + head) * kHeadDim;
        rope_head(x, head, norms, table, p, lane, x);
    } else if (head < p.n_heads + 2 * p.n_kv_heads) {
        const bool is_key = head < p.n_heads + p.n_kv_heads;
        const uint kv = head - p.n_heads - (is_key ? 0 : p.n_kv_heads);
        const KvHead to = is_key ? key_head<Kv>(pages, p, rows[row].slot, kv) : value_head<Kv>(pages, p, rows[row].slot, kv);
        const KvRow at = to.at(rows[row].position + p.step);
        const ulong from = (ulong(row) * p.n_kv_heads + kv) * kHeadDim;
        if (is_key) {
            // Lanes hold pairs, the cache takes neighbours.
            threadgroup float* turned = staged + simdgroup * kMaxHeadDim;
            rope_head(k + from, head, norms, table, p, lane, turned);
            metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
            for (uint d = 0; d < kHeadDim; d += 32) {
                Kv::Keys::store(cache, at, d, lane, d + lane < kHeadDim ? turned[d + lane] : 0.0f);
            }
        } else {
            for (uint d = 0; d < kHeadDim; d += 32) {
                Kv::Values::store(cache, at, d, lane, d + lane < kHeadDim ? v[from + d + lane] : 0.0f);
            }
        }
    }
}
