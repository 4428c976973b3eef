// What attention of one row at a time has in common, however a warp takes its keys: who works together, on which keys,
// in which memory, and how warps join what they found.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

// Whether some of the commands may have several rows of a sequence: all of it where it is not said.
#ifndef AKUNU_DECODE_RUNS
#define AKUNU_DECODE_RUNS X(1)
#endif
#define X(run) +1
constexpr bool kHasRuns = (0 AKUNU_DECODE_RUNS) != 0;
#undef X

constexpr u32 kWarpsShift = 3;
static_assert(1 << kWarpsShift == kWarps, "of a team that is the block");

// Warps of a block that work together, and which of them this is.
struct Team {
    u32 shift, index, warp, warps;
    AKUNU_DEVICE explicit Team(u32 shift)
        : shift(shift), index(warp_id() >> shift), warp(warp_id() & ((1u << shift) - 1)), warps(1u << shift) {}
    AKUNU_DEVICE u32 count() const { return kWarps >> shift; }
    AKUNU_DEVICE u32 threads() const { return warps * 32; }
    AKUNU_DEVICE u32 thread() const { return warp * 32 + lane_id(); }
    AKUNU_DEVICE bool is_block() const { return warps == kWarps; }
    AKUNU_DEVICE void sync() const { is_block() ? sync_block() : sync_some(kTeamBarrier + index, threads()); }
};

// The keys of a split: [first, end) are in the cache, and then there are those of this step, if they are the split's.
template <u32 kTypes>
struct SplitKeys {
    KvUnit<key_type(kTypes)> keys;
    u32 apart;  // bytes from a page's keys to their values
    u32 first, end;
    Team team;
    AKUNU_DEVICE KvUnit<value_type(kTypes)> values() const {
        return {keys.cache + apart, keys.pages, keys.page_bytes, keys.head_dim};
    }
    // A row of keys, or of values, into a page's unit of keys.
    AKUNU_DEVICE void store(u8* unit, bool is_value, u32 position, float* x) const {
        if constexpr (key_type(kTypes) == value_type(kTypes)) {
            keys.store_in(unit + (is_value ? apart : 0), position, x);
        } else if (is_value) {
            values().store_in(unit + apart, position, x);
        } else {
            keys.store_in(unit, position, x);
        }
    }
};

// A team's queries, and what its warps leave. Keys says how many heads it takes at once, and what memory it needs for
// each warp, where the warp's results are in the end.
template <typename Keys>
struct DecodeMemory {
    float* q;        // [group][padded]
    float* fresh;    // [own][2][padded]: keys and values of this step, the row's own, then those of rows before it
    float2* scores;  // [own][group]: (score, weight) of these keys
    u32 group, padded;
    AKUNU_DEVICE DecodeMemory(Block b, const Team& team, u32 group, u32 padded)
        : q(reinterpret_cast<float*>(b.shared() + kWarps * Keys::kWarpBytes + kOwnBytes) +
            team.index * (group + 2) * padded),
          fresh(q + group * padded),
          scores(reinterpret_cast<float2*>(b.shared() + kWarps * Keys::kWarpBytes) + team.index * kMaxGroup),
          group(group),
          padded(padded) {}
    AKUNU_DEVICE float* fresh_key(u32 before) const { return fresh + (kHasRuns ? 2 * before * padded : 0); }
    AKUNU_DEVICE float2& own(u32 before, u32 head) const { return scores[(kHasRuns ? before * group : 0) + head]; }
    // Of a head that a warp of the block has taken: weighted values, and (largest score, sum of weights).
    AKUNU_DEVICE float* value(u32 warp, u32 head) const {
        return reinterpret_cast<float*>(shared_memory() + kSharedHead + warp * Keys::kWarpBytes) + head * padded;
    }
    AKUNU_DEVICE float2& stats(u32 warp, u32 head) const {
        return reinterpret_cast<float2*>(value(warp, Keys::kHeads))[head];
    }
    static constexpr u32 kOfTeams = kWarps / 2 * (Keys::kTeamElements + 2 * Keys::kMaxDim);
    static constexpr u32 kOwnBytes = kWarps / 2 * kMaxGroup * sizeof(float2);
    static constexpr u32 kHeadBytes = larger((kMaxGroup + 2) * Keys::kMaxDim, kOfTeams) * 4;
    static_assert(kWarps * Keys::kWarpBytes + kOwnBytes + kHeadBytes <= kOpBytes, "the ring begins behind it");
};

constexpr float kNoScore = -0x1p126f;  // below all that a key has; finite, so that differences are numbers

// A softmax over keys that several parts found, each (largest score, sum of weights) and weighted values, two elements
// of them: these joined.
struct Joined {
    float top = kNoScore, sum = 0.0f;
    float2 value = {0.0f, 0.0f};

    // Some parts at once; a part that met no key has a weight of 0, or nothing to weigh.
    template <u32 kAtOnce, typename Stats, typename Value>
    AKUNU_DEVICE void add(u32 parts, Stats&& stats_of, Value&& value_of) {
        for (u32 first = 0; first < parts; first += kAtOnce) {
            float2 stats[kAtOnce], v[kAtOnce];
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const u32 part = smaller(first + j, parts - 1);  // behind the end the last one again, without weight
                stats[j] = stats_of(part);
                v[j] = value_of(part);
            }
            float most = top;
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) most = fmaxf(most, stats[j].x);
            const float keep = power_of_two(top - most);
            sum *= keep;
            value = {value.x * keep, value.y * keep};
            top = most;
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const float weight = first + j < parts ? power_of_two(stats[j].x - most) : 0.0f;
                sum += weight * stats[j].y;
                value = {value.x + weight * v[j].x, value.y + weight * v[j].y};
            }
        }
    }
    // `sinks`: of heads, or null, of base e: a score that has no value.
    AKUNU_DEVICE float2 result(const float* sinks, u32 head) const {
        const float whole = reciprocal(sinks ? sum + power_of_two(sinks[head] * kLog2E - top) : sum);
        return {value.x * whole, value.y * whole};
    }
};

// What the first `met` of the team's warps found of some heads, from `head` of the group on, and `own` keys of this
// step: calls out(head, d, joined) for pairs of elements.
template <typename Keys, typename Out>
AKUNU_DEVICE void join_warps(const DecodeMemory<Keys>& m, const Team& team, u32 head_dim, u32 head, u32 heads, u32 met,
                             u32 own, Out&& out) {
    team.sync();
    for (u32 i = team.thread(); i < heads * head_dim / 2; i += team.threads()) {
        const u32 h = 2 * i / head_dim, d = 2 * i - h * head_dim, first = team.index * team.warps;
        Joined all;
        all.add<kWarps / 2 + 1>(
            met + own, [&](u32 w) { return w < met ? m.stats(first + w, h) : m.own(w - met, head + h); },
            [&](u32 w) {
                const float* const value = w < met ? m.value(first + w, h) : m.fresh_key(w - met) + m.padded;
                return *reinterpret_cast<const float2*>(value + d);
            });
        out(h, d, all);
    }
}

}  // namespace akunu::cuda
