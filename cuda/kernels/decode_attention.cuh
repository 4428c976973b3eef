// RoPE, cache write and attention of rows of different texts as one command. Where rows are few, a block takes a KV
// head's group and a split of the row's keys, and the last block of a group to come joins the splits; where they are
// many, teams of a block's warps take a row and a KV head each.
//
// Some lanes of a warp take a key, 8 elements each, with a softmax of their own over the keys that they meet, a few at
// a time; these are joined at the end. Scores are times log2(e), so that weights are powers of two.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

constexpr u32 kQuads = 2;        // of elements that a lane has of a key
constexpr u32 kRowsAhead = 4;    // keys and values of a lane that are on their way
constexpr u32 kAtATime = 2;      // that it takes at a time
constexpr u32 kHeadsAtOnce = 2;  // more, and registers are scarce

// Warps of a block that work together, and which of them this is.
struct Team {
    u32 index, warp, warps;
    // As many teams of two warps at least as it takes for all units at once, where their memory is there.
    AKUNU_DEVICE Team(Block b, u32 units, u32 group_elements) : warps(kWarps) {
        while (warps > 2 && units > b.blocks() * (kWarps / warps) && group_elements <= kTeamElements) warps /= 2;
        index = warp_id() / warps;
        warp = warp_id() % warps;
    }
    static constexpr u32 kTeamElements = 2048;
    AKUNU_DEVICE u32 count() const { return kWarps / warps; }
    AKUNU_DEVICE u32 threads() const { return warps * 32; }
    AKUNU_DEVICE u32 thread() const { return warp * 32 + lane_id(); }
    AKUNU_DEVICE bool is_block() const { return warps == kWarps; }
    AKUNU_DEVICE void sync() const { is_block() ? sync_block() : sync_some(kTeamBarrier + index, threads()); }
};

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

// What a lane reads of a key, and of its value.
template <u32 kType, u32 kLanes>
struct KeyRow {
    CacheQuad<kType> k[kQuads], v[kQuads];

    static AKUNU_DEVICE u32 quad(u32 i) { return lane_id() % kLanes + i * kLanes; }
    // Behind the head's end the last quad again.
    AKUNU_DEVICE void load(const KvUnit<kType>& keys, const KvUnit<kType>& values, u32 key) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            const u32 at = smaller(quad(i), keys.head_dim / 4 - 1);
            k[i] = keys.quad(key, at);
            v[i] = values.quad(key, at);
        }
    }
};

constexpr float kNoScore = -0x1p126f;  // below all that a key has; finite, so that differences are numbers

// Some heads' softmax over keys: the largest score, the sum of weights, and the weighted values.
template <u32 kHeads, u32 kLanes>
struct KeySums {
    float top[kHeads], sum[kHeads], value[kHeads][kQuads][4];

    AKUNU_DEVICE void clear() {
        AKUNU_UNROLL
        for (u32 h = 0; h < kHeads; ++h) {
            top[h] = kNoScore;
            sum[h] = 0.0f;
            AKUNU_UNROLL
            for (u32 i = 0; i < kQuads; ++i) value[h][i][0] = value[h][i][1] = value[h][i][2] = value[h][i][3] = 0.0f;
        }
    }
    AKUNU_DEVICE void raise(u32 h, float to) {
        const float factor = power_of_two(top[h] - to);
        top[h] = to;
        sum[h] *= factor;
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) value[h][i][e] *= factor;
        }
    }
    // Keys that are not there have kNoScore. A lane that has met no other counts them, until join_warp raises it.
    template <u32 kKeys>
    AKUNU_DEVICE float raise_to(u32 h, const float (&score)[kKeys]) {
        float most = top[h];
        AKUNU_UNROLL
        for (u32 a = 0; a < kKeys; ++a) most = fmaxf(most, score[a]);
        raise(h, most);
        return most;
    }
    AKUNU_DEVICE void add(u32 h, float weight, const float4 (&v)[kQuads]) {
        sum[h] += weight;
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            value[h][i][0] += weight * v[i].x;
            value[h][i][1] += weight * v[i].y;
            value[h][i][2] += weight * v[i].z;
            value[h][i][3] += weight * v[i].w;
        }
    }
    // With the lanes that met other keys.
    AKUNU_DEVICE void join_warp(u32 heads) {
        AKUNU_UNROLL
        for (u32 h = 0; h < kHeads; ++h) {
            if (h >= heads) continue;
            float most = top[h];
            AKUNU_UNROLL
            for (u32 mask = kLanes; mask < 32; mask *= 2) most = fmaxf(most, shuffle_xor(most, mask));
            raise(h, most);
            AKUNU_UNROLL
            for (u32 mask = kLanes; mask < 32; mask *= 2) {
                sum[h] += shuffle_xor(sum[h], mask);
                AKUNU_UNROLL
                for (u32 i = 0; i < kQuads; ++i) {
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 4; ++e) value[h][i][e] += shuffle_xor(value[h][i][e], mask);
                }
            }
        }
    }
};

// The parts of a team's shared memory.
struct DecodeMemory {
    float* q;       // [group][padded]
    float* fresh;   // [2][padded]: the row's own key and value
    float* values;  // [warps][kHeadsAtOnce][padded]
    float2* stats;  // [warps][kHeadsAtOnce] of (largest score, sum)
    AKUNU_DEVICE DecodeMemory(Block b, const Team& team, u32 group, u32 padded)
        : q(reinterpret_cast<float*>(b.shared()) + team.index * floats(team.warps, group, padded)),
          fresh(q + group * padded),
          values(fresh + 2 * padded),
          stats(reinterpret_cast<float2*>(values + team.warps * kHeadsAtOnce * padded)) {}
    AKUNU_DEVICE static constexpr u32 floats(u32 warps, u32 group, u32 padded) {
        return (group + 2 + warps * kHeadsAtOnce) * padded + warps * kHeadsAtOnce * 2;
    }
};
static_assert(DecodeMemory::floats(kWarps, kMaxGroup, kMaxHeadDim) * 4 <= kOpBytes &&
                  DecodeMemory::floats(2, Team::kTeamElements / kMaxHeadDim, kMaxHeadDim) * kWarps / 2 * 4 <= kOpBytes,
              "the ring begins behind it");

// The keys of a split that are in the cache, [first, end): all but the row's own.
template <u32 kType, u32 kLanes>
struct SplitKeys {
    KvUnit<kType> keys, values;
    u32 first, end;
    Team team;

    AKUNU_DEVICE u32 warp_start() const { return first + team.warp * (32 / kLanes); }
    AKUNU_DEVICE u32 start() const { return warp_start() + lane_id() / kLanes; }
    // From one row of a lane to its next.
    AKUNU_DEVICE u32 stride() const { return team.warps * (32 / kLanes); }
    // Behind the end the last one again.
    AKUNU_DEVICE void load(KeyRow<kType, kLanes>& row, u32 i) const {
        row.load(keys, values, smaller(start() + i * stride(), larger(end, 1) - 1));
    }
};

// Some heads of a group, from `head` on, against a split's keys, the first of which are on their way, and the row's
// own, which is in shared memory, if it is the split's; calls out(head of the group, d, value, largest score, sum).
template <u32 kType, u32 kHeads, u32 kLanes, typename Out>
AKUNU_DEVICE void attend_heads(const DecodeAttentionParams& p, const DecodeMemory& m,
                               const SplitKeys<kType, kLanes>& range, KeyRow<kType, kLanes> (&rows)[kRowsAhead],
                               bool own, u32 head, u32 heads, Out&& out) {
    const u32 quads = (p.head_dim + 3) / 4, padded = quads * 4, lane = lane_id() % kLanes;
    const float scale = p.scale, cap = p.softcap;
    KeySums<kHeads, kLanes> sums;
    sums.clear();
    const auto product = [&](u32 h, const float4(&k)[kQuads]) {
        float sum = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            const u32 quad = lane + i * kLanes;
            if (quad >= quads) continue;
            const float4 x = *reinterpret_cast<const float4*>(m.q + (head + h) * padded + quad * 4);
            sum += x.x * k[i].x + x.y * k[i].y + x.z * k[i].z + x.w * k[i].w;
        }
        return sum;
    };
    const auto score_of = [&](float product, bool there) {
        AKUNU_UNROLL
        for (u32 mask = kLanes / 2; mask > 0; mask /= 2) product += shuffle_xor(product, mask);
        return there ? soft_cap(product * scale, cap) * kLog2E : kNoScore;
    };
    // Whole warps go through: they exchange sums.
    for (u32 n = 0; range.warp_start() + n * range.stride() < range.end; n += kRowsAhead) {
        AKUNU_UNROLL
        for (u32 first = 0; first < kRowsAhead; first += kAtATime) {
            if (range.warp_start() + (n + first) * range.stride() >= range.end) break;
            float score[kHeads][kAtATime];
            CacheQuad<kType> values[kAtATime][kQuads];
            AKUNU_UNROLL
            for (u32 a = 0; a < kAtATime; ++a) {
                KeyRow<kType, kLanes>& row = rows[first + a];
                float4 k[kQuads];
                AKUNU_UNROLL
                for (u32 i = 0; i < kQuads; ++i) {
                    k[i] = row.k[i].value();
                    values[a][i] = row.v[i];
                }
                // Not behind the end: to look a page up is to wait.
                const u32 next = n + first + a + kRowsAhead;
                if (range.warp_start() + next * range.stride() < range.end) range.load(row, next);
                AKUNU_UNROLL
                for (u32 h = 0; h < kHeads; ++h) score[h][a] = product(h, k);
            }
            AKUNU_UNROLL
            for (u32 h = 0; h < kHeads; ++h) {
                AKUNU_UNROLL
                for (u32 a = 0; a < kAtATime; ++a) {
                    const u32 key = range.start() + (n + first + a) * range.stride();
                    score[h][a] = score_of(score[h][a], key < range.end);
                }
                const float most = sums.raise_to(h, score[h]);
                AKUNU_UNROLL
                for (u32 a = 0; a < kAtATime; ++a) score[h][a] = power_of_two(score[h][a] - most);
            }
            AKUNU_UNROLL
            for (u32 a = 0; a < kAtATime; ++a) {
                float4 v[kQuads];
                AKUNU_UNROLL
                for (u32 i = 0; i < kQuads; ++i) v[i] = values[a][i].value();
                AKUNU_UNROLL
                for (u32 h = 0; h < kHeads; ++h) sums.add(h, score[h][a], v);
            }
        }
    }
    // By the warp that met the fewest.
    if (own && range.team.warp + 1 == range.team.warps) {
        float4 k[kQuads], v[kQuads];
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            const u32 quad = smaller(lane + i * kLanes, quads - 1);
            k[i] = *reinterpret_cast<const float4*>(m.fresh + quad * 4);
            v[i] = *reinterpret_cast<const float4*>(m.fresh + padded + quad * 4);
        }
        AKUNU_UNROLL
        for (u32 h = 0; h < kHeads; ++h) {
            const float score[1] = {score_of(product(h, k), lane_id() < kLanes)};
            const float most = sums.raise_to(h, score);
            sums.add(h, power_of_two(score[0] - most), v);
        }
    }
    sums.join_warp(heads);
    if (lane_id() < kLanes) {
        AKUNU_UNROLL
        for (u32 h = 0; h < kHeads; ++h) {
            if (h >= heads) continue;
            float* to = m.values + (range.team.warp * kHeads + h) * padded;
            AKUNU_UNROLL
            for (u32 i = 0; i < kQuads; ++i) {
                const u32 quad = lane + i * kLanes;
                const float* x = sums.value[h][i];
                if (quad < quads) *reinterpret_cast<float4*>(to + quad * 4) = float4{x[0], x[1], x[2], x[3]};
            }
            if (lane == 0) m.stats[range.team.warp * kHeads + h] = {sums.top[h], sums.sum[h]};
        }
    }
    range.team.sync();
    // A warp that met no key has a weight of 0, or nothing to weigh.
    for (u32 h = 0; h < heads; ++h) {
        for (u32 d = range.team.thread(); d < p.head_dim; d += range.team.threads()) {
            float2 stats[kWarps];
            float value[kWarps], most = kNoScore, sum = 0.0f, v = 0.0f;
            AKUNU_UNROLL
            for (u32 w = 0; w < kWarps; ++w) {
                const bool there = w < range.team.warps;
                stats[w] = there ? m.stats[w * kHeads + h] : float2{kNoScore, 0.0f};
                value[w] = there ? m.values[(w * kHeads + h) * padded + d] : 0.0f;
                most = fmaxf(most, stats[w].x);
            }
            AKUNU_UNROLL
            for (u32 w = 0; w < kWarps; ++w) {
                const float weight = power_of_two(stats[w].x - most);
                sum += weight * stats[w].y;
                v += weight * value[w];
            }
            out(head + h, d, v, most, sum);
        }
    }
}

// What blocks leave of a row's heads, one for each split: [splits][rows·n_heads][head_dim] values, then of each
// (largest score, sum).
struct Partials {
    float* values;
    u32 heads, splits, hd;  // heads: of all rows
    AKUNU_DEVICE float* value(u32 head, u32 split) const { return values + u64(split * heads + head) * hd; }
    AKUNU_DEVICE float* stats(u32 head, u32 split) const {
        return values + u64(splits) * heads * hd + 2 * (split * heads + head);
    }
};

// The splits of some heads of a row, by the block that came last.
AKUNU_DEVICE void join_splits(const Partials& partials, const Output& out, u32 head, u32 heads, u32 splits) {
    for (u32 i = thread_id(); i < heads * partials.hd; i += kThreads) {
        const u32 h = head + i / partials.hd, d = i % partials.hd;
        float most = kNoScore, sum = 0.0f, v = 0.0f;
        for (u32 s = 0; s < splits; ++s) most = fmaxf(most, load_fresh(partials.stats(h, s)));
        for (u32 s = 0; s < splits; ++s) {
            const float weight = power_of_two(load_fresh(partials.stats(h, s)) - most);
            sum += weight * load_fresh(partials.stats(h, s) + 1);
            v += weight * load_fresh(partials.value(h, s) + d);
        }
        out.store(u64(h) * partials.hd + d, v / sum);
    }
}

template <u32 kType, u32 kGroup, u32 kLanes>
AKUNU_DEVICE void decode_group(Block b) {
    const auto& p = b.params<DecodeAttentionParams>();
    const u32 group = p.n_heads / p.n_kv_heads, hd = p.head_dim, padded = (hd + 3) / 4 * 4;
    // Splits of the keys: as many as there are blocks for, each of a tile at least.
    const u32 pairs = p.rows * p.n_kv_heads;  // of a row and a KV head
    const u32 splits = larger(1, smaller(splits_of(p.window ? smaller(p.keys, p.window) : p.keys), b.blocks() / pairs));
    // Where there are blocks enough, the heads of a group are dealt to several.
    u32 halvings = 0;  // parts are two to that power
    while (1u << halvings < group && splits * pairs << (halvings + 1) <= b.blocks()) ++halvings;
    const Team team(b, splits * pairs, group * padded);
    const DecodeMemory m(b, team, group, padded);
    const Partials partials{b.buffer<float>(8), p.rows * p.n_heads, splits, hd};
    const Output out{b.buffer<float>(9), b.buffer<u16>(10), p.formats};
    bool waits = true;
    for (u32 u = b.first() * team.count() + team.index; u < splits * pairs << halvings;
         u += b.blocks() * team.count()) {
        const u32 unit = u >> halvings, split = unit / pairs, pair = unit - split * pairs;
        const u32 r = pair / p.n_kv_heads, kv = pair - r * p.n_kv_heads, part = u & ((1u << halvings) - 1);
        const u32 first_head = group * part >> halvings, end_head = group * (part + 1) >> halvings;
        const Row row = b.buffer<Row>(6)[r];
        const u32 position = row.position + p.step, begin = first_key(position, p.window), n = position + 1 - begin;
        const u32 row_splits = smaller(splits, splits_of(n));  // others may see more keys
        if (first_head == end_head || split >= row_splits) continue;
        const bool own = split + 1 == row_splits;
        const SplitKeys<kType, kLanes> range{
            kv_unit<kType>(b.buffer<u8>(4), b.buffer<u32>(7), p, row.slot, kv),
            kv_unit<kType>(b.buffer<u8>(4), b.buffer<u32>(7), p, row.slot, p.n_kv_heads + kv),
            begin + n * split / row_splits, begin + n * (split + 1) / row_splits - (own ? 1 : 0), team};
        KeyRow<kType, kLanes> rows[kRowsAhead];
        AKUNU_UNROLL
        for (u32 i = 0; i < kRowsAhead; ++i) range.load(rows[i], i);  // none of this step's
        u8* const page_of_keys = range.keys.page(position);
        u8* const page_of_values = range.values.page(position);
        if (waits) {
            b.ready();
        } else {
            team.sync();  // some thread may still read what the unit before has left
        }
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
        const auto store = [&](u32 h, u32 d, float v, float top, float sum) {
            const u32 of = pair * group + h;
            if (row_splits == 1) return out.store(u64(of) * hd + d, v / sum);
            partials.value(of, split)[d] = v;
            if (d != 0) return;
            partials.stats(of, split)[0] = top;
            partials.stats(of, split)[1] = sum;
        };
        if (kGroup == 1 || end_head - first_head == 1) {
            attend_heads<kType, 1, kLanes>(p, m, range, rows, own, first_head, 1, store);
        } else {
            for (u32 head = first_head; head < end_head; head += kHeadsAtOnce) {
                if (head != first_head) {
                    team.sync();
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kRowsAhead; ++i) range.load(rows[i], i);
                }
                attend_heads<kType, kHeadsAtOnce, kLanes>(p, m, range, rows, own, head,
                                                          smaller(kHeadsAtOnce, end_head - head), store);
            }
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

template <u32 kType, u32 kGroup>
AKUNU_DEVICE_CALL void decode_attention(Block b) {
    switch (key_lanes(b.params<DecodeAttentionParams>().head_dim)) {
#define X(n) \
    case n:  \
        return decode_group<kType, kGroup, n>(b);
        AKUNU_LANES
#undef X
    }
}

}  // namespace akunu::cuda
