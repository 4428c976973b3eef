// Keys of any cache by lanes: some lanes of a warp take a key, 8 elements each, with a softmax of their own over the
// keys that they meet, a few at a time; these are joined at the end.
#pragma once

#include "decode_team.cuh"

namespace akunu::cuda {

constexpr u32 kQuads = 2;      // of elements that a lane has of a key
constexpr u32 kRowsAhead = 4;  // keys and values of a lane that are on their way
constexpr u32 kAtATime = 2;    // that it takes at a time

// What a lane reads of a key, and of its value.
template <u32 kTypes, u32 kLanes>
struct KeyRow {
    CacheQuad<key_type(kTypes)> k[kQuads];
    CacheQuad<value_type(kTypes)> v[kQuads];

    static AKUNU_DEVICE u32 quad(u32 i) { return lane_id() % kLanes + i * kLanes; }
    // Behind the head's end the last quad again.
    AKUNU_DEVICE void load(const KvUnit<key_type(kTypes)>& keys, const KvUnit<value_type(kTypes)>& values, u32 key) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kQuads; ++i) {
            const u32 at = smaller(quad(i), keys.head_dim / 4 - 1);
            k[i] = keys.quad(key, at);
            v[i] = values.quad(key, at);
        }
    }
};

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

// A split's keys, dealt to the team's lanes.
template <u32 kTypes, u32 kLanes>
struct LaneKeys {
    static constexpr u32 kHeads = 2;  // more, and registers are scarce
    static constexpr u32 kMaxDim = kLanes * kQuads * 4, kTeamElements = 2048;
    static constexpr u32 kLeastSplit = 128;   // keys
    static constexpr u32 kHeadsTogether = 1;  // fewer heads take less time
    static constexpr u32 kWarpBytes = kHeads * (kMaxDim * 4 + 8);

    static AKUNU_DEVICE u32 head_dim(const DecodeAttentionParams& p) { return p.head_dim; }
    // Queries are taken as they are.
    static AKUNU_DEVICE void settle(float*) {}
    static AKUNU_DEVICE float2 settled(const float* head, u32 pair) {
        return reinterpret_cast<const float2*>(head)[pair];
    }

    SplitKeys<kTypes> range;
    KeyRow<kTypes, kLanes> rows[kRowsAhead];

    AKUNU_DEVICE explicit LaneKeys(const SplitKeys<kTypes>& range) : range(range) {}

    // Warps that meet keys.
    AKUNU_DEVICE u32 met() const {
        constexpr u32 kOfWarp = 32 / kLanes;
        return smaller(range.team.warps, (range.end - range.first + kOfWarp - 1) / kOfWarp);
    }
    AKUNU_DEVICE u32 warp_start() const { return range.first + range.team.warp * (32 / kLanes); }
    // From one row of a lane to its next.
    AKUNU_DEVICE u32 stride() const { return range.team.warps * (32 / kLanes); }
    // Behind the end the last one again.
    AKUNU_DEVICE void load(KeyRow<kTypes, kLanes>& row, u32 i) const {
        const u32 key = warp_start() + lane_id() / kLanes + i * stride();
        row.load(range.keys, range.values(), smaller(key, larger(range.end, 1) - 1));
    }
    AKUNU_DEVICE void start(bool) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kRowsAhead; ++i) load(rows[i], i);
    }
    // Heads from `head` on of a group. Leaves the warp's results.
    AKUNU_DEVICE void attend(const DecodeAttentionParams& p, const DecodeMemory<LaneKeys>& m, u32 head, u32 heads) {
        heads == 1 ? attend_heads<1>(p, m, head, 1) : attend_heads<kHeads>(p, m, head, heads);
    }
    template <u32 kNow>
    AKUNU_DEVICE void attend_heads(const DecodeAttentionParams& p, const DecodeMemory<LaneKeys>& m, u32 head,
                                   u32 heads) {
        const u32 quads = (p.head_dim + 3) / 4, lane = lane_id() % kLanes;
        const float scale = p.scale, cap = p.softcap;
        KeySums<kNow, kLanes> sums;
        sums.clear();
        const auto product = [&](u32 h, const float4(&k)[kQuads]) {
            float sum = 0.0f;
            AKUNU_UNROLL
            for (u32 i = 0; i < kQuads; ++i) {
                const u32 quad = lane + i * kLanes;
                if (quad >= quads) continue;
                const float4 x = *reinterpret_cast<const float4*>(m.q + (head + h) * m.padded + quad * 4);
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
        for (u32 n = 0; warp_start() + n * stride() < range.end; n += kRowsAhead) {
            AKUNU_UNROLL
            for (u32 first = 0; first < kRowsAhead; first += kAtATime) {
                if (warp_start() + (n + first) * stride() >= range.end) break;
                float score[kNow][kAtATime];
                CacheQuad<value_type(kTypes)> values[kAtATime][kQuads];
                AKUNU_UNROLL
                for (u32 a = 0; a < kAtATime; ++a) {
                    KeyRow<kTypes, kLanes>& row = rows[first + a];
                    float4 k[kQuads];
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kQuads; ++i) {
                        k[i] = row.k[i].value();
                        values[a][i] = row.v[i];
                    }
                    // Not behind the end: to look a page up is to wait.
                    const u32 next = n + first + a + kRowsAhead;
                    if (warp_start() + next * stride() < range.end) load(row, next);
                    AKUNU_UNROLL
                    for (u32 h = 0; h < kNow; ++h) score[h][a] = product(h, k);
                }
                AKUNU_UNROLL
                for (u32 h = 0; h < kNow; ++h) {
                    AKUNU_UNROLL
                    for (u32 a = 0; a < kAtATime; ++a) {
                        const u32 key = warp_start() + lane_id() / kLanes + (n + first + a) * stride();
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
                    for (u32 h = 0; h < kNow; ++h) sums.add(h, score[h][a], v);
                }
            }
        }
        sums.join_warp(heads);
        if (lane_id() >= kLanes) return;
        AKUNU_UNROLL
        for (u32 h = 0; h < kNow; ++h) {
            if (h >= heads) continue;
            float* to = m.value(warp_id(), h);
            AKUNU_UNROLL
            for (u32 i = 0; i < kQuads; ++i) {
                const u32 quad = lane + i * kLanes;
                const float* x = sums.value[h][i];
                if (quad < quads) *reinterpret_cast<float4*>(to + quad * 4) = float4{x[0], x[1], x[2], x[3]};
            }
            if (lane == 0) m.stats(warp_id(), h) = {sums.top[h], sums.sum[h]};
        }
    }
};

}  // namespace akunu::cuda
