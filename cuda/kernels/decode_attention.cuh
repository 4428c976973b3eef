// RoPE, cache write and attention of rows of different sequences, or of a few of each, as one command. Where rows are
// few, a block takes a KV head's group and a split of the row's keys, and the last block of a group to come joins the
// splits; where they are many, teams of a block's warps take a row and a KV head each. Keys of this step that a row
// sees, its own and those of rows just before it of the same sequence, are not in the cache yet: whoever needs them
// turns them by itself. Scores are times log2(e), so that weights are powers of two.
#pragma once

#include "decode_lanes.cuh"
#include "decode_tiles.cuh"

namespace akunu::cuda {

// Pairs of a head's elements, of which a lane has pair lane, lane + 32, ...: those that RoPE turns together, then
// neighbours.
template <u32 kPairs>
struct HeadPairs {
    float2 v[kPairs];
    u32 apart, turned;  // from an element to its partner; pairs that are so far apart

    AKUNU_DEVICE HeadPairs(u32 style, u32 rope_dim)
        : apart(style == kRopeInterleaved ? 1 : rope_dim / 2), turned(style == kRopeInterleaved ? 0 : rope_dim / 2) {}
    static AKUNU_DEVICE u32 pair(u32 i) { return lane_id() + 32 * i; }
    AKUNU_DEVICE uint2 at(u32 i) const {
        const u32 of = pair(i);
        return of < turned ? uint2{of, of + apart} : uint2{2 * of, 2 * of + 1};
    }
    // Words that the command before this one left, from `word` on, or floats behind its barrier, which are at source().
    template <typename Source>
    AKUNU_DEVICE void load(Block b, Source&& source, u32 word, u32 hd) {
        const u64* const words = b.taken();
        if (any_of_warp(words == nullptr)) {
            const float* const x = source();
            AKUNU_UNROLL
            for (u32 i = 0; i < kPairs; ++i) {
                v[i] = pair(i) < hd / 2 ? float2{x[at(i).x], x[at(i).y]} : float2{0.0f, 0.0f};
            }
            return;
        }
        const u32 number = b.taken_number();
        wait_for_words([&] {
            bool all = true;
            AKUNU_UNROLL
            for (u32 i = 0; i < kPairs; ++i) {
                v[i] = {0.0f, 0.0f};
                if (pair(i) >= hd / 2) continue;
                const u64 first = load_word(words + (word + at(i).x)), second = load_word(words + (word + at(i).y));
                v[i] = {bits_to_float(value_of(first)), bits_to_float(value_of(second))};
                all &= number_of(first) == number && number_of(second) == number;
            }
            return all;
        });
    }
    AKUNU_DEVICE void store(float* head, u32 hd) const {
        AKUNU_UNROLL
        for (u32 i = 0; i < kPairs; ++i) {
            if (pair(i) >= hd / 2) continue;
            head[at(i).x] = v[i].x;
            head[at(i).y] = v[i].y;
        }
        sync_warp();
    }
};

// A head of q or k by a warp: normalised where the model does so, and turned by its position. What was there before it
// is asked for first, and what the parameters say is looked up, since behind its words each look-up would be waited
// for. `place` is where the head begins in its row.
template <typename Keys, typename Source>
AKUNU_DEVICE void rope_head(Block b, const DecodeAttentionParams& p, Source&& source, u32 word, u32 place,
                            bool is_query, const float* table, float* head) {
    constexpr u32 kPairs = Keys::kMaxDim / 64;
    const u32 hd = Keys::head_dim(p);
    const bool normed = p.qk_norm != 0, centred = p.qk_norm == kHeadNormLayer;
    const float eps = p.eps;
    const float* const norms = b.buffer<float>(5);
    const u32 norm = centred ? place : is_query ? 0 : hd;
    HeadPairs<kPairs> pairs(p.style, p.rope_dim);
    float2 weight[kPairs];
    float sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kPairs; ++i) {
        weight[i] = {1.0f, 1.0f};
        if (normed && pairs.pair(i) < hd / 2) weight[i] = {norms[norm + pairs.at(i).x], norms[norm + pairs.at(i).y]};
    }
    const Turn<kPairs> turn(table, p.rope_dim);
    pairs.load(b, source, word, hd);
    if (centred) {
        float all = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kPairs; ++i) all += pairs.v[i].x + pairs.v[i].y;
        const float mean = reduce_warp(all, Add()) * reciprocal(float(hd));
        AKUNU_UNROLL
        for (u32 i = 0; i < kPairs; ++i) {
            if (pairs.pair(i) < hd / 2) pairs.v[i] = {pairs.v[i].x - mean, pairs.v[i].y - mean};
        }
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < kPairs; ++i) sum += pairs.v[i].x * pairs.v[i].x + pairs.v[i].y * pairs.v[i].y;
    const float scale = normed ? inverse_root(reduce_warp(sum, Add()) * reciprocal(float(hd)) + eps) : 1.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kPairs; ++i) {
        pairs.v[i] = turn.turned(i, {pairs.v[i].x * scale * weight[i].x, pairs.v[i].y * scale * weight[i].y});
    }
    pairs.store(head, hd);
}

// A head of v.
template <typename Keys, typename Source>
AKUNU_DEVICE void copy_head(Block b, const DecodeAttentionParams& p, Source&& source, u32 word, float* head) {
    HeadPairs<Keys::kMaxDim / 64> pairs(kRopeInterleaved, 0);
    pairs.load(b, source, word, Keys::head_dim(p));
    pairs.store(head, Keys::head_dim(p));
}

// A head's score with a key of this step, by a warp: 0 is the row's own, 1 that of the row before it.
template <typename Keys>
AKUNU_DEVICE void score_own(const DecodeAttentionParams& p, const DecodeMemory<Keys>& m, u32 head, u32 before) {
    const u32 hd = Keys::head_dim(p);
    const float* const key = m.fresh_key(before);
    float sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < Keys::kMaxDim / 64; ++i) {
        const u32 pair = lane_id() + 32 * i;  // behind the head's end are zeros
        if (2 * pair >= hd) continue;
        const float2 q = Keys::settled(m.q + head * m.padded, pair);
        sum += q.x * key[2 * pair] + q.y * key[2 * pair + 1];
    }
    sum = reduce_warp(sum, Add());
    if (lane_id() == 0) m.own(before, head) = {soft_cap(sum * p.scale, p.softcap) * kLog2E, 1.0f};
}

// Where results go: as they are, and as words of two F16 ones, if the command behind this one takes them.
struct DecodeOutput {
    Output out;
    u64* words;
    u32 number;
    AKUNU_DEVICE void store2(u64 i, float2 v) const {
        if (words) leave_word(words + i / 2, pack_halves(v.x, v.y), number);
        out.store2(i, v);
    }
};

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
AKUNU_DEVICE void join_splits(const Partials& partials, const DecodeOutput& out, const float* sinks, u32 n_heads,
                              u32 head, u32 heads, u32 splits) {
    for (u32 i = 2 * thread_id(); i < heads * partials.hd; i += 2 * kThreads) {
        const u32 h = head + i / partials.hd, d = i % partials.hd;
        Joined all;
        all.add<8>(
            splits, [&](u32 s) { return load_fresh(&partials.stats(h, s)); },
            [&](u32 s) { return load_fresh(reinterpret_cast<const float2*>(partials.value(h, s) + d)); });
        out.store2(u64(h) * partials.hd + d, all.result(sinks, h % n_heads));
    }
}

template <u32 kTypes, u32 kKind, bool kTiles = (kKind >= kTileKinds)>
struct KeysOf {
    using Keys = LaneKeys<kTypes, kKind>;
};
template <u32 kTypes, u32 kKind>
struct KeysOf<kTypes, kKind, true> {
    using Keys = TileKeys<kKind>;
};

// Splits of the keys: as many as there are blocks for, each of some keys at least. Teams: as many of two warps at least
// as it takes for all units at once, where their memory is there.
template <typename Keys>
AKUNU_DEVICE const DecodeShape& decode_shape(Block b) {
    const auto& p = b.params<DecodeAttentionParams>();
    DecodeShape& s = block_state().decode;
    if (any_of_warp(b.command().as_before != 0)) return s;
    sync_block();
    if (thread_id() == 0) {
        const GroupParts groups(p);
        const u32 group = groups.heads, pairs = p.rows * groups.all;  // of a row and a part of a group
        const u32 most = splits_of(p.window ? smaller(p.keys, p.window) : p.keys, Keys::kLeastSplit);
        s = {0, 0, 0, kWarpsShift, group, groups.parts};
        s.splits = larger(1, smaller(most, b.blocks() / pairs));
        const u32 units = s.splits * pairs;
        // Where there are blocks enough, the heads of a group are dealt to several.
        while (group > Keys::kHeadsTogether << s.halvings && units << (s.halvings + 1) <= b.blocks()) ++s.halvings;
        s.units = units << s.halvings;
        const bool fits = group * rounded_up(p.head_dim, 4) <= Keys::kTeamElements;
        while (fits && s.team_shift > 1 && units > b.blocks() * (kWarps >> s.team_shift)) --s.team_shift;
        for (u32 i = 0; i < kWarps / 2; ++i) block_state().unit[i].unit = 0;
    }
    sync_block();
    return s;
}
// Whether so many positions before a unit's begins on the page before its own.
AKUNU_DEVICE bool has_page_before(const DecodeUnit& at, u32 before) { return at.position % kPagePositions < before; }
// Whether a row is so many positions behind another one of its sequence.
AKUNU_DEVICE bool follows(const Row& before, const Row& row, u32 by) {
    return before.slot == row.slot && before.position + by == row.position;
}
// `known` says whether it was found out by a layer before this one.
template <typename Keys>
AKUNU_DEVICE const DecodeUnit& decode_unit(Block b, const Team& team, u32 u, bool& known) {
    DecodeUnit& at = block_state().unit[team.index];
    known = all_of_warp(at.unit == u + 1);
    if (known) return at;
    const auto& p = b.params<DecodeAttentionParams>();
    team.sync();
    if (team.thread() == 0) {
        const DecodeShape& s = block_state().decode;
        const u32 group = s.group, of_row = p.n_kv_heads * s.parts, pairs = p.rows * of_row;
        const u32 unit = u >> s.halvings, part = u & ((1u << s.halvings) - 1), pair = unit % pairs;
        at.unit = u + 1;
        at.split = unit / pairs;
        at.row = pair / of_row;
        at.part = pair % of_row;
        at.kv = at.part / s.parts;
        at.first_head = group * part >> s.halvings;
        at.end_head = group * (part + 1) >> s.halvings;
        const Row* const rows = b.buffer<Row>(6);
        const Row row = rows[at.row];
        at.slot = row.slot;
        at.position = row.position + p.step;
        const u32 begin = first_key(at.position, p.window), n = at.position + 1 - begin;
        at.splits = smaller(s.splits, splits_of(n, Keys::kLeastSplit));  // others may see more keys
        at.there = at.first_head != at.end_head && at.split < at.splits;
        at.own = at.split + 1 == at.splits;
        if (kHasRuns && at.own) {
            const u32 most = smaller(smaller(n, at.row + 1), p.run);
            while (at.own < most && follows(rows[at.row - at.own], row, at.own)) ++at.own;
        }
        at.first = begin + n * at.split / at.splits;
        at.end = begin + n * (at.split + 1) / at.splits - at.own;
        const u32* const pages = b.buffer<u32>(7) + u64(at.slot) * p.max_pages;
        at.page = pages[at.position / kPagePositions];
        at.page_before = has_page_before(at, at.own - 1) ? pages[at.position / kPagePositions - 1] : 0;
    }
    team.sync();
    return at;
}

template <u32 kTypes, u32 kKind>
AKUNU_DEVICE void decode_group(Block b) {
    using Keys = typename KeysOf<kTypes, kKind>::Keys;
    const auto& p = b.params<DecodeAttentionParams>();
    const u32 hd = Keys::head_dim(p), padded = rounded_up(hd, 4);
    const DecodeShape& shape = decode_shape<Keys>(b);
    const u32 group = shape.group;
    const Team team(shape.team_shift);
    const DecodeMemory<Keys> m(b, team, group, padded);
    // Made where they are used: kept, they would be on the stack.
    const auto partials = [&] { return Partials{b.buffer<float>(8), p.rows * p.n_heads, shape.splits, hd}; };
    const auto out = [&] {
        const Walk& now = block_state().walk[b.slot];
        return DecodeOutput{{b.buffer<float>(9), b.buffer<u16>(10), p.formats}, now.left, now.number};
    };
    bool waits = true;
    for (u32 u = b.first() * team.count() + team.index; u < shape.units; u += b.blocks() * team.count()) {
        if (!waits) team.sync();  // some thread may still read what the unit before has left
        bool known;
        const DecodeUnit& at = decode_unit<Keys>(b, team, u, known);
        if (!at.there) continue;
        const SplitKeys<kTypes> range{key_unit<kTypes>(b.buffer<u8>(4), b.buffer<u32>(7), p, at.slot, at.kv),
                                      u32(values_at(kTypes, p.n_kv_heads, at.kv, hd) - keys_at(kTypes, at.kv, hd)),
                                      at.first, at.end, team};
        Keys keys(range);
        const u32 part = at.row * p.n_kv_heads * shape.parts + at.part;  // of all rows
        for (u32 head = at.first_head; head < at.end_head; head += Keys::kHeads) {
            if (head != at.first_head) team.sync();
            keys.start(known);  // none of this step's
            known = true;
            if (head == at.first_head) {
                if (waits) b.wait();
                waits = false;
                // Query heads, and where it is their turn the keys and values of this step; by the warps that meet the
                // fewest keys first.
                const u32 first_job = at.first_head + team.warps - 1 - team.warp;
                for (u32 job = first_job; job < at.end_head + 2 * at.own; job += team.warps) {
                    const bool is_query = job < at.end_head;
                    const u32 before = !kHasRuns || is_query ? 0 : (job - at.end_head) / 2, row = at.row - before;
                    const bool is_value = !is_query && job - at.end_head != 2 * before;
                    float* const to = is_query ? m.q + job * padded : m.fresh_key(before) + (is_value ? padded : 0);
                    const auto source = [&]() -> const float* {
                        return is_query ? b.buffer<float>(0) + (u64(part) * group + job) * hd
                                        : b.buffer<float>(is_value ? 2 : 1) + (u64(row) * p.n_kv_heads + at.kv) * hd;
                    };
                    // Words of q, k and v lie one behind the other, each those of all rows.
                    const u32 before_kv = is_query ? 0 : p.n_heads + (is_value ? p.n_kv_heads : 0);
                    const u32 place = (is_query ? at.part * group + job : before_kv + at.kv) * hd;
                    const u32 word =
                        (is_query ? part * group + job : p.rows * before_kv + row * p.n_kv_heads + at.kv) * hd;
                    for (u32 d = hd + lane_id(); d < padded; d += 32) to[d] = 0.0f;
                    if (is_value) {
                        copy_head<Keys>(b, p, source, word, to);
                    } else {
                        rope_head<Keys>(b, p, source, word, place, is_query, b.buffer<float>(3) + u64(row) * p.rope_dim,
                                        to);
                    }
                    if (is_query) {
                        Keys::settle(to);
                        continue;
                    }
                    // Those of rows before it are stored by these, too: the same bits.
                    const u32 page = kHasRuns && has_page_before(at, before) ? at.page_before : at.page;
                    range.store(range.keys.cache + page * range.keys.page_bytes, is_value, at.position - before, to);
                }
                team.sync();
                for (u32 before = 0; before < at.own; ++before) {
                    for (u32 h = first_job; h < at.end_head; h += team.warps) score_own(p, m, h, before);
                    if (!kHasRuns) break;
                }
            }
            const u32 heads = smaller(Keys::kHeads, at.end_head - head), met = keys.met();
            if (team.warp < met) keys.attend(p, m, head, heads);
            const Partials parts = partials();
            const DecodeOutput to = out();
            const float* const sinks = b.buffer<float>(11);
            join_warps(m, team, hd, head, heads, met, at.own, [&](u32 h, u32 d, const Joined& all) {
                const u32 of = part * group + head + h;
                if (at.splits == 1) {
                    return to.store2(u64(of) * hd + d, all.result(sinks, at.part * group + head + h));
                }
                *reinterpret_cast<float2*>(parts.value(of, at.split) + d) = all.value;
                if (d == 0) parts.stats(of, at.split) = {all.top, all.sum};
            });
        }
        if (at.splits == 1) continue;
        // The team is the block.
        if (!comes_last(b.grid()->tickets[u % (shape.units / shape.splits)], at.splits)) continue;
        join_splits(partials(), out(), b.buffer<float>(11), p.n_heads, part * group + at.first_head,
                    at.end_head - at.first_head, at.splits);
    }
    if (waits) b.wait();
}

// Kinds that are compiled. Where there is one, commands have no other, and none is looked up.
#define X(kind) +1
constexpr u32 kDecodeKinds = 0 AKUNU_DECODE_KINDS;
#undef X

template <u32 kTypes>
AKUNU_DEVICE_CALL void decode_attention(Block b) {
#define X(kind)                                                                                               \
    if constexpr ((kind) < kTileKinds || kTypes == kv_pair(kKvF16, kKvF16)) {                                 \
        if (kDecodeKinds == 1 || decode_kind(kTypes, b.params<DecodeAttentionParams>().head_dim) == (kind)) { \
            return decode_group<kTypes, kind>(b);                                                             \
        }                                                                                                     \
    }
    AKUNU_DECODE_KINDS
#undef X
}

}  // namespace akunu::cuda
