// More than 16 rows times weights. Three warps of a block bring tiles of inputs and weights to shared memory, the
// weights as F16; those that run commands multiply them on the tensor cores, four warps together where a GPU has
// products of warpgroups, which read shared memory themselves. Between them are a few stages, whose barriers say what
// is there and what has been read, across the tiles that a block takes.
#pragma once

#include "halves.cuh"
#include "matvec.cuh"

namespace akunu::cuda {

// Inputs of a step, of which a row has 128 bytes in shared memory: eight pieces, piece p at place p ^ row % 8, so that
// eight rows' pieces lie in different banks. Weights lie in the same way, by columns.
constexpr u32 kTileInputs = 64, kTileRowBytes = kTileInputs * 2;
constexpr u32 kMostStages = 8, kMostTileRows = 256, kMostTileCols = 128;

struct StageBarriers {
    u64 full[kMostStages], empty[kMostStages];
};
// In shared memory. Products of warpgroups want the places of pieces to follow from addresses.
constexpr u32 kStagesAt = (kSharedBase + kSharedHead + sizeof(StageBarriers) + 1023) / 1024 * 1024 - kSharedBase;
constexpr u32 kLeastStages = 3;
AKUNU_DEVICE StageBarriers& stage_barriers() {
    return *reinterpret_cast<StageBarriers*>(shared_memory() + kSharedHead);
}

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

// Results of a tile, kM x kN, and how many warps share its rows. A warp has fragments of 16 rows, one below the other;
// in a group of four warps they are those of the group's, 64 rows at a time.
template <u32 kRows, u32 kCols, u32 kRowWarps>
struct TileShape {
    static constexpr u32 kM = kRows, kN = kCols, kWarpsM = kRowWarps, kWarpsN = kWarps / kRowWarps;
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    static constexpr u32 kRowsApart = kWarpgroups ? 64 : 16;  // of fragments
    static constexpr u32 kStageBytes = (kM + kN) * kTileRowBytes, kShape = kM << 16 | kN;
    static_assert(kM <= kMostTileRows && kN <= kMostTileCols && kFragmentsN % 2 == 0, "a stage has room for it");
    static_assert(!kWarpgroups || kWarpsM % 4 == 0, "a group's warps have its rows");

    static AKUNU_DEVICE u32 first_row(u32 warp) {
        if (kWarpgroups) return warp % kWarpsM / 4 * (kFragmentsM * 64) + warp % 4 * 16;
        return warp % kWarpsM * (kM / kWarpsM);
    }
    static AKUNU_DEVICE u32 first_column(u32 warp) { return warp / kWarpsM * (kN / kWarpsN); }
    // Of the i-th row of eight that a lane has.
    static AKUNU_DEVICE u32 row(u32 lane, u32 i) { return lane / 4 + i % 2 * 8 + i / 2 * kRowsApart; }
};
// By groups alone: its sums are 128 registers of a thread, so that nothing else has room.
using TallTile = TileShape<256, 128, 8>;
using LargeTile = TileShape<128, 128, kWarpgroups ? 8 : 2>;
using MiddleTile = TileShape<128, 64, kWarpgroups ? 8 : 4>;
using SmallTile = TileShape<64, 32, 4>;
static_assert(kStagesAt + kLeastStages * LargeTile::kStageBytes <= kSharedHead + kManyRowsBytes,
              "every GPU has memory for all but the tallest");

// How a command's results are dealt to blocks.
struct Tiles {
    u32 m, n, down, all;  // rows and columns of a tile, tiles below one another, all
    AKUNU_DEVICE Tiles(const ManyRows& w, u32 m, u32 n)
        : m(m), n(n), down((w.rows + m - 1) / m), all(down * ((w.cols + n - 1) / n)) {}
    AKUNU_DEVICE u32 row(u32 unit) const { return unit % down * m; }
    AKUNU_DEVICE u32 column(u32 unit) const { return unit / down * n; }
    AKUNU_DEVICE u32 rounds(Block b) const { return (all + b.blocks() - 1) / b.blocks(); }
};
// The tiles with which the block that has most is done first. What a step brings takes longer than its products: so a
// large one is only four times as slow as a small one for eight times the work, and a tall one is worth 1.3 large ones.
AKUNU_DEVICE Tiles tiles_of(Block b, const ManyRows& w) {
    Tiles best(w, SmallTile::kM, SmallTile::kN);
    u32 least = best.rounds(b) * 5;
    const auto consider = [&](u32 m, u32 n, u32 cost) {
        const Tiles tiles(w, m, n);
        if (tiles.rounds(b) * cost > least) return;
        best = tiles;
        least = tiles.rounds(b) * cost;
    };
    consider(MiddleTile::kM, MiddleTile::kN, 11);
    consider(LargeTile::kM, LargeTile::kN, 20);
    if (kWarpgroups && shown().launch.ring >= kStagesAt + kLeastStages * TallTile::kStageBytes) {
        consider(TallTile::kM, TallTile::kN, 30);
    }
    return best;
}

// The stages of such tiles: as many as fit in front of the ring.
struct Stages {
    u32 rows_bytes, bytes, count;
    AKUNU_DEVICE Stages(u32 m, u32 n)
        : rows_bytes(m * kTileRowBytes),
          bytes((m + n) * kTileRowBytes),
          count(smaller((shown().launch.ring - kStagesAt) / bytes, kMostStages)) {}
};
// A stage, where it is in shared memory, and how often it has been used, odd or even.
struct StagePlace {
    u32 stage = 0, phase = 0, inputs = kStagesAt;
    AKUNU_DEVICE void advance(const Stages& stages) {
        inputs += stages.bytes;
        if (++stage < stages.count) return;
        *this = {0, phase ^ 1, kStagesAt};
    }
    AKUNU_DEVICE u64* full() const { return &stage_barriers().full[stage]; }
    AKUNU_DEVICE void wait_full() const {
        while (!has_passed(full(), phase)) {
        }
        show_to_groups();
        sync_warp();  // lanes may have looked at different times
    }
    AKUNU_DEVICE void wait_empty() const {
        while (!has_passed(&stage_barriers().empty[stage], phase ^ 1)) {
        }
    }
    // A warp has read it.
    AKUNU_DEVICE void free(u32 lane) const {
        sync_warp();
        if (lane == 0) arrive_at(&stage_barriers().empty[stage]);
    }
};

// Of a step's inputs a thread brings a piece of every twelfth row.
constexpr u32 kRowsAtOnce = kBringers / 8;

// Of gate and up eight columns take turns: which matrix a column is of, and which of its rows.
AKUNU_DEVICE u32 matrix_of(const ManyRows& work, u32 c) { return work.gated ? c / 8 % 2 : 0; }
AKUNU_DEVICE u32 row_of(const ManyRows& work, u32 c) { return work.gated ? c / 16 * 8 + c % 8 : c; }

// A step's weights that come through registers, where they become F16. A thread has groups of 32, two to a column.
template <typename F>
struct ConvertedWeights {
    static constexpr u32 kGroups = (2 * kMostTileCols + kBringers - 1) / kBringers;
    struct Raw {
        typename Halves<F>::Raw of[kGroups];
    };
    // Steps that are on their way besides, as many as registers hold.
    static constexpr u32 kAhead = sizeof(Raw) <= 64 ? 3 : sizeof(Raw) <= 112 ? 2 : 1;
    const ManyRows& work;
    const Tiles& tiles;
    const Weights (&matrices)[2];
    u32 t;
    typename Halves<F>::Place places[kGroups];

    // Of a tile from column n0 on. Those behind the last column, which nobody asks for, are others.
    AKUNU_DEVICE void fetch_from(u32 n0) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroups; ++i) {
            const u32 c = n0 + smaller((t + i * kBringers) / 2, tiles.n - 1);
            places[i] = Halves<F>::place(matrices[matrix_of(work, c)], smaller(row_of(work, c), work.n - 1));
        }
    }
    AKUNU_DEVICE void put_from(u32) {}
    AKUNU_DEVICE void fetch(u32 k0, Raw& raw) const {
        static_assert(kBringers % 2 == 0, "a thread's groups are all even or all odd");
        const u32 group = smaller(k0 / 32 + t % 2, (work.k - 1) / 32);
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroups; ++i) raw.of[i] = Halves<F>::fetch(work.k, places[i], group);
    }
    // To where a stage's weights are. Groups behind the last one meet inputs that are 0.
    AKUNU_DEVICE void put(const Raw& raw, u32 k0, u32 to, u64*) const {
        constexpr u32 kColsAtOnce = kBringers / 2;
        static_assert(kColsAtOnce % 8 == 0, "a thread's columns have their pieces in the same places");
        const u32 first = to + t / 2 * kTileRowBytes;
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroups; ++i) {
            if (t / 2 + i * kColsAtOnce >= tiles.n) continue;
            u32 h[16];
            Halves<F>::convert(raw.of[i], k0 / 32 + t % 2, h);
            AKUNU_UNROLL
            for (u32 piece = 0; piece < 4; ++piece) {
                const u32 at = first + ((t % 2 * 4 + piece) ^ t / 2 % 8) * 16 + i * kColsAtOnce * kTileRowBytes;
                *reinterpret_cast<uint4*>(shared_memory() + at) =
                    uint4{h[4 * piece], h[4 * piece + 1], h[4 * piece + 2], h[4 * piece + 3]};
            }
        }
    }
};

// A step's weights that are F16 in tiles, where they lie as in a stage: a lane copies eight columns.
template <u32 kReader>
struct CopiedWeights {
    static constexpr u32 kCols = 8, kAhead = 0;
    static_assert(kMostTileCols / kCols <= 32, "a copy for each lane of a warp");
    static_assert(tile_layout(kReader).unit_bytes() == kTileRows * tile_layout(kReader).inputs * 2,
                  "steps follow one another");
    struct Raw {};
    const ManyRows& work;
    const Tiles& tiles;
    const Weights (&matrices)[2];
    u32 t;
    const u8* from;

    AKUNU_DEVICE u32 column() const { return t * kCols; }
    AKUNU_DEVICE void fetch_from(u32) {}
    AKUNU_DEVICE void fetch(u32, Raw&) const {}
    AKUNU_DEVICE void put_from(u32 n0) {
        const u32 c = n0 + column(), row = smaller(row_of(work, c), (work.n - 1) / kCols * kCols);
        from = matrices[matrix_of(work, c)].codes + unit_at(kReader, work.k, row, 0) + row % kTileRows * kTileRowBytes;
    }
    // `full` passes when they have come, too.
    AKUNU_DEVICE void put(const Raw&, u32 k0, u32 to, u64* full) const {
        if (column() >= tiles.n) return;
        copy_counted(shared_memory() + to + column() * kTileRowBytes,
                     from + k0 / kTileInputs * (kTileRows * kTileRowBytes), kCols * kTileRowBytes, full);
    }
};
AKUNU_DEVICE constexpr bool copied_from_tiles(u32 reader, u32 k) {
    return (reader == kReadF16 || reader == kReadBf16) && in_tiles(reader, k);
}

// Brings a block's tiles, a step after the other, as far ahead as there are stages. A stage's barrier passes when all
// that bring have arrived, and what they copy has.
template <typename W>
struct BringingTiles {
    using Raw = typename W::Raw;
    const ManyRows& work;
    const Tiles& tiles;
    const Stages& stages;
    Block b;
    u32 t;
    bool aligned;
    W weights;
    u32 u, k0, fetch_u, fetch_k0;
    StagePlace to;
    const u16* inputs;  // of the first row that the thread brings
    u32 rows;           // that are there: nobody asks for results of those behind the last one

    AKUNU_DEVICE void enter_tile() {
        inputs = work.x + u64(tiles.row(u) + t / 8) * work.k;
        rows = smaller(tiles.m, work.rows - tiles.row(u));
        weights.put_from(tiles.column(u));
    }
    // Behind the last step others are fetched, which nobody puts.
    AKUNU_DEVICE void fetch(Raw& raw) {
        weights.fetch(fetch_k0, raw);
        fetch_k0 += kTileInputs;
        if (fetch_k0 < work.k) return;
        fetch_k0 = 0;
        fetch_u += b.blocks();
        if (fetch_u < tiles.all) weights.fetch_from(tiles.column(fetch_u));
    }
    AKUNU_DEVICE void put_inputs() {
        const u32 piece = t % 8;
        const auto place = [&](u32 m) {
            return shared_memory() + (to.inputs + m * kTileRowBytes + (piece ^ m % 8) * 16);
        };
        if (aligned) {
            // Of every other row the pieces have the same places.
            constexpr u32 kApart = 2 * kRowsAtOnce;
            static_assert(kApart % 8 == 0, "they have");
            const u16* from = inputs + k0 + piece * 8;
            const u64 next = u64(work.k) * kRowsAtOnce;
            const u32 m = t / 8;
            AKUNU_UNROLL
            for (u32 behind = 0; behind < kMostTileRows && behind < rows; behind += kApart, from += 2 * next) {
                const u32 at = behind * kTileRowBytes;
                if (m + behind < rows) copy_async16(place(m) + at, from);
                if (m + behind + kRowsAtOnce < rows) copy_async16(place(m + kRowsAtOnce) + at, from + next);
            }
            return;
        }
        const u16* from = inputs;
        AKUNU_NO_UNROLL
        for (u32 m = t / 8; m < rows; m += kRowsAtOnce, from += u64(work.k) * kRowsAtOnce) {
            *reinterpret_cast<uint4*>(place(m)) = load_halves8(from, k0 + piece * 8, work.k);
        }
    }
    // One step; false where it was the last.
    AKUNU_DEVICE bool step(const Raw& raw) {
        to.wait_empty();
        put_inputs();
        weights.put(raw, k0, to.inputs + stages.rows_bytes, to.full());
        arrive_when_copied(to.full());
        sync_warp();
        if (lane_id() == 0) arrive_at(to.full());
        to.advance(stages);
        k0 += kTileInputs;
        if (k0 < work.k) return true;
        k0 = 0;
        u += b.blocks();
        if (u >= tiles.all) return false;
        enter_tile();
        return true;
    }
    // So many steps that each has a place of its own in `raw`, from the kFirst-th on: places that a loop counted would
    // lie on the stack.
    template <u32 kFirst>
    AKUNU_DEVICE bool steps(Raw (&raw)[W::kAhead + 1]) {
        fetch(raw[(kFirst + W::kAhead) % (W::kAhead + 1)]);
        if (!step(raw[kFirst])) return false;
        if constexpr (kFirst < W::kAhead) return steps<kFirst + 1>(raw);
        return true;
    }
};

// By the warps that bring.
template <typename W>
AKUNU_DEVICE_CALL void bring_tiles(Block b) {
    const ManyRows work(b);
    const Tiles tiles = tiles_of(b, work);
    if (b.first() >= tiles.all) return;
    const Stages stages(tiles.m, tiles.n);
    const Weights matrices[2] = {weights_of(b.command().weights[0], work.k),
                                 weights_of(b.command().weights[1], work.k)};
    const u32 t = thread_id() - (kBlockThreads - kBringers), first = b.first();
    const bool aligned = work.k % kTileInputs == 0 && reinterpret_cast<u64>(work.x) % 16 == 0;
    BringingTiles<W> bringing{work, tiles, stages, b, t, aligned, {work, tiles, matrices, t}, first, 0, first, 0};
    typename W::Raw raw[W::kAhead + 1];
    bringing.weights.fetch_from(tiles.column(first));
    bringing.enter_tile();
    AKUNU_UNROLL
    for (u32 i = 0; i < W::kAhead; ++i) bringing.fetch(raw[i]);
    while (bringing.template steps<0>(raw)) {
    }
}
template <u32 kReader>
AKUNU_DEVICE void bring_weights(Block b) {
    if constexpr (copied_from_tiles(kReader, kStepInputs)) {
        if (in_tiles(kReader, ManyRows(b).k)) return bring_tiles<CopiedWeights<kReader>>(b);
    }
    bring_tiles<ConvertedWeights<Format<kReader>>>(b);
}

// They wait for a command whose tiles they are to bring.
AKUNU_DEVICE void bring_all() {
    for (;;) {
        if (warp_id() == kKeeper) keep_barrier();
        sync_with_bringers();
        if (shown().ended) return;
        const Block b{shown().slot[0]};
        switch (b.command().weights[0].reader) {
#define X(reader)                 \
    case reader:                  \
        bring_weights<reader>(b); \
        break;
            AKUNU_READERS
#undef X
        }
        sync_with_bringers();
    }
}

// Of a warp, as the tensor cores leave them.
template <typename S>
using TileSums = float[S::kFragmentsM][S::kFragmentsN][4];

// Of a warp for 16 inputs.
template <typename S>
struct TileFragments {
    u32 a[S::kFragmentsM][4], b[S::kFragmentsN / 2][4];
    // `inputs`, `weights`: where this lane's rows begin, see load_matrices.
    AKUNU_DEVICE void load(u32 inputs, u32 weights) {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) load_matrices(a[i], inputs + i * 16 * kTileRowBytes);
        AKUNU_UNROLL
        for (u32 j = 0; j < S::kFragmentsN / 2; ++j) load_matrices(b[j], weights + j * 16 * kTileRowBytes);
    }
};

// A tile's products of a warp, whose first row and column are m and n, by itself.
template <typename S>
AKUNU_DEVICE void multiply_by_warps(const Stages& stages, u32 k, u32 lane, u32 m, u32 n, StagePlace& from,
                                    TileSums<S>& sum) {
    const u32 inputs = (m + lane % 16) * kTileRowBytes + (lane / 16 ^ lane % 8) * 16;
    const u32 weights =
        stages.rows_bytes + (n + lane / 16 * 8 + lane % 8) * kTileRowBytes + (lane / 8 % 2 ^ lane % 8) * 16;
    TileFragments<S> parts[2];
    const auto load = [&](TileFragments<S>& to, const StagePlace& stage, u32 s) {
        to.load(stage.inputs + (inputs ^ s * 32), stage.inputs + (weights ^ s * 32));
    };
    from.wait_full();
    load(parts[0], from, 0);
    for (u32 k0 = 0; k0 < k; k0 += kTileInputs) {
        StagePlace next = from;
        next.advance(stages);
        // The next fragments are on their way while these are multiplied.
        AKUNU_UNROLL
        for (u32 s = 0; s < kTileInputs / 16; ++s) {
            if (s + 1 < kTileInputs / 16) {
                load(parts[(s + 1) % 2], from, s + 1);
            } else if (k0 + kTileInputs < k) {
                next.wait_full();
                load(parts[0], next, 0);
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
        from.free(lane);
        from = next;
    }
}

// The same by the four warps of a group, which multiply all their rows together. A stage is free when the next one's
// products have been begun and its own are done.
template <typename S>
AKUNU_DEVICE void multiply_by_groups(const Stages& stages, u32 k, u32 lane, u32 m, u32 n, StagePlace& from,
                                     TileSums<S>& sum) {
    const u32 inputs = m / 64 * 64 * kTileRowBytes, weights = stages.rows_bytes + n * kTileRowBytes;
    StagePlace before = from;
    for (u32 k0 = 0; k0 < k; k0 += kTileInputs) {
        from.wait_full();
        begin_products(sum);
        AKUNU_UNROLL
        for (u32 s = 0; s < kTileInputs / 16; ++s) {
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                multiply_group(sum[i], matrix_place(from.inputs + inputs + i * 64 * kTileRowBytes + s * 32),
                               matrix_place(from.inputs + weights + s * 32));
            }
        }
        end_products();
        if (k0 != 0) {
            wait_for_products<1>(sum);
            before.free(lane);
        }
        before = from;
        from.advance(stages);
    }
    wait_for_products<0>(sum);
    before.free(lane);
}

// By the warps that multiply; `store(lane, m, n, sum)` takes a warp's sums, of which m and n are the first row and
// column. The thread is asked for anew: what follows from it would be kept in registers for the whole launch.
template <typename S, typename Store>
AKUNU_DEVICE void multiply_tiles(Block b, Store&& store) {
    const ManyRows work(b);
    const Tiles tiles(work, S::kM, S::kN);
    const WeightPlanes(&matrices)[3] = b.command().weights;
    const bool copied = copied_from_tiles(matrices[0].reader, work.k);
    const Stages stages(S::kM, S::kN);
    float factors[2] = {1.0f, 1.0f};
    if (copied && matrices[0].reader == kReadBf16) {
        factors[0] = tile_factor<kReadBf16>(matrices[0]);
        factors[1] = tile_factor<kReadBf16>(matrices[work.gated]);
    }
    const u32 thread = thread_id_anew(), lane = thread % 32;
    const u32 m = S::first_row(thread / 32), n = S::first_column(thread / 32);
    StagePlace from;
    for (u32 u = b.first(); u < tiles.all; u += b.blocks()) {
        TileSums<S> sum = {};
        if constexpr (kWarpgroups) {
            multiply_by_groups<S>(stages, work.k, lane, m, n, from, sum);
        } else {
            multiply_by_warps<S>(stages, work.k, lane, m, n, from, sum);
        }
        if (factors[0] != 1.0f || factors[1] != 1.0f) {
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                AKUNU_UNROLL
                for (u32 j = 0; j < S::kFragmentsN; ++j) {
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 4; ++e) sum[i][j][e] *= factors[j % 2];
                }
            }
        }
        store(lane, tiles.row(u) + m, tiles.column(u) + n, sum);
    }
}

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
AKUNU_DEVICE void each_pair(u32 lane, u32 m0, u32 n0, u32 rows, Each&& each) {
    AKUNU_NO_UNROLL
    for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
        const u32 m = m0 + S::row(lane, i);
        if (m >= rows) return;
        AKUNU_NO_UNROLL
        for (u32 j = 0; j < S::kFragmentsN; ++j) each(m, n0 + 8 * j + 2 * (lane % 4), i, j);
    }
}

// What seldom happens: not unrolled, since a warp runs once through it for a tile, and from a copy, so that the sums
// themselves may be in registers.
template <typename S>
AKUNU_DEVICE_CALL void store_matmul(Block b, u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    each_pair<S>(lane, m0, n0, p.rows, [&](u32 m, u32 n, u32 i, u32 j) {
        if (n < p.n) out.store(m, n, sum[i / 2][j][i % 2 * 2]);
        if (n + 1 < p.n) out.store(m, n + 1, sum[i / 2][j][i % 2 * 2 + 1]);
    });
}
template <typename S>
AKUNU_DEVICE_CALL void store_gate_up(Block b, u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    each_pair<S>(lane, m0, n0 / 2, p.rows, [&](u32 m, u32 at, u32 i, u32 j) {
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
AKUNU_DEVICE void multiply_matmul(Block b) {
    const auto& p = b.params<MatmulParams>();
    float* y = b.buffer<float>(2);
    const bool plain =
        !p.has_bias && p.softcap <= 0.0f && p.y_stride % 2 == 0 && p.n % 2 == 0 && reinterpret_cast<u64>(y) % 8 == 0;
    multiply_tiles<S>(b, [&](u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_matmul<S>(b, lane, m0, n0, copy.sum);
        }
        n0 += 2 * (lane % 4);
        constexpr u32 kAtOnce = smaller(S::kFragmentsN, 8);  // of what is added to
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + S::row(lane, i);
            if (m >= p.rows) continue;
            float* row = y + u64(m) * p.y_stride + n0;
            AKUNU_UNROLL
            for (u32 first = 0; first < S::kFragmentsN; first += kAtOnce) {
                float2 v[kAtOnce];
                AKUNU_UNROLL
                for (u32 k = 0; k < kAtOnce; ++k) {
                    const u32 n = 8 * (first + k);
                    const bool there = p.accumulate && n0 + n < p.n;
                    v[k] = there ? *reinterpret_cast<const float2*>(row + n) : float2{0.0f, 0.0f};
                }
                AKUNU_UNROLL
                for (u32 k = 0; k < kAtOnce; ++k) {
                    const u32 n = 8 * (first + k), of = i % 2 * 2;
                    const float2 w{v[k].x + sum[i / 2][first + k][of], v[k].y + sum[i / 2][first + k][of + 1]};
                    if (n0 + n < p.n) *reinterpret_cast<float2*>(row + n) = w;
                }
            }
        }
    });
}

template <typename S>
AKUNU_DEVICE void multiply_gate_up(Block b) {
    const auto& p = b.params<GateUpParams>();
    u16* halves = b.buffer<u16>(4);
    const bool plain = p.activation == kActSilu && p.formats == kActF16 && p.n % 2 == 0;
    multiply_tiles<S>(b, [&](u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_gate_up<S>(b, lane, m0, n0, copy.sum);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + S::row(lane, i);
            if (m >= p.rows) continue;
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; j += 2) {
                const u32 n = n0 / 2 + j * 4 + 2 * (lane % 4), of = i % 2 * 2;
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

// Of matmul and gate_up, where the ring does not bring their weights. Part of the kernel itself: in a function that it
// calls products of warpgroups would wait for one another.
AKUNU_DEVICE bool has_many_rows(const Command& c) {
    return (c.op == kOpMatmul || c.op == kOpGateUp) && c.half_input && ring_rows(c) > kTileOfRows;
}
AKUNU_DEVICE void many_rows(Block b) {
    b.ready();
    const ManyRows work(b);
    const u32 thread = thread_id_anew();
    if (thread < kMostStages) {
        init_barrier(&stage_barriers().full[thread], kBringers + kBringers / 32);
        init_barrier(&stage_barriers().empty[thread], kWarps);
        publish_barriers();
    }
    show_to_groups();  // what lay where copies come now
    call_bringers();
    const Tiles tiles = tiles_of(b, work);
    switch (tiles.m << 16 | tiles.n) {
        case TallTile::kShape:
            if constexpr (kWarpgroups) multiply<TallTile>(b, work);
            break;
        case LargeTile::kShape:
            multiply<LargeTile>(b, work);
            break;
        case MiddleTile::kShape:
            multiply<MiddleTile>(b, work);
            break;
        default:
            multiply<SmallTile>(b, work);
    }
    sync_with_bringers();
    if (thread < kMostStages) {  // what comes next uses their memory
        drop_barrier(&stage_barriers().full[thread]);
        drop_barrier(&stage_barriers().empty[thread]);
    }
}

}  // namespace akunu::cuda
