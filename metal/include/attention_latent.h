// Multi-head latent attention: all heads read the same row of a position, and a value is the beginning of its key. A
// threadgroup has one head of one row: simple, and every head reads all rows of the cache anew.
#pragma once

#include <metal_stdlib>

#include "activation.h"
#include "attention_kv.h"
#include "buffer_index.h"
#include "reduce.h"

// Writes a row's latent, normed, and its rotated key to the cache, and rotates the queries: a SIMD-group for each head,
// and one for what is kept.
template <typename Kv>
[[kernel]] void latent_kv(device const float* kv [[buffer(0)]],
                          device float* q [[buffer(1)]],
                          device const float2* table [[buffer(2)]],
                          device const float* norm [[buffer(3)]],
                          device uchar* cache [[buffer(4)]],
                          device const Row* rows [[buffer(5)]],
                          device const uint* pages [[buffer(6)]],
                          constant LatentKvParams& p [[buffer(kParamsIndex)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float kept[kMaxLatentKey];
    const uint head = group.x * kAttentionSimdgroups + simdgroup, row = group.y, half_dim = p.rope_dim / 2;
    if (head > p.n_heads) return;
    const uint position = rows[row].position + p.step;
    const bool interleaved = p.style == kRopeInterleaved;
    table += ulong(row) * half_dim;
    if (head < p.n_heads) {
        device float* x = q + (ulong(row) * p.n_heads + head) * (p.nope_dim + p.rope_dim);
        float scale = 1.0f;
        if (p.temperature_length != 0) {
            scale += p.temperature * metal::precise::log(1.0f + float(position / p.temperature_length));
            for (uint d = lane; d < p.nope_dim; d += 32) x[d] *= scale;
        }
        x += p.nope_dim;
        for (uint i = lane; i < half_dim; i += 32) {
            const uint first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half_dim;
            const float a = x[first] * scale, b = x[second] * scale;
            x[first] = a * table[i].x - b * table[i].y;
            x[second] = a * table[i].y + b * table[i].x;
        }
        return;
    }
    kv += ulong(row) * kHeadDim;
    float sum = 0.0f;
    for (uint d = lane; d < p.latent; d += 32) sum += kv[d] * kv[d];
    const float scale = metal::precise::rsqrt(metal::simd_sum(sum) / float(p.latent) + p.eps);
    for (uint d = lane; d < p.latent; d += 32) kept[d] = kv[d] * scale * norm[d];
    for (uint i = lane; i < half_dim; i += 32) {
        const uint first = p.latent + (interleaved ? 2 * i : i);
        const uint second = p.latent + (interleaved ? 2 * i + 1 : i + half_dim);
        kept[first] = kv[first] * table[i].x - kv[second] * table[i].y;
        kept[second] = kv[first] * table[i].y + kv[second] * table[i].x;
    }
    metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
    const KvRow at = key_head<Kv>(pages, p, rows[row].slot, 0).at(position);
    for (uint d = 0; d < kHeadDim; d += 32) Kv::Keys::store(cache, at, d, lane, d + lane < kHeadDim ? kept[d + lane] : 0.0f);
}

// What is known of a head after some keys.
struct LatentState {
    float top, sum;
};

// Threadgroup memory of a head.
struct LatentShared {
    float4 query[kMaxLatentKey / 4];
    float scores[kAttentionThreads], tops[kAttentionSimdgroups], sums[kAttentionSimdgroups];
};
constant constexpr uint kLatentQuads = (kMaxLatentKey / 4 + kAttentionThreads - 1) / kAttentionThreads;  // of a thread

// What a thread sums up of a head's values.
struct LatentSums {
    float4 quads[kLatentQuads];
};

// A head against the keys [from, to); `out` are the thread's quads of the values, not divided by the sum.
template <typename Kv>
static inline LatentState attend_latent(device const float* q, device const uchar* cache, KvHead keys, uint from, uint to,
                                        constant AttentionParams& p, threadgroup LatentShared& shared, uint tid, uint lane,
                                        uint simdgroup, thread LatentSums& out) {
    for (uint quad = tid; quad < head_quads(); quad += kAttentionThreads) {
        shared.query[quad] = load_head_quad(q, quad * 4) * p.scale;
    }
#pragma clang loop unroll(full)
    for (uint i = 0; i < kLatentQuads; ++i) out.quads[i] = float4(0.0f);
    LatentState state = {kMasked, 0.0f};
    const uint quads = (p.latent + 3) / 4;
    for (uint begin = from; begin < to; begin += kAttentionThreads) {
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);  // the query is there, and scores are used up
        float score = kMasked;
        if (begin + tid < to) {
            const KvRow at = keys.at(begin + tid);
            score = 0.0f;
            for (uint quad = 0; quad < head_quads(); ++quad) {
                score += metal::dot(shared.query[quad], Kv::Keys::load(cache, at, quad));
            }
        }
        const float most = threadgroup_max(score, shared.tops, lane, simdgroup, kAttentionSimdgroups);
        const float top = metal::max(state.top, most), keep = state.sum > 0.0f ? metal::exp(state.top - top) : 0.0f;
        const float e = score > kMasked ? metal::exp(score - top) : 0.0f;
        shared.scores[tid] = e;
        state.sum = state.sum * keep + threadgroup_sum(e, shared.sums, lane, simdgroup, kAttentionSimdgroups);
        state.top = top;
        const uint n = metal::min(uint(kAttentionThreads), to - begin);
#pragma clang loop unroll(full)
        for (uint i = 0; i < kLatentQuads; ++i) {
            const uint quad = tid + i * kAttentionThreads;
            if (quad >= quads) continue;
            float4 sum = out.quads[i] * keep;
            for (uint key = 0; key < n; ++key) sum += shared.scores[key] * Kv::Keys::load(cache, keys.at(begin + key), quad);
            out.quads[i] = sum;
        }
    }
    return state;
}

// Writes what a thread has of a value, divided by `by`.
static void store_sums(thread const LatentSums& sums, device float* to, uint n, float by, uint tid) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < kLatentQuads; ++i) {
        const uint d = (tid + i * kAttentionThreads) * 4;
        for (uint j = 0; j < 4 && d + j < n; ++j) to[d + j] = sums.quads[i][j] / by;
    }
}

// Grid: rows x heads.
template <typename Kv>
[[kernel]] void attention_latent(device const float* q [[buffer(0)]],
                                 device const uchar* cache [[buffer(1)]],
                                 device float* out [[buffer(2)]],
                                 device const Row* rows [[buffer(3)]],
                                 device const uint* pages [[buffer(4)]],
                                 constant AttentionParams& p [[buffer(kParamsIndex)]],
                                 uint2 group [[threadgroup_position_in_grid]],
                                 uint tid [[thread_index_in_threadgroup]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup LatentShared shared;
    LatentSums sums;
    const ulong index = ulong(group.x) * p.n_heads + group.y;
    const KvHead keys = key_head<Kv>(pages, p, rows[group.x].slot, 0);
    const LatentState state = attend_latent<Kv>(q + index * kHeadDim, cache, keys, 0, last_key(p, rows[group.x]) + 1, p,
                                                shared, tid, lane, simdgroup, sums);
    store_sums(sums, out + index * p.latent, p.latent, state.sum, tid);
}

// Grid: splits x heads. The partial results lie as those of attention_split, and a split that is the only one writes the
// result as that does.
template <typename Kv>
[[kernel]] void attention_latent_split(device const float* q [[buffer(0)]],
                                       device const uchar* cache [[buffer(1)]],
                                       device float* partials [[buffer(2)]],
                                       device const Row* rows [[buffer(3)]],
                                       device const uint* pages [[buffer(4)]],
                                       device float* out_f32 [[buffer(6)]],
                                       device half* out_f16 [[buffer(7)]],
                                       constant AttentionParams& p [[buffer(kParamsIndex)]],
                                       uint2 group [[threadgroup_position_in_grid]],
                                       uint2 groups [[threadgroups_per_grid]],
                                       uint tid [[thread_index_in_threadgroup]],
                                       uint lane [[thread_index_in_simdgroup]],
                                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup LatentShared shared;
    LatentSums sums;
    const uint position = last_key(p, rows[0]), blocks = split_blocks(position, 0, kLatentSplitKeys);
    const uint splits = metal::min(blocks, groups.x);
    if (group.x >= splits) return;
    const uint from = split_begin(group.x, blocks, splits) * kLatentSplitKeys;
    const uint to = metal::min(position + 1, split_begin(group.x + 1, blocks, splits) * kLatentSplitKeys);
    const KvHead keys = key_head<Kv>(pages, p, rows[0].slot, 0);
    const LatentState state = attend_latent<Kv>(q + ulong(group.y) * kHeadDim, cache, keys, from, to, p, shared, tid, lane,
                                                simdgroup, sums);
    if (groups.x == 1) {
#pragma clang loop unroll(full)
        for (uint i = 0; i < kLatentQuads; ++i) {
            const uint d = (tid + i * kAttentionThreads) * 4;
            for (uint j = 0; j < 4 && d + j < p.latent; ++j) {
                store_activation(sums.quads[i][j] / state.sum, p.formats, out_f32, out_f16, ulong(group.y) * p.latent + d + j);
            }
        }
        return;
    }
    const uint room = split_room(context_of(p), kMostSplits);
    const ulong index = ulong(group.y) * room + group.x;
    device float2* stats = (device float2*)(partials + ulong(p.n_heads) * room * p.latent);
    if (tid == 0) stats[index] = float2(state.top, state.sum);
    store_sums(sums, partials + index * p.latent, p.latent, 1.0f, tid);
}
