// What attention of one row at a time has in common, however a warp takes its keys: who works together, on which keys,
// in which memory, and how warps join what they found.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

// Warps of a block that work together, and which of them this is.
struct Team {
    u32 index, warp, warps;
    AKUNU_DEVICE explicit Team(u32 warps) : index(warp_id() / warps), warp(warp_id() & (warps - 1)), warps(warps) {}
    AKUNU_DEVICE u32 count() const { return kWarps / warps; }
    AKUNU_DEVICE u32 threads() const { return warps * 32; }
    AKUNU_DEVICE u32 thread() const { return warp * 32 + lane_id(); }
    AKUNU_DEVICE bool is_block() const { return warps == kWarps; }
    AKUNU_DEVICE void sync() const { is_block() ? sync_block() : sync_some(kTeamBarrier + index, threads()); }
};

// The keys of a split: [first, end) are in the cache, and then there is the row's own, if it is the split's.
template <u32 kType>
struct SplitKeys {
    KvUnit<kType> keys;
    u32 apart;            // bytes from a key to its value
    u32 first, end, own;  // own: 1 or 0
    Team team;
    AKUNU_DEVICE KvUnit<kType> values() const {
        return {keys.cache + apart, keys.pages, keys.page_bytes, keys.head_dim};
    }
};

// A team's queries, and what its warps leave. Keys says how many heads it takes at once, and what memory it needs for
// each warp, where the warp's results are in the end.
template <typename Keys>
struct DecodeMemory {
    float* q;      // [group][padded]
    float* fresh;  // [2][padded]: the row's own key and value
    u32 padded;
    AKUNU_DEVICE DecodeMemory(Block b, const Team& team, u32 group, u32 padded)
        : q(reinterpret_cast<float*>(b.shared() + kWarps * Keys::kWarpBytes) + team.index * (group + 2) * padded),
          fresh(q + group * padded),
          padded(padded) {}
    // Of a head that a warp of the block has taken: weighted values, and (largest score, sum of weights).
    AKUNU_DEVICE float* value(u32 warp, u32 head) const {
        return reinterpret_cast<float*>(shared_memory() + kSharedHead + warp * Keys::kWarpBytes) + head * padded;
    }
    AKUNU_DEVICE float2& stats(u32 warp, u32 head) const {
        return reinterpret_cast<float2*>(value(warp, Keys::kHeads))[head];
    }
    static constexpr u32 kOfTeams = kWarps / 2 * (Keys::kTeamElements + 2 * Keys::kMaxDim);
    static_assert(kWarps * Keys::kWarpBytes + larger((kMaxGroup + 2) * Keys::kMaxDim, kOfTeams) * 4 <= kOpBytes,
                  "the ring begins behind it");
};

constexpr float kNoScore = -0x1p126f;  // below all that a key has; finite, so that differences are numbers

// What the team's warps found of some heads; calls out(head, d, value, largest score, sum).
template <typename Keys, typename Out>
AKUNU_DEVICE void join_warps(const DecodeMemory<Keys>& m, const Team& team, u32 head_dim, u32 heads, Out&& out) {
    team.sync();
    // A warp that met no key has a weight of 0, or nothing to weigh.
    for (u32 i = team.thread(); i < heads * head_dim; i += team.threads()) {
        const u32 h = i / head_dim, d = i - h * head_dim;
        float2 stats[kWarps];
        float value[kWarps], most = kNoScore, sum = 0.0f, v = 0.0f;
        AKUNU_UNROLL
        for (u32 w = 0; w < kWarps; ++w) {
            const bool there = w < team.warps;
            const u32 warp = team.index * team.warps + w;
            stats[w] = there ? m.stats(warp, h) : float2{kNoScore, 0.0f};
            value[w] = there ? m.value(warp, h)[d] : 0.0f;
            most = fmaxf(most, stats[w].x);
        }
        AKUNU_UNROLL
        for (u32 w = 0; w < kWarps; ++w) {
            const float weight = power_of_two(stats[w].x - most);
            sum += weight * stats[w].y;
            v += weight * value[w];
        }
        out(h, d, v, most, sum);
    }
}

}  // namespace akunu::cuda
