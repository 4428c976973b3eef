// Attention of many rows. Rows of one sequence that follow one another are a run, and so are all that see the same
// sound; long ones are taken by the tensor cores, and so is each whose rows see all of their sequence; others row by
// row.
//
// A block takes a run's query heads of one KV head, or of a part of a large group, 16 of them a warp, and a tile of
// keys at a time, the softmax a running one. Of larger heads two, four or eight warps have the same 16, each a slice of
// the elements: of queries and keys, whose products they add up between them, and of values. Queries, weights, and keys
// and values of Q8_0 are rounded to F16, as is what a matmul takes. Where the cache is F32 they have two parts
// (parts.cuh). The heads of latent attention are one group, and the beginning of a key is its value, so that a tile has
// keys alone.
#pragma once

#include "attention.cuh"
#include "parts.cuh"

namespace akunu::cuda {

constexpr u32 kLongRun = 16;  // rows

// Which rows begin a run, a bit each, in shared memory, of so many rows from one on, which is 0 here. No run goes
// beyond a tile's rows.
struct Runs {
    static constexpr u32 kMost = 3072;  // rows
    static constexpr u32 kAt = kSharedHead + 128;
    static_assert(kAt + kMost / 8 <= kSharedHead + kRunsBytes, "what attention has besides begins behind it");
    u32 from, rows, tile, least;
    AKUNU_DEVICE static u32& word(u32 i) { return *reinterpret_cast<u32*>(shared_memory() + kAt + i * 4); }
    AKUNU_DEVICE static u32& has_short() { return *reinterpret_cast<u32*>(shared_memory() + kSharedHead); }

    // Where all rows of a sequence see the same keys, their positions do not matter.
    AKUNU_DEVICE void find(const Row* all, bool fixed_keys) const {
        const Row* at = all + from;
        sync_block();
        if (thread_id() == 0) has_short() = 0;
        for (u32 i = thread_id(); i < rounded_up(rows, 32); i += kThreads) {
            const Row row = at[smaller(i, rows - 1)], before = at[smaller(larger(i, 1) - 1, rows - 1)];
            const bool begins = i % tile == 0 || i >= rows || row.slot != before.slot ||
                                (!fixed_keys && row.position != before.position + 1);
            const u32 bits = vote(begins);
            if (lane_id() == 0) word(i / 32) = bits;
        }
        sync_block();
        for (u32 i = thread_id(); i < rows; i += kThreads) {
            if (begin(i) == i && !is_long(i, end(i))) has_short() = 1;
        }
        sync_block();
    }
    // Of the run that has row i.
    AKUNU_DEVICE u32 begin(u32 i) const {
        for (;; i = i / 32 * 32 - 1) {
            const u32 bits = word(i / 32) << (31 - i % 32);
            if (bits) return i - leading_zeros(bits);
        }
    }
    AKUNU_DEVICE u32 end(u32 i) const {
        for (++i; i < rows; i = (i / 32 + 1) * 32) {
            const u32 bits = word(i / 32) >> i % 32;
            if (bits) return smaller(i + trailing_zeros(bits), rows);
        }
        return rows;
    }
    AKUNU_DEVICE bool is_long(u32 begin, u32 end) const { return end - begin >= least; }
};

// F16 numbers that a number is, and warps that share 16 rows, each with a slice of the elements.
constexpr u32 parts_of_types(u32 types) { return key_type(types) == kKvF32 || value_type(types) == kKvF32 ? 2 : 1; }
constexpr u32 slices_of(u32 types, u32 dim) {
    if (dim <= 128) return 1;
    return dim >= 512 && parts_of_types(types) == 2 ? 8 : is_latent_dim(dim) ? 4 : dim / 128;
}
// How a block takes heads of up to kDim elements: its warps' slices, the rows of a tile, each a row's query head, and
// its memory: queries, then for each stage keys and values, each in its parts, and what warps add up between them,
// which lies where the keys are, unless these are values, too. Rows have 16-byte pieces, piece p at place p ^ row % 8.
template <u32 kTypes, u32 kDim, u32 kSharing = slices_of(kTypes, kDim)>
struct PromptMemory {
    static constexpr bool kLatent = is_latent_dim(kDim);
    static constexpr u32 kParts = parts_of_types(kTypes), kSlices = kSharing, kPieces = kDim / 8;
    static constexpr u32 kSlice = kDim / kSlices, kValueSlice = kLatent ? kSlice / 5 * 4 : kSlice;
    static constexpr u32 kRows = kWarps / kSlices * 16;
    static constexpr u32 kKeys = kLatent ? 10240 / kDim : kDim <= 128 ? 4096 / kDim : larger(8192 / kParts / kDim, 16);
    static constexpr u32 kKvStages = kTypes == kv_pair(kKvF16, kKvF16) ? 2 : 1;
    static constexpr u32 kRowBytes = kDim * 2, kQueryBytes = kRows * kRowBytes, kPlaneBytes = kKeys * kRowBytes;
    // Whether heads fill rows of products of warpgroups, which want the places of pieces to follow from addresses.
    static constexpr bool kByGroups = kWarpgroups && kDim == 64 && kParts == 1;
    static constexpr u32 kQueries = (kSharedBase + kSharedHead + kRunsBytes + 1023) / 1024 * 1024 - kSharedBase;
    static constexpr u32 kStageAt = kQueries + kParts * kQueryBytes;
    static constexpr u32 kStageBytes = (kLatent ? 1 : 2) * kParts * kPlaneBytes;
    static constexpr u32 kSumsAt = kStageAt + kKvStages * kStageBytes, kSumsBytes = kWarps * kKeys / 8 * 512;
    static_assert(kLatent || kSlices == 1 || kSumsBytes <= kPlaneBytes, "there is room in the keys");
    static constexpr u32 kBytes = kSumsAt + (kLatent ? kSumsBytes : 0) - kSharedHead;
    static_assert(kBytes <= kManyRowsBytes, "the ring begins behind it");
    AKUNU_DEVICE static u32 queries(u32 part = 0) { return kQueries + part * kQueryBytes; }
    AKUNU_DEVICE static u32 keys(u32 stage, u32 part = 0) {
        return kStageAt + stage * kStageBytes + part * kPlaneBytes;
    }
    AKUNU_DEVICE static u32 values(u32 stage, u32 part = 0) { return keys(stage, kLatent ? part : kParts + part); }
    AKUNU_DEVICE static u32 sums(u32 stage) { return kLatent ? kSumsAt : keys(stage); }
    AKUNU_DEVICE static u32 piece(u32 row, u32 p) { return row * kRowBytes + (p ^ row % 8) * 16; }
    // Of a warp: the first of its rows, and its slice.
    AKUNU_DEVICE static u32 first_row() { return warp_id() / kSlices * 16; }
    AKUNU_DEVICE static u32 slice() { return warp_id() % kSlices; }

    // Every second piece of a row, from one on.
    struct Pieces {
        u32 plane, row, first, at;
        AKUNU_DEVICE Pieces(u32 plane, u32 row, u32 first)
            : plane(plane), row(row), first(first), at(plane + piece(row, first)) {}
        AKUNU_DEVICE u32 operator[](u32 i) const {
            return kLatent ? plane + piece(row, first + 2 * i) : at ^ i * 32;  // slices begin at powers of two
        }
    };
};

// Rows [first, end) of one sequence with one part of a group.
struct Run {
    u32 first, end, part, slot, position;
    u32 begin_keys, end_keys;  // that any of them sees
    u32 sequence_end;          // where rows see all of their sequence
    u32 split;                 // which part of a row's keys these are; kNoSplit: all
};
constexpr u32 kNoSplit = ~0u;

// Where the end is of what a row sees at least; null where rows see only what is before them, or all.
AKUNU_DEVICE const u32* end_of_row(Block b, u32 row) {
    return b.params<AttentionParams>().row_ends ? b.buffer<u32>(6) + row : nullptr;
}
// `ends`: what end_of_row says of the row.
AKUNU_DEVICE KeyRange keys_of_row(const AttentionParams& p, u32 position, u32 sequence_end, const u32* ends) {
    if (ends) return {first_key(position, p.window), larger(position + 1, *ends)};
    if (p.fixed_keys || !p.bidirectional) return keys_of_one(p, position);
    return {first_key(position, p.window), p.window ? smaller(sequence_end, position + p.window) : sequence_end};
}

// Loads tiles of keys and values, each thread pieces of a few keys: those of F16 by copies, others through registers,
// where the next tile's are while one is multiplied. Which pages these are in is looked up a tile ahead.
template <u32 kTypes, typename M>
struct KeyTiles {
    static constexpr u32 kPieces = M::kPieces, kEach = M::kKeys * kPieces / kThreads;
    static constexpr bool kCopied = kTypes == kv_pair(kKvF16, kKvF16);
    static_assert(kEach * kThreads == M::kKeys * kPieces, "threads load as many pieces");
    const AttentionParams& p;
    const KvUnit<key_type(kTypes)>& keys;
    const KvUnit<value_type(kTypes)>& values;
    const Run& run;
    u32 pages[kEach];
    CacheQuad<key_type(kTypes)> held_keys[kCopied ? 1 : kEach][2];
    CacheQuad<value_type(kTypes)> held_values[kCopied || M::kLatent ? 1 : kEach][2];

    // Of the tile from position `at` on; those that no row sees are others.
    AKUNU_DEVICE u32 key(u32 i) const { return (i * kThreads + thread_id()) / kPieces; }
    AKUNU_DEVICE u32 piece(u32 i) const { return (i * kThreads + thread_id()) % kPieces; }
    AKUNU_DEVICE u32 position(u32 at, u32 i) const {
        return smaller(larger(at + key(i), run.begin_keys), run.end_keys - 1);
    }
    AKUNU_DEVICE void find(u32 at) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) pages[i] = keys.pages[position(at, i) / kPagePositions];
    }
    AKUNU_DEVICE void fetch(u32 at, u32 stage) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) {
            const u32 row = position(at, i) % kPagePositions;
            if (piece(i) * 8 >= p.head_dim) continue;
            const u64 page = pages[i] * keys.page_bytes;
            if constexpr (kCopied) {
                const u32 from = (row * p.head_dim + piece(i) * 8) * 2, to = M::piece(key(i), piece(i));
                copy_async16(shared_memory() + M::keys(stage) + to, keys.cache + page + from);
                if constexpr (!M::kLatent) {
                    copy_async16(shared_memory() + M::values(stage) + to, values.cache + page + from);
                }
            } else {
                AKUNU_UNROLL
                for (u32 j = 0; j < 2; ++j) {
                    held_keys[i][j] = keys.quad_in(keys.cache + page, row, 2 * piece(i) + j);
                    if constexpr (!M::kLatent) {
                        held_values[i][j] = values.quad_in(values.cache + page, row, 2 * piece(i) + j);
                    }
                }
            }
        }
        if constexpr (kCopied) bundle_copies();
        find(at + M::kKeys);
    }
    // Puts down what registers hold.
    AKUNU_DEVICE void put() const {
        if constexpr (!kCopied) {
            AKUNU_UNROLL
            for (u32 i = 0; i < kEach; ++i) {
                const u32 to = M::piece(key(i), piece(i));
                if (piece(i) * 8 >= p.head_dim) continue;
                store_halves<M::kParts>(M::keys(0) + to, M::kPlaneBytes, held_keys[i][0].value(),
                                        held_keys[i][1].value());
                if constexpr (!M::kLatent) {
                    store_halves<M::kParts>(M::values(0) + to, M::kPlaneBytes, held_values[i][0].value(),
                                            held_values[i][1].value());
                }
            }
        }
    }
};

AKUNU_DEVICE float4 scaled(const float4& v, float by) { return {v.x * by, v.y * by, v.z * by, v.w * by}; }

// Of a warp's 16 rows, of which a lane has two: g and g + 8.
template <typename M>
struct HeadTile {
    static constexpr u32 kColumns = M::kKeys / 8;
    KeyRange seen[2];
    float top[2], sum[2];
    float out[M::kValueSlice / 8][4];

    // Queries times keys, of one part each; of the warp's slice, or of a group's rows.
    AKUNU_DEVICE void multiply(const AttentionParams& p, u32 queries, u32 keys, float (&s)[kColumns][4]) const {
        if constexpr (M::kByGroups) {
            const u32 rows = queries + M::first_row() / 64 * 64 * M::kRowBytes;
            begin_products(s);
            AKUNU_UNROLL
            for (u32 k = 0; k < M::kSlice / 16; ++k) {
                multiply_group(s, matrix_place(rows + k * 32), matrix_place(keys + k * 32));
            }
            end_products();
            return wait_for_products<0>(s);
        }
        const u32 lane = lane_id(), first = M::slice() * (M::kSlice / 8), pieces = (p.head_dim + 15) / 16 * 2;
        const typename M::Pieces query(queries, M::first_row() + lane % 16, first + lane / 16);
        const typename M::Pieces key(keys, lane / 16 * 8 + lane % 8, first + lane / 8 % 2);
        AKUNU_UNROLL
        for (u32 k = 0; k < M::kSlice / 16; ++k) {
            if (first + 2 * k >= pieces) continue;
            u32 a[4], b[kColumns / 2][4];  // all asked for before the first is waited for
            load_matrices(a, query[k]);
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns / 2; ++j) load_matrices(b[j], key[k] + j * 16 * M::kRowBytes);
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) mma_f16(s[j], a, {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
        }
    }

    AKUNU_DEVICE void products(const AttentionParams& p, u32 stage, float (&s)[kColumns][4]) const {
        if constexpr (M::kParts == 2) {
            multiply(p, M::queries(1), M::keys(stage), s);
            multiply(p, M::queries(), M::keys(stage, 1), s);
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) s[j][e] *= 1.0f / kSecondPart;
            }
        }
        multiply(p, M::queries(), M::keys(stage), s);
    }

    // Adds up the products of all slices, by all warps, where the keys were, which no warp needs any more, or beside
    // them. All have the same sums then.
    AKUNU_DEVICE void join(u32 stage, bool has_rows, float (&s)[kColumns][4]) const {
        constexpr u32 kPart = 32 * sizeof(float4);
        const u32 at = M::sums(stage) + lane_id() * sizeof(float4);
        const auto part = [&](u32 warp, u32 j) -> float4& {
            return *reinterpret_cast<float4*>(shared_memory() + at + (warp * kColumns + j) * kPart);
        };
        if (!M::kLatent) sync_block();
        if (has_rows) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) part(warp_id(), j) = float4{s[j][0], s[j][1], s[j][2], s[j][3]};
        }
        sync_block();
        if (!has_rows) return;
        const u32 first = warp_id() / M::kSlices * M::kSlices;
        AKUNU_UNROLL
        for (u32 j = 0; j < kColumns; ++j) {
            float4 all = part(first, j);
            AKUNU_UNROLL
            for (u32 i = 1; i < M::kSlices; ++i) {
                const float4 v = part(first + i, j);
                all = float4{all.x + v.x, all.y + v.y, all.z + v.z, all.w + v.w};
            }
            s[j][0] = all.x, s[j][1] = all.y, s[j][2] = all.z, s[j][3] = all.w;
        }
    }

    // Products become scores; those of keys that a row does not see are -inf.
    AKUNU_DEVICE void mask(const AttentionParams& p, u32 at, float (&s)[kColumns][4]) const {
        if (p.softcap > 0.0f) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) s[j][e] = soft_cap(s[j][e], p.softcap) * kLog2E;
            }
        }
        const bool all =
            at >= larger(seen[0].first, seen[1].first) && at + M::kKeys <= smaller(seen[0].end, seen[1].end);
        if (all_of_warp(all)) return;
        AKUNU_UNROLL
        for (u32 j = 0; j < kColumns; ++j) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) {
                const u32 of = at + 8 * j + 2 * (lane_id() % 4) + e % 2;
                if (of < seen[e / 2].first || of >= seen[e / 2].end) s[j][e] = minus_infinity();
            }
        }
    }

    // Scores, of base 2, become weights, 2^(s - top); what the sums so far are to be multiplied by.
    AKUNU_DEVICE void weigh(float (&s)[kColumns][4], float (&keep)[2]) {
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            // Two at a time, as each would wait for the one before it.
            float most = top[r], other = minus_infinity();
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; j += 2) {
                most = fmaxf(most, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
                other = fmaxf(other, fmaxf(s[j + 1][2 * r], s[j + 1][2 * r + 1]));
            }
            most = fmaxf(most, other);
            most = fmaxf(most, shuffle_xor(most, 1));
            most = fmaxf(most, shuffle_xor(most, 2));
            const float from = most == minus_infinity() ? 0.0f : most;
            keep[r] = power_of_two(top[r] - from);
            top[r] = most;
            float sums[2] = {sum[r] * keep[r], 0.0f};
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 2; ++e) {
                    s[j][2 * r + e] = power_of_two(s[j][2 * r + e] - from);
                    sums[e] += s[j][2 * r + e];
                }
            }
            sum[r] = sums[0] + sums[1];
        }
    }

    AKUNU_DEVICE void add_values_of_group(u32 stage, const u32 (&weights)[kColumns / 2][4], const float (&keep)[2]) {
        float o[M::kSlice / 8][4] = {};
        begin_products(o);
        AKUNU_UNROLL
        for (u32 k = 0; k < kColumns / 2; ++k) {
            multiply_held(o, weights[k], matrix_place(M::values(stage) + k * 16 * M::kRowBytes));
        }
        end_products();
        wait_for_products<0>(o);
        AKUNU_UNROLL
        for (u32 d = 0; d < M::kSlice / 8; ++d) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) out[d][e] = out[d][e] * keep[e / 2] + o[d][e];
        }
    }

    // Each tile's products have sums of their own: tensor cores truncate what they add up, so they add up little.
    AKUNU_DEVICE void add_values(const AttentionParams& p, u32 stage, const float (&s)[kColumns][4],
                                 const float (&keep)[2]) {
        u32 weights[M::kParts][kColumns / 2][4];
        AKUNU_UNROLL
        for (u32 k = 0; k < kColumns / 2; ++k) {
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                const float a = s[2 * k + i / 2][i % 2 * 2], b = s[2 * k + i / 2][i % 2 * 2 + 1];
                weights[0][k][i] = pack_halves(a, b);
                if constexpr (M::kParts == 2) weights[1][k][i] = second_halves(weights[0][k][i], a, b);
            }
        }
        if constexpr (M::kByGroups) return add_values_of_group(stage, weights[0], keep);
        const u32 lane = lane_id(), first = M::slice() * (M::kValueSlice / 8);
        const typename M::Pieces value(M::values(stage), lane % 16, first + lane / 16);
        // Sums of eight elements each that grow side by side: one alone would wait for each product.
        constexpr u32 kSums = M::kParts == 1 ? 4 : 2;
        AKUNU_UNROLL
        for (u32 d = 0; d < M::kValueSlice / 8; d += kSums) {
            if ((first + d) * 8 >= value_dim(p)) continue;
            float o[kSums][4] = {}, second[kSums][4] = {};
            AKUNU_UNROLL
            for (u32 k = 0; k < kColumns / 2; ++k) {
                u32 b[kSums / 2][4];
                const auto load = [&](u32 part) {
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kSums / 2; ++i) {
                        load_matrices_transposed(b[i],
                                                 value[d / 2 + i] + part * M::kPlaneBytes + k * 16 * M::kRowBytes);
                    }
                };
                const auto add = [&](const u32(&w)[4], float (&to)[kSums][4]) {
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kSums; ++i) mma_f16(to[i], w, {b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]});
                };
                load(0);
                add(weights[0][k], o);
                if constexpr (M::kParts == 2) {
                    add(weights[1][k], second);
                    load(1);
                    add(weights[0][k], second);
                }
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < kSums; ++i) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) {
                    if constexpr (M::kParts == 2) o[i][e] += second[i][e] * (1.0f / kSecondPart);
                    out[d + i][e] = out[d + i][e] * keep[e / 2] + o[i][e];
                }
            }
        }
    }
};

template <u32 kTypes, typename M>
AKUNU_DEVICE_CALL void attend_run(Block b, Run run) {
    const auto& p = b.params<AttentionParams>();
    const GroupParts groups(p);
    const u32 group = groups.heads, hd = p.head_dim, vd = value_dim(p), n = (run.end - run.first) * group;
    const auto keys = key_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(4), p, run.slot, groups.kv(run.part));
    const auto values = value_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(4), p, run.slot, groups.kv(run.part));
    const auto head_at = [&](u32 m) { return u64(run.first + m / group) * p.n_heads + run.part * group + m % group; };
    constexpr u32 kPieces = M::kPieces, kAllPieces = M::kRows * kPieces;
    using Brought = KeyTiles<kTypes, M>;
    Brought tiles{p, keys, values, run};
    u32 at = run.begin_keys / M::kKeys * M::kKeys, stage = 0;
    tiles.find(at);
    sync_block();
    const float scale = p.softcap > 0.0f ? p.scale : p.scale * kLog2E;
    constexpr u32 kAtOnce = 4;
    for (u32 first = thread_id(); first < kAllPieces; first += kAtOnce * kThreads) {
        float4 v[kAtOnce][2] = {};
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 m = (first + j * kThreads) / kPieces, piece = (first + j * kThreads) % kPieces;
            if (m >= n || piece * 8 >= hd) continue;
            const float4* from = reinterpret_cast<const float4*>(b.buffer<float>(0) + head_at(m) * hd + piece * 8);
            v[j][0] = from[0], v[j][1] = from[1];
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 m = (first + j * kThreads) / kPieces, piece = (first + j * kThreads) % kPieces;
            if (kAllPieces % (kAtOnce * kThreads) != 0 && m >= M::kRows) break;
            store_halves<M::kParts>(M::queries() + M::piece(m, piece), M::kQueryBytes, scaled(v[j][0], scale),
                                    scaled(v[j][1], scale));
        }
    }
    // What stands behind a key is multiplied, too: by pieces of 16 elements, or all that a row has room for.
    const u32 behind = M::kByGroups ? kPieces : rounded_up(hd, 16) / 8, pieces = behind - hd / 8;
    for (u32 i = thread_id(); i < M::kKeys * M::kKvStages * M::kParts * pieces; i += kThreads) {
        const u32 at = i / pieces, plane = M::keys(at / M::kKeys / M::kParts, at / M::kKeys % M::kParts);
        *reinterpret_cast<uint4*>(shared_memory() + plane + M::piece(at % M::kKeys, hd / 8 + i % pieces)) =
            uint4{0, 0, 0, 0};
    }

    const bool of_split = M::kLatent && run.split != kNoSplit;
    HeadTile<M> tile;
    AKUNU_UNROLL
    for (u32 d = 0; d < M::kValueSlice / 8; ++d)
        tile.out[d][0] = tile.out[d][1] = tile.out[d][2] = tile.out[d][3] = 0.0f;
    AKUNU_UNROLL
    for (u32 r = 0; r < 2; ++r) {
        const u32 m = M::first_row() + lane_id() / 4 + 8 * r;
        tile.seen[r] = m >= n      ? KeyRange{0, 0}
                       : !of_split ? keys_of_row(p, run.position + m / group, run.sequence_end,
                                                 end_of_row(b, run.first + m / group))
                                   : KeyRange{run.begin_keys, run.end_keys};
        tile.top[r] = minus_infinity();
        tile.sum[r] = 0.0f;
    }
    tiles.fetch(at, 0);
    for (; at < run.end_keys; at += M::kKeys) {
        if (Brought::kCopied) wait_for_bundles<0>();
        if (M::kByGroups) show_to_groups();
        sync_block();
        tiles.put();
        if (!Brought::kCopied) {
            if (M::kByGroups) show_to_groups();
            sync_block();
        }
        if (at + M::kKeys < run.end_keys) tiles.fetch(at + M::kKeys, 1 - stage);
        const bool has_rows = M::kByGroups || M::first_row() < n;  // a group's warps multiply together
        float s[M::kKeys / 8][4] = {}, keep[2];
        if (has_rows) tile.products(p, stage, s);
        if constexpr (M::kSlices > 1) tile.join(stage, has_rows, s);
        if (has_rows) {
            tile.mask(p, at, s);
            tile.weigh(s, keep);
            tile.add_values(p, stage, s, keep);
        }
        if (Brought::kCopied) stage = 1 - stage;
    }
    AKUNU_UNROLL
    for (u32 r = 0; r < 2; ++r) {
        float sum = tile.sum[r];
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        const u32 m = M::first_row() + lane_id() / 4 + 8 * r;
        if (m >= n) continue;
        const u32 slice = M::slice() * M::kValueSlice;
        // Scores are those of base 2.
        if (of_split) {
            const u64 part = head_at(m) * kMaxSplits + run.split;
            float* const partials = b.buffer<float>(2);
            float* const to = partials + part * vd + slice + 2 * (lane_id() % 4);
            AKUNU_UNROLL
            for (u32 d = 0; d < M::kValueSlice / 8; ++d) {
                if (slice + d * 8 >= vd) continue;
                *reinterpret_cast<float2*>(to + d * 8) = float2{tile.out[d][2 * r], tile.out[d][2 * r + 1]};
            }
            if (slice != 0 || lane_id() % 4 != 0) continue;
            float* const stats = partials + u64(p.n_heads) * kMaxSplits * vd + 2 * part;
            stats[0] = tile.top[r] / kLog2E;
            stats[1] = sum;
            continue;
        }
        const float* sinks = b.buffer<float>(5);
        if (sinks) sum += power_of_two(sinks[run.part * group + m % group] * kLog2E - tile.top[r]);
        float* to = b.buffer<float>(2) + head_at(m) * vd + slice + 2 * (lane_id() % 4);
        AKUNU_UNROLL
        for (u32 d = 0; d < M::kValueSlice / 8; ++d) {
            if (slice + d * 8 >= vd) continue;
            *reinterpret_cast<float2*>(to + d * 8) = float2{tile.out[d][2 * r] / sum, tile.out[d][2 * r + 1] / sum};
        }
    }
}

// Of a sequence that row r belongs to, where its rows see all of it.
AKUNU_DEVICE u32 end_of_sequence(Block b, const AttentionParams& p, const Row* rows, u32 r) {
    u32 behind = p.rows;
    for (u32 i = r + 1 + thread_id(); i < behind; i += kThreads) {
        if (rows[i].slot != rows[r].slot) behind = i;
    }
    return rows[p.rows - reduce_block(b, p.rows - behind, Larger()) - 1].position + 1;
}

// Row by row, those in long runs left out.
template <u32 kTypes, u32 kGroup>
AKUNU_DEVICE_CALL void attend_rows(Block b, Runs runs, bool all) {
    const auto& p = b.params<AttentionParams>();
    const Row* rows = b.buffer<Row>(3);
    const GroupParts groups(p);
    for (u32 u = b.first(); u < runs.rows * groups.all; u += b.blocks()) {
        const u32 i = u / groups.all, r = runs.from + i, part = u % groups.all;
        if (!all && runs.is_long(runs.begin(i), runs.end(i))) continue;
        const u32 sequence_end = p.fixed_keys || !p.bidirectional ? 0 : end_of_sequence(b, p, rows, r);
        const KeyRange range = keys_of_row(p, rows[r].position + p.step, sequence_end, end_of_row(b, r));
        float* to = b.buffer<float>(2) + (u64(r) * p.n_heads + part * groups.heads) * p.head_dim;
        attend<kTypes, kGroup>(b, p, groups, b.buffer<float>(0) + u64(r) * p.n_heads * p.head_dim, rows[r].slot, part,
                               range.first, range.end, [&](u32 g, u32 d, float v, const HeadState& head) {
                                   to[g * p.head_dim + d] =
                                       v /
                                       (head.sum + sink_weight(b.buffer<float>(5), part * groups.heads + g, head.top));
                               });
    }
}

// Long runs.
template <u32 kTypes>
AKUNU_DEVICE_CALL void attend_runs(Block b, Runs runs) {
    const auto& p = b.params<AttentionParams>();
    const Row* rows = b.buffer<Row>(3) + runs.from;
    const GroupParts groups(p);
    const u32 tiles = (runs.rows + runs.tile - 1) / runs.tile, units = tiles * groups.all;
    // The last ones see most keys, and come first; who has the first of a round has the last of the next.
    for (u32 round = 0, before = 0; before < units; ++round, before += b.blocks()) {
        const u32 u = before + (round % 2 ? b.blocks() - 1 - b.first() : b.first());
        if (u >= units) continue;
        const u32 tile = tiles - 1 - u / groups.all, behind = smaller((tile + 1) * runs.tile, runs.rows);
        for (u32 r = tile * runs.tile, end; r < behind; r = end) {
            end = runs.end(r);
            if (!runs.is_long(r, end)) continue;
            Run run{runs.from + r, runs.from + end, u % groups.all, rows[r].slot, rows[r].position + p.step, 0, 0, 0,
                    kNoSplit};
            if (!p.fixed_keys && p.bidirectional) run.sequence_end = end_of_sequence(b, p, b.buffer<Row>(3), run.first);
            run.begin_keys = keys_of_row(p, run.position, run.sequence_end, end_of_row(b, run.first)).first;
            run.end_keys =
                keys_of_row(p, run.position + (end - 1 - r), run.sequence_end, end_of_row(b, run.end - 1)).end;
            switch (same_in_warp(prompt_dim(p.head_dim, p.latent))) {
#define X(dim)                                                 \
    case dim:                                                  \
        attend_run<kTypes, PromptMemory<kTypes, dim>>(b, run); \
        break;
                AKUNU_PROMPT_DIMS
#undef X
            }
        }
    }
}

// The rows of a tile of heads of so many elements.
template <u32 kTypes>
AKUNU_DEVICE u32 rows_of_tile(u32 dim) {
    return dim <= 128   ? PromptMemory<kTypes, 128>::kRows
           : dim == 256 ? PromptMemory<kTypes, 256>::kRows
           : dim == 320 ? PromptMemory<kTypes, 320>::kRows
           : dim == 512 ? PromptMemory<kTypes, 512>::kRows
                        : PromptMemory<kTypes, 640>::kRows;
}

// All rows: those in long runs by tiles, `by_row(runs)` takes others.
template <u32 kTypes, typename ByRow>
AKUNU_DEVICE void attend_tiles(Block b, u32 tile, u32 least, ByRow&& by_row) {
    const auto& p = b.params<AttentionParams>();
    Runs runs{0, p.rows, tile, least};
    for (; runs.from < p.rows; runs.from += Runs::kMost) {
        runs.rows = smaller(Runs::kMost, p.rows - runs.from);
        runs.find(b.buffer<Row>(3), p.fixed_keys != 0);
        const bool has_short = Runs::has_short() != 0;
        attend_runs<kTypes>(b, runs);
        if (has_short) by_row(runs);
    }
}

template <u32 kTypes, u32 kGroup>
AKUNU_DEVICE_CALL void attention(Block b) {
    const auto& p = b.params<AttentionParams>();
    // Half as many rows a tile where there are blocks for twice as many tiles.
    const GroupParts groups(p);
    const u32 dim = prompt_dim(p.head_dim, 0);
    u32 tile = rows_of_tile<kTypes>(dim) / groups.heads;
    while (tile >= 2 * kLongRun && 2 * groups.all * ((p.rows + tile - 1) / tile) <= b.blocks()) tile /= 2;
    const u32 least = p.bidirectional ? 1 : smaller(kLongRun, tile);
    const bool too_few = !p.bidirectional && p.rows < kLongRun;
    if (too_few || dim == 0) return attend_rows<kTypes, kGroup>(b, Runs{0, p.rows, tile, least}, true);
    attend_tiles<kTypes>(b, tile, least, [&](Runs runs) { attend_rows<kTypes, kGroup>(b, runs, false); });
}

}  // namespace akunu::cuda
