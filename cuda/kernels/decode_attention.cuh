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
template <typename Keys>
AKUNU_DEVICE void rope_head(const DecodeAttentionParams& p, const float* x, const float* norm, const float* table,
                            float* head) {
    constexpr u32 kOwn = Keys::kMaxDim / 32;
    const u32 hd = Keys::head_dim(p);
    float v[kOwn], weight[kOwn], sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) {
        const u32 d = lane_id() + 32 * i;
        v[i] = d < hd ? x[d] : 0.0f;
        weight[i] = p.qk_norm && d < hd ? norm[d] : 1.0f;
    }
    const Turn<kOwn / 2> turn(table, p.rope_dim);
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) sum += v[i] * v[i];
    const float scale = p.qk_norm ? inverse_root(reduce_warp(sum, Add()) * reciprocal(float(hd)) + p.eps) : 1.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) {
        const u32 d = lane_id() + 32 * i;
        if (d < hd) head[d] = v[i] * scale * weight[i];
    }
    sync_warp();
    turn.apply(p.style, p.rope_dim, head);
    sync_warp();
}

// A head of v. Loads do not wait for stores.
template <typename Keys>
AKUNU_DEVICE void copy_head(const DecodeAttentionParams& p, const float* x, float* head) {
    constexpr u32 kOwn = Keys::kMaxDim / 32;
    const u32 hd = Keys::head_dim(p);
    float v[kOwn];
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) v[i] = lane_id() + 32 * i < hd ? x[lane_id() + 32 * i] : 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kOwn; ++i) {
        if (lane_id() + 32 * i < hd) head[lane_id() + 32 * i] = v[i];
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

template <u32 kType, u32 kKind, bool kTiles = (kKind >= kTileKinds)>
struct KeysOf {
    using Keys = LaneKeys<kType, kKind>;
};
template <u32 kType, u32 kKind>
struct KeysOf<kType, kKind, true> {
    using Keys = TileKeys<kKind>;
};

// Splits of the keys: as many as there are blocks for, each of some keys at least. Teams: as many of two warps at least
// as it takes for all units at once, where their memory is there.
template <typename Keys>
AKUNU_DEVICE const DecodeShape& decode_shape(Block b) {
    const auto& p = b.params<DecodeAttentionParams>();
    DecodeShape& s = shown().decode;
    const u64 rows = b.command().buffers[6];
    const bool same = s.rows == rows && s.step == p.step && s.window == p.window && s.heads == p.n_heads &&
                      s.kv_heads == p.n_kv_heads && s.head_dim == p.head_dim;
    if (all_of_warp(same)) return s;
    sync_block();
    if (thread_id() == 0) {
        const u32 group = p.n_heads / p.n_kv_heads, pairs = p.rows * p.n_kv_heads;  // of a row and a KV head
        const u32 most = splits_of(p.window ? smaller(p.keys, p.window) : p.keys, Keys::kLeastSplit);
        s = {rows, p.step, p.window, p.n_heads, p.n_kv_heads, p.head_dim, 0, 0, 0, kWarps};
        s.splits = larger(1, smaller(most, b.blocks() / pairs));
        const u32 units = s.splits * pairs;
        // Where there are blocks enough, the heads of a group are dealt to several.
        while (Keys::kHeadsApart && 1u << s.halvings < group && units << (s.halvings + 1) <= b.blocks()) ++s.halvings;
        s.units = units << s.halvings;
        const bool fits = group * rounded_up(p.head_dim, 4) <= Keys::kTeamElements;
        while (fits && s.team_warps > 2 && units > b.blocks() * (kWarps / s.team_warps)) s.team_warps /= 2;
        for (u32 i = 0; i < kWarps / 2; ++i) shown().unit[i].unit = 0;
    }
    sync_block();
    return s;
}
template <typename Keys>
AKUNU_DEVICE const DecodeUnit& decode_unit(Block b, const Team& team, u32 u) {
    DecodeUnit& at = shown().unit[team.index];
    if (all_of_warp(at.unit == u + 1)) return at;
    const auto& p = b.params<DecodeAttentionParams>();
    team.sync();
    if (team.thread() == 0) {
        const DecodeShape& s = shown().decode;
        const u32 group = p.n_heads / p.n_kv_heads, pairs = p.rows * p.n_kv_heads;
        const u32 unit = u >> s.halvings, part = u & ((1u << s.halvings) - 1), pair = unit % pairs;
        at.unit = u + 1;
        at.split = unit / pairs;
        at.row = pair / p.n_kv_heads;
        at.kv = pair % p.n_kv_heads;
        at.first_head = group * part >> s.halvings;
        at.end_head = group * (part + 1) >> s.halvings;
        const Row row = b.buffer<Row>(6)[at.row];
        at.slot = row.slot;
        at.position = row.position + p.step;
        const u32 begin = first_key(at.position, p.window), n = at.position + 1 - begin;
        at.splits = smaller(s.splits, splits_of(n, Keys::kLeastSplit));  // others may see more keys
        at.there = at.first_head != at.end_head && at.split < at.splits;
        at.own = at.split + 1 == at.splits;
        at.first = begin + n * at.split / at.splits;
        at.end = begin + n * (at.split + 1) / at.splits - at.own;
    }
    team.sync();
    return at;
}

template <u32 kType, u32 kKind>
AKUNU_DEVICE void decode_group(Block b) {
    using Keys = typename KeysOf<kType, kKind>::Keys;
    const auto& p = b.params<DecodeAttentionParams>();
    const u32 hd = Keys::head_dim(p), padded = rounded_up(hd, 4);
    const DecodeShape& shape = decode_shape<Keys>(b);
    const u32 group = p.n_heads / p.n_kv_heads;
    const Team team(shape.team_warps);
    const DecodeMemory<Keys> m(b, team, group, padded);
    // Made where they are used: kept, they would be on the stack.
    const auto partials = [&] { return Partials{b.buffer<float>(8), p.rows * p.n_heads, shape.splits, hd}; };
    const auto out = [&] { return Output{b.buffer<float>(9), b.buffer<u16>(10), p.formats}; };
    bool waits = true;
    for (u32 u = b.first() * team.count() + team.index; u < shape.units; u += b.blocks() * team.count()) {
        if (!waits) team.sync();  // some thread may still read what the unit before has left
        const DecodeUnit& at = decode_unit<Keys>(b, team, u);
        if (!at.there) continue;
        const SplitKeys<kType> range{kv_unit<kType>(b.buffer<u8>(4), b.buffer<u32>(7), p, at.slot, at.kv),
                                     u32(p.n_kv_heads * kv_unit_bytes(kType, hd)),
                                     at.first,
                                     at.end,
                                     at.own,
                                     team};
        u8* const page_of_keys = range.keys.page(at.position);  // and of values
        Keys keys(range);
        const u32 pair = at.row * p.n_kv_heads + at.kv;
        for (u32 head = at.first_head; head < at.end_head; head += Keys::kHeads) {
            if (head != at.first_head) team.sync();
            keys.start();  // none of this step's
            if (head == at.first_head) {
                if (waits) b.wait();
                waits = false;
                // Query heads, and where it is the row's own key's turn this and its value.
                for (u32 job = at.first_head + team.warp; job < at.end_head + 2 * at.own; job += team.warps) {
                    const bool is_query = job < at.end_head, is_value = job > at.end_head;
                    float* to = is_query ? m.q + job * padded : m.fresh + (is_value ? padded : 0);
                    const float* x = is_query ? b.buffer<float>(0) + (u64(pair) * group + job) * hd
                                              : b.buffer<float>(is_value ? 2 : 1) + u64(pair) * hd;
                    for (u32 d = hd + lane_id(); d < padded; d += 32) to[d] = 0.0f;
                    if (is_value) {
                        copy_head<Keys>(p, x, to);
                    } else {
                        rope_head<Keys>(p, x, b.buffer<float>(5) + (is_query ? 0 : hd),
                                        b.buffer<float>(3) + u64(at.row) * p.rope_dim, to);
                    }
                    if (is_query) continue;
                    range.keys.store_in(page_of_keys + (is_value ? range.apart : 0), at.position, to);
                }
                team.sync();
            }
            const u32 heads = smaller(Keys::kHeads, at.end_head - head);
            keys.attend(p, m, head, heads);
            const Partials parts = partials();
            const Output to = out();
            join_warps(m, team, hd, heads, [&](u32 h, u32 d, float v, float top, float sum) {
                const u32 of = pair * group + head + h;
                if (at.splits == 1) return to.store(u64(of) * hd + d, v / sum);
                parts.value(of, at.split)[d] = v;
                if (d == 0) parts.stats(of, at.split) = {top, sum};
            });
        }
        if (at.splits == 1) continue;
        // The team is the block.
        if (!comes_last(b.grid()->tickets[u % (shape.units / shape.splits)], at.splits)) continue;
        join_splits(partials(), out(), pair * group + at.first_head, at.end_head - at.first_head, at.splits);
    }
    if (waits) b.wait();
}

template <u32 kType>
AKUNU_DEVICE_CALL void decode_attention(Block b) {
    switch (decode_kind(kType, b.params<DecodeAttentionParams>().head_dim)) {
#define X(kind)                                                                                    \
    case kind:                                                                                     \
        if constexpr ((kind) < kTileKinds || kType == kKvF16) return decode_group<kType, kind>(b); \
        return;
        AKUNU_DECODE_KINDS
#undef X
    }
}

}  // namespace akunu::cuda
