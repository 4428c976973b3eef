// Matmuls, and gate and up, of few rows.
//
// Of F16 inputs up to 16 rows become one tile on the tensor cores, whose weights keep what F16 does not hold as a
// second F16 number, since their bytes, not the products, are what such a matmul waits for.
#pragma once

#include "block.cuh"
#include "float_rows.cuh"
#include "halves.cuh"
#include "matvec.cuh"

namespace akunu::cuda {

// A block computes kM x kN results, kK inputs at a time; its warps split columns and inputs.
struct FewRows {
    static constexpr u32 kM = kTileOfRows, kN = 16, kK = 512, kWarpsN = 2, kWarpsK = kWarps / kWarpsN;
    static constexpr u32 kStride = kK + 8;  // halves; rows begin in other banks
    static_assert((2 * kN + kM) * kStride * 2 <= kOpBytes, "the ring begins behind it");
    static_assert(kN * kK / 32 == kThreads, "a thread has one group of weights");
    static_assert(kM * kK / 8 % kThreads == 0, "threads load whole vectors of inputs");
};

// One group of weights as F16, and the rest that it leaves.
template <typename F>
AKUNU_DEVICE void store_group(const Group& g, u16* high, u16* low) {
    AKUNU_UNROLL
    for (int i = 0; i < 32; i += 8) {
        u32 h[4], l[4];
        AKUNU_UNROLL
        for (int j = 0; j < 4; ++j) {
            const float a = value_of<F>(g, i + 2 * j), b = value_of<F>(g, i + 2 * j + 1);
            h[j] = pack_halves(a, b);
            l[j] = pack_halves(a - half_to_float(u16(h[j])), b - half_to_float(u16(h[j] >> 16)));
        }
        *reinterpret_cast<uint4*>(high + i) = uint4{h[0], h[1], h[2], h[3]};
        *reinterpret_cast<uint4*>(low + i) = uint4{l[0], l[1], l[2], l[3]};
    }
}

AKUNU_DEVICE void zero_group(u16* p) {
    AKUNU_UNROLL
    for (int i = 0; i < 32; i += 8) *reinterpret_cast<uint4*>(p + i) = uint4{0, 0, 0, 0};
}

// The results of a tile: `weight_row(r, w, row)` says what row r of the tile's weights is, false where there is none;
// `store(m, r, a, b)` takes those of row m and the weights' rows r and r + 1.
template <typename F, typename WeightRow, typename Store>
AKUNU_DEVICE void few_rows_tile(Block b, const u16* x, u32 rows, u32 k, WeightRow&& weight_row, Store&& store) {
    using S = FewRows;
    u16* high = reinterpret_cast<u16*>(b.shared());
    u16* low = high + S::kN * S::kStride;
    u16* inputs = low + S::kN * S::kStride;
    const u32 lane = lane_id(), warp = warp_id(), g = lane / 4, t = lane % 4;
    const u32 wn = warp % S::kWarpsN, wk = warp / S::kWarpsN;

    float all[4] = {};
    const u32 r = thread_id() / (S::kK / 32), group = thread_id() % (S::kK / 32);
    Weights w;
    u32 row = 0;
    const bool has_row = weight_row(r, w, row);
    for (u32 k0 = 0; k0 < k; k0 += S::kK) {
        sync_block();
        u16* at = high + r * S::kStride + group * 32;
        u16* rest = low + r * S::kStride + group * 32;
        if (has_row && k0 + group * 32 < k) {
            Group q;
            F::load(w, row, k0 / 32 + group, q);
            store_group<F>(q, at, rest);
        } else {
            zero_group(at);
            zero_group(rest);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kM * S::kK / 8 / kThreads; ++i) {
            const u32 v = i * kThreads + thread_id(), m = v / (S::kK / 8), d = v % (S::kK / 8) * 8;
            *reinterpret_cast<uint4*>(inputs + m * S::kStride + d) =
                m < rows ? load_halves8(x + u64(m) * k, k0 + d, k) : uint4{0, 0, 0, 0};
        }
        sync_block();
        float sum[4] = {};  // tensor cores truncate what they add up, so they add up little
        for (u32 s = wk; s < S::kK / 16 && k0 + s * 16 < k; s += S::kWarpsK) {
            const u16* a = inputs + g * S::kStride + s * 16 + 2 * t;
            const u32 from = (wn * 8 + g) * S::kStride + s * 16 + 2 * t;
            const auto pair = [](const u16* p) { return *reinterpret_cast<const u32*>(p); };
            const u32 x[4] = {pair(a), pair(a + 8 * S::kStride), pair(a + 8), pair(a + 8 * S::kStride + 8)};
            mma_f16(sum, x, {pair(high + from), pair(high + from + 8)});
            mma_f16(sum, x, {pair(low + from), pair(low + from + 8)});
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) all[e] += sum[e];
    }
    float* parts = reinterpret_cast<float*>(b.shared());
    sync_block();
    AKUNU_UNROLL
    for (u32 e = 0; e < 4; ++e) parts[(warp * 32 + lane) * 4 + e] = all[e];
    sync_block();
    if (wk != 0) return;
    for (u32 other = 1; other < S::kWarpsK; ++other) {
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) all[e] += parts[((warp + other * S::kWarpsN) * 32 + lane) * 4 + e];
    }
    const u32 n = wn * 8 + 2 * t;
    if (g < rows) store(g, n, all[0], all[1]);
    if (g + 8 < rows) store(g + 8, n, all[2], all[3]);
}

template <typename F>
AKUNU_DEVICE_CALL void matmul_few_rows(Block b) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    const Weights w = weights_of(b.command().weights[0], p.k);
    for (u32 u = b.first(); u < (p.n + FewRows::kN - 1) / FewRows::kN; u += b.blocks()) {
        const u32 n0 = u * FewRows::kN;
        few_rows_tile<F>(
            b, b.buffer<u16>(0), p.rows, p.k,
            [&](u32 r, Weights& of, u32& row) {
                of = w;
                row = n0 + r;
                return row < p.n;
            },
            [&](u32 m, u32 r, float v0, float v1) {
                if (n0 + r < p.n) out.store(m, n0 + r, v0);
                if (n0 + r + 1 < p.n) out.store(m, n0 + r + 1, v1);
            });
    }
}

// Rows of gate and up take turns, so that a thread has both results of a column.
template <typename F>
AKUNU_DEVICE_CALL void gate_up_few_rows(Block b) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const Weights gate = weights_of(b.command().weights[0], p.k), up = weights_of(b.command().weights[1], p.k);
    for (u32 u = b.first(); u < (2 * p.n + FewRows::kN - 1) / FewRows::kN; u += b.blocks()) {
        const u32 n0 = u * (FewRows::kN / 2);
        few_rows_tile<F>(
            b, b.buffer<u16>(0), p.rows, p.k,
            [&](u32 r, Weights& of, u32& row) {
                of = r % 2 ? up : gate;
                row = n0 + r / 2;
                return row < p.n;
            },
            [&](u32 m, u32 r, float v0, float v1) {
                const u32 n = n0 + r / 2;
                if (n < p.n) out.store(u64(m) * p.n + n, activate(p.activation, v0) * v1);
            });
    }
}

template <typename F>
AKUNU_DEVICE_CALL void matmul(Block b) {
    const u32 rows = b.params<MatmulParams>().rows;
    if constexpr (F::kFloatBytes == 4) {  // inputs are F32, too
        rows > kTileOfRows ? matmul_float_rows(b) : matvec_rows<F>(b);
    } else {
        rows == 1 ? matvec_rows<F>(b) : matmul_few_rows<F>(b);
    }
}

template <typename F>
AKUNU_DEVICE_CALL void gate_up(Block b) {
    const u32 rows = b.params<GateUpParams>().rows;
    if constexpr (F::kFloatBytes == 4) {
        rows > kTileOfRows ? gate_up_float_rows(b) : gate_up_rows<F>(b);
    } else {
        rows == 1 ? gate_up_rows<F>(b) : gate_up_few_rows<F>(b);
    }
}

}  // namespace akunu::cuda
