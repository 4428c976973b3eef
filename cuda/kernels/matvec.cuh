// A row times weights on the ordinary units, where row_tiles.cuh does not take it: a warp for one or two of the
// weights' rows, the input in shared memory.
#pragma once

#include "activation.cuh"
#include "formats.cuh"

namespace akunu::cuda {

// Groups of 32 inputs lie so far apart, in floats, that eight lanes that read 16 bytes of a group each meet 32 banks.
constexpr u32 kGroupStride = 36;

// Puts k inputs, x(i), into shared memory, and zeros up to a whole group.
template <typename X>
AKUNU_DEVICE void stage_input(Block b, u32 k, X&& x) {
    float* xs = reinterpret_cast<float*>(b.shared());
    sync_block();
    for (u32 i = thread_id(); i < (k + 31) / 32 * 32; i += kThreads) {
        xs[i / 32 * kGroupStride + i % 32] = i < k ? x(i) : 0.0f;
    }
    sync_block();
}

// One group of each of a few rows, added to their sums.
template <typename F, u32 kRows>
AKUNU_DEVICE void add_group(const float* xs, const Group (&g)[kRows], float (&out)[kRows]) {
    AKUNU_UNROLL
    for (int h = 0; h < 2; ++h) {
        float sum[kRows], inputs = 0.0f;
        AKUNU_UNROLL
        for (u32 r = 0; r < kRows; ++r) sum[r] = 0.0f;
        AKUNU_UNROLL
        for (int i = 16 * h; i < 16 * h + 16; i += 4) {
            const float4 x = *reinterpret_cast<const float4*>(xs + i);
            AKUNU_UNROLL
            for (u32 r = 0; r < kRows; ++r) {
                sum[r] += g[r].code[i] * x.x + g[r].code[i + 1] * x.y + g[r].code[i + 2] * x.z + g[r].code[i + 3] * x.w;
            }
            if (F::kOffset) inputs += x.x + x.y + x.z + x.w;
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < kRows; ++r) {
            out[r] += F::kScaled ? g[r].scale[h] * sum[r] : sum[r];
            if (F::kOffset) out[r] += g[r].offset[h] * inputs;
        }
    }
}

// Of floats a lane takes 16 bytes at a time, so that a warp reads 512 bytes side by side.
template <typename F, u32 kRows>
AKUNU_DEVICE void dot_floats(const float* xs, const Weights (&w)[kRows], const u32 (&row)[kRows], float (&out)[kRows]) {
    constexpr u32 kEach = 16 / F::kFloatBytes, kAtOnce = 4;
    const u32 cols = w[0].cols;
    for (u32 begin = lane_id() * kEach; begin < cols; begin += 32 * kEach * kAtOnce) {
        uint4 q[kAtOnce][kRows];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 at = begin + j * 32 * kEach;
            AKUNU_UNROLL
            for (u32 r = 0; r < kRows; ++r) {
                q[j][r] = at < cols ? load_weights16(w[r].codes + (u64(row[r]) * cols + at) * F::kFloatBytes)
                                    : uint4{0, 0, 0, 0};
            }
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 at = smaller(begin + j * 32 * kEach, cols - kEach);
            AKUNU_UNROLL
            for (u32 e = 0; e < kEach; e += 4) {
                const float4 x = *reinterpret_cast<const float4*>(xs + (at + e) / 32 * kGroupStride + (at + e) % 32);
                AKUNU_UNROLL
                for (u32 r = 0; r < kRows; ++r) {
                    const u32 words[4] = {q[j][r].x, q[j][r].y, q[j][r].z, q[j][r].w};
                    const auto value = [&](u32 i) {
                        return F::convert(F::kFloatBytes == 4 ? words[i % 4]
                                                              : words[i / 2 % 4] >> (16 * (i % 2)) & 0xFFFF);
                    };
                    out[r] += value(e) * x.x + value(e + 1) * x.y + value(e + 2) * x.z + value(e + 3) * x.w;
                }
            }
        }
    }
}

// Rows [row[r]] of w[r] times the staged input, in every lane.
template <typename F, u32 kRows>
AKUNU_DEVICE void dot_rows(Block b, const Weights (&w)[kRows], const u32 (&row)[kRows], float (&out)[kRows]) {
    const float* xs = reinterpret_cast<const float*>(b.shared());
    const u32 groups = (w[0].cols + 31) / 32;
    AKUNU_UNROLL
    for (u32 r = 0; r < kRows; ++r) out[r] = 0.0f;
    bool done = false;
    if constexpr (F::kFloatBytes != 0) {
        done = w[0].cols * F::kFloatBytes % 16 == 0 && !in_tiles(F::kReader, w[0].cols);
        if (done) dot_floats<F, kRows>(xs, w, row, out);
    }
    AKUNU_UNROLL_TWICE  // so that the loads of two groups are on their way
        for (u32 group = done ? groups : lane_id(); group < groups; group += 32) {
        Group g[kRows];
        AKUNU_UNROLL
        for (u32 r = 0; r < kRows; ++r) F::load(w[r], row[r], group, g[r]);
        add_group<F, kRows>(xs + group * kGroupStride, g, out);
    }
    AKUNU_UNROLL
    for (u32 r = 0; r < kRows; ++r) out[r] = reduce_warp(out[r], Add());
}

// Calls store(row, value) for all n rows of w times the staged input, in one lane. `unit` is one of matvec_units.
AKUNU_DEVICE u32 rows_of_warp(Block b, u32 n) { return n > b.blocks() * kWarps ? 2 : 1; }
AKUNU_DEVICE u32 matvec_units(Block b, u32 n) {
    const u32 rows = kWarps * rows_of_warp(b, n);
    return (n + rows - 1) / rows;
}
template <typename F, typename Store>
AKUNU_DEVICE void matvec_unit(Block b, const Weights& w, u32 n, u32 unit, Store&& store) {
    if (rows_of_warp(b, n) == 1) {
        const u32 row = unit * kWarps + warp_id();
        if (row >= n) return;
        const Weights ws[1] = {w};
        const u32 at[1] = {row};
        float out[1];
        dot_rows<F, 1>(b, ws, at, out);
        if (lane_id() == 0) store(row, out[0]);
        return;
    }
    const u32 row = (unit * kWarps + warp_id()) * 2;
    if (row >= n) return;
    const Weights ws[2] = {w, w};
    const u32 at[2] = {row, smaller(row + 1, n - 1)};
    float out[2];
    dot_rows<F, 2>(b, ws, at, out);
    if (lane_id() == 0) {
        store(row, out[0]);
        if (row + 1 < n) store(row + 1, out[1]);
    }
}

AKUNU_DEVICE float input_at(Block b, u64 i) {
    return b.command().half_input ? half_to_float(b.buffer<u16>(0)[i]) : b.buffer<float>(0)[i];
}

// Where a matmul's results go.
struct MatmulOutput {
    const MatmulParams& p;
    float* y;
    const float* bias;
    AKUNU_DEVICE float value(u32 n, float v) const {
        const float capped = soft_cap(p.has_bias ? v + bias[n] : v, p.softcap);
        return p.activation ? activate(p.activation - 1, capped) : capped;
    }
    AKUNU_DEVICE void store(u32 m, u32 n, float v) const {
        const u64 at = u64(m) * p.y_stride + n;
        if (p.format == kActF16) {
            reinterpret_cast<u16*>(y)[at] = to_half(value(n, v));
        } else {
            y[at] = p.accumulate ? y[at] + value(n, v) : value(n, v);
        }
    }
};

// Few rows of F32 times few rows of weights, as a router has: a block computes one result, so that all blocks have some
// and a thread asks for all that it multiplies at once.
constexpr u32 kRouterRows = 4;
AKUNU_DEVICE_CALL void router_rows(Block b) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    const float* w = reinterpret_cast<const float*>(b.command().weights[0].codes);
    for (u32 u = b.first(); u < p.n * p.rows; u += b.blocks()) {
        const u32 m = u / p.n, n = u % p.n;
        float4 x[kRouterInputs / kThreads / 4], v[kRouterInputs / kThreads / 4];
        AKUNU_UNROLL
        for (u32 i = 0; i < kRouterInputs / kThreads / 4; ++i) {
            const u32 at = (i * kThreads + thread_id()) * 4;
            const bool there = at < p.k;
            v[i] = there ? *reinterpret_cast<const float4*>(w + u64(n) * p.k + at) : float4{0, 0, 0, 0};
            x[i] =
                there ? *reinterpret_cast<const float4*>(b.buffer<float>(0) + u64(m) * p.k + at) : float4{0, 0, 0, 0};
        }
        float sum = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kRouterInputs / kThreads / 4; ++i) {
            sum += (v[i].x * x[i].x + v[i].y * x[i].y) + (v[i].z * x[i].z + v[i].w * x[i].w);
        }
        sum = reduce_block(b, sum, Add());
        if (thread_id() == 0) out.store(m, n, sum);
    }
}
AKUNU_DEVICE bool is_router(Block b, const MatmulParams& p) {
    return p.rows <= kRouterRows && p.k <= kRouterInputs && p.n <= 4 * b.blocks() && p.k % 4 == 0 &&
           b.command().buffers[0] % 16 == 0;
}

template <typename F>
AKUNU_DEVICE void matvec_rows(Block b) {
    const auto& p = b.params<MatmulParams>();
    if constexpr (F::kFloatBytes == 4 && kUses<kOpRoute>) {
        if (is_router(b, p)) return router_rows(b);
    }
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    const Weights w = weights_of(b.command().weights[0], p.k);
    const u32 units = matvec_units(b, p.n);
    u32 staged = p.rows;
    for (u32 u = b.first(); u < units * p.rows; u += b.blocks()) {
        const u32 m = u / units;
        if (m != staged) stage_input(b, p.k, [&](u32 i) { return input_at(b, u64(m) * p.k + i); });
        staged = m;
        matvec_unit<F>(b, w, p.n, u % units, [&](u32 n, float v) { out.store(m, n, v); });
    }
}

// act(gate·x)·(up·x) of the staged input, for rows of both.
template <typename F, typename Store>
AKUNU_DEVICE void gate_up_unit(Block b, const Weights& gate, const Weights& up, u32 n, u32 unit, u32 activation,
                               Store&& store) {
    const u32 row = unit * kWarps + warp_id();
    if (row >= n) return;
    const Weights ws[2] = {gate, up};
    const u32 at[2] = {row, row};
    float out[2];
    dot_rows<F, 2>(b, ws, at, out);
    if (lane_id() == 0) store(row, activate(activation, out[0]) * out[1]);
}

template <typename F>
AKUNU_DEVICE void gate_up_rows(Block b) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const Weights gate = weights_of(b.command().weights[0], p.k), up = weights_of(b.command().weights[1], p.k);
    const u32 units = (p.n + kWarps - 1) / kWarps;
    u32 staged = p.rows;
    for (u32 u = b.first(); u < units * p.rows; u += b.blocks()) {
        const u32 m = u / units;
        if (m != staged) stage_input(b, p.k, [&](u32 i) { return input_at(b, u64(m) * p.k + i); });
        staged = m;
        gate_up_unit<F>(b, gate, up, p.n, u % units, p.activation,
                        [&](u32 n, float v) { out.store(u64(m) * p.n + n, v); });
    }
}

// norm(hidden), staged: every block does it again, which costs less than a stage of its own.
AKUNU_DEVICE void stage_norm(Block b, u32 k, float eps) {
    const float *x = b.buffer<float>(0), *weight = b.buffer<float>(1);
    float sum = 0.0f;
    for (u32 i = thread_id(); i < k; i += kThreads) sum += x[i] * x[i];
    const float scale = 1.0f / sqrtf(reduce_block(b, sum, Add()) / float(k) + eps);
    stage_input(b, k, [&](u32 i) { return x[i] * scale * weight[i]; });
}

template <typename F>
AKUNU_DEVICE_CALL void norm_gate_up(Block b) {
    const auto& p = b.params<NormGateUpParams>();
    const Output out{b.buffer<float>(4), b.buffer<u16>(5), p.formats};
    const Weights gate = weights_of(b.command().weights[0], p.k), up = weights_of(b.command().weights[1], p.k);
    const u32 units = (p.n + kWarps - 1) / kWarps;
    if (b.first() < units) stage_norm(b, p.k, p.eps);
    for (u32 u = b.first(); u < units; u += b.blocks()) {
        gate_up_unit<F>(b, gate, up, p.n, u, p.activation, [&](u32 n, float v) { out.store(n, v); });
    }
}

}  // namespace akunu::cuda
