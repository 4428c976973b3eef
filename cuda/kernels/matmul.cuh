// Rows times weights on the tensor cores: tiles of weights become F16 on their way into shared memory.
//
// Of up to 16 rows the weights keep what F16 does not hold as a second F16 number, since their bytes, not the products,
// are what such a matmul waits for.
#pragma once

#include "matvec.cuh"

namespace akunu::cuda {

// A block computes kM x kN results, kK inputs at a time; its warps split rows, columns and inputs.
template <u32 kRows, u32 kCols, u32 kDepth, u32 kRowWarps, u32 kColWarps, bool kSplitWeights>
struct TileShape {
    static constexpr u32 kM = kRows, kN = kCols, kK = kDepth, kWarpsM = kRowWarps, kWarpsN = kColWarps;
    static constexpr u32 kWarpsK = kWarps / (kRowWarps * kColWarps);
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    static constexpr u32 kStride = kK + 8;  // halves; rows begin in other banks
    static constexpr bool kExact = kSplitWeights;
    static constexpr u32 kSharedBytes = (kN * (kExact ? 2 : 1) + kM) * kStride * 2;
    static_assert((!kExact && kWarpsK == 1) || (kFragmentsM == 1 && kFragmentsN == 1), "one fragment a warp");
    static_assert(kN * kK / 32 == kThreads, "a thread has one group of weights");
    static_assert(kM * kK / 8 % kThreads == 0, "threads load whole vectors of inputs");
    static_assert(kSharedBytes <= kOpBytes, "the ring begins behind it");
};
using FewRows = TileShape<16, 16, 512, 1, 2, true>;
using ManyRows = TileShape<128, 64, 128, 2, 4, false>;

AKUNU_DEVICE u32 pack_halves(float a, float b) { return u32(to_half(a)) | u32(to_half(b)) << 16; }

// One group of weights as F16, and the rest that it leaves.
template <typename F, bool kExact>
AKUNU_DEVICE void store_group(const Group& g, u16* high, u16* low) {
    AKUNU_UNROLL
    for (int i = 0; i < 32; i += 8) {
        u32 h[4], l[4];
        AKUNU_UNROLL
        for (int j = 0; j < 4; ++j) {
            const float a = value_of<F>(g, i + 2 * j), b = value_of<F>(g, i + 2 * j + 1);
            h[j] = pack_halves(a, b);
            if (kExact) l[j] = pack_halves(a - half_to_float(u16(h[j])), b - half_to_float(u16(h[j] >> 16)));
        }
        *reinterpret_cast<uint4*>(high + i) = uint4{h[0], h[1], h[2], h[3]};
        if (kExact) *reinterpret_cast<uint4*>(low + i) = uint4{l[0], l[1], l[2], l[3]};
    }
}

AKUNU_DEVICE void zero_group(u16* p) {
    AKUNU_UNROLL
    for (int i = 0; i < 32; i += 8) *reinterpret_cast<uint4*>(p + i) = uint4{0, 0, 0, 0};
}

// Eight inputs of a row, zeros behind its end.
AKUNU_DEVICE uint4 load_inputs(const u16* row, u32 at, u32 k) {
    if (k % 8 == 0 && reinterpret_cast<u64>(row) % 16 == 0) {
        return at < k ? *reinterpret_cast<const uint4*>(row + at) : uint4{0, 0, 0, 0};
    }
    u32 v[4];
    AKUNU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        const u32 j = at + 2 * i;
        v[i] = (j < k ? row[j] : 0u) | (j + 1 < k ? u32(row[j + 1]) : 0u) << 16;
    }
    return {v[0], v[1], v[2], v[3]};
}

// The results of a tile: `weight_row(r, w, row)` says what row r of the tile's weights is, false where there is none;
// `store(m, r, a, b)` takes those of row m and the weights' rows r and r + 1.
template <typename F, typename S, typename WeightRow, typename Store>
AKUNU_DEVICE void matmul_tile(Block b, const u16* x, u32 rows, u32 k, WeightRow&& weight_row, Store&& store) {
    u16* high = reinterpret_cast<u16*>(b.shared());
    u16* low = high + S::kN * S::kStride;
    u16* inputs = high + S::kN * (S::kExact ? 2 : 1) * S::kStride;
    const u32 lane = lane_id(), warp = warp_id(), g = lane / 4, t = lane % 4;
    const u32 wm = warp % S::kWarpsM, wn = warp / S::kWarpsM % S::kWarpsN, wk = warp / (S::kWarpsM * S::kWarpsN);

    float sum[S::kFragmentsM][S::kFragmentsN][4], all[4] = {};
    const auto clear = [&] {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) {
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0.0f;
        }
    };
    clear();
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
            store_group<F, S::kExact>(q, at, rest);
        } else {
            zero_group(at);
            if (S::kExact) zero_group(rest);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kM * S::kK / 8 / kThreads; ++i) {
            const u32 v = i * kThreads + thread_id(), m = v / (S::kK / 8), d = v % (S::kK / 8) * 8;
            *reinterpret_cast<uint4*>(inputs + m * S::kStride + d) =
                m < rows ? load_inputs(x + u64(m) * k, k0 + d, k) : uint4{0, 0, 0, 0};
        }
        sync_block();
        for (u32 s = wk; s < S::kK / 16 && k0 + s * 16 < k; s += S::kWarpsK) {
            u32 a[S::kFragmentsM][4];
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                const u16* from = inputs + ((wm * S::kFragmentsM + i) * 16 + g) * S::kStride + s * 16 + 2 * t;
                a[i][0] = *reinterpret_cast<const u32*>(from);
                a[i][1] = *reinterpret_cast<const u32*>(from + 8 * S::kStride);
                a[i][2] = *reinterpret_cast<const u32*>(from + 8);
                a[i][3] = *reinterpret_cast<const u32*>(from + 8 * S::kStride + 8);
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) {
                const u32 from = ((wn * S::kFragmentsN + j) * 8 + g) * S::kStride + s * 16 + 2 * t;
                const u32 h[2] = {*reinterpret_cast<const u32*>(high + from),
                                  *reinterpret_cast<const u32*>(high + from + 8)};
                AKUNU_UNROLL
                for (u32 i = 0; i < S::kFragmentsM; ++i) mma_f16(sum[i][j], a[i], h);
                if (S::kExact) {
                    const u32 l[2] = {*reinterpret_cast<const u32*>(low + from),
                                      *reinterpret_cast<const u32*>(low + from + 8)};
                    AKUNU_UNROLL
                    for (u32 i = 0; i < S::kFragmentsM; ++i) mma_f16(sum[i][j], a[i], l);
                }
            }
        }
        if (S::kExact) {  // tensor cores truncate what they add up, so they add up little
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) all[e] += sum[0][0][e];
            clear();
        }
    }
    if (S::kExact) {
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) sum[0][0][e] = all[e];
    }
    if (S::kWarpsK > 1) {
        float* parts = reinterpret_cast<float*>(b.shared());
        sync_block();
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) parts[(warp * 32 + lane) * 4 + e] = sum[0][0][e];
        sync_block();
        if (wk != 0) return;
        for (u32 other = 1; other < S::kWarpsK; ++other) {
            const u32 from = warp + other * S::kWarpsM * S::kWarpsN;
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) sum[0][0][e] += parts[(from * 32 + lane) * 4 + e];
        }
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < S::kFragmentsM; ++i) {
        AKUNU_UNROLL
        for (u32 j = 0; j < S::kFragmentsN; ++j) {
            const u32 m = (wm * S::kFragmentsM + i) * 16 + g, n = (wn * S::kFragmentsN + j) * 8 + 2 * t;
            if (m < rows) store(m, n, sum[i][j][0], sum[i][j][1]);
            if (m + 8 < rows) store(m + 8, n, sum[i][j][2], sum[i][j][3]);
        }
    }
}

template <typename F, typename S>
AKUNU_DEVICE_CALL void matmul_tiles(Block b) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    const Weights w = weights_of(b.command().weights[0], p.k);
    const u32 tiles_m = (p.rows + S::kM - 1) / S::kM, tiles_n = (p.n + S::kN - 1) / S::kN;
    for (u32 u = b.first(); u < tiles_m * tiles_n; u += b.blocks()) {
        const u32 m0 = u % tiles_m * S::kM, n0 = u / tiles_m * S::kN;
        matmul_tile<F, S>(
            b, b.buffer<u16>(0) + u64(m0) * p.k, smaller(p.rows - m0, S::kM), p.k,
            [&](u32 r, Weights& of, u32& row) {
                of = w;
                row = n0 + r;
                return row < p.n;
            },
            [&](u32 m, u32 r, float v0, float v1) {
                if (n0 + r < p.n) out.store(m0 + m, n0 + r, v0);
                if (n0 + r + 1 < p.n) out.store(m0 + m, n0 + r + 1, v1);
            });
    }
}

// Rows of gate and up take turns, so that a thread has both results of a column.
template <typename F, typename S>
AKUNU_DEVICE_CALL void gate_up_tiles(Block b) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const Weights gate = weights_of(b.command().weights[0], p.k), up = weights_of(b.command().weights[1], p.k);
    const u32 tiles_m = (p.rows + S::kM - 1) / S::kM, tiles_n = (2 * p.n + S::kN - 1) / S::kN;
    for (u32 u = b.first(); u < tiles_m * tiles_n; u += b.blocks()) {
        const u32 m0 = u % tiles_m * S::kM, n0 = u / tiles_m * (S::kN / 2);
        matmul_tile<F, S>(
            b, b.buffer<u16>(0) + u64(m0) * p.k, smaller(p.rows - m0, S::kM), p.k,
            [&](u32 r, Weights& of, u32& row) {
                of = r % 2 ? up : gate;
                row = n0 + r / 2;
                return row < p.n;
            },
            [&](u32 m, u32 r, float v0, float v1) {
                const u32 n = n0 + r / 2;
                if (n < p.n) out.store(u64(m0 + m) * p.n + n, activate(p.activation, v0) * v1);
            });
    }
}

template <typename F>
AKUNU_DEVICE_CALL void matmul(Block b) {
    const u32 rows = b.params<MatmulParams>().rows;
    if (rows == 1 || !b.command().half_input) {
        matvec_rows<F>(b);
    } else if (rows <= FewRows::kM) {
        matmul_tiles<F, FewRows>(b);
    } else {
        matmul_tiles<F, ManyRows>(b);
    }
}

template <typename F>
AKUNU_DEVICE_CALL void gate_up(Block b) {
    const u32 rows = b.params<GateUpParams>().rows;
    if (rows == 1 || !b.command().half_input) {
        gate_up_rows<F>(b);
    } else if (rows <= FewRows::kM) {
        gate_up_tiles<F, FewRows>(b);
    } else {
        gate_up_tiles<F, ManyRows>(b);
    }
}

}  // namespace akunu::cuda
