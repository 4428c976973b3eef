// More than 16 rows times weights: which results a block computes, and the stages in shared memory through which inputs
// and weights come, for those that bring them and those that multiply.
#pragma once

#include "block.cuh"

namespace akunu::cuda {

// Inputs of a step, of which a row has 128 bytes in shared memory: eight pieces, piece p at place p ^ row % 8, so that
// eight rows' pieces lie in different banks. Weights lie in the same way, by columns.
constexpr u32 kTileInputs = kBoxInputs, kTileRowBytes = kTileInputs * 2;
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

// How a command's results are dealt to blocks: tiles of them, where these are few each in parts of the inputs, which
// the block that comes last adds up.
struct Tiles {
    u32 m, n, down, count, parts, steps;  // rows and columns of a tile, tiles below one another and in all, steps of k
    u32 all;                              // units: a tile's part each
    AKUNU_DEVICE Tiles(const ManyRows& w, u32 m, u32 n, u32 most_parts)
        : m(m),
          n(n),
          down((w.rows + m - 1) / m),
          count(down * ((w.cols + n - 1) / n)),
          parts(1),
          steps((w.k + kTileInputs - 1) / kTileInputs) {
        while (parts < most_parts && count * parts * 2 <= grid_blocks() && parts * 2 * kLeastSteps <= steps) parts *= 2;
        all = count * parts;
    }
    AKUNU_DEVICE u32 tile(u32 unit) const { return unit % count; }
    AKUNU_DEVICE u32 row(u32 unit) const { return tile(unit) % down * m; }
    AKUNU_DEVICE u32 column(u32 unit) const { return tile(unit) / down * n; }
    // Of a unit's inputs.
    AKUNU_DEVICE u32 begin(u32 unit) const { return steps * (unit / count) / parts * kTileInputs; }
    AKUNU_DEVICE u32 end(u32 unit) const { return steps * (unit / count + 1) / parts * kTileInputs; }
    // How long it takes, if a step of such a tile takes `step`: of what its last block waits for, and, since other
    // commands may run beside it, of what all blocks do. To write a part's sums and to add them up is work, too.
    AKUNU_DEVICE float cost(u32 step) const {
        const u32 join = parts == 1 ? 0 : (parts + 3) * (m * n / 800), unit = (steps + parts - 1) / parts * step + join;
        const u32 rounds = (all + grid_blocks() - 1) / grid_blocks();
        return float(unit) * (float(rounds) + float(all) / float(grid_blocks()));
    }
    static constexpr u32 kLeastSteps = 4;
};
// The tiles that cost least, by times of steps on an H200: what a step brings takes longer than its products, so large
// tiles cost less for what they compute. In parts only where the commands before it are done: theirs lie in the same
// memory.
AKUNU_DEVICE Tiles tiles_of(Block b, const ManyRows& w) {
    const u32 most_parts = b.command().barrier || shown().walk[b.slot].at.command == 0 ? kMostParts : 1;
    Tiles best(w, SmallTile::kM, SmallTile::kN, 1);
    float least = best.cost(9);
    const auto consider = [&](u32 m, u32 n, u32 step) {
        for (u32 parts = 1; parts <= most_parts; parts *= kMostParts) {
            const Tiles tiles(w, m, n, parts);
            const float cost = tiles.cost(step);
            if (cost > least) continue;
            best = tiles;
            least = cost;
        }
    };
    consider(MiddleTile::kM, MiddleTile::kN, 16);
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

}  // namespace akunu::cuda
