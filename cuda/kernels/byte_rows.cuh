// Two to kByteRows rows times codes on the tensor cores, tile by tile as they come through the ring, one or two tiles
// at once: the steps of the tiles' inputs are dealt to the warps, which leave their sums in shared memory, where a
// thread for each result adds them up. The inputs may be F32 that are to be normalised, and the weights up to three
// matrices, as those of one row (row_tiles.cuh); a job says which.
#pragma once

#include "adapters.cuh"
#include "byte_inputs.cuh"
#include "row_tiles.cuh"

namespace akunu::cuda {

// Where a result of row m that is an F32 goes.
AKUNU_DEVICE float& result_at(const TileJob& job, const TileRow& at, u32 m) {
    const u32 stride = job.stride != 0 ? job.stride : job.rows[at.matrix];
    return in_global(reinterpret_cast<float*>(job.y[at.matrix]))[u64(m) * stride + at.row];
}
// What it is added to.
AKUNU_DEVICE float result_base(const TileJob& job, const TileRow& at, u32 m) {
    return job.adds && at.there ? result_at(job, at, m) : 0.0f;
}
// Stores a row's result; of gate and up `v` and `up`. The words of these are those of two results each, by the lane of
// the first.
AKUNU_DEVICE void store_result(const TileJob& job, const TileRow& at, u32 m, float v, float up, float base) {
    u64* const words = job.words[at.matrix];
    const u32 place = m * job.rows[at.matrix] + at.row;
    if (job.pairs) {
        const float y = activate(job.activation, v) * up;
        const u32 halves = pack_halves(y, shuffle_xor(y, 1));
        if (at.there && words != nullptr && place % 2 == 0) leave_word(words + place / 2, halves, job.number);
        const Output out{in_global(reinterpret_cast<float*>(job.y[0])), in_global(reinterpret_cast<u16*>(job.y[1])),
                         job.formats};
        if (at.there) out.store(place, y);
        return;
    }
    if (!at.there) return;
    const float* const bias = in_global(reinterpret_cast<const float*>(job.bias[at.matrix]));
    const float result = base + soft_capped(v + (job.bias[at.matrix] != 0 ? bias[at.row] : 0.0f), job.cap);
    if (words != nullptr) leave_word(words + place, float_to_bits(result), job.number);
    result_at(job, at, m) = result;
}

// A warp's sums of a tile, two of each lane: of rows g and g + 8 of the weights and row t of the inputs.
AKUNU_DEVICE float2& lane_pair(u32 sums, u32 tile, u32 warp, u32 lane) {
    return shared_at<float2>(sums + tile * kByteTileSums + (warp * 32 + lane) * 8);
}
// All warps' sums of row r of a tile and row m of the inputs.
AKUNU_DEVICE float sum_of_bytes(u32 sums, u32 tile, u32 m, u32 r) {
    const u32 at = sums + tile * kByteTileSums + (r % 8 * 4 + m) * 8 + r / 8 * 4;
    float v[kWarps];
    AKUNU_UNROLL
    for (u32 w = 0; w < kWarps; ++w) v[w] = shared_at<const float>(at + w * 256);
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// By all threads, for each row of n tiles, the i-th of which is tile_of(i), and each row m of the inputs:
// f(i, m, r, at, round). `at.there` says whether it is one of them, since all lanes of a warp come as often.
template <typename TileOf, typename F>
AKUNU_DEVICE void each_result(const TileJob& job, u32 rows, u32 n, const TileOf& tile_of, const F& f) {
    const u32 r = thread_id() % kTileRows, rounds = (rows * n * kTileRows + kThreads - 1) / kThreads;
    u32 i = 0, m = thread_id() / kTileRows;
    for (u32 round = 0; round < rounds; ++round) {
        for (; m >= rows; m -= rows) ++i;
        const u32 of = smaller(i, n - 1);
        TileRow at = tile_row(job, tile_of(of), r);
        at.there &= i < n;
        f(of, m, r, at, round);
        m += kThreads / kTileRows;
    }
}

// A thread's first results are added to what was asked for ahead.
struct FirstBase {
    float of;
    template <typename TileOf>
    AKUNU_DEVICE FirstBase(const TileJob& job, u32 rows, u32 n, const TileOf& tile_of) : of(0.0f) {
        if (!job.adds) return;
        u32 i = 0, m = thread_id() / kTileRows;
        for (; m >= rows; m -= rows) ++i;
        if (i < n) of = result_base(job, tile_row(job, tile_of(i), thread_id() % kTileRows), m);
    }
    AKUNU_DEVICE float get(const TileJob& job, const TileRow& at, u32 m, bool is_first) const {
        return is_first ? of : result_base(job, at, m);
    }
};

// What blocks leave of a tile, each the sums of its part of the inputs: as words, of [part][row m][row r].
AKUNU_DEVICE u64* split_words(const TileJob& job, u32 tile, u32 part) {
    u64* const all = block_state().launch.words + kWordBuffers * kMostWords + job.number % kWordBuffers * kSplitWords;
    return in_global(all + (tile * job.split + part) * (kByteRows * kTileRows));
}

// The results of a pass: of some tiles, or of pairs, from `first` to `behind`; or a part of each.
template <typename Added>
AKUNU_DEVICE void store_byte_tiles(const TileJob& job, u32 rows, u32 first, u32 behind, u32 sums, const Added& adapters,
                                   u32 added, const FirstBase& base) {
    const auto tile_of = [&](u32 i) { return first + i; };
    each_result(job, rows, behind - first, tile_of, [&](u32 i, u32 m, u32 r, const TileRow& at, u32 round) {
        const float norm = row_norm(job, m);
        const auto result = [&](u32 of, u32 matrix) {
            const float v = job.factor[matrix] * norm * sum_of_bytes(sums, of, m, r);
            return at.there ? adapters.add(v, matrix, m, at.row, added) : 0.0f;
        };
        const u32 of = i << job.pairs;
        const float v = result(of, at.matrix);
        if (job.split > 1) {
            u64* const word = split_words(job, tile_of(i), job.part) + m * kTileRows + r;
            if (at.there) leave_word(word, float_to_bits(v), job.number);
            return;
        }
        const bool is_first = first == job.begin && round == 0;
        store_result(job, at, m, v, job.pairs ? result(of + 1, 1) : 0.0f, base.get(job, at, m, is_first));
    });
}

// Tiles whose inputs are dealt to several blocks are dealt to these in turn, to be added up, in the order of the parts.
struct OwnTiles {
    u32 first, apart, n;
    AKUNU_DEVICE explicit OwnTiles(const TileJob& job) : first(job.begin + job.part), apart(job.split), n(0) {
        if (first < job.end) n = (job.end - first + apart - 1) / apart;
    }
    AKUNU_DEVICE u32 operator()(u32 i) const { return first + i * apart; }
};
AKUNU_DEVICE void join_byte_tiles(const TileJob& job, u32 rows, const OwnTiles& own, const FirstBase& base) {
    each_result(job, rows, own.n, own, [&](u32 i, u32 m, u32 r, const TileRow& at, u32 round) {
        const u64* const words = split_words(job, own(i), 0) + m * kTileRows + r;
        u64 w[kMostSplit];
        wait_for_words([&] {
            bool all = true;
            AKUNU_UNROLL
            for (u32 part = 0; part < kMostSplit; ++part) {
                w[part] = 0;
                if (!at.there || part >= job.split) continue;
                w[part] = load_word(words + part * (kByteRows * kTileRows));
                all &= number_of(w[part]) == job.number;
            }
            return all;
        });
        const auto sum = [&](u32 part) { return bits_to_float(value_of(w[part])); };
        store_result(job, at, m, (sum(0) + sum(1)) + (sum(2) + sum(3)), 0.0f, base.get(job, at, m, round == 0));
    });
}

// How a warp multiplies a chunk of a block's inputs with tiles, which come through the ring.
template <u32 kReader>
struct ByteProducts {
    using T = ByteColumns<kReader>;
    static constexpr TileLayout kLayout = tile_layout(kReader);
    u32 lane, warp, sums, slot_steps;
    ByteColumn<T::kPieces> column;
    typename T::At place;
    RingReader ring;

    // `longest`: inputs of a part. All of a warp's steps are the same ones of their units: warps, chunks and turns are
    // even.
    AKUNU_DEVICE ByteProducts(const ByteMemory& m, u32 rows, u32 longest, u32 sums)
        : lane(lane_id()),
          warp(warp_id()),
          sums(sums),
          slot_steps(byte_slot_units(kSizes, kLayout, longest) * kLayout.steps()),
          column(m, rows, lane),
          place(T::at(lane, warp % kLayout.steps())),
          ring(warp) {}

    // Adds so many steps' products of tiles whose slots come in turn: of every eight the warp has the one that `turn`
    // says.
    template <u32 kTiles>
    AKUNU_DEVICE void add(u32 steps, u32 turn, float (&sum)[kTiles][2]) {
        for (u32 from = 0; from < steps; from += slot_steps) {
            const u32 behind = smaller(from + slot_steps, steps);
            u32 slot[kTiles];
            u64* const first_full = ring.full();
            slot[0] = ring.wait();
            if constexpr (kTiles == 2) {
                ring.at.advance(ring.slots);
                slot[1] = ring.wait();
            }
            for (u32 step = from + (turn - from) % kWarps; step < behind; step += kWarps) {
                const ByteStep<T::kPieces> in(column, step);
                const u32 unit = (step - from) / kLayout.steps() * kLayout.unit_bytes();
                AKUNU_UNROLL
                for (u32 i = 0; i < kTiles; ++i) T::add(slot[i] + unit, place, in, sum[i]);
            }
            if constexpr (kTiles == 2) {
                ring.free_two(lane, first_full);
            } else {
                ring.free(lane);
            }
        }
    }

    // The i-th tiles of a pass, whose sums stay in shared memory. In the first chunk there are none, and where `waits`
    // those that lie there may not have been added up yet.
    template <u32 kTiles>
    AKUNU_DEVICE void multiply(u32 i, u32 steps, bool is_first_chunk, bool waits) {
        float sum[kTiles][2];
        AKUNU_UNROLL
        for (u32 t = 0; t < kTiles; ++t) {
            const float2 before = is_first_chunk ? float2{0.0f, 0.0f} : lane_pair(sums, i + t, warp, lane);
            sum[t][0] = before.x, sum[t][1] = before.y;
        }
        // Where a row's steps do not come out even, other warps have one more of the next tiles.
        add<kTiles>(steps, warp - i / kSizes.byte_tiles * steps, sum);
        if (waits && is_first_chunk && i == 0) sync_block();
        AKUNU_UNROLL
        for (u32 t = 0; t < kTiles; ++t) lane_pair(sums, i + t, warp, lane) = float2{sum[t][0], sum[t][1]};
    }
    AKUNU_DEVICE void multiply_pass(u32 tiles, u32 steps, bool is_first_chunk, bool waits) {
        u32 i = 0;
        if constexpr (kSizes.byte_tiles == 2) {
            for (; i + 1 < tiles; i += 2) multiply<2>(i, steps, is_first_chunk, waits);
        }
        for (; i < tiles; ++i) multiply<1>(i, steps, is_first_chunk, waits);
    }
};

// A block's share of a job's tiles. The first job of a command stages the inputs for the second, too, where a chunk has
// all of them.
template <u32 kReader, typename Added>
AKUNU_DEVICE_CALL void byte_rows(Block b, u32 second) {
    const TileJob& job = b.job(second);
    const u32 rows = same_in_warp(ring_rows(b.command())), pass = byte_pass(kSizes, job.pairs);
    const u32 begin = split_begin(job.k, job.split, job.part), end = split_begin(job.k, job.split, job.part + 1);
    const u32 longest = longest_part(job.k, job.split);
    const ByteMemory m(longest, rows);
    const Added adapters(b, job, rows);
    const u32 sums = m.behind + adapters.bytes();
    ByteProducts<kReader> products(m, rows, longest, sums);
    const bool has_first = second && b.job(0).begin != b.job(0).end;
    u32 staged = has_first && m.chunk >= end ? begin : end;  // from which input on; `end`: none are
    const auto first_unit = adapters.ask(job);
    if (!second) b.wait();
    adapters.leave(b.buffer<u16>(0), first_unit);
    const OwnTiles own(job);
    const FirstBase base(job, rows, own.n, own);
    for (u32 first = job.begin; first < job.end; first += pass) {
        const u32 behind = smaller(first + pass, job.end);
        for (u32 k0 = begin; k0 < end; k0 += m.chunk) {
            const u32 k1 = smaller(k0 + m.chunk, end);
            if (k0 != staged) {
                if (staged != end || second) sync_block();  // what is there has been read
                job.normed ? stage_bytes<true>(b, m, rows, job.inputs(), k0, k1)
                           : stage_bytes<false>(b, m, rows, job.inputs(), k0, k1);
                sync_block();
                staged = k0;
            }
            products.multiply_pass((behind - first) << job.pairs, (k1 - k0) / kStepInputs, k0 == begin,
                                   first != job.begin || has_first);
        }
        if (first == job.begin) adapters.take(m.behind);
        sync_block();
        store_byte_tiles(job, rows, first, behind, sums, adapters, m.behind, base);
    }
    if (job.split > 1 && own.n != 0) join_byte_tiles(job, rows, own, base);
    products.ring.keep(products.warp, products.lane);
}

}  // namespace akunu::cuda
