// What adapters add to matmuls whose weights come through the ring, as part of these: y = W·x + B·(A·x). The rows of A
// are dealt to the blocks, which leave what these give as words, and multiply their tiles of W; when a block has its
// tiles' sums, it takes the words of all, and adds its own columns of B times these. So no command waits for another.
#pragma once

#include "lora.cuh"
#include "ring.cuh"
#include "row_inputs.cuh"

namespace akunu::cuda {

#if AKUNU_ADAPTERS

AKUNU_DEVICE bool is_adapted(Block b) { return b.command().buffers[kAdapterChoices] != 0; }

// The adapters of a command: of up to three matrices, whose ranks stand one behind the other.
struct Adapters {
    Block b;
    u32 k;  // inputs of a row

    AKUNU_DEVICE const AdaptedParams& params() const {
        return *reinterpret_cast<const AdaptedParams*>(b.command().params + kAdaptedWord);
    }
    AKUNU_DEVICE u32 max_rank(u32 matrix) const { return params().max_rank[matrix]; }
    AKUNU_DEVICE u32 first_rank(u32 matrix) const {
        return (matrix > 0 ? max_rank(0) : 0) + (matrix > 1 ? max_rank(1) : 0);
    }
    AKUNU_DEVICE u32 ranks() const { return first_rank(2) + max_rank(2); }
    AKUNU_DEVICE u32 matrix_of(u32 rank) const { return rank < first_rank(1) ? 0 : rank < first_rank(2) ? 1 : 2; }
    AKUNU_DEVICE AdapterChoice of_row(u32 m) const {
        return b.buffer<const AdapterChoice>(kAdapterChoices)[b.buffer<const Row>(kAdaptedRows)[m].slot];
    }
    // Of the only row, which has the same one in all of a launch.
    AKUNU_DEVICE AdapterChoice of_launch() const {
        auto& adapter = block_state().adapter;
        if (any_of_warp(!adapter.known)) {
            sync_block();
            if (thread_id() == 0) adapter = {1, of_row(0)};
            sync_block();
        }
        return adapter.choice;
    }
    AKUNU_DEVICE const u8* part(u32 matrix, u32 number) const {
        return b.buffer<const u8>(kAdapterParts + matrix) + u64(number - 1) * params().slot_words * 4;
    }
    AKUNU_DEVICE float scale(u32 matrix, const AdapterChoice& of) const {
        return bits_to_float(load_weights4(part(matrix, of.number) + 4)) * of.scale;
    }
    AKUNU_DEVICE const u16* row(u32 rank, u32 number) const {
        const u32 matrix = matrix_of(rank);
        return reinterpret_cast<const u16*>(part(matrix, number) + kAdapterHeadBytes) +
               u64(rank - first_rank(matrix)) * k;
    }
    AKUNU_DEVICE const u16* columns(u32 matrix, u32 number) const {
        return reinterpret_cast<const u16*>(part(matrix, number) + kAdapterHeadBytes +
                                            lora_a_bytes(max_rank(matrix), k));
    }
    // So many words at the end of the command's, which no result reaches.
    AKUNU_DEVICE u64* words(u32 rows) const {
        const u32 end = (number() % kWordBuffers + 1) * kMostWords;
        return in_global(block_state().launch.words + (end - rank_words(ranks(), rows)));
    }
    AKUNU_DEVICE u32 number() const { return block_state().walk[b.slot].number; }

    // What is added to the results of a tile, which begin with `row`, comes to the second-level cache: by kTileRows
    // threads, of which this is the r-th.
    AKUNU_DEVICE void fetch_columns(u32 matrix, u32 of, u32 n, u32 row, u32 r) const {
        const u16* const from = columns(matrix, of) + row;
        for (u32 i = r; i < max_rank(matrix) && n % 8 == 0; i += kTileRows) {
            fetch_line_to_cache(from + u64(i) * n, smaller(kTileRows, n - row) * 2);
        }
    }
};

// A column of B times what A gave, which is in shared memory. The first ranks' numbers are asked for ahead.
struct AddedColumn {
    static constexpr u32 kAhead = 16;
    const u16* column;
    u32 n, rank, sums;
    u16 ahead[kAhead];

    // Of row `row` of a matrix' n results; nothing where there is none.
    AKUNU_DEVICE AddedColumn(const Adapters& of, u32 matrix, u32 number, u32 n, u32 row, u32 sums)
        : column(number != 0 ? of.columns(matrix, number) + row : nullptr),
          n(n),
          rank(number != 0 ? of.max_rank(matrix) : 0),
          sums(sums + of.first_rank(matrix) * 4) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kAhead; ++i) ahead[i] = i < rank ? load_weights2(column + u64(i) * n) : u16(0);
    }
    AKUNU_DEVICE float sum() const {
        float out = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kAhead; ++i) {
            if (i < rank) out += half_to_float(ahead[i]) * shared_at<const float>(sums + i * 4);
        }
        AKUNU_UNROLL_EIGHT
        for (u32 i = kAhead; i < rank; ++i) {
            out += half_to_float(load_weights2(column + u64(i) * n)) * shared_at<const float>(sums + i * 4);
        }
        return out;
    }
};

// One row's inputs, as a thread has staged them for products of kind T, times a row of A. What is asked for before the
// inputs are there are the first pieces of that row.
template <typename T>
struct StagedProduct {
    static constexpr u32 kEach = 4, kApart = kThreads * kEach, kAhead = 4;
    const u16* row;
    u32 inputs, thread;
    uint2 ahead[kAhead];

    AKUNU_DEVICE StagedProduct(const u16* row, u32 inputs, u32 thread) : row(row), inputs(inputs), thread(thread) {
        if (thread == 0 && inputs > kAhead * kApart) {
            fetch_to_cache(row + kAhead * kApart, (inputs - kAhead * kApart) * 2);
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAhead; ++j) {
            const u32 i = thread * kEach + j * kApart;
            ahead[j] = i < inputs ? load(i) : uint2{0, 0};
        }
    }
    AKUNU_DEVICE uint2 load(u32 i) const { return *reinterpret_cast<const uint2*>(row + i); }
    // Of inputs i to i + 3.
    static AKUNU_DEVICE float product(const TileMemory& m, u32 k, u32 i, const uint2& a) {
        float x[4];
        staged_values<T>(m, k, i, x);
        return (low_half(a.x) * x[0] + high_half(a.x) * x[1]) + (low_half(a.y) * x[2] + high_half(a.y) * x[3]);
    }
    AKUNU_DEVICE float share(const TileMemory& m, u32 k) const {
        float sum = 0.0f;
        AKUNU_UNROLL
        for (u32 j = 0; j < kAhead; ++j) {
            const u32 i = thread * kEach + j * kApart;
            if (i < inputs) sum += product(m, k, i, ahead[j]);
        }
        AKUNU_UNROLL_TWICE
        for (u32 i = thread * kEach + kAhead * kApart; i < inputs; i += kApart) sum += product(m, k, i, load(i));
        return sum;
    }
};

// The ranks that a block has of one row begin with those of blocks that have a tile less than others.
AKUNU_DEVICE u32 first_rank_of_block(const TileJob& job) { return share_place(job.pairs, job.k, 0); }

// What A gives of one row: each warp leaves its part.
template <typename T>
AKUNU_DEVICE void leave_rank_sums(const Adapters& of, const TileMemory& m, u32 k, u32 number, u32 rank,
                                  StagedProduct<T> row) {
    const u32 ranks = of.ranks(), thread = row.thread;
    while (any_of_warp(rank < ranks)) {
        const float sum = reduce_warp(row.share(m, k), Add());
        if (thread % 32 == 0) leave_word(of.words(1) + rank * kWarps + thread / 32, float_to_bits(sum), of.number());
        rank += grid_blocks();
        if (any_of_warp(rank < ranks)) row = StagedProduct<T>(of.row(rank, number), of.k, thread);
    }
}
AKUNU_DEVICE void take_rank_sums(const Adapters& of, const AdapterChoice& choice, u32 to, u32 thread) {
    constexpr u32 kEach = kWarps / 2;  // lanes that have a rank's words, two each
    const u32 all = of.ranks() * kEach, lane = thread % 32;
    for (u32 i = thread; i - lane < all; i += kThreads) {
        const u32 at = smaller(i, all - 1);
        const float scale = of.scale(of.matrix_of(at / kEach), choice);
        u64 w[2];
        wait_for_words([&] {
            load_words(of.words(1) + 2 * at, w);
            return number_of(w[0]) == of.number() && number_of(w[1]) == of.number();
        });
        float sum = bits_to_float(value_of(w[0])) + bits_to_float(value_of(w[1]));
        AKUNU_UNROLL
        for (u32 mask = 1; mask < kEach; mask *= 2) sum += shuffle_xor(sum, mask);
        if (i < all && lane % kEach == 0) shared_at<float>(to + i / kEach * 4) = sum * scale;
    }
}

// What A gives of a few rows, [row][rank]: a row of A, or none, and what its product with a row's inputs counts.
struct RankUnit {
    const u16* row;
    float scale;
};
AKUNU_DEVICE RankUnit rank_unit(const Adapters& of, u32 rows, u32 unit) {
    const u32 ranks = of.ranks();
    if (unit >= rows * ranks) return {nullptr, 0.0f};
    const AdapterChoice choice = of.of_row(unit / ranks);
    if (choice.number == 0) return {nullptr, 0.0f};
    return {of.row(unit % ranks, choice.number), of.scale(of.matrix_of(unit % ranks), choice)};
}
// A block computes one at a time, of which the first is `first`.
AKUNU_DEVICE void leave_sums_of_rows(const Adapters& of, const u16* x, u32 rows, const RankUnit& first) {
    const u32 ranks = of.ranks(), all = rows * ranks;
    RankUnit unit = first;
    for (u32 u = of.b.first(); u < all; u += of.b.blocks()) {
        const RankUnit next = rank_unit(of, rows, u + of.b.blocks());
        float sum = 0.0f;
        if (any_of_warp(unit.row != nullptr)) {
            const u8* const inputs = reinterpret_cast<const u8*>(x + u64(u / ranks) * of.k);
            sum = reduce_block(of.b, share_of_product(of.k, true, unit.row, inputs), Add()) * unit.scale;
        }
        if (thread_id() == 0) leave_word(of.words(rows) + u, float_to_bits(sum), of.number());
        unit = next;
    }
}
// And behind them each row's number.
AKUNU_DEVICE void take_sums_of_rows(const Adapters& of, u32 rows, u32 to) {
    const u32 all = rows * of.ranks(), pairs = (all + 1) / 2;
    if (const u32 m = thread_id(); m < rows) shared_at<u32>(to + (all + m) * 4) = of.of_row(m).number;
    for (u32 i = thread_id(); i - lane_id() < pairs; i += kThreads) {
        const u32 at = smaller(i, pairs - 1);
        u64 w[2];
        wait_for_words([&] {
            load_words(of.words(rows) + 2 * at, w);
            return number_of(w[0]) == of.number() && (2 * at + 1 == all || number_of(w[1]) == of.number());
        });
        shared_at<float>(to + 2 * at * 4) = bits_to_float(value_of(w[0]));
        if (2 * at + 1 != all) shared_at<float>(to + (2 * at + 1) * 4) = bits_to_float(value_of(w[1]));
    }
}

// What adapters add to a few rows' results, each of which may have one of its own.
struct FewAdapters {
    Adapters of;
    u32 rows, n;

    AKUNU_DEVICE FewAdapters(Block b, const TileJob& job, u32 rows) : of{b, job.inputs()}, rows(rows), n(job.rows[0]) {}
    // Of shared memory, which begins at `sums`.
    AKUNU_DEVICE u32 bytes() const { return rank_bytes(of.ranks(), rows); }
    // What a block multiplies and adds first comes to the second-level cache, before it waits for the input.
    AKUNU_DEVICE RankUnit ask(const TileJob& job) const {
        const RankUnit first = rank_unit(of, rows, of.b.first());
        if (thread_id() == 0 && first.row != nullptr) fetch_to_cache(first.row, of.k * 2);
        const u32 end = smaller(job.end, job.begin + few_pass(kSizes, job.pairs)), r = thread_id() % kTileRows;
        for (u32 m = thread_id() / kTileRows; m < rows; m += kThreads / kTileRows) {
            const u32 number = of.of_row(m).number, before = m != 0 ? of.of_row(m - 1).number : 0;
            if (number == 0 || number == before) continue;
            for (u32 tile = job.begin; tile < end; ++tile) {
                for (u32 i = 0; i <= job.pairs; ++i) of.fetch_columns(i, number, n, tile * kTileRows, r);
            }
        }
        return first;
    }
    AKUNU_DEVICE void leave(const u16* x, const RankUnit& first) const { leave_sums_of_rows(of, x, rows, first); }
    AKUNU_DEVICE void take(u32 sums) const { take_sums_of_rows(of, rows, sums); }
    // A row's sum of a matrix, with what is added to it.
    AKUNU_DEVICE float add(float v, u32 matrix, u32 m, u32 row, u32 sums) const {
        const u32 ranks = of.ranks(), number = shared_at<const u32>(sums + (rows * ranks + m) * 4);
        return number == 0 ? v : v + AddedColumn(of, matrix, number, n, row, sums + m * ranks * 4).sum();
    }
};

#endif

// The same of rows that have none.
struct NoAdapters {
    AKUNU_DEVICE NoAdapters(Block, const TileJob&, u32) {}
    AKUNU_DEVICE u32 bytes() const { return 0; }
    struct Nothing {};
    AKUNU_DEVICE Nothing ask(const TileJob&) const { return {}; }
    AKUNU_DEVICE void leave(const u16*, const Nothing&) const {}
    AKUNU_DEVICE void take(u32) const {}
    AKUNU_DEVICE float add(float v, u32, u32, u32, u32) const { return v; }
};

}  // namespace akunu::cuda
