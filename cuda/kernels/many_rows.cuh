// More than 16 rows times weights. Three warps of a block bring tiles of inputs and weights to shared memory, the
// weights as F16; those that run commands multiply them on the tensor cores. Between them are a few stages, whose
// barriers say what is there and what has been read, across the tiles that a block takes.
#pragma once

#include "halves.cuh"
#include "matvec.cuh"

namespace akunu::cuda {

// Inputs of a step, of which a row has 128 bytes in shared memory: eight pieces, piece p at place p ^ row % 8, so that
// eight rows' pieces lie in different banks.
constexpr u32 kTileInputs = 64, kTileRowBytes = kTileInputs * 2;
constexpr u32 kStages = 3, kMostTileRows = 128, kMostTileCols = 128;
constexpr u32 kStageBytes = (kMostTileRows + kMostTileCols) * kTileRowBytes;

struct StageBarriers {
    u64 full[kStages], empty[kStages];
};
constexpr u32 kStagesAt = kSharedHead + 128;  // in shared memory
static_assert(sizeof(StageBarriers) <= 128 && kStagesAt + kStages * kStageBytes <= kSharedHead + kManyRowsBytes,
              "the ring begins behind it");
AKUNU_DEVICE StageBarriers& stage_barriers() {
    return *reinterpret_cast<StageBarriers*>(shared_memory() + kSharedHead);
}

// A stage, and how often it has been used, odd or even.
struct StagePlace {
    u32 stage = 0, phase = 0;
    AKUNU_DEVICE void advance() {
        if (++stage < kStages) return;
        stage = 0;
        phase ^= 1;
    }
    AKUNU_DEVICE u32 inputs() const { return kStagesAt + stage * kStageBytes; }
    AKUNU_DEVICE u32 weights() const { return inputs() + kMostTileRows * kTileRowBytes; }
    AKUNU_DEVICE void wait_full() const {
        while (!has_passed(&stage_barriers().full[stage], phase)) {
        }
        sync_warp();  // lanes may have looked at different times
    }
    AKUNU_DEVICE void wait_empty() const {
        while (!has_passed(&stage_barriers().empty[stage], phase ^ 1)) {
        }
    }
};

// What is multiplied: rows of x with columns, which are rows of weights. Of gate and up eight columns take turns.
struct ManyRows {
    const u16* x;
    u32 rows, k, n, cols;
    bool gated;
    AKUNU_DEVICE explicit ManyRows(Block b) : x(b.buffer<u16>(0)), gated(b.command().op == kOpGateUp) {
        if (gated) {
            const auto& p = b.params<GateUpParams>();
            rows = p.rows, k = p.k, n = p.n, cols = 2 * rounded_up(n, 8);
        } else {
            const auto& p = b.params<MatmulParams>();
            rows = p.rows, k = p.k, n = cols = p.n;
        }
    }
};

// Results of a tile, kM x kN, and how many warps share its rows.
template <u32 kRows, u32 kCols, u32 kRowWarps>
struct TileShape {
    static constexpr u32 kM = kRows, kN = kCols, kWarpsM = kRowWarps, kWarpsN = kWarps / kRowWarps;
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    static_assert(kM <= kMostTileRows && kN <= kMostTileCols && kFragmentsN % 2 == 0, "a stage has room for it");
};
using LargeTile = TileShape<128, 128, 2>;
using MiddleTile = TileShape<128, 64, 4>;
using SmallTile = TileShape<64, 32, 4>;

// How a command's results are dealt to blocks.
struct Tiles {
    u32 m, n, down, all;  // rows and columns of a tile, tiles below one another, all
    AKUNU_DEVICE Tiles(const ManyRows& w, u32 m, u32 n)
        : m(m), n(n), down((w.rows + m - 1) / m), all(down * ((w.cols + n - 1) / n)) {}
    AKUNU_DEVICE u32 row(u32 unit) const { return unit % down * m; }
    AKUNU_DEVICE u32 column(u32 unit) const { return unit / down * n; }
    AKUNU_DEVICE u32 rounds(Block b) const { return (all + b.blocks() - 1) / b.blocks(); }
};
// The tiles with which the block that has most is done first. A large one's inputs take it no longer than a small one's
// products: so it is only twice as slow for four times the work.
AKUNU_DEVICE Tiles tiles_of(Block b, const ManyRows& w) {
    const Tiles large(w, LargeTile::kM, LargeTile::kN), middle(w, MiddleTile::kM, MiddleTile::kN),
        small(w, SmallTile::kM, SmallTile::kN);
    const u32 costs[3] = {large.rounds(b) * 20, middle.rounds(b) * 11, small.rounds(b) * 5};
    if (costs[0] <= costs[1] && costs[0] <= costs[2]) return large;
    return costs[1] <= costs[2] ? middle : small;
}

// What a thread brings of each step: pieces of inputs, and groups of 32 weights, two to a column.
constexpr u32 kRowsAtOnce = kBringers / 8, kPiecesEach = (kMostTileRows + kRowsAtOnce - 1) / kRowsAtOnce;
constexpr u32 kGroupsEach = (2 * kMostTileCols + kBringers - 1) / kBringers;

template <typename F>
struct Bringer {
    using Raw = typename Halves<F>::Raw;
    using Place = typename Halves<F>::Place;
    const ManyRows& work;
    const Tiles& tiles;
    const Weights (&matrices)[2];
    u32 t;
    bool aligned;

    AKUNU_DEVICE u32 matrix(u32 c) const { return work.gated ? c / 8 % 2 : 0; }
    // Of a tile from column n0 on. Those behind the last column, which nobody asks for, are others.
    AKUNU_DEVICE void find(u32 n0, Place (&places)[kGroupsEach]) const {
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroupsEach; ++i) {
            const u32 c = n0 + smaller((t + i * kBringers) / 2, tiles.n - 1), row = work.gated ? c / 16 * 8 + c % 8 : c;
            places[i] = Halves<F>::place(matrices[matrix(c)], smaller(row, work.n - 1));
        }
    }
    // A step's weights.
    AKUNU_DEVICE void fetch(const Place (&places)[kGroupsEach], u32 k0, Raw (&raw)[kGroupsEach]) const {
        static_assert(kBringers % 2 == 0, "a thread's groups are all even or all odd");
        const u32 group = smaller(k0 / 32 + t % 2, (work.k - 1) / 32);
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroupsEach; ++i) raw[i] = Halves<F>::fetch(work.k, places[i], group);
    }
    // Groups behind the last one meet inputs that are 0.
    AKUNU_DEVICE void put(const Raw (&raw)[kGroupsEach], u32 k0, u32 place) const {
        constexpr u32 kColsAtOnce = kBringers / 2;
        static_assert(kColsAtOnce % 8 == 0, "a thread's columns have their pieces in the same places");
        const u32 first = place + t / 2 * kTileRowBytes;
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroupsEach; ++i) {
            if (t / 2 + i * kColsAtOnce >= tiles.n) continue;
            u32 h[16];
            Halves<F>::convert(raw[i], k0 / 32 + t % 2, h);
            AKUNU_UNROLL
            for (u32 piece = 0; piece < 4; ++piece) {
                const u32 at = first + ((t % 2 * 4 + piece) ^ t / 2 % 8) * 16 + i * kColsAtOnce * kTileRowBytes;
                *reinterpret_cast<uint4*>(shared_memory() + at) =
                    uint4{h[4 * piece], h[4 * piece + 1], h[4 * piece + 2], h[4 * piece + 3]};
            }
        }
    }
};

// Brings a block's tiles, a step after the other. What is loaded of a step's weights waits in one of two places while
// the next step's is on its way; a step is announced when the next one's copies have been begun.
template <typename F>
struct BringingTiles {
    using Raw = typename Halves<F>::Raw;
    const Bringer<F>& bringer;
    Block b;
    u32 u, k0;
    StagePlace to, announced;
    const u16* rows[kPiecesEach];
    typename Halves<F>::Place places[kGroupsEach];  // of the weights that are fetched next

    AKUNU_DEVICE void enter_tile() {
        AKUNU_UNROLL
        for (u32 i = 0; i < kPiecesEach; ++i) {
            // Rows behind the last one are the last one: nobody asks for their results.
            const u32 m = bringer.tiles.row(u) + bringer.t / 8 + i * kRowsAtOnce;
            rows[i] = bringer.work.x + u64(smaller(m, bringer.work.rows - 1)) * bringer.work.k + bringer.t % 8 * 8;
        }
    }
    AKUNU_DEVICE void announce() {
        sync_warp();
        if (lane_id() == 0) arrive_at(&stage_barriers().full[announced.stage]);
        announced.advance();
    }
    // One step; false where it was the last.
    AKUNU_DEVICE bool step(const Raw (&raw)[kGroupsEach], Raw (&next)[kGroupsEach]) {
        const u32 k = bringer.work.k, piece = bringer.t % 8;
        const bool ends_tile = k0 + kTileInputs >= k, begins = k0 == 0 && u == b.first();
        const u32 next_u = ends_tile ? u + b.blocks() : u, next_k0 = ends_tile ? 0 : k0 + kTileInputs;
        const bool ends = next_u >= bringer.tiles.all;
        if (ends_tile && !ends) bringer.find(bringer.tiles.column(next_u), places);
        bringer.fetch(places, next_k0, next);
        to.wait_empty();
        const auto place = [&](u32 m) {
            return shared_memory() + (to.inputs() + m * kTileRowBytes + (piece ^ m % 8) * 16);
        };
        if (bringer.aligned) {
            AKUNU_UNROLL
            for (u32 i = 0; i < kPiecesEach; ++i) {
                // Of every other row the pieces have the same places.
                const u32 m = bringer.t / 8 + i % 2 * kRowsAtOnce, behind = i / 2 * 2 * kRowsAtOnce;
                static_assert(2 * kRowsAtOnce % 8 == 0, "they have");
                if (m + behind < bringer.tiles.m) copy_async16(place(m) + behind * kTileRowBytes, rows[i] + k0);
            }
        } else {
            AKUNU_NO_UNROLL
            for (u32 m = bringer.t / 8; m < bringer.tiles.m; m += kRowsAtOnce) {
                const u32 row = smaller(bringer.tiles.row(u) + m, bringer.work.rows - 1);
                *reinterpret_cast<uint4*>(place(m)) = load_halves8(bringer.work.x + u64(row) * k, k0 + piece * 8, k);
            }
        }
        bundle_copies();
        bringer.put(raw, k0, to.weights());
        to.advance();
        if (!begins) {
            wait_for_bundles<1>();
            announce();
        }
        if (ends) {
            wait_for_bundles<0>();
            announce();
            return false;
        }
        u = next_u, k0 = next_k0;
        if (ends_tile) enter_tile();
        return true;
    }
};

// By the warps that bring.
template <typename F>
AKUNU_DEVICE_CALL void bring_tiles(Block b) {
    const ManyRows work(b);
    const Tiles tiles = tiles_of(b, work);
    if (b.first() >= tiles.all) return;
    const Weights matrices[2] = {weights_of(b.command().weights[0], work.k),
                                 weights_of(b.command().weights[1], work.k)};
    const bool aligned = work.k % kTileInputs == 0 && reinterpret_cast<u64>(work.x) % 16 == 0;
    const Bringer<F> bringer{work, tiles, matrices, thread_id() - (kBlockThreads - kBringers), aligned};
    BringingTiles<F> bringing{bringer, b, b.first(), 0};
    typename Halves<F>::Raw even[kGroupsEach], odd[kGroupsEach];
    bringing.enter_tile();
    bringer.find(tiles.column(b.first()), bringing.places);
    bringer.fetch(bringing.places, 0, even);
    while (bringing.step(even, odd) && bringing.step(odd, even)) {
    }
}

// They wait for a command whose tiles they are to bring.
AKUNU_DEVICE void bring_all() {
    for (;;) {
        sync_with_bringers();
        if (shown().ended) return;
        const Block b{shown().slot[0]};
        switch (b.command().weights[0].reader) {
#define X(reader)                       \
    case reader:                        \
        bring_tiles<Format<reader>>(b); \
        break;
            AKUNU_READERS
#undef X
        }
        sync_with_bringers();
    }
}

// Of a warp for 16 inputs.
template <typename S>
struct TileFragments {
    u32 a[S::kFragmentsM][4], b[S::kFragmentsN / 2][4];
    // `inputs`, `weights`: where this lane's rows begin, see load_matrices.
    AKUNU_DEVICE void load(u32 inputs, u32 weights, u32 step) {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) load_matrices(a[i], (inputs + i * 16 * kTileRowBytes) ^ step * 32);
        AKUNU_UNROLL
        for (u32 j = 0; j < S::kFragmentsN / 2; ++j)
            load_matrices(b[j], (weights + j * 16 * kTileRowBytes) ^ step * 32);
    }
};

// By the warps that multiply; `store(m, n, sum)` takes a warp's sums, of which m and n are the first row and column.
template <typename S, typename Store>
AKUNU_DEVICE void multiply_tiles(Block b, Store&& store) {
    const ManyRows work(b);
    const Tiles tiles(work, S::kM, S::kN);
    const u32 lane = lane_id(), m = warp_id() % S::kWarpsM * (S::kM / S::kWarpsM),
              n = warp_id() / S::kWarpsM * (S::kN / S::kWarpsN);
    const u32 from_inputs = (m + lane % 16) * kTileRowBytes + (lane / 16 ^ lane % 8) * 16;
    const u32 from_weights = (n + lane / 16 * 8 + lane % 8) * kTileRowBytes + (lane / 8 % 2 ^ lane % 8) * 16;
    StagePlace from;
    for (u32 u = b.first(); u < tiles.all; u += b.blocks()) {
        float sum[S::kFragmentsM][S::kFragmentsN][4] = {};
        TileFragments<S> parts[2];
        from.wait_full();
        parts[0].load(from.inputs() + from_inputs, from.weights() + from_weights, 0);
        for (u32 k0 = 0; k0 < work.k; k0 += kTileInputs) {
            StagePlace next = from;
            next.advance();
            // The next fragments are on their way while these are multiplied.
            AKUNU_UNROLL
            for (u32 s = 0; s < kTileInputs / 16; ++s) {
                if (s + 1 < kTileInputs / 16) {
                    parts[(s + 1) % 2].load(from.inputs() + from_inputs, from.weights() + from_weights, s + 1);
                } else if (k0 + kTileInputs < work.k) {
                    next.wait_full();
                    parts[0].load(next.inputs() + from_inputs, next.weights() + from_weights, 0);
                }
                AKUNU_UNROLL
                for (u32 i = 0; i < S::kFragmentsM; ++i) {
                    AKUNU_UNROLL
                    for (u32 j = 0; j < S::kFragmentsN; ++j) {
                        mma_f16(sum[i][j], parts[s % 2].a[i],
                                {parts[s % 2].b[j / 2][j % 2 * 2], parts[s % 2].b[j / 2][j % 2 * 2 + 1]});
                    }
                }
            }
            sync_warp();
            if (lane == 0) arrive_at(&stage_barriers().empty[from.stage]);
            from = next;
        }
        store(tiles.row(u) + m, tiles.column(u) + n, sum);
    }
}

// Of a warp, as the tensor cores leave them.
template <typename S>
using TileSums = float[S::kFragmentsM][S::kFragmentsN][4];

template <typename S>
struct SumsCopy {
    TileSums<S> sum;
    AKUNU_DEVICE explicit SumsCopy(const TileSums<S>& from) {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) {
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) sum[i][j][e] = from[i][j][e];
            }
        }
    }
};

// Calls each(m, n, i, j) for a lane's pairs of neighbouring columns, its j-th of its i-th row.
template <typename S, typename Each>
AKUNU_DEVICE void each_pair(u32 m0, u32 n0, u32 rows, Each&& each) {
    AKUNU_NO_UNROLL
    for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
        const u32 m = m0 + lane_id() / 4 + 8 * i;
        if (m >= rows) return;
        AKUNU_NO_UNROLL
        for (u32 j = 0; j < S::kFragmentsN; ++j) each(m, n0 + 8 * j + 2 * (lane_id() % 4), i, j);
    }
}

// What seldom happens: not unrolled, since a warp runs once through it for a tile, and from a copy, so that the sums
// themselves may be in registers.
template <typename S>
AKUNU_DEVICE_CALL void store_matmul(Block b, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    each_pair<S>(m0, n0, p.rows, [&](u32 m, u32 n, u32 i, u32 j) {
        if (n < p.n) out.store(m, n, sum[i / 2][j][i % 2 * 2]);
        if (n + 1 < p.n) out.store(m, n + 1, sum[i / 2][j][i % 2 * 2 + 1]);
    });
}
template <typename S>
AKUNU_DEVICE_CALL void store_gate_up(Block b, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    each_pair<S>(m0, n0 / 2, p.rows, [&](u32 m, u32 at, u32 i, u32 j) {
        if (j % 2 != 0) return;
        const u32 n = at - 4 * j;
        for (u32 e = 0; e < 2; ++e) {
            const u32 of = i % 2 * 2 + e;
            const float v = activate(p.activation, sum[i / 2][j][of]) * sum[i / 2][j + 1][of];
            if (n + e < p.n) out.store(u64(m) * p.n + n + e, v);
        }
    });
}

template <typename S>
AKUNU_DEVICE_CALL void multiply_matmul(Block b) {
    const auto& p = b.params<MatmulParams>();
    float* y = b.buffer<float>(2);
    const bool plain =
        !p.has_bias && p.softcap <= 0.0f && p.y_stride % 2 == 0 && p.n % 2 == 0 && reinterpret_cast<u64>(y) % 8 == 0;
    multiply_tiles<S>(b, [&](u32 m0, u32 n0, const TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_matmul<S>(b, m0, n0, copy.sum);
        }
        n0 += 2 * (lane_id() % 4);
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + lane_id() / 4 + 8 * i;
            if (m >= p.rows) continue;
            float* row = y + u64(m) * p.y_stride + n0;
            float2 v[S::kFragmentsN];
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) {  // what is added to is asked for all at once
                const bool there = p.accumulate && n0 + 8 * j < p.n;
                v[j] = there ? *reinterpret_cast<const float2*>(row + 8 * j) : float2{0.0f, 0.0f};
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) {
                const float2 w{v[j].x + sum[i / 2][j][i % 2 * 2], v[j].y + sum[i / 2][j][i % 2 * 2 + 1]};
                if (n0 + 8 * j < p.n) *reinterpret_cast<float2*>(row + 8 * j) = w;
            }
        }
    });
}

template <typename S>
AKUNU_DEVICE_CALL void multiply_gate_up(Block b) {
    const auto& p = b.params<GateUpParams>();
    u16* halves = b.buffer<u16>(4);
    const bool plain = p.activation == kActSilu && p.formats == kActF16 && p.n % 2 == 0;
    multiply_tiles<S>(b, [&](u32 m0, u32 n0, const TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_gate_up<S>(b, m0, n0, copy.sum);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + lane_id() / 4 + 8 * i;
            if (m >= p.rows) continue;
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; j += 2) {
                const u32 n = n0 / 2 + j * 4 + 2 * (lane_id() % 4), of = i % 2 * 2;
                const auto gated = [&](u32 e) {
                    const float gate = sum[i / 2][j][of + e];
                    return gate * reciprocal(1.0f + power_of_two(-1.4426950408889634f * gate)) *
                           sum[i / 2][j + 1][of + e];
                };
                if (n < p.n) *reinterpret_cast<u32*>(halves + u64(m) * p.n + n) = pack_halves(gated(0), gated(1));
            }
        }
    });
}

template <typename S>
AKUNU_DEVICE void multiply(Block b, const ManyRows& work) {
    work.gated ? multiply_gate_up<S>(b) : multiply_matmul<S>(b);
}

// Of matmul and gate_up.
AKUNU_DEVICE void many_rows(Block b) {
    const ManyRows work(b);
    if (thread_id() == 0) {
        for (u32 i = 0; i < kStages; ++i) {
            init_barrier(&stage_barriers().full[i], kBringers / 32);
            init_barrier(&stage_barriers().empty[i], kWarps);
        }
        publish_barriers();
    }
    sync_with_bringers();
    const u32 cols = tiles_of(b, work).n;
    if (cols == LargeTile::kN) {
        multiply<LargeTile>(b, work);
    } else if (cols == MiddleTile::kN) {
        multiply<MiddleTile>(b, work);
    } else {
        multiply<SmallTile>(b, work);
    }
    sync_with_bringers();
}

}  // namespace akunu::cuda
