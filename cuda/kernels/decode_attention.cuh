// RoPE, cache write and attention of rows of different texts as one command. Where rows are few, a block takes a KV
// head's group and a split of the row's keys, and the last block of a group to come joins the splits; where they are
// many, teams of a block's warps take a row and a KV head each. Scores are times log2(e), so that weights are powers of
// two.
#pragma once

#include "decode_lanes.cuh"
#include "decode_tiles.cuh"

namespace akunu::cuda {

// A head of q or k by a warp: normalised where the model does so, and turned by its position. All that it reads is
// asked for at once.
template <u32 kLanes>
AKUNU_DEVICE void rope_head(const DecodeAttentionParams& p, const float* x, const float* norm, const float* table,
                            float* head) {
    constexpr u32 kOwn = kLanes * kQuads * 4 / 32, kPairs = kOwn / 2;
    float v[kOwn], weight[kOwn], cosine[kPairs], sine[kPairs], sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) {
        const u32 d = lane_id() + 32 * i;
        v[i] = d < p.head_dim ? x[d] : 0.0f;
        weight[i] = p.qk_norm && d < p.head_dim ? norm[d] : 1.0f;
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < kPairs; ++i) {
        const u32 pair = lane_id() + 32 * i;
        cosine[i] = pair < p.rope_dim / 2 ? table[2 * pair] : 1.0f;
        sine[i] = pair < p.rope_dim / 2 ? table[2 * pair + 1] : 0.0f;
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) sum += v[i] * v[i];
    const float scale = p.qk_norm ? 1.0f / sqrtf(reduce_warp(sum, Add()) / float(p.head_dim) + p.eps) : 1.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) {
        const u32 d = lane_id() + 32 * i;
        if (d < p.head_dim) head[d] = v[i] * scale * weight[i];
    }
    sync_warp();
    AKUNU_UNROLL
    for (u32 i = 0; i < kPairs; ++i) {
        const u32 pair = lane_id() + 32 * i;
        if (pair >= p.rope_dim / 2) continue;
        const u32 at = p.style == kRopeInterleaved ? 2 * pair : pair;
        const u32 other = p.style == kRopeInterleaved ? at + 1 : pair + p.rope_dim / 2;
        const float first = head[at], second = head[other];
        head[at] = first * cosine[i] - second * sine[i];
        head[other] = first * sine[i] + second * cosine[i];
    }
    sync_warp();
}

// What blocks leave of a row's heads, one for each split: [splits][rows·n_heads][head_dim] values, then of each
// (largest score, sum).
struct Partials {
    float* values;
    u32 heads, splits, hd;  // heads: of all rows
    AKUNU_DEVICE float* value(u32 head, u32 split) const { return values + u64(split * heads + head) * hd; }
    AKUNU_DEVICE float2& stats(u32 head, u32 split) const {
        return reinterpret_cast<float2*>(values + u64(splits) * heads * hd)[split * heads + head];
    }
};

// The splits of some heads of a row, by the block that came last: several are asked for at once.
AKUNU_DEVICE void join_splits(const Partials& partials, const Output& out, u32 head, u32 heads, u32 splits) {
    constexpr u32 kAtOnce = 8;
    for (u32 i = thread_id(); i < heads * partials.hd; i += kThreads) {
        const u32 h = head + i / partials.hd, d = i % partials.hd;
        float most = kNoScore, sum = 0.0f, v = 0.0f;
        for (u32 first = 0; first < splits; first += kAtOnce) {
            float2 stats[kAtOnce];
            float value[kAtOnce], top = most;
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const u32 s = smaller(first + j, splits - 1);  // behind the end the last one again, without weight
                stats[j] = load_fresh(&partials.stats(h, s));
                value[j] = load_fresh(partials.value(h, s) + d);
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) top = fmaxf(top, stats[j].x);
            const float keep = power_of_two(most - top);
            sum *= keep;
            v *= keep;
            most = top;
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const float weight = first + j < splits ? power_of_two(stats[j].x - most) : 0.0f;
                sum += weight * stats[j].y;
                v += weight * value[j];
            }
        }
        out.store(u64(h) * partials.hd + d, v / sum);
    }
}

// A row, which is asked for once where a block's are the same for all layers.
AKUNU_DEVICE Row row_of(const Row* at) {
    if (any_of_warp(shown().row_at == reinterpret_cast<u64>(at))) return shown().row;
    const Row row = *at;
    if (thread_id() == 0) {
        shown().row = row;
        shown().row_at = reinterpret_cast<u64>(at);
    }
    return row;
}

// F16 caches are taken by the tensor cores, but for heads that are large (program.cpp fuses none of odd sizes).
template <u32 kType, u32 kLanes>
struct KeysOf {
    using Keys = LaneKeys<kType, kLanes>;
};
template <>
struct KeysOf<kKvF16, 8> {
    using Keys = TileKeys<64>;
};
template <>
struct KeysOf<kKvF16, 16> {
    using Keys = TileKeys<128>;
};

template <u32 kType, u32 kLanes>
AKUNU_DEVICE void decode_group(Block b) {
    using Keys = typename KeysOf<kType, kLanes>::Keys;
    const auto& p = b.params<DecodeAttentionParams>();
    const u32 group = p.n_heads / p.n_kv_heads, hd = p.head_dim, padded = (hd + 3) / 4 * 4;
    // Splits of the keys: as many as there are blocks for, each of some keys at least.
    const auto splits_for = [](u32 keys) { return splits_of(keys, Keys::kLeastSplit); };
    const u32 pairs = p.rows * p.n_kv_heads;  // of a row and a KV head
    const u32 splits =
        larger(1, smaller(splits_for(p.window ? smaller(p.keys, p.window) : p.keys), b.blocks() / pairs));
    // Where there are blocks enough, the heads of a group are dealt to several.
    u32 halvings = 0;  // parts are two to that power
    while (Keys::kHeadsApart && 1u << halvings < group && splits * pairs << (halvings + 1) <= b.blocks()) ++halvings;
    const Team team(b, splits * pairs, group * padded <= Keys::kTeamElements);
    const DecodeMemory<Keys> m(b, team, group, padded);
    const Partials partials{b.buffer<float>(8), p.rows * p.n_heads, splits, hd};
    const Output out{b.buffer<float>(9), b.buffer<u16>(10), p.formats};
    bool waits = true;
    for (u32 u = b.first() * team.count() + team.index; u < splits * pairs << halvings;
         u += b.blocks() * team.count()) {
        const u32 unit = u >> halvings, split = unit / pairs, pair = unit - split * pairs;
        const u32 r = pair / p.n_kv_heads, kv = pair - r * p.n_kv_heads, part = u & ((1u << halvings) - 1);
        const u32 first_head = group * part >> halvings, end_head = group * (part + 1) >> halvings;
        const Row row = row_of(b.buffer<Row>(6) + r);
        const u32 position = row.position + p.step, begin = first_key(position, p.window), n = position + 1 - begin;
        const u32 row_splits = smaller(splits, splits_for(n));  // others may see more keys
        if (first_head == end_head || split >= row_splits) continue;
        const u32 own = split + 1 == row_splits;
        const SplitKeys<kType> range{
            kv_unit<kType>(b.buffer<u8>(4), b.buffer<u32>(7), p, row.slot, kv),
            kv_unit<kType>(b.buffer<u8>(4), b.buffer<u32>(7), p, row.slot, p.n_kv_heads + kv),
            begin + n * split / row_splits, begin + n * (split + 1) / row_splits - own, own, team};
        u8* const page_of_keys = range.keys.page(position);
        u8* const page_of_values = range.values.page(position);
        if (!waits) team.sync();  // some thread may still read what the unit before has left
        Keys keys(range);
        keys.start();  // none of this step's
        if (waits) b.ready();
        waits = false;
        const float *table = b.buffer<float>(3) + u64(r) * p.rope_dim, *norms = b.buffer<float>(5);
        for (u32 job = first_head + team.warp; job < end_head + 2; job += team.warps) {
            if (job < end_head) {
                float* head = m.q + job * padded;
                for (u32 d = hd + lane_id(); d < padded; d += 32) head[d] = 0.0f;
                rope_head<kLanes>(p, b.buffer<float>(0) + (u64(pair) * group + job) * hd, norms, table, head);
            } else if (own) {
                const bool is_key = job == end_head;
                float* head = m.fresh + (is_key ? 0 : padded);
                const float* x = b.buffer<float>(is_key ? 1 : 2) + u64(pair) * hd;
                for (u32 d = hd + lane_id(); d < padded; d += 32) head[d] = 0.0f;
                if (is_key) {
                    rope_head<kLanes>(p, x, norms + hd, table, head);
                } else {
                    for (u32 d = lane_id(); d < hd; d += 32) head[d] = x[d];
                    sync_warp();
                }
                (is_key ? range.keys : range.values).store_in(is_key ? page_of_keys : page_of_values, position, head);
            }
        }
        team.sync();
        for (u32 head = first_head; head < end_head; head += Keys::kHeads) {
            const u32 heads = smaller(Keys::kHeads, end_head - head);
            if (head != first_head) {
                team.sync();
                keys.start();
            }
            keys.attend(p, m, head, heads);
            join_warps(m, team, hd, heads, [&](u32 h, u32 d, float v, float top, float sum) {
                const u32 of = pair * group + head + h;
                if (row_splits == 1) return out.store(u64(of) * hd + d, v / sum);
                partials.value(of, split)[d] = v;
                if (d == 0) partials.stats(of, split) = {top, sum};
            });
        }
        if (row_splits == 1) continue;
        // The team is the block.
        u32& ticket = b.grid()->tickets[(pair << halvings) + part];
        fence_device();
        sync_block();
        if (thread_id() == 0) {
            shown().ticket = atomic_add(&ticket, 1u);
            fence_device();
        }
        sync_block();
        if (shown().ticket + 1 != row_splits) continue;
        join_splits(partials, out, pair * group + first_head, end_head - first_head, row_splits);
        if (thread_id() == 0) ticket = 0;
    }
    if (waits) b.ready();
}

template <u32 kType>
AKUNU_DEVICE_CALL void decode_attention(Block b) {
    switch (key_lanes(b.params<DecodeAttentionParams>().head_dim)) {
#define X(n) \
    case n:  \
        return decode_group<kType, n>(b);
        AKUNU_LANES
#undef X
    }
}

}  // namespace akunu::cuda
