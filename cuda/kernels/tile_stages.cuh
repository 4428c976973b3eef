// More than 16 rows times weights: which results a block computes, and the stages in shared memory through which inputs
// and weights come, for those that load them and those that multiply.
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
    u64 input_boxes, weight_boxes;  // maps, or 0
    AKUNU_DEVICE explicit ManyRows(Block b)
        : x(b.buffer<u16>(0)),
          gated(b.command().op == kOpGateUp),
          input_boxes(kCopiesBoxes ? b.command().input_map : 0),
          weight_boxes(kCopiesBoxes ? b.command().weight_map : 0) {
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

// How a command's results are dealt to blocks: tiles of them, and those of the last round, where they are few, each in
// parts of the inputs, which the block that comes last adds up.
struct Tiles {
    u32 m, n, down, whole, rest, parts, steps;  // rows and columns of a tile, tiles below one another; steps of k
    u32 all;                                    // units: whole tiles, then parts of the rest
    AKUNU_DEVICE Tiles(const ManyRows& w, u32 m, u32 n, u32 most_parts)
        : m(m),
          n(n),
          down((w.rows + m - 1) / m),
          whole(down * ((w.cols + n - 1) / n)),
          rest(whole % grid_blocks()),
          parts(1),
          steps((w.k + kTileInputs - 1) / kTileInputs) {
        while (parts < most_parts && rest * parts * 2 <= grid_blocks() && parts * 2 * kLeastSteps <= steps) parts *= 2;
        if (parts == 1) rest = 0;
        whole -= rest;
        all = whole + rest * parts;
    }
    AKUNU_DEVICE bool is_part(u32 unit) const { return unit >= whole; }
    // Of the rest's tiles, and of their parts.
    AKUNU_DEVICE u32 part_tile(u32 unit) const { return (unit - whole) % rest; }
    AKUNU_DEVICE u32 part(u32 unit) const { return (unit - whole) / rest; }
    AKUNU_DEVICE u32 tile(u32 unit) const { return is_part(unit) ? whole + part_tile(unit) : unit; }
    AKUNU_DEVICE u32 row(u32 unit) const { return tile(unit) % down * m; }
    AKUNU_DEVICE u32 column(u32 unit) const { return tile(unit) / down * n; }
    // Of a unit's inputs.
    AKUNU_DEVICE u32 begin(u32 unit) const { return is_part(unit) ? steps * part(unit) / parts * kTileInputs : 0; }
    AKUNU_DEVICE u32 end(u32 unit) const {
        return (is_part(unit) ? steps * (part(unit) + 1) / parts : steps) * kTileInputs;
    }
    // How long it takes, if a step of such a tile takes `step`: of what its last block waits for, and, since other
    // commands may run beside it, of what all blocks do. To write a part's sums and to add them up is work, too.
    AKUNU_DEVICE float cost(u32 step) const {
        const u32 tile = steps * step, part = (steps + parts - 1) / parts * step + (parts + 3) * (m * n / 800);
        const u32 rounds = (whole + grid_blocks() - 1) / grid_blocks();
        const float last = float(rounds * tile) + (rest == 0 ? 0.0f : float(part));
        return last + (float(whole) * float(tile) + float(rest * parts) * float(part)) / float(grid_blocks());
    }
    static constexpr u32 kLeastSteps = 4;
};
// The tiles that cost least, by times of steps on an H200: what a step loads takes longer than its products, so large
// tiles cost less for what they compute. In parts only where the commands before it are done: theirs lie in the same
// memory.
AKUNU_DEVICE Tiles tiles_of(Block b, const ManyRows& w) {
    const u32 most_parts = b.command().barrier || block_state().walk[b.slot].at.command == 0 ? kMostParts : 1;
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
    if (kWarpgroups && block_state().launch.ring >= kStagesAt + kLeastStages * TallTile::kStageBytes) {
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
          count(smaller((block_state().launch.ring - kStagesAt) / bytes, kMostStages)) {}
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
    // Where races are looked for, those that multiply wait for each stage twice, with those that load it: until they
    // may, and until it is there.
    AKUNU_DEVICE void wait_full() const {
        if constexpr (kChecksRaces) {
            sync_stage();
            sync_stage();
        } else {
            wait_for_phase(full(), phase);
        }
        show_to_groups();
        sync_warp();  // lanes may have looked at different times
    }
    AKUNU_DEVICE void wait_empty() const {
        if constexpr (kChecksRaces) {
            sync_stage();
        } else {
            wait_for_phase(&stage_barriers().empty[stage], phase ^ 1);
        }
    }
    // What a loading thread has stored and copied there.
    AKUNU_DEVICE void fill() const {
        if constexpr (kChecksRaces) {
            wait_for_copies();
            sync_stage();
        } else {
            arrive_when_copied(full());
            sync_warp();
            if (lane_id() == 0) arrive_at(full());
        }
    }
    // A warp has read it.
    AKUNU_DEVICE void free(u32 lane) const {
        sync_warp();
        if (!kChecksRaces && lane == 0) arrive_at(&stage_barriers().empty[stage]);
    }
};

}  // namespace akunu::cuda
