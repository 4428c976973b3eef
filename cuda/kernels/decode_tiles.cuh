// Keys of an F16 cache on the tensor cores, 16 at a time for each warp, which copies them to shared memory a step or
// more ahead by itself.
//
// Eight query heads of a KV head are rows 0 to 7 of the products' left factor. A number of theirs is two F16 numbers,
// high + low·2^-11; rows 8 to 15 have the low ones, and so have those of the weights. So nothing is rounded that
// matters.
#pragma once

#include "decode_team.cuh"
#include "parts.cuh"

namespace akunu::cuda {

AKUNU_DEVICE void split_halves(float a, float b, u32& high, u32& low) {
    high = pack_halves(a, b);
    low = second_halves(high, a, b);
}

// Up to eight heads' softmax over keys. A lane 4g + t has head g, and of it keys 2t and 2t + 1 of eight.
template <u32 kDim>
struct HeadSums {
    // Small heads stay in registers. Others are looked up for every 16 keys, since values want the registers.
    static constexpr bool kKept = kDim <= 64;
    const float* queries;  // settled
    u32 heads, q[kDim / 16][4];
    float top = kNoScore, sum = 0.0f, out[kDim / 8][2];

    AKUNU_DEVICE HeadSums(const float* queries, u32 heads) : queries(queries), heads(heads) {
        AKUNU_UNROLL
        for (u32 k = 0; kKept && k < kDim / 16; ++k) load_queries(k);
        AKUNU_UNROLL
        for (u32 d = 0; d < kDim / 8; ++d) out[d][0] = out[d][1] = 0.0f;
    }
    AKUNU_DEVICE void load_queries(u32 k) {
        const u32 lane = thread_id_anew() % 32, g = lane / 4, t = lane % 4;
        AKUNU_UNROLL
        for (u32 half = 0; half < 2; ++half) {
            const float* x = queries + g * kDim + k * 16 + half * 8 + 2 * t;
            const uint2 v = g < heads ? *reinterpret_cast<const uint2*>(x) : uint2{0, 0};
            q[k][2 * half] = v.x;
            q[k][2 * half + 1] = v.y;
        }
    }
    static AKUNU_DEVICE float joined(const float (&s)[4], u32 e) { return s[e] + s[2 + e] * (1.0f / kSecondPart); }

    // Scores of the 16 keys at `keys`, times log2(e); those before `first` and from `end` on are -inf.
    AKUNU_DEVICE void scores(const DecodeAttentionParams& p, u32 keys, u32 row_bytes, u32 first, u32 end,
                             float (&score)[2][2]) {
        const u32 lane = thread_id_anew() % 32, row = lane / 16 * 8 + lane % 8;
        const u32 key = keys + row * row_bytes + (lane / 8 % 2 ^ row % 8) * 16;
        float s[2][4] = {}, odd[2][4] = {};  // two sums each: a product waits for the one before it
        AKUNU_UNROLL
        for (u32 k = 0; k < kDim / 16; ++k) {
            u32 b[4];
            if (!kKept) load_queries(k);
            load_matrices(b, key ^ k * 32);
            mma_f16(k % 2 ? odd[0] : s[0], q[k], {b[0], b[1]});
            mma_f16(k % 2 ? odd[1] : s[1], q[k], {b[2], b[3]});
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) {
            s[0][e] += odd[0][e];
            s[1][e] += odd[1][e];
        }
        const bool capped = any_of_warp(p.softcap > 0.0f);
        const float scale = capped ? p.scale : p.scale * kLog2E;
        AKUNU_UNROLL
        for (u32 j = 0; j < 2; ++j) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 2; ++e) score[j][e] = joined(s[j], e) * scale;
        }
        if (capped) {
            AKUNU_UNROLL
            for (u32 j = 0; j < 2; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 2; ++e) score[j][e] = soft_cap(score[j][e], p.softcap) * kLog2E;
            }
        }
        if (all_of_warp(first == 0 && end >= 16)) return;
        AKUNU_UNROLL
        for (u32 j = 0; j < 2; ++j) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 2; ++e) {
                const u32 at = 8 * j + 2 * (lane % 4) + e;
                if (at < first || at >= end) score[j][e] = minus_infinity();
            }
        }
    }
    // Scores become weights, 2^(score - top); what the sums so far are to be multiplied by.
    AKUNU_DEVICE float weigh(float (&score)[2][2]) {
        float most = fmaxf(fmaxf(score[0][0], score[0][1]), fmaxf(score[1][0], score[1][1]));
        most = fmaxf(most, shuffle_xor(most, 1));
        most = fmaxf(fmaxf(most, shuffle_xor(most, 2)), top);
        const float keep = power_of_two(top - most);
        top = most;
        sum *= keep;
        AKUNU_UNROLL
        for (u32 j = 0; j < 2; ++j) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 2; ++e) {
                score[j][e] = power_of_two(score[j][e] - most);
                sum += score[j][e];
            }
        }
        return keep;
    }
    AKUNU_DEVICE void add(u32 values, u32 row_bytes, const float (&weight)[2][2], float keep) {
        u32 w[4];
        AKUNU_UNROLL
        for (u32 j = 0; j < 2; ++j) split_halves(weight[j][0], weight[j][1], w[2 * j], w[2 * j + 1]);
        const u32 lane = thread_id_anew() % 32, row = lane % 16;
        const u32 value = values + row * row_bytes + (lane / 16 ^ row % 8) * 16;
        AKUNU_UNROLL
        for (u32 d = 0; d < kDim / 8; d += 2) {
            u32 b[4];
            float o[2][4] = {};
            load_matrices_transposed(b, value ^ d * 16);
            mma_f16(o[0], w, {b[0], b[1]});
            mma_f16(o[1], w, {b[2], b[3]});
            AKUNU_UNROLL
            for (u32 e = 0; e < 2; ++e) {
                out[d][e] = out[d][e] * keep + joined(o[0], e);
                out[d + 1][e] = out[d + 1][e] * keep + joined(o[1], e);
            }
        }
    }
};

// A split's keys, steps of 16 of which are dealt to the team's warps.
template <u32 kDim>
struct TileKeys {
    static constexpr u32 kHeads = 8, kMaxDim = kDim, kTeamElements = 512;
    static constexpr u32 kLeastSplit = 512;  // keys
    // Eight heads' products take no longer than one's, but a warp prepares one at a time, besides a key and a value.
    static constexpr u32 kHeadsTogether = kWarps - 2;
    static constexpr u32 kStep = 16, kRowBytes = kDim * 2, kPlaneBytes = kStep * kRowBytes, kWarpBytes = 8 << 10;
    static constexpr u32 kStages = kWarpBytes / (2 * kPlaneBytes);
    static constexpr u32 kPieces = kDim / 8, kEach = kStep * kPieces / 32;
    static_assert(kPagePositions % kStep == 0, "a step's keys are of one page");
    static_assert(kSharedHead % 256 == 0, "a row's pieces change places by bits of their own");
    static_assert(kHeads * (kDim * 4 + 8) <= kWarpBytes, "results take the place of keys");

    static AKUNU_DEVICE constexpr u32 head_dim(const DecodeAttentionParams&) { return kDim; }

    // By a warp: a head's queries as they are multiplied, pairs of first parts and of second ones.
    static AKUNU_DEVICE void settle(float* head) {
        AKUNU_UNROLL
        for (u32 i = lane_id(); i < kDim / 2; i += 32) {
            const float2 v = reinterpret_cast<const float2*>(head)[i];
            uint2 parts;
            split_halves(v.x, v.y, parts.x, parts.y);
            reinterpret_cast<uint2*>(head)[i] = parts;
        }
    }
    static AKUNU_DEVICE float2 settled(const float* head, u32 pair) {
        const uint2 parts = reinterpret_cast<const uint2*>(head)[pair];
        constexpr float kBack = 1.0f / kSecondPart;
        return {half_to_float(u16(parts.x)) + half_to_float(u16(parts.y)) * kBack,
                half_to_float(u16(parts.x >> 16)) + half_to_float(u16(parts.y >> 16)) * kBack};
    }

    SplitKeys<kv_pair(kKvF16, kKvF16)> range;
    u32 page;  // of the next step that is asked for

    AKUNU_DEVICE explicit TileKeys(const SplitKeys<kv_pair(kKvF16, kKvF16)>& range) : range(range), page(0) {}

    // Warps that meet keys.
    AKUNU_DEVICE u32 met() const {
        if (range.first == range.end) return 0;
        return smaller(range.team.warps, (range.end - range.first / kStep * kStep + kStep - 1) / kStep);
    }
    // A warp's step i begins there.
    AKUNU_DEVICE u32 at(u32 i) const {
        return range.first / kStep * kStep + (i * range.team.warps + range.team.warp) * kStep;
    }
    static AKUNU_DEVICE u32 plane(u32 i, u32 values) {
        return kSharedHead + warp_id() * kWarpBytes + (i % kStages * 2 + values) * kPlaneBytes;
    }
    static AKUNU_DEVICE u32 piece(u32 row, u32 p) { return row * kRowBytes + (p ^ row % 8) * 16; }

    AKUNU_DEVICE u32 find(u32 i) const { return at(i) < range.end ? range.keys.pages[at(i) / kPagePositions] : 0; }
    // A bundle, if only an empty one. Behind the end zeros: what has no weight is multiplied, too.
    AKUNU_DEVICE void fetch(u32 i, u32 of_page, u32 values) const {
        const u32 lane = thread_id_anew() % 32, p = lane % kPieces;
        if (at(i) < range.end) {
            const KvUnit<kKvF16>& unit = range.keys;
            const u32 key = at(i) % kPagePositions + lane / kPieces;
            const u8* from =
                unit.cache + (values ? range.apart : 0) + of_page * unit.page_bytes + key * kRowBytes + p * 16;
            AKUNU_UNROLL
            for (u32 j = 0; j < kEach; ++j) {
                constexpr u32 kRows = 32 / kPieces;
                const u32 row = j * kRows + lane / kPieces;
                copy_async16(shared_memory() + plane(i, values) + piece(row, p), from + j * kRows * kRowBytes,
                             at(i) + row < range.end);
            }
        }
        bundle_copies();
    }
    AKUNU_DEVICE void start(bool known) {
        static_assert(kStages < 4, "their pages have room");
        u32(&pages)[4] = block_state().pages[warp_id()];
        if (!known) {
            if (lane_id() <= kStages) pages[lane_id()] = find(lane_id());
            sync_warp();
        }
        page = pages[kStages];
        AKUNU_UNROLL
        for (u32 i = 0; i < kStages; ++i) {
            fetch(i, pages[i], 0);
            fetch(i, pages[i], 1);
        }
    }
    // Heads from `head` on of a group. Leaves the warp's results.
    AKUNU_DEVICE void attend(const DecodeAttentionParams& p, const DecodeMemory<TileKeys>& m, u32 head, u32 heads) {
        constexpr u32 kAhead = 2 * kStages - 1;  // bundles behind the one that is waited for
        HeadSums<kDim> sums(m.q + head * kDim, heads);
        float score[2][2];
        for (u32 i = 0; at(i) < range.end; ++i) {
            wait_for_bundles<kAhead>();
            sync_warp();
            sums.scores(p, plane(i, 0), kRowBytes, larger(range.first, at(i)) - at(i), range.end - at(i), score);
            sync_warp();
            fetch(i + kStages, page, 0);
            const float keep = sums.weigh(score);
            wait_for_bundles<kAhead>();
            sync_warp();
            sums.add(plane(i, 1), kRowBytes, score, keep);
            sync_warp();
            fetch(i + kStages, page, 1);
            page = find(i + kStages + 1);
        }
        wait_for_bundles<0>();
        sync_warp();
        sums.sum += shuffle_xor(sums.sum, 1);
        sums.sum += shuffle_xor(sums.sum, 2);
        const u32 g = lane_id() / 4, t = lane_id() % 4;
        if (g >= heads) return;
        float* to = m.value(warp_id(), g) + 2 * t;
        AKUNU_UNROLL
        for (u32 d = 0; d < kDim / 8; ++d) {
            *reinterpret_cast<float2*>(to + d * 8) = float2{sums.out[d][0], sums.out[d][1]};
        }
        if (t == 0) m.stats(warp_id(), g) = {sums.top, sums.sum};
    }
};

}  // namespace akunu::cuda
