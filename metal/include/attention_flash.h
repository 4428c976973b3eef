// Attention of many rows (Dao et al., "FlashAttention", 2022): tiles of queries walk over tiles of keys with a running
// softmax; scores and outputs are F32 throughout.
//
// A tile's queries are all heads of one KV head's group for some rows, row by row, so that a key is staged once for all
// of them. Four SIMD-groups: each has 8 queries, or, where a head is long, one of kParts shares of 8 queries' elements;
// the shares' scores are summed before the softmax.
//
// A tile's rows may be of several sequences: each one's keys are walked over in turn, while the other rows see none. A row
// sees the keys up to its own; or all of its sequence's, whose rows are in this step; or the first few, whatever it is.
//
// Loops over the arrays of a thread are unrolled, with a condition where the function constants allow fewer: see
// attention_split.h.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup_matrix>

#include "attention_kv.h"
#include "buffer_index.h"

// What the queries of a tile are.
struct FlashTile {
    uint first_row, rows, part;  // rows of the step; which group, or part of one
    uint queries() const { return rows * kGroup; }
    uint row(uint query) const { return first_row + query / kGroup; }
    // Offset of a query's first element in q and in the output.
    ulong offset(uint query, uint n_heads) const {
        return (ulong(row(query)) * n_heads + part * kGroup + query % kGroup) * kHeadDim;
    }
};

// Stages keys (or values) [begin, begin + kKeys) as rows of `stride` elements, zeros where there are none.
template <typename Unit, uint kKeys, typename T>
static inline void stage_rows(device const uchar* cache, KvHead head, uint begin, uint end, uint stride, uint tid,
                              threadgroup T* tile) {
    const uint quads = (kHeadDim + 7) / 8 * 2;  // whole matrices
    for (uint i = tid; i < kKeys * quads; i += kAttentionThreads) {
        const uint key = i / quads, quad = i % quads;
        float4 v = float4(0.0f);
        if (begin + key < end && quad < head_quads()) v = Unit::load(cache, head.at(begin + key), quad);
        *(threadgroup metal::vec<T, 4>*)(tile + key * stride + quad * 4) = metal::vec<T, 4>(v);
    }
}

// Behind the last row of the sequence that row `from` is of, which has all rows before `to`: its rows stand together.
static inline uint sequence_end(device const Row* rows, uint from, uint to, uint all) {
    const uint slot = rows[from].slot;
    while (to < all) {
        const uint middle = (to + all) / 2;
        if (rows[middle].slot == slot) {
            to = middle + 1;
        } else {
            all = middle;
        }
    }
    return to;
}

// Behind the last key that a row sees, of a sequence of so many keys. `ends`: where it may see what comes after it, at least.
static inline uint keys_end(constant AttentionParams& p, uint position, uint sequence_keys, device const uint* ends, uint row) {
    if (p.row_ends != 0) return metal::max(position + 1, ends[row]);
    if (p.fixed_keys != 0) return p.fixed_keys;
    if (p.bidirectional == 0) return position + 1;
    return p.window != 0 ? metal::min(sequence_keys, position + p.window) : sequence_keys;
}

// The running softmax of one row of scores, which 32 / kRows neighbouring lanes share.
struct FlashRow {
    float top, sum;
};

// Scores become exponentials; returns what earlier results are to be multiplied with. The scores' other shares lie
// `share_stride` floats apart.
template <uint kLanes, uint kKeys, uint kParts>
static inline float flash_softmax(threadgroup float* scores, uint share_stride, uint lane, uint first, uint end, float cap,
                                  thread FlashRow& state) {
    float s[kKeys / kLanes], top = state.top, sum = 0.0f;
#pragma clang loop unroll(full)
    for (uint i = 0; i < kKeys / kLanes; ++i) {
        const uint key = i * kLanes + lane;
        float score = scores[key];
        for (uint part = 1; part < kParts; ++part) score += scores[part * share_stride + key];
        s[i] = key >= first && key < end ? soft_cap(score, cap) : kMasked;
        top = metal::max(top, s[i]);
    }
    for (ushort step = kLanes / 2; step > 0; step /= 2) top = metal::max(top, metal::simd_shuffle_xor(top, step));
#pragma clang loop unroll(full)
    for (uint i = 0; i < kKeys / kLanes; ++i) {
        const float e = s[i] > kMasked ? metal::exp(s[i] - top) : 0.0f;
        scores[i * kLanes + lane] = e;
        sum += e;
    }
    for (ushort step = kLanes / 2; step > 0; step /= 2) sum += metal::simd_shuffle_xor(sum, step);
    const float keep = state.top > kMasked ? metal::exp(state.top - top) : 0.0f;
    state.top = top;
    state.sum = state.sum * keep + sum;
    return keep;
}

// Multiplies the rows of `out` by factors[row][0..7], eight equal ones: element by element, whatever lane has which.
template <uint kMatrices>
static inline void scale_rows(thread metal::simdgroup_float8x8 (&out)[kMatrices], threadgroup const float* factors) {
    metal::simdgroup_float8x8 f;
    metal::simdgroup_load(f, factors, 8);
#pragma clang loop unroll(full)
    for (uint m = 0; m < kMatrices; ++m) out[m].thread_elements() *= f.thread_elements();
}

// Grid: tiles of rows x groups or parts of them, and x splits where batched. kMaxDim: elements that a head has at most; kKeys: of a tile.
template <typename Kv, uint kMaxDim, uint kParts, uint kKeys>
[[kernel]] void attention(device const float* q [[buffer(0)]],
                          device const uchar* cache [[buffer(1)]],
                          device float* out [[buffer(2)]],
                          device const Row* rows [[buffer(3)]],
                          device const uint* pages [[buffer(4)]],
                          device const float* sinks [[buffer(5), function_constant(kHasSinks)]],
                          device const uint* ends [[buffer(6)]],
                          constant AttentionParams& p [[buffer(kParamsIndex)]],
                          device float* partials [[buffer(kScratchIndex), function_constant(kBatched)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint3 groups [[threadgroups_per_grid]],
                          uint tid [[thread_index_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    typedef typename Kv::Tile T;
    constexpr uint kQueries = 8 * kAttentionSimdgroups / kParts, kMatrices = kMaxDim / kParts / 8;
    constexpr uint kStride = kMaxDim + 16 / sizeof(T), kScoreStride = kKeys + 4;  // off the banks' period
    constexpr uint kScores = 8 * kScoreStride;                                    // of a SIMD-group
    threadgroup metal::vec<T, 4> tile4[kKeys * kStride / 4];                      // keys, then values
    threadgroup float4 scores4[kAttentionSimdgroups * kScores / 4];
    threadgroup float factors[kQueries * 8];
    threadgroup T* tile = (threadgroup T*)tile4;
    threadgroup float* scores = (threadgroup float*)scores4;

    // Later tiles see more keys, so they begin first.
    const uint tile_rows = kQueries / kGroup, first_row = (groups.x - 1 - group.x) * tile_rows;
    const FlashTile t = {first_row, metal::min(tile_rows, p.rows - first_row), group.y};
    const uint part = simdgroup % kParts, first_query = simdgroup / kParts * 8;
    threadgroup float* own = scores + simdgroup * kScores;                   // this SIMD-group's scores
    threadgroup float* joint = scores + first_query / 8 * kParts * kScores;  // its queries' exponentials
    const uint first_matrix = part * kMatrices, all_matrices = (kHeadDim + 7) / 8;
    const uint matrices = first_matrix >= all_matrices ? 0 : metal::min(kMatrices, all_matrices - first_matrix);

    // q into registers, by way of the scores' memory.
    metal::simdgroup_float8x8 query[kMatrices], sums[kMatrices];
#pragma clang loop unroll(full)
    for (uint m0 = 0; m0 < kMatrices; m0 += kKeys / 8) {
        for (uint i = lane; i < 8 * kKeys / 4; i += 32) {
            const uint row = i / (kKeys / 4), quad = i % (kKeys / 4), in_head = (first_matrix + m0) * 2 + quad;
            float4 v = float4(0.0f);
            if (first_query + row < t.queries() && in_head < head_quads()) {
                v = load_head_quad(q + t.offset(first_query + row, p.n_heads), in_head * 4) * p.scale;
            }
            *(threadgroup float4*)(own + row * kScoreStride + quad * 4) = v;
        }
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
        for (uint m = 0; m < kKeys / 8; ++m) metal::simdgroup_load(query[m0 + m], own + m * 8, kScoreStride);
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
#pragma clang loop unroll(full)
    for (uint m = 0; m < kMatrices; ++m) sums[m] = metal::make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

    // A lane's row of the softmax: the SIMD-groups of 8 queries share their rows out.
    constexpr uint kLanes = 4 * kParts;
    const uint row_of_8 = part * (8 / kParts) + lane / kLanes;
    const bool row_active = first_query + row_of_8 < t.queries();
    const uint query_row = row_active ? t.row(first_query + row_of_8) : t.first_row;
    const uint row_position = rows[query_row].position + p.step, row_first = first_key(row_position, p.window);
    FlashRow state = {kMasked, 0.0f};

    const uint run = batch_split_keys(context_of(p));
    const uint tile_end = t.first_row + t.rows;
    for (uint from = t.first_row, to; from < tile_end; from = to) {
        const uint slot = rows[from].slot;
        for (to = from + 1; to < tile_end && rows[to].slot == slot;) ++to;
        // The SIMD-groups that have queries of this sequence, and a lane's own row of it.
        const uint own_first = (from - t.first_row) * kGroup, own_end = (to - t.first_row) * kGroup;
        const bool active = first_query < own_end && first_query + 8 > own_first;
        const uint last = p.bidirectional != 0 ? sequence_end(rows, from, to, p.rows) - 1 : to - 1;
        const uint sequence_keys = rows[last].position + p.step + 1;
        const uint row_end = row_active && query_row >= from && query_row < to ? keys_end(p, row_position, sequence_keys, ends, query_row) : 0;
        const KvHead keys = key_head<Kv>(pages, p, slot, kv_of(p, group.y));
        const KvHead values = value_head<Kv>(pages, p, slot, kv_of(p, group.y));
        const uint end = keys_end(p, rows[to - 1].position + p.step, sequence_keys, ends, to - 1);
        const uint begin = first_key(rows[from].position + p.step, p.window) / kKeys * kKeys;
        for (uint k0 = kBatched && group.z > 0 ? (begin / run + group.z) * run : begin; k0 < end;) {
            stage_rows<typename Kv::Keys, kKeys>(cache, keys, k0, end, kStride, tid, tile);
            threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (active) {
                for (uint c = 0; c < kKeys / 8; ++c) {
                    metal::simdgroup_float8x8 s = metal::make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma clang loop unroll(full)
                    for (uint m = 0; m < kMatrices; ++m) {
                        if (m >= matrices) continue;
                        metal::simdgroup_matrix<T, 8, 8> k;
                        metal::simdgroup_load(k, tile + c * 8 * kStride + (first_matrix + m) * 8, kStride, ulong2(0, 0), true);
                        metal::simdgroup_multiply_accumulate(s, query[m], k, s);
                    }
                    metal::simdgroup_store(s, own + c * 8, kScoreStride);
                }
            }
            threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (active) {
                const uint first = row_first > k0 ? row_first - k0 : 0, stop = row_end > k0 ? row_end - k0 : 0;
                const float keep = flash_softmax<kLanes, kKeys, kParts>(joint + row_of_8 * kScoreStride, kScores, lane % kLanes,
                                                                        first, stop, p.softcap, state);
                for (uint c = lane % kLanes; c < 8; c += kLanes) factors[(first_query + row_of_8) * 8 + c] = keep;
            }
            stage_rows<typename Kv::Values, kKeys>(cache, values, k0, end, kStride, tid, tile);
            threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (active) {
                scale_rows(sums, factors + first_query * 8);
                for (uint c = 0; c < kKeys / 8; ++c) {
                    metal::simdgroup_float8x8 e;
                    metal::simdgroup_load(e, joint + c * 8, kScoreStride);
#pragma clang loop unroll(full)
                    for (uint m = 0; m < kMatrices; ++m) {
                        if (m >= matrices) continue;
                        metal::simdgroup_matrix<T, 8, 8> v;
                        metal::simdgroup_load(v, tile + c * 8 * kStride + (first_matrix + m) * 8, kStride);
                        metal::simdgroup_multiply_accumulate(sums[m], e, v, sums[m]);
                    }
                }
            }
            threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            k0 += kKeys;
            if (kBatched && k0 % run == 0) k0 += (groups.z - 1) * run;
        }
    }

    const uint splits = batch_split_count(context_of(p));
    if (kBatched && row_active && lane % kLanes == 0) {
        device float2* stats = (device float2*)(partials + ulong(p.rows) * p.n_heads * splits * kHeadDim);
        const ulong query_at = t.offset(first_query + row_of_8, p.n_heads) / kHeadDim;
        stats[query_at * splits + group.z] = float2(state.top, state.sum);
    }
    for (uint c = lane % kLanes; c < 8; c += kLanes) {
        const uint head = t.part * kGroup + (first_query + row_of_8) % kGroup;
        const float factor = state.sum > 0.0f ? 1.0f / (state.sum + sink_weight(sinks, head, state.top)) : 0.0f;
        factors[(first_query + row_of_8) * 8 + c] = kBatched ? 1.0f : factor;
    }
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    scale_rows(sums, factors + first_query * 8);
#pragma clang loop unroll(full)
    for (uint m0 = 0; m0 < kMatrices; m0 += kKeys / 8) {
#pragma clang loop unroll(full)
        for (uint m = 0; m < kKeys / 8; ++m) metal::simdgroup_store(sums[m0 + m], own + m * 8, kScoreStride);
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
        for (uint i = lane; i < 8 * kKeys; i += 32) {
            const uint row = i / kKeys, d = (first_matrix + m0) * 8 + i % kKeys;
            if (first_query + row < t.queries() && d < kHeadDim) {
                const ulong at = t.offset(first_query + row, p.n_heads);
                const float x = own[row * kScoreStride + i % kKeys];
                if (kBatched) {
                    partials[at * splits + group.z * kHeadDim + d] = x;
                } else {
                    out[at + d] = x;
                }
            }
        }
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
}
