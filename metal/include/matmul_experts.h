// Products with the weights of the experts that rows were sent to, which the router has written. For a few rows a
// threadgroup computes some rows of one expert's weights for one choice, or, where results are added up, for all choices
// of a row, by the numbers of its experts. For many rows it computes them for a tile of choices of one expert
// (expert_tiles.h), so that these read the weights once; every sum has the same terms in the same order as for a few.
#pragma once

#include "buffer_index.h"
#include "expert_tiles.h"
#include "matmul_gemv.h"

// What becomes of a choice's products with gate and up.
static inline void store_expert(device const float* gate_bias, device const float* up_bias, device float* out,
                                device half* compact, constant ExpertsGateUpParams& p, uint id, uint choice, uint row,
                                float a, float b) {
    if (p.has_bias) {
        a += gate_bias[ulong(id) * p.n + row];
        if (p.gated) b += up_bias[ulong(id) * p.n + row];
    }
    if (p.limit > 0.0f) {
        a = metal::min(a, p.limit);
        b = metal::clamp(b, -p.limit, p.limit);
    }
    const float activated = p.sharpness == 1.0f ? activate(p.activation, a) : a * sigmoid(p.sharpness * a);
    store_activation(p.gated ? activated * (b + p.up_offset) : activated, p.formats, out, compact, ulong(choice) * p.n + row);
}

// act(x·Gᵀ)·(x·Uᵀ), or act(x·Gᵀ) alone, with all that an expert may do besides; grid: rows of weights, choices.
template <typename F>
kernel void experts_gate_up(device const typename F::Input* x [[buffer(0)]], device const uchar* gates [[buffer(1)]],
                            device const uchar* ups [[buffer(2)]], device const float* gate_bias [[buffer(3)]],
                            device const float* up_bias [[buffer(4)]], device const uint* ids [[buffer(5)]],
                            device float* out [[buffer(6)]], device half* compact [[buffer(7)]],
                            constant ExpertsGateUpParams& p [[buffer(kParamsIndex)]],
                            uint2 group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                            ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint choice = group.y, id = metal::min(ids[choice], p.experts - 1);
    const typename F::Matrix matrices[2] = {F::matrix_of(gates, id, p.experts, p.n, p.k),
                                            F::matrix_of(ups, id, p.experts, p.n, p.k)};
    const PlainInput<F> input = {x + ulong(choice / p.chosen) * p.k};
    float2 v = float2(0.0f);
    if (p.gated) {
        v = gemv<F, 2>(input, matrices, p.n, p.k, at, partial);
    } else {
        const typename F::Matrix matrix[1] = {matrices[0]};
        v.x = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    }
    if (!at.stores(p.n)) return;
    store_expert(gate_bias, up_bias, out, compact, p, id, choice, at.base_row() + lane, v.x, v.y);
}

// y (+)= Σ weight·(x·Wᵀ + bias); grid: rows of weights, rows.
template <typename F>
kernel void experts_down(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                         device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                         device const uint* ids [[buffer(4)]], device const float* weights [[buffer(5)]],
                         constant ExpertsDownParams& p [[buffer(kParamsIndex)]],
                         uint2 group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                         ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint row = at.base_row() + lane;
    const ulong first = ulong(group.y) * p.chosen;
    float sum = 0.0f;
    uint least = 0;
    for (uint n = 0; n < p.chosen; ++n) {
        uint id;
        const uint choice = next_choice(ids + first, p.chosen, least, id);
        id = metal::min(id, p.experts - 1);
        const typename F::Matrix matrix[1] = {F::matrix_of(w, id, p.experts, p.n, p.k)};
        const PlainInput<F> input = {x + (first + choice) * p.k};
        float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
        if (at.stores(p.n)) {
            if (p.has_bias) v += bias[ulong(id) * p.n + row];
            sum += weights[first + choice] * v;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // `partial` is used again
    }
    if (!at.stores(p.n)) return;
    device float& to = y[ulong(group.y) * p.n + row];
    to = p.accumulate ? to + sum : sum;
}

// A tile of choices, as the pass before has written it.
struct ExpertTile {
    device const uint* choices;
    uint id;
    uint count;
    uint choice(uint i) const { return choices[metal::min(i, count - 1)]; }
};

static inline ExpertTile tile_at(device const uint* sorted, uint choices, uint tile) {
    device const uint* words = sorted + tiles_word(choices) + 2 * tile;
    return {sorted + kOrderWord + words[0], words[1] & ((1u << kTileCountShift) - 1), words[1] >> kTileCountShift};
}

// What a SIMD-group has of a tile at most, as far as the function constants tell: registers are for these alone.
template <ushort kMatrices>
static inline ushort most_rows() {
    return kMatrices * ROWS_PER_SIMD;
}
template <ushort kMatrices>
static inline ushort most_choices() {
    return 32 / most_rows<kMatrices>();
}

// sums[t][i] += the lane's share of Σ x·w for `count` rows of weights and each of so many rows of x, as accumulate_rows.
template <typename F, ushort kMatrices>
inline void accumulate_tile(device const typename F::Input* x, thread const uint (&rows_of_x)[kMostTileChoices],
                            uint choices, thread const typename F::Row (&w)[kMaxRows], ushort count, uint k, uint first,
                            uint step, thread float (&sums)[kMostTileChoices][kMaxRows]) {
    constexpr ushort kQuads = F::kSlice / 4, kRuns = kQuads / F::kRun, kSlices = F::kBlock / F::kSlice;
    const uint slices = (k + F::kSlice - 1) / F::kSlice;
    for (uint s = first; s < slices; s += step) {
        const uint block = s / kSlices, base = block * F::kBlock;
        const ushort sub = s % kSlices;
        for (ushort run = 0; run < kRuns; ++run) {
            Quad q[kMaxRows];
            float parts[kMostTileChoices][kMaxRows];
            float4 total[kMostTileChoices];  // for the minimum, which is added to each weight
#pragma clang loop unroll(full)
            for (ushort t = 0; t < kMostTileChoices; ++t) {
                total[t] = float4(0);
#pragma clang loop unroll(full)
                for (ushort i = 0; i < kMaxRows; ++i) parts[t][i] = 0;
            }
            for (ushort r = run * F::kRun; r < (run + 1) * F::kRun; ++r) {
                const ushort place = F::place(sub, r);
                const uint e = base + place, left = k > e ? k - e : 0;
#pragma clang loop unroll(full)
                for (ushort i = 0; i < kMaxRows; ++i) {
                    if (i >= most_rows<kMatrices>() || i >= count) continue;
                    q[i] = F::quad(w[i], block, place, k - base);
                }
#pragma clang loop unroll(full)
                for (ushort t = 0; t < kMostTileChoices; ++t) {
                    if (t >= most_choices<kMatrices>() || t >= choices) continue;
                    const float4 v = load_quad<F::kGuarded>(x + ulong(rows_of_x[t]) * k + e, left);
                    if (F::kHasMin) total[t] += v;
#pragma clang loop unroll(full)
                    for (ushort i = 0; i < kMaxRows; ++i) {
                        if (i >= most_rows<kMatrices>() || i >= count) continue;
                        parts[t][i] += dot(q[i].q, v);
                    }
                }
            }
#pragma clang loop unroll(full)
            for (ushort t = 0; t < kMostTileChoices; ++t) {
                if (t >= most_choices<kMatrices>() || t >= choices) continue;
#pragma clang loop unroll(full)
                for (ushort i = 0; i < kMaxRows; ++i) {
                    if (i >= most_rows<kMatrices>() || i >= count) continue;
                    sums[t][i] += q[i].scale * parts[t][i];
                    if (F::kHasMin) sums[t][i] += q[i].min * dot(total[t], float4(1));
                }
            }
        }
    }
}

// The products of a tile's rows of x with a SIMD-group's rows of weights: lane t·count + i has that of row of x t with
// row i, `count` of which the matrices have together. Only part 0 of k has whole sums.
template <typename F, ushort kMatrices>
inline float multiply_tile(device const typename F::Input* x, thread const uint (&rows_of_x)[kMostTileChoices],
                           uint choices, thread const typename F::Matrix (&w)[kMatrices], ushort count, uint n, uint k,
                           thread const GemvThread& at, threadgroup float* partial) {
    float sums[kMostTileChoices][kMaxRows];
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMostTileChoices; ++t) {
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kMaxRows; ++i) sums[t][i] = 0;
    }
    if (at.base_row() < n) {
        typename F::Row rows[kMaxRows];
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kMaxRows; ++i) {
            typename F::Matrix matrix = w[0];  // rows from `count` on are not used
            if (i >= ROWS_PER_SIMD) matrix = w[kMatrices - 1];
            rows[i] = matrix.row(metal::min(at.base_row() + i % ROWS_PER_SIMD, n - 1), k);
        }
        accumulate_tile<F, kMatrices>(x, rows_of_x, choices, rows, count, k, at.part() * 32 + at.lane, K_SPLIT * 32, sums);
    }
    float mine = 0;
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMostTileChoices; ++t) {
        if (t >= most_choices<kMatrices>() || t >= choices) continue;
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kMaxRows; ++i) {
            if (i >= most_rows<kMatrices>() || i >= count) continue;
            const float sum = simd_sum(sums[t][i]);
            if (at.lane == t * count + i) mine = sum;
        }
    }
    if (K_SPLIT > 1) {
        partial[at.simd * 32 + at.lane] = mine;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (at.part() == 0) {
            for (ushort s = 1; s < K_SPLIT; ++s) mine += partial[(at.simd + s) * 32 + at.lane];
        }
    }
    return mine;
}

// experts_gate_up of many rows; grid: rows of weights, tiles.
template <typename F>
kernel void experts_gate_up_tiles(
    device const typename F::Input* x [[buffer(0)]], device const uchar* gates [[buffer(1)]],
    device const uchar* ups [[buffer(2)]], device const float* gate_bias [[buffer(3)]],
    device const float* up_bias [[buffer(4)]], device float* out [[buffer(6)]], device half* compact [[buffer(7)]],
    constant ExpertsGateUpParams& p [[buffer(kParamsIndex)]], device const uint* sorted [[buffer(kScratchIndex)]],
    uint2 group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
    ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kMaxSimdgroups * 32];
    const GemvThread at = {group.x, simd, simds, lane};
    const ExpertTile tile = tile_at(sorted, p.rows * p.chosen, group.y);
    const typename F::Matrix matrices[2] = {F::matrix_of(gates, tile.id, p.experts, p.n, p.k),
                                            F::matrix_of(p.gated ? ups : gates, tile.id, p.experts, p.n, p.k)};
    uint rows_of_x[kMostTileChoices];
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMostTileChoices; ++t) rows_of_x[t] = tile.choice(t) / p.chosen;
    const ushort count = p.gated ? 2 * ROWS_PER_SIMD : ROWS_PER_SIMD;
    const float a = multiply_tile<F, 2>(x, rows_of_x, tile.count, matrices, count, p.n, p.k, at, partial);
    const float b = simd_shuffle_down(a, ushort(ROWS_PER_SIMD));
    const uint t = lane / count, row = at.base_row() + lane % count;
    if (at.part() != 0 || lane % count >= ROWS_PER_SIMD || t >= tile.count || row >= p.n) return;
    store_expert(gate_bias, up_bias, out, compact, p, tile.id, tile.choice(t), row, a, p.gated ? b : 0.0f);
}

// x·Wᵀ of every choice, which experts_down_sum adds up; grid: rows of weights, tiles.
template <typename F>
kernel void experts_down_tiles(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                               constant ExpertsDownParams& p [[buffer(kParamsIndex)]],
                               device uint* sorted [[buffer(kScratchIndex)]],
                               uint2 group [[threadgroup_position_in_grid]],
                               ushort simd [[simdgroup_index_in_threadgroup]],
                               ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kMaxSimdgroups * 32];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint choices = p.rows * p.chosen;
    const ExpertTile tile = tile_at(sorted, choices, group.y);
    const typename F::Matrix matrix[1] = {F::matrix_of(w, tile.id, p.experts, p.n, p.k)};
    uint rows_of_x[kMostTileChoices];
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMostTileChoices; ++t) rows_of_x[t] = tile.choice(t);
    const float v = multiply_tile<F, 1>(x, rows_of_x, tile.count, matrix, ROWS_PER_SIMD, p.n, p.k, at, partial);
    const uint t = lane / ROWS_PER_SIMD, row = at.base_row() + lane % ROWS_PER_SIMD;
    if (at.part() != 0 || t >= tile.count || row >= p.n) return;
    ((device float*)(sorted + results_word(choices)))[ulong(tile.choice(t)) * p.n + row] = v;
}

// Floats as they are.
template <typename F>
struct FloatInput {
    device const float* x;
    float4 quad(uint e, uint k, thread float&) const {
        if (F::kGuarded) return load_quad<true>(x + e, k > e ? k - e : 0);
        return {x[e], x[e + 1], x[e + 2], x[e + 3]};  // rows of x may begin anywhere
    }
    static float scale(float, uint) { return 1; }
};

// y = x·Wᵀ with the weights of each head, and what follows x; grid: rows of weights, heads of all rows.
template <typename F>
kernel void head_matmul(device const float* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                        device float* y [[buffer(2)]], constant HeadMatmulParams& p [[buffer(kParamsIndex)]],
                        uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
                        ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                        ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint head = group.y % p.heads;
    const typename F::Matrix matrix[1] = {F::matrix_of(w, head, p.heads, p.n, p.k)};
    x += ulong(group.y) * p.x_stride;
    y += ulong(group.y) * (p.n + p.copied);
    const FloatInput<F> input = {x};
    const float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    if (at.stores(p.n)) y[at.base_row() + lane] = v;
    for (uint i = group.x * simds * 32 + simd * 32 + lane; i < p.copied; i += groups.x * simds * 32) {
        y[p.n + i] = x[p.k + i];
    }
}
