// Three warps of a block, while it multiplies many rows, load inputs and weights, the weights as F16, to
// the stages of tile_stages.cuh, as far ahead as these go.
#pragma once

#include "halves.cuh"
#include "tile_stages.cuh"

namespace akunu::cuda {

// A thread loads a piece of every twelfth row of a step's inputs.
constexpr u32 kRowsAtOnce = kLoaders / 8;

// Of gate and up eight columns take turns: which matrix a column is of, and which of its rows.
AKUNU_DEVICE u32 matrix_of(const ManyRows& work, u32 c) { return work.gated ? c / 8 % 2 : 0; }
AKUNU_DEVICE u32 row_of(const ManyRows& work, u32 c) { return work.gated ? c / 16 * 8 + c % 8 : c; }

// A step's weights that come through registers, where they become F16. A thread has groups of 32, two to a column.
template <typename F>
struct ConvertedWeights {
    static constexpr u32 kGroups = (2 * kMostTileCols + kLoaders - 1) / kLoaders;
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
            const u32 c = n0 + smaller((t + i * kLoaders) / 2, tiles.n - 1);
            places[i] = Halves<F>::place(matrices[matrix_of(work, c)], smaller(row_of(work, c), work.n - 1));
        }
    }
    AKUNU_DEVICE void put_from(u32) {}
    AKUNU_DEVICE void fetch(u32 k0, Raw& raw) const {
        static_assert(kLoaders % 2 == 0, "a thread's groups are all even or all odd");
        const u32 group = smaller(k0 / 32 + t % 2, (work.k - 1) / 32);
        AKUNU_UNROLL
        for (u32 i = 0; i < kGroups; ++i) raw.of[i] = Halves<F>::fetch(work.k, places[i], group);
    }
    // To where a stage's weights are. Groups behind the last one meet inputs that are 0.
    AKUNU_DEVICE void put(const Raw& raw, u32 k0, u32 to, u64*) const {
        constexpr u32 kColsAtOnce = kLoaders / 2;
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

// A step's weights that are F16 in tiles, where they lie as in a stage. Copies cost by their number: a lane copies a
// box of them where there is a map, of the second warp since the first copies boxes of inputs; elsewhere eight columns.
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
    u32 tile;

    AKUNU_DEVICE u32 column() const { return work.weight_boxes ? (t - 32) * kBoxCols : t * kCols; }
    AKUNU_DEVICE void fetch_from(u32) {}
    AKUNU_DEVICE void fetch(u32, Raw&) const {}
    AKUNU_DEVICE void put_from(u32 n0) {
        const u32 c = n0 + column();
        tile = (work.gated ? c / 2 : c) / kTileRows;
        if (work.weight_boxes) return;
        const u32 row = smaller(row_of(work, c), (work.n - 1) / kCols * kCols);
        from = matrices[matrix_of(work, c)].codes + unit_at(kReader, work.k, row, 0) + row % kTileRows * kTileRowBytes;
    }
    // `full` passes when they have come, too.
    AKUNU_DEVICE void put(const Raw&, u32 k0, u32 to, u64* full) const {
        if (column() >= tiles.n) return;
        u8* const columns = shared_memory() + to + column() * kTileRowBytes;
        const u32 step = k0 / kTileInputs;
        if (work.weight_boxes) {
            copy_tiles(columns, work.weight_boxes, tile, step, kBoxCols * kTileRowBytes, full);
        } else {
            copy_counted(columns, from + step * (kTileRows * kTileRowBytes), kCols * kTileRowBytes, full);
        }
    }
};
AKUNU_DEVICE constexpr bool copied_from_tiles(u32 reader, u32 k) {
    return (reader == kReadF16 || reader == kReadBf16) && in_tiles(reader, k);
}

// Loads a block's tiles, a step after the other, as far ahead as there are stages. A stage's barrier passes when all
// that load have arrived, and what they copy has.
template <typename W>
struct TileLoader {
    using Raw = typename W::Raw;
    const ManyRows& work;
    const Tiles& tiles;
    const Stages& stages;
    Block b;
    u32 t;
    bool aligned;
    W weights;
    u32 u, k0, end, fetch_u, fetch_k0, fetch_end;
    StagePlace to;
    const u16* inputs;  // of the first row that the thread loads
    u32 first, rows;    // those that are there: nobody asks for results of others

    AKUNU_DEVICE void enter_tile() {
        first = tiles.row(u);
        inputs = work.x + u64(first + t / 8) * work.k;
        rows = smaller(tiles.m, work.rows - first);
        k0 = tiles.begin(u);
        end = tiles.end(u);
        weights.put_from(tiles.column(u));
    }
    AKUNU_DEVICE void enter_fetch() {
        fetch_k0 = tiles.begin(fetch_u);
        fetch_end = tiles.end(fetch_u);
        weights.fetch_from(tiles.column(fetch_u));
    }
    // Behind the last step others are fetched, which nobody puts.
    AKUNU_DEVICE void fetch(Raw& raw) {
        weights.fetch(fetch_k0, raw);
        fetch_k0 += kTileInputs;
        if (fetch_k0 < fetch_end) return;
        if (fetch_u + b.blocks() < tiles.all) fetch_u += b.blocks();
        enter_fetch();
    }
    AKUNU_DEVICE void put_inputs() {
        if (work.input_boxes) {
            const u32 behind = t * kBoxRows;
            if (behind >= rows) return;
            return copy_box(shared_memory() + to.inputs + behind * kTileRowBytes, work.input_boxes, first + behind, k0,
                            kBoxRows * kTileRowBytes, to.full());
        }
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
        to.fill();
        to.advance(stages);
        k0 += kTileInputs;
        if (k0 < end) return true;
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

// Runs in the loading warps.
template <typename W>
AKUNU_DEVICE_CALL void load_tiles(Block b) {
    const ManyRows work(b);
    const Tiles tiles = tiles_of(b, work);
    if (b.first() >= tiles.all) return;
    const Stages stages(tiles.m, tiles.n);
    const Weights matrices[2] = {weights_of(b.command().weights[0], work.k),
                                 weights_of(b.command().weights[1], work.k)};
    const u32 t = thread_id() - (kBlockThreads - kLoaders), first = b.first();
    const bool aligned = work.k % kTileInputs == 0 && reinterpret_cast<u64>(work.x) % 16 == 0;
    TileLoader<W> loader{work, tiles, stages, b, t, aligned, {work, tiles, matrices, t}, first, 0, 0, first};
    typename W::Raw raw[W::kAhead + 1];
    loader.enter_fetch();
    loader.enter_tile();
    AKUNU_UNROLL
    for (u32 i = 0; i < W::kAhead; ++i) loader.fetch(raw[i]);
    while (loader.template steps<0>(raw)) {
    }
}
template <u32 kReader>
AKUNU_DEVICE void load_weight_tiles(Block b) {
    if constexpr (copied_from_tiles(kReader, kStepInputs)) {
        if (in_tiles(kReader, ManyRows(b).k)) return load_tiles<CopiedWeights<kReader>>(b);
    }
    // Inputs of F32 weights are no halves: they are never brought.
    if constexpr (kReader != kReadF32) load_tiles<ConvertedWeights<Format<kReader>>>(b);
}

AKUNU_DEVICE void load_command(Block b) {
    sync_with_loaders();  // its inputs are there
    switch (b.command().weights[0].reader) {
#define X(reader)                     \
    case reader:                      \
        load_weight_tiles<reader>(b); \
        break;
        AKUNU_READERS
#undef X
    }
    sync_with_loaders();
}

// The loading warps run beside those that run commands, command by command: one passes the barrier of the grid for the
// block, all load tiles, and then one prepares the next command. The last one does something else until there
// are tiles.
AKUNU_DEVICE void run_loaders() {
    if (!kChecksRaces && warp_id() > kPreparer) {
        fetch_ahead();
        for (;;) {
            sync_last_loader();
            if (look_at(block_state().ended)) return;
            load_command({look_at(block_state().loads)});
        }
    }
    if (warp_id() == kPreparer) prepare(1);
    [[maybe_unused]] CheckedRing ring{};
    for (u32 slot = 1;; slot = 1 - slot) {
        sync_next();
        const Walk& now = block_state().walk[slot];
        const bool failed = look_at(block_state().failure) != kNoError, walks = warp_id() == kPreparer;
        if (warp_id() == kBarrierWarp && !failed && (now.begins || now.waits)) grid_barrier().pass();
        if (failed || now.begins) sync_next();  // whether the chain has ended
        const bool ended = look_at(block_state().ended) != 0, loads = now.way == kManyRows;
        if (!kChecksRaces && walks && (ended || loads)) {
            publish(block_state().loads, slot);
            sync_warp();
            sync_last_loader();
        }
        if (ended) return;
        if (kChecksRaces && warp_id() == kWarps) {
            ring.fill(slot);
            if (!loads) continue;
            sync_with_loaders();
            sync_with_loaders();
            continue;
        }
        if (loads) load_command({slot});
        if (!walks) continue;
        // The host's memory is not for a thread that others wait for: its next fence would wait for it.
        if (block_id() == 0 && lane_id() == 0) {
            const Launch& launch = block_state().launch;
            store_host(&launch.mailbox->command, now.at.begun);
            // Before the barrier at the step's end.
            if (now.last) launch.barrier->halt[now.at.step % 2] = load_host(&launch.mailbox->halt);
        }
        prepare(1 - slot);
    }
}

}  // namespace akunu::cuda
