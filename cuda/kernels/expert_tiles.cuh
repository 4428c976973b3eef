// Tiles of the products with experts' weights: rows sorted by expert in a block's shared memory, and the products of an
// expert's rows and weights on the tensor cores.
#pragma once

#include "halves.cuh"
#include "tokens.cuh"

namespace akunu::cuda {

// Tiles of kM choices of one expert by kN of its rows, by kWarpsM x kWarpsN warps, kK inputs at a time, weights and
// inputs as F16: two stages, one of which is filled while the other is multiplied.
template <u32 kRows>
struct ExpertTile {
    static constexpr u32 kM = kRows, kN = 64, kK = 128, kWarpsM = 2, kWarpsN = kWarps / kWarpsM;
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    static constexpr u32 kRowBytes = (kK + 8) * 2;  // rows begin in other banks
    static constexpr u32 kInputBytes = kM * kRowBytes, kStageBytes = (kM + kN) * kRowBytes;
    static constexpr u32 kVectors = kM * kK / 8 / kThreads;
    static_assert(kN * kK / 32 == kThreads, "a thread has one group of weights");
    static_assert(kVectors * kThreads * 8 == kM * kK, "threads copy whole pieces of inputs");
    static_assert(kFragmentsN == 2, "one load has a warp's weights");
};
using SmallExpertTile = ExpertTile<32>;
using LargeExpertTile = ExpertTile<64>;

// Weights of experts as F16. Those of floats are read in any layout, one that is copied as it lies elsewhere, too.
template <typename F>
struct ExpertHalves : Halves<F> {};
template <>
struct ExpertHalves<Format<kReadF16>> : GroupHalves<Format<kReadF16>> {};
template <>
struct ExpertHalves<Format<kReadBf16>> : GroupHalves<Format<kReadBf16>> {};
template <>
struct ExpertHalves<Format<kReadMxfp4>> : TiledHalves<kReadMxfp4> {
    struct Raw : Pieces<1> {
        u32 exponent;
    };
    static AKUNU_DEVICE Place place(const Weights& w, u32 row) {
        if (in_tiles(kReadMxfp4, w.cols)) return TiledHalves::place(w, row);
        const u64 first = block32(w, row, 0);  // rows are no whole units
        return {w.codes + first * 16, w.extras + first};
    }
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = piece(cols, p, group);
        r.exponent = load_weights1(in_tiles(kReadMxfp4, cols) ? extras(cols, p, group) + group % 4 : p.extras + group);
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        const u32 scale = twice(2.0f * e8m0_half(r.exponent));
        AKUNU_UNROLL
        for (u32 i = 0; i < 8; ++i) {
            const u32 two = two_bytes(r.word(i / 2), i % 2);
            h[i] = multiply_halves(low_e2m1(two), scale);
            h[8 + i] = multiply_halves(high_e2m1(two), scale);
        }
    }
};

// Choices of some rows, sorted by expert, and the tiles that they become, in shared memory behind the stages.
struct ChosenTiles {
    static constexpr u32 kAt = 2 * LargeExpertTile::kStageBytes;
    static constexpr u32 kMostTiles = kMostTileChoices / SmallExpertTile::kM + kMostExperts + 1;
    u32 *ends, *tiles;  // of experts; an expert each, and which part of its choices
    u16* choices;
    AKUNU_DEVICE explicit ChosenTiles(Block b)
        : ends(reinterpret_cast<u32*>(b.shared() + kAt)),
          tiles(ends + kMostExperts),
          choices(reinterpret_cast<u16*>(tiles + kMostTiles)) {}
    static_assert(kAt + (kMostExperts + kMostTiles) * 4 + kMostTileChoices * 2 <= kManyRowsBytes, "there is room");

    // Returns how many tiles there are, of up to `rows` choices. All blocks find the same order, that of the choices:
    // each takes other parts of it. A warp sorts a part of the choices; how many of each expert the warps before it
    // have is where the stages will be.
    AKUNU_DEVICE u32 sort(Block b, const u32* ids, u32 n, u32 experts, u32 rows) const {
        static_assert(kWarps * kMostExperts * 4 <= kAt, "there is room");
        u32* const cursors = reinterpret_cast<u32*>(b.shared());  // [warp][expert]
        u32* const mine = cursors + warp_id() * experts;
        u32& all = tiles[kMostTiles - 1];
        const u32 each = rounded_up((n + kWarps - 1) / kWarps, 32), begin = smaller(warp_id() * each, n),
                  end = smaller(begin + each, n);
        sync_block();
        for (u32 i = thread_id(); i < kWarps * experts; i += kThreads) cursors[i] = 0;
        sync_block();
        for (u32 i = begin + lane_id(); i < end; i += 32) atomic_add(mine + smaller(ids[i], experts - 1), 1u);
        sync_block();
        if (warp_id() == 0) place(cursors, experts, rows, all);
        sync_block();
        for (u32 first = begin; first < end; first += 32) {
            const u32 i = first + lane_id(), id = i < end ? smaller(ids[i], experts - 1) : u32(kMostExperts);
            // Lanes with the same expert.
            u32 peers = ~0u;
            for (u32 bit = 1; bit <= kMostExperts; bit *= 2) {
                const u32 have = vote((id & bit) != 0);
                peers &= id & bit ? have : ~have;
            }
            const u32 before = ones_in(peers & ((1u << lane_id()) - 1));
            if (i < end) choices[mine[id] + before] = u16(i);
            sync_warp();
            if (i < end && before == 0) mine[id] += ones_in(peers);
            sync_warp();
        }
        sync_block();
        return all;
    }
    // By a warp, from how many choices of each expert the warps have: where these go, and the tiles; 32 experts at a
    // time.
    AKUNU_DEVICE void place(u32* cursors, u32 experts, u32 rows, u32& all) const {
        u32 begin = 0, n_tiles = 0;
        for (u32 first = 0; first < experts; first += 32) {
            const u32 e = first + lane_id();
            u32 count = 0;
            for (u32 w = 0; e < experts && w < kWarps; ++w) count += cursors[w * experts + e];
            const u32 parts = (count + rows - 1) / rows;
            const u64 both = u64(parts) << 32 | count, before = sum_before(both), sum = reduce_warp(both, Add());
            u32 at = begin + u32(before);
            for (u32 w = 0; e < experts && w < kWarps; ++w) {
                const u32 of_warp = cursors[w * experts + e];
                cursors[w * experts + e] = at;
                at += of_warp;
            }
            if (e < experts) ends[e] = at;
            for (u32 i = 0; i < parts; ++i) tiles[n_tiles + u32(before >> 32) + i] = e | i << 16;
            begin += u32(sum);
            n_tiles += u32(sum >> 32);
        }
        if (lane_id() == 0) all = n_tiles;
    }
    // Of lanes before this one.
    AKUNU_DEVICE static u64 sum_before(u64 v) {
        u64 before = 0, block = v;
        AKUNU_UNROLL
        for (u32 mask = 1; mask < 32; mask *= 2) {
            const u64 other = shuffle_xor(block, mask);
            if (lane_id() & mask) before += other;
            block += other;
        }
        return before;
    }
};

// What a tile is: of which expert, and which of the sorted choices.
struct ExpertPart {
    u32 id, first, rows;
    AKUNU_DEVICE ExpertPart(const ChosenTiles& all, u32 tile, u32 most) {
        const u32 v = all.tiles[tile];
        id = v & 0xFFFF;
        const u32 begin = id == 0 ? 0 : all.ends[id - 1];
        first = begin + (v >> 16) * most;
        rows = smaller(most, all.ends[id] - first);
    }
};

// The products of a tile. What a thread has of a step's weights is asked for kAhead steps before it is needed, its
// inputs one, so that the memory's time passes while others are multiplied. Inputs are halves, or floats that are
// rounded to such.
template <typename F, typename T, typename X>
struct ExpertProducts {
    using W = ExpertHalves<F>;
    static constexpr u32 kAhead = sizeof(typename W::Raw) <= 64 ? 2 : 1;
    u32 k;
    const X* rows[T::kVectors];  // of whose inputs a thread copies a piece
    bool aligned;                // pieces are multiples of 16 bytes
    typename W::Place place;
    typename W::Raw raw[kAhead];
    u32 k0 = 0, stage = 0;
    float all[T::kFragmentsM][T::kFragmentsN][4] = {};

    AKUNU_DEVICE static u32 group() { return thread_id() % (T::kK / 32); }
    AKUNU_DEVICE static u32 at(u32 stage) { return kSharedHead + stage * T::kStageBytes; }

    // Groups behind the last one, for which there are others, meet inputs that are 0.
    AKUNU_DEVICE void fetch(u32 from, typename W::Raw& to) const {
        to = W::fetch(k, place, smaller(from / 32 + group(), (k - 1) / 32));
    }
    AKUNU_DEVICE void copy_inputs(u32 from, u32 to) const {
        const u32 piece = thread_id() % (T::kK / 8), column = from + piece * 8;
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kVectors; ++i) {
            const u32 m = (i * kThreads + thread_id()) / (T::kK / 8);
            u8* const there = shared_memory() + at(to) + m * T::kRowBytes + piece * 16;
            if constexpr (sizeof(X) == 4) {
                *reinterpret_cast<uint4*>(there) = rounded8(rows[i], column);
            } else if (aligned) {
                copy_async16(there, rows[i] + (column < k ? column : 0), column < k);
            } else {
                *reinterpret_cast<uint4*>(there) = load_halves8(rows[i], column, k);
            }
        }
    }
    AKUNU_DEVICE uint4 rounded8(const float* row, u32 at) const {
        float v[8] = {};
        if (aligned && at < k) {
            const float4 a = reinterpret_cast<const float4*>(row + at)[0],
                         b = reinterpret_cast<const float4*>(row + at)[1];
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        } else {
            for (u32 i = 0; i < 8; ++i) v[i] = at + i < k ? row[at + i] : 0.0f;
        }
        return {pack_halves(v[0], v[1]), pack_halves(v[2], v[3]), pack_halves(v[4], v[5]), pack_halves(v[6], v[7])};
    }
    AKUNU_DEVICE void put_weights(const typename W::Raw& from) const {
        u32 h[16];
        W::convert(from, k0 / 32 + group(), h);
        u8* to =
            shared_memory() + at(stage) + T::kInputBytes + thread_id() / (T::kK / 32) * T::kRowBytes + group() * 64;
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            *reinterpret_cast<uint4*>(to + 16 * i) = uint4{h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3]};
        }
    }
    AKUNU_DEVICE void multiply() {
        const u32 lane = lane_id(), m0 = T::kM / T::kWarpsM * (warp_id() / T::kWarpsN),
                  n0 = T::kN / T::kWarpsN * (warp_id() % T::kWarpsN);
        const u32 inputs = at(stage) + (m0 + lane % 16) * T::kRowBytes + lane / 16 * 16;
        const u32 weights =
            at(stage) + T::kInputBytes + (n0 + lane / 16 * 8 + lane % 8) * T::kRowBytes + lane / 8 % 2 * 16;
        float sum[T::kFragmentsM][T::kFragmentsN][4] = {};  // tensor cores truncate what they add up
        AKUNU_UNROLL
        for (u32 s = 0; s < T::kK / 16; ++s) {
            u32 w[4], x[T::kFragmentsM][4];
            load_matrices(w, weights + s * 32);
            AKUNU_UNROLL
            for (u32 i = 0; i < T::kFragmentsM; ++i) load_matrices(x[i], inputs + i * 16 * T::kRowBytes + s * 32);
            AKUNU_UNROLL
            for (u32 i = 0; i < T::kFragmentsM; ++i) {
                AKUNU_UNROLL
                for (u32 j = 0; j < T::kFragmentsN; ++j) mma_f16(sum[i][j], x[i], {w[2 * j], w[2 * j + 1]});
            }
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kFragmentsM; ++i) {
            AKUNU_UNROLL
            for (u32 j = 0; j < T::kFragmentsN; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) all[i][j][e] += sum[i][j][e];
            }
        }
    }
    // False: it was the last one. A stage is filled again behind the next step's barrier, when all have read it.
    AKUNU_DEVICE bool step(typename W::Raw& mine) {
        put_weights(mine);
        wait_for_copies();
        sync_block();
        if (k0 + T::kK < k) copy_inputs(k0 + T::kK, 1 - stage);
        if (k0 + kAhead * T::kK < k) fetch(k0 + kAhead * T::kK, mine);
        multiply();
        stage = 1 - stage;
        k0 += T::kK;
        return k0 < k;
    }
    AKUNU_DEVICE void run() {
        AKUNU_UNROLL
        for (u32 i = 0; i < kAhead; ++i) fetch(i * T::kK, raw[i]);
        sync_block();
        copy_inputs(0, 0);
        while (step(raw[0])) {
            if constexpr (kAhead == 2) {
                if (!step(raw[1])) break;
            }
        }
    }
};

// `input(m)` is where row m of the tile is; `weight_row(r, w)` says which matrix row r of the tile's weights is of, and
// which of its rows, another one where there is none; `store(m, r, a, b)` takes the results of row m and the weights'
// rows r and r + 1.
template <typename F, typename T, typename X = u16, typename Input, typename WeightRow, typename Store>
AKUNU_DEVICE void expert_tile(u32 k, Input&& input, WeightRow&& weight_row, Store&& store) {
    ExpertProducts<F, T, X> products;
    products.k = k;
    products.aligned = k % 8 == 0;
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kVectors; ++i) {
        products.rows[i] = input((i * kThreads + thread_id()) / (T::kK / 8));
        products.aligned &= reinterpret_cast<u64>(products.rows[i]) % 16 == 0;
    }
    Weights w;
    const u32 row = weight_row(thread_id() / (T::kK / 32), w);
    products.place = ExpertHalves<F>::place(w, row);
    products.run();
    const u32 m0 = T::kM / T::kWarpsM * (warp_id() / T::kWarpsN) + lane_id() / 4;
    const u32 n0 = T::kN / T::kWarpsN * (warp_id() % T::kWarpsN) + 2 * (lane_id() % 4);
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kFragmentsM; ++i) {
        AKUNU_UNROLL
        for (u32 j = 0; j < T::kFragmentsN; ++j) {
            const float (&sum)[4] = products.all[i][j];
            store(m0 + i * 16, n0 + j * 8, sum[0], sum[1]);
            store(m0 + i * 16 + 8, n0 + j * 8, sum[2], sum[3]);
        }
    }
}

// Passes over as many rows at once as there is room for: each(first row, rows).
template <typename Each>
AKUNU_DEVICE void each_pass(u32 rows, u32 chosen, Each&& each) {
    const u32 most = kMostTileChoices / chosen;
    for (u32 first = 0; first < rows; first += most) each(first, smaller(most, rows - first));
}

}  // namespace akunu::cuda
