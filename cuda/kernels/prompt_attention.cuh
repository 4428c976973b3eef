// Attention of many rows. Rows of one text that follow one another are a run; long ones are taken by the tensor cores,
// others row by row.
//
// A block takes a run's query heads of one KV head, 16 of them a warp, and a tile of keys at a time, the softmax a
// running one. Queries and weights are two F16 numbers each, x = high + low; keys and values of Q8_0 as well, those of
// F16 are what they are.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

constexpr u32 kLeastRun = 16;   // rows
constexpr u32 kHeadRows = 128;  // rows of a tile, each a row's query head

// Which rows begin a run, a bit each, in shared memory. No run goes beyond a tile's rows.
struct Runs {
    static constexpr u32 kMost = 7168;  // rows
    static constexpr u32 kAt = kSharedHead + 128;
    static_assert(kAt + kMost / 8 <= kSharedHead + kRunsBytes, "what attention has besides begins behind it");
    u32 rows, tile;
    AKUNU_DEVICE static u32& word(u32 i) { return *reinterpret_cast<u32*>(shared_memory() + kAt + i * 4); }
    AKUNU_DEVICE static u32& has_short() { return *reinterpret_cast<u32*>(shared_memory() + kSharedHead); }

    AKUNU_DEVICE void find(const Row* at) const {
        sync_block();
        if (thread_id() == 0) has_short() = 0;
        for (u32 i = thread_id(); i < rounded_up(rows, 32); i += kThreads) {
            const Row row = at[smaller(i, rows - 1)], before = at[smaller(larger(i, 1) - 1, rows - 1)];
            const bool begins =
                i % tile == 0 || i >= rows || row.slot != before.slot || row.position != before.position + 1;
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
    AKUNU_DEVICE bool is_long(u32 begin, u32 end) const { return end - begin >= smaller(kLeastRun, tile); }
};

// How a block's memory is used for heads of up to kDim elements: queries, then for each stage keys and values, each as
// kParts numbers. Rows have 16-byte pieces, piece p at place p ^ row % 8.
template <u32 kType, u32 kDim>
struct PromptMemory {
    static constexpr u32 kKeys = 4096 / kDim, kParts = kType == kKvF16 ? 1 : 2, kKvStages = kType == kKvF16 ? 2 : 1;
    static constexpr u32 kRowBytes = kDim * 2, kQueryBytes = kHeadRows * kRowBytes, kPlaneBytes = kKeys * kRowBytes;
    static constexpr u32 kQueries = kSharedHead + kRunsBytes, kStageAt = kQueries + 2 * kQueryBytes;
    static_assert(kStageAt + kKvStages * 2 * kParts * kPlaneBytes <= kSharedHead + kManyRowsBytes,
                  "the ring begins behind it");
    AKUNU_DEVICE static u32 keys(u32 stage, u32 part) { return kStageAt + (stage * 2 * kParts + part) * kPlaneBytes; }
    AKUNU_DEVICE static u32 values(u32 stage, u32 part) { return keys(stage, kParts + part); }
    AKUNU_DEVICE static u32 piece(u32 row, u32 p) { return row * kRowBytes + (p ^ row % 8) * 16; }
};

// Eight numbers as two F16 numbers each.
AKUNU_DEVICE void store_parts(u32 high_at, u32 low_at, const float (&v)[8]) {
    u32 h[4], l[4];
    AKUNU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        h[i] = pack_halves(v[2 * i], v[2 * i + 1]);
        l[i] = pack_halves(v[2 * i] - half_to_float(u16(h[i])), v[2 * i + 1] - half_to_float(u16(h[i] >> 16)));
    }
    *reinterpret_cast<uint4*>(shared_memory() + high_at) = uint4{h[0], h[1], h[2], h[3]};
    *reinterpret_cast<uint4*>(shared_memory() + low_at) = uint4{l[0], l[1], l[2], l[3]};
}

// Rows [first, end) of one text with one KV head.
struct Run {
    u32 first, end, kv, slot, position;
    u32 begin_keys, end_keys;  // that any of them sees
    u32 text_end;              // where rows see all of their text
};

AKUNU_DEVICE KeyRange keys_of_row(const AttentionParams& p, u32 position, u32 text_end) {
    if (p.fixed_keys || !p.bidirectional) return keys_of_one(p, position);
    return {first_key(position, p.window), p.window ? smaller(text_end, position + p.window) : text_end};
}

// Brings a tile of keys and values from position `at` on; positions that no row sees are others.
template <u32 kType, u32 kDim>
AKUNU_DEVICE void bring_keys(const AttentionParams& p, const KvUnit<kType>& keys, const KvUnit<kType>& values,
                             const Run& run, u32 at, u32 stage) {
    using M = PromptMemory<kType, kDim>;
    constexpr u32 kPieces = kDim / 8;
    AKUNU_UNROLL
    for (u32 i = 0; i < M::kKeys * kPieces / kThreads; ++i) {
        const u32 key = (i * kThreads + thread_id()) / kPieces, piece = thread_id() % kPieces;
        if (piece * 8 >= p.head_dim) continue;
        const u32 position = smaller(larger(at + key, run.begin_keys), run.end_keys - 1), to = M::piece(key, piece);
        if constexpr (kType == kKvF16) {
            const u32 from = (position % kPagePositions * p.head_dim + piece * 8) * 2;
            copy_async16(shared_memory() + M::keys(stage, 0) + to, keys.page(position) + from);
            copy_async16(shared_memory() + M::values(stage, 0) + to, values.page(position) + from);
        } else {
            const auto split = [&](const KvUnit<kType>& unit, u32 high, u32 low) {
                const float4 a = unit.quad(position, 2 * piece).value(), b = unit.quad(position, 2 * piece + 1).value();
                store_parts(high + to, low + to, {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w});
            };
            split(keys, M::keys(stage, 0), M::keys(stage, 1));
            split(values, M::values(stage, 0), M::values(stage, 1));
        }
    }
    if constexpr (kType == kKvF16) bundle_copies();
}

// Of a warp's 16 rows, of which a lane has two: g and g + 8.
template <u32 kType, u32 kDim>
struct HeadTile {
    using M = PromptMemory<kType, kDim>;
    static constexpr u32 kColumns = M::kKeys / 8;
    KeyRange seen[2];
    float top[2], sum[2];
    float out[kDim / 8][4];

    AKUNU_DEVICE void scores(const AttentionParams& p, u32 stage, float (&s)[kColumns][4]) const {
        const u32 lane = lane_id(), steps = (p.head_dim + 15) / 16;
        const u32 query = M::kQueries + M::piece(warp_id() * 16 + lane % 16, lane / 16);
        const u32 key = M::keys(stage, 0) + M::piece(lane / 16 * 8 + lane % 8, lane / 8 % 2);
        AKUNU_UNROLL
        for (u32 k = 0; k < kDim / 16; ++k) {
            if (k >= steps) continue;
            u32 high[4], low[4];
            load_matrices(high, query ^ k * 32);
            load_matrices(low, (query ^ k * 32) + M::kQueryBytes);
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; j += 2) {
                u32 b[4];
                load_matrices(b, (key ^ k * 32) + j * 8 * M::kRowBytes);
                mma_f16(s[j], low, {b[0], b[1]});
                mma_f16(s[j + 1], low, {b[2], b[3]});
                mma_f16(s[j], high, {b[0], b[1]});
                mma_f16(s[j + 1], high, {b[2], b[3]});
                if (M::kParts == 1) continue;
                load_matrices(b, (key ^ k * 32) + j * 8 * M::kRowBytes + M::kPlaneBytes);
                mma_f16(s[j], high, {b[0], b[1]});
                mma_f16(s[j + 1], high, {b[2], b[3]});
            }
        }
    }

    // Scores become weights, 2^(s - top); what the sums so far are to be multiplied by.
    AKUNU_DEVICE void weigh(const AttentionParams& p, u32 at, float (&s)[kColumns][4], float (&keep)[2]) {
        constexpr float kLog2E = 1.4426950408889634f;
        const float kNone = bits_to_float(0xFF800000u);
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            float most = top[r];
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 2; ++e) {
                    float& v = s[j][2 * r + e];
                    const u32 key = at + 8 * j + 2 * (lane_id() % 4) + e;
                    const float score =
                        p.softcap > 0.0f ? soft_cap(v * p.scale, p.softcap) * kLog2E : v * (p.scale * kLog2E);
                    v = key >= seen[r].first && key < seen[r].end ? score : kNone;
                    most = fmaxf(most, v);
                }
            }
            most = fmaxf(most, shuffle_xor(most, 1));
            most = fmaxf(most, shuffle_xor(most, 2));
            const float from = most == kNone ? 0.0f : most;
            keep[r] = power_of_two(top[r] - from);
            top[r] = most;
            sum[r] *= keep[r];
            AKUNU_UNROLL
            for (u32 j = 0; j < kColumns; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 2; ++e) {
                    s[j][2 * r + e] = power_of_two(s[j][2 * r + e] - from);
                    sum[r] += s[j][2 * r + e];
                }
            }
        }
    }

    // Each tile's products have sums of their own: tensor cores truncate what they add up, so they add up little.
    AKUNU_DEVICE void add_values(const AttentionParams& p, u32 stage, const float (&s)[kColumns][4],
                                 const float (&keep)[2]) {
        u32 high[kColumns / 2][4], low[kColumns / 2][4];
        AKUNU_UNROLL
        for (u32 k = 0; k < kColumns / 2; ++k) {
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                const float a = s[2 * k + i / 2][i % 2 * 2], b = s[2 * k + i / 2][i % 2 * 2 + 1];
                high[k][i] = pack_halves(a, b);
                low[k][i] = pack_halves(a - half_to_float(u16(high[k][i])), b - half_to_float(u16(high[k][i] >> 16)));
            }
        }
        const u32 lane = lane_id(), value = M::values(stage, 0) + M::piece(lane % 16, lane / 16);
        AKUNU_UNROLL
        for (u32 d = 0; d < kDim / 8; d += 2) {
            if (d * 8 >= p.head_dim) continue;
            float o[2][4] = {};
            AKUNU_UNROLL
            for (u32 k = 0; k < kColumns / 2; ++k) {
                u32 b[4];
                load_matrices_transposed(b, (value ^ d * 16) + k * 16 * M::kRowBytes);
                mma_f16(o[0], low[k], {b[0], b[1]});
                mma_f16(o[1], low[k], {b[2], b[3]});
                mma_f16(o[0], high[k], {b[0], b[1]});
                mma_f16(o[1], high[k], {b[2], b[3]});
                if (M::kParts == 1) continue;
                load_matrices_transposed(b, (value ^ d * 16) + k * 16 * M::kRowBytes + M::kPlaneBytes);
                mma_f16(o[0], high[k], {b[0], b[1]});
                mma_f16(o[1], high[k], {b[2], b[3]});
            }
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) {
                out[d][e] = out[d][e] * keep[e / 2] + o[0][e];
                out[d + 1][e] = out[d + 1][e] * keep[e / 2] + o[1][e];
            }
        }
    }
};

template <u32 kType, u32 kDim>
AKUNU_DEVICE_CALL void attend_run(Block b, Run run) {
    using M = PromptMemory<kType, kDim>;
    const auto& p = b.params<AttentionParams>();
    const u32 group = p.n_heads / p.n_kv_heads, hd = p.head_dim, n = (run.end - run.first) * group;
    const auto keys = kv_unit<kType>(b.buffer<u8>(1), b.buffer<u32>(4), p, run.slot, run.kv);
    const auto values = kv_unit<kType>(b.buffer<u8>(1), b.buffer<u32>(4), p, run.slot, p.n_kv_heads + run.kv);
    const auto row_at = [&](u32 m) {
        return (u64(run.first + m / group) * p.n_heads + run.kv * group + m % group) * hd;
    };
    constexpr u32 kPieces = kDim / 8;
    sync_block();
    for (u32 i = thread_id(); i < kHeadRows * kPieces; i += kThreads) {
        const u32 m = i / kPieces, piece = i % kPieces;
        float v[8] = {};
        if (m < n && piece * 8 < hd) {
            const float4* from = reinterpret_cast<const float4*>(b.buffer<float>(0) + row_at(m) + piece * 8);
            const float4 x = from[0], y = from[1];
            v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w, v[4] = y.x, v[5] = y.y, v[6] = y.z, v[7] = y.w;
        }
        store_parts(M::kQueries + M::piece(m, piece), M::kQueries + M::kQueryBytes + M::piece(m, piece), v);
    }
    if (hd % 16 != 0) {  // what stands behind a key is multiplied, too
        for (u32 i = thread_id(); i < M::kKeys * M::kKvStages * M::kParts; i += kThreads) {
            const u32 key = i % M::kKeys, plane = i / M::kKeys;
            *reinterpret_cast<uint4*>(shared_memory() + M::keys(plane / M::kParts, plane % M::kParts) +
                                      M::piece(key, hd / 8)) = uint4{0, 0, 0, 0};
        }
    }

    HeadTile<kType, kDim> tile;
    AKUNU_UNROLL
    for (u32 d = 0; d < kDim / 8; ++d) tile.out[d][0] = tile.out[d][1] = tile.out[d][2] = tile.out[d][3] = 0.0f;
    AKUNU_UNROLL
    for (u32 r = 0; r < 2; ++r) {
        const u32 m = warp_id() * 16 + lane_id() / 4 + 8 * r;
        tile.seen[r] = m < n ? keys_of_row(p, run.position + m / group, run.text_end) : KeyRange{0, 0};
        tile.top[r] = bits_to_float(0xFF800000u);
        tile.sum[r] = 0.0f;
    }
    u32 at = run.begin_keys / M::kKeys * M::kKeys, stage = 0;
    if (kType == kKvF16) bring_keys<kType, kDim>(p, keys, values, run, at, 0);
    for (; at < run.end_keys; at += M::kKeys) {
        if (kType == kKvF16) {
            wait_for_bundles<0>();
            sync_block();
            if (at + M::kKeys < run.end_keys) bring_keys<kType, kDim>(p, keys, values, run, at + M::kKeys, 1 - stage);
        } else {
            sync_block();
            bring_keys<kType, kDim>(p, keys, values, run, at, 0);
            sync_block();
        }
        if (warp_id() * 16 < n) {
            float s[M::kKeys / 8][4] = {}, keep[2];
            tile.scores(p, stage, s);
            tile.weigh(p, at, s, keep);
            tile.add_values(p, stage, s, keep);
        }
        if (kType == kKvF16) stage = 1 - stage;
    }
    AKUNU_UNROLL
    for (u32 r = 0; r < 2; ++r) {
        float sum = tile.sum[r];
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        const u32 m = warp_id() * 16 + lane_id() / 4 + 8 * r;
        if (m >= n) continue;
        float* to = b.buffer<float>(2) + row_at(m) + 2 * (lane_id() % 4);
        AKUNU_UNROLL
        for (u32 d = 0; d < kDim / 8; ++d) {
            if (d * 8 >= hd) continue;
            *reinterpret_cast<float2*>(to + d * 8) = float2{tile.out[d][2 * r] / sum, tile.out[d][2 * r + 1] / sum};
        }
    }
}

// Of a text that row r belongs to, where its rows see all of it.
AKUNU_DEVICE u32 end_of_text(Block b, const AttentionParams& p, const Row* rows, u32 r) {
    u32 behind = p.rows;
    for (u32 i = r + 1 + thread_id(); i < behind; i += kThreads) {
        if (rows[i].slot != rows[r].slot) behind = i;
    }
    return rows[p.rows - reduce_block(b, p.rows - behind, Larger()) - 1].position + 1;
}

// Row by row, those in long runs left out.
template <u32 kType, u32 kGroup>
AKUNU_DEVICE_CALL void attend_rows(Block b, Runs runs, bool all) {
    const auto& p = b.params<AttentionParams>();
    const Row* rows = b.buffer<Row>(3);
    const u32 group = p.n_heads / p.n_kv_heads;
    for (u32 u = b.first(); u < p.rows * p.n_kv_heads; u += b.blocks()) {
        const u32 r = u / p.n_kv_heads, kv = u % p.n_kv_heads;
        if (!all && runs.is_long(runs.begin(r), runs.end(r))) continue;
        const u32 text_end = p.fixed_keys || !p.bidirectional ? 0 : end_of_text(b, p, rows, r);
        const KeyRange range = keys_of_row(p, rows[r].position + p.step, text_end);
        float* to = b.buffer<float>(2) + (u64(r) * p.n_heads + kv * group) * p.head_dim;
        attend<kType, kGroup>(
            b, p, b.buffer<float>(0) + u64(r) * p.n_heads * p.head_dim, rows[r].slot, kv, range.first, range.end,
            [&](u32 g, u32 d, float v, const HeadState& head) { to[g * p.head_dim + d] = v / head.sum; });
    }
}

template <u32 kType, u32 kGroup>
AKUNU_DEVICE_CALL void attention(Block b) {
    const auto& p = b.params<AttentionParams>();
    const Row* rows = b.buffer<Row>(3);
    const Runs runs{p.rows, kHeadRows / (p.n_heads / p.n_kv_heads)};
    const bool by_runs =
        kType != kKvF32 && p.rows >= kLeastRun && p.rows <= Runs::kMost && p.head_dim % 8 == 0 && p.head_dim <= 128;
    if (!by_runs) return attend_rows<kType, kGroup>(b, runs, true);
    if constexpr (kType != kKvF32) {
        runs.find(rows);
        const bool has_short = Runs::has_short() != 0;
        const u32 tiles = (p.rows + runs.tile - 1) / runs.tile;
        for (u32 u = b.first(); u < tiles * p.n_kv_heads; u += b.blocks()) {
            // The last ones see most keys.
            const u32 tile = tiles - 1 - u / p.n_kv_heads, behind = smaller((tile + 1) * runs.tile, p.rows);
            for (u32 r = tile * runs.tile, end; r < behind; r = end) {
                end = runs.end(r);
                if (!runs.is_long(r, end)) continue;
                Run run{r, end, u % p.n_kv_heads, rows[r].slot, rows[r].position + p.step, 0, 0, 0};
                if (!p.fixed_keys && p.bidirectional) run.text_end = end_of_text(b, p, rows, r);
                run.begin_keys = keys_of_row(p, run.position, run.text_end).first;
                run.end_keys = keys_of_row(p, run.position + (end - 1 - r), run.text_end).end;
                p.head_dim <= 64 ? attend_run<kType, 64>(b, run) : attend_run<kType, 128>(b, run);
            }
        }
        if (has_short) attend_rows<kType, kGroup>(b, runs, false);
    }
}

}  // namespace akunu::cuda
