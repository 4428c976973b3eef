// More than 16 rows of F32 times F32 weights, on the tensor cores: each number has two parts (parts.cuh), which makes
// three products. A block computes a tile of results. What its threads load of a step of inputs becomes parts in shared
// memory while the step before is multiplied.
#pragma once

#include "matvec.cuh"
#include "parts.cuh"

namespace akunu::cuda {

// Of kM rows by kN columns, by kWarpsM x kWarpsN warps.
template <u32 kRows, u32 kAcross>
struct FloatTile {
    static constexpr u32 kM = kRows, kN = 64, kWarpsM = kAcross, kWarpsN = kWarps / kAcross;
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    // Inputs of a step. Rows have pieces of 8, piece p at place p ^ row / 2 % 4.
    static constexpr u32 kInputs = 32, kPieces = kInputs / 8, kRowBytes = kInputs * 2;
    static constexpr u32 kPlaneBytes = (kM + kN) * kRowBytes, kStageBytes = 2 * kPlaneBytes;
    static constexpr u32 kEach = (kM + kN) * kPieces / kThreads + ((kM + kN) * kPieces % kThreads != 0);
    static_assert(2 * kStageBytes <= kOpBytes, "the ring begins behind it");
    AKUNU_DEVICE static u32 place(u32 row, u32 piece) { return row * kRowBytes + (piece ^ row / 2 % 4) * 16; }
};

// Eight of a row's k elements, zeros behind its end.
AKUNU_DEVICE void load_floats8(const float* row, u32 at, u32 k, float4 (&v)[2]) {
    AKUNU_UNROLL
    for (u32 i = 0; i < 2; ++i) {
        const u32 from = at + 4 * i;
        v[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (k % 4 == 0 && reinterpret_cast<u64>(row) % 16 == 0) {
            if (from < k) v[i] = *reinterpret_cast<const float4*>(row + from);
        } else {
            if (from < k) v[i].x = row[from];
            if (from + 1 < k) v[i].y = row[from + 1];
            if (from + 2 < k) v[i].z = row[from + 2];
            if (from + 3 < k) v[i].w = row[from + 3];
        }
    }
}

// A tile's results. `input(m)` and `weight(n)` are the tile's rows of k elements; `store(m, n, a, b)` takes those of
// row m and columns n and n + 1.
template <typename T, typename Input, typename Weight, typename Store>
AKUNU_DEVICE void float_tile(u32 k, Input&& input, Weight&& weight, Store&& store) {
    constexpr u32 kBase = kSharedHead;
    const u32 lane = lane_id(), warp = warp_id();
    const u32 m0 = warp / T::kWarpsN * (T::kM / T::kWarpsM), n0 = warp % T::kWarpsN * (T::kN / T::kWarpsN);
    const float* rows[T::kEach];
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kEach; ++i) {
        const u32 row = (i * kThreads + thread_id()) / T::kPieces;
        rows[i] = row < T::kM ? input(row) : weight(smaller(row - T::kM, T::kN - 1));
    }
    float4 held[T::kEach][2];
    const auto load = [&](u32 k0) {
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kEach; ++i) load_floats8(rows[i], k0 + thread_id() % T::kPieces * 8, k, held[i]);
    };
    const auto put = [&](u32 stage) {
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kEach; ++i) {
            const u32 row = (i * kThreads + thread_id()) / T::kPieces;
            if (row >= T::kM + T::kN) continue;
            store_halves<2>(kBase + stage * T::kStageBytes + T::place(row, thread_id() % T::kPieces), T::kPlaneBytes,
                            held[i][0], held[i][1]);
        }
    };
    float all[T::kFragmentsM][T::kFragmentsN][4] = {};
    load(0);
    sync_block();
    put(0);
    u32 stage = 0;
    for (u32 k0 = 0; k0 < k; k0 += T::kInputs) {
        sync_block();
        if (k0 + T::kInputs < k) load(k0 + T::kInputs);
        AKUNU_UNROLL
        for (u32 s = 0; s < T::kInputs / 16; ++s) {
            u32 a[2][T::kFragmentsM][4], w[2][T::kFragmentsN / 2][4];
            AKUNU_UNROLL
            for (u32 part = 0; part < 2; ++part) {
                const u32 plane = kBase + stage * T::kStageBytes + part * T::kPlaneBytes;
                AKUNU_UNROLL
                for (u32 i = 0; i < T::kFragmentsM; ++i) {
                    load_matrices(a[part][i], plane + T::place(m0 + i * 16 + lane % 16, s * 2 + lane / 16));
                }
                AKUNU_UNROLL
                for (u32 j = 0; j < T::kFragmentsN / 2; ++j) {
                    load_matrices(w[part][j], plane + T::place(T::kM + n0 + j * 16 + lane / 16 * 8 + lane % 8,
                                                               s * 2 + lane / 8 % 2));
                }
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < T::kFragmentsM; ++i) {
                AKUNU_UNROLL
                for (u32 j = 0; j < T::kFragmentsN; ++j) {
                    const u32 first[2] = {w[0][j / 2][j % 2 * 2], w[0][j / 2][j % 2 * 2 + 1]};
                    const u32 second[2] = {w[1][j / 2][j % 2 * 2], w[1][j / 2][j % 2 * 2 + 1]};
                    float sum[4] = {};  // tensor cores truncate what they add up, so they add up little
                    mma_f16(sum, a[1][i], first);
                    mma_f16(sum, a[0][i], second);
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 4; ++e) sum[e] *= 1.0f / kSecondPart;
                    mma_f16(sum, a[0][i], first);
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 4; ++e) all[i][j][e] += sum[e];
                }
            }
        }
        stage = 1 - stage;
        if (k0 + T::kInputs < k) put(stage);
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kFragmentsM; ++i) {
        AKUNU_UNROLL
        for (u32 j = 0; j < T::kFragmentsN; ++j) {
            const u32 m = m0 + i * 16 + lane / 4, n = n0 + j * 8 + 2 * (lane % 4);
            store(m, n, all[i][j][0], all[i][j][1]);
            store(m + 8, n, all[i][j][2], all[i][j][3]);
        }
    }
}

// All tiles of so many rows and columns that are a block's; `input`, `weight` and `store` as above, of all of them.
template <typename T, typename Input, typename Weight, typename Store>
AKUNU_DEVICE void float_tiles(Block b, u32 rows, u32 columns, u32 k, Input&& input, Weight&& weight, Store&& store) {
    const u32 across = (rows + T::kM - 1) / T::kM, units = across * ((columns + T::kN - 1) / T::kN);
    for (u32 u = b.first(); u < units; u += b.blocks()) {
        const u32 m0 = u % across * T::kM, n0 = u / across * T::kN;
        float_tile<T>(
            k, [&](u32 m) { return input(smaller(m0 + m, rows - 1)); },
            [&](u32 n) { return weight(smaller(n0 + n, columns - 1)); },
            [&](u32 m, u32 n, float v0, float v1) {
                if (m0 + m < rows) store(m0 + m, n0 + n, v0, v1);
            });
    }
}

// Large tiles if there is one for each block, else small ones.
template <typename Input, typename Weight, typename Store>
AKUNU_DEVICE void float_products(Block b, u32 rows, u32 columns, u32 k, Input&& input, Weight&& weight, Store&& store) {
    using Large = FloatTile<128, 4>;
    using Small = FloatTile<32, 2>;
    const u32 large = (rows + Large::kM - 1) / Large::kM * ((columns + Large::kN - 1) / Large::kN);
    if (large >= b.blocks()) {
        float_tiles<Large>(b, rows, columns, k, input, weight, store);
    } else {
        float_tiles<Small>(b, rows, columns, k, input, weight, store);
    }
}

AKUNU_DEVICE_CALL void matmul_float_rows(Block b) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    const float *x = b.buffer<float>(0), *w = reinterpret_cast<const float*>(b.command().weights[0].codes);
    float_products(
        b, p.rows, p.n, p.k, [&](u32 m) { return x + u64(m) * p.k; }, [&](u32 n) { return w + u64(n) * p.k; },
        [&](u32 m, u32 n, float v0, float v1) {
            if (n < p.n) out.store(m, n, v0);
            if (n + 1 < p.n) out.store(m, n + 1, v1);
        });
}

// Rows of gate and up take turns, so that a thread has both results of a column.
AKUNU_DEVICE_CALL void gate_up_float_rows(Block b) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const float* x = b.buffer<float>(0);
    const auto matrix = [&](u32 i) { return reinterpret_cast<const float*>(b.command().weights[i].codes); };
    float_products(
        b, p.rows, 2 * p.n, p.k, [&](u32 m) { return x + u64(m) * p.k; },
        [&](u32 n) { return matrix(n % 2) + u64(n / 2) * p.k; },
        [&](u32 m, u32 n, float v0, float v1) {
            if (n / 2 < p.n) out.store(u64(m) * p.n + n / 2, activate(p.activation, v0) * v1);
        });
}

}  // namespace akunu::cuda
