// Keys and values in the cache, the turning of heads, attention row by row, and copies of pages.
//
// A block takes one row and one KV head with all query heads of its group, kTileKeys keys at a time, the softmax a
// running one. Decode attention splits the keys over blocks, which leave partial results.
#pragma once

#include "activation.cuh"
#include "core/head_norm.h"
#include "kv_layout.h"

namespace akunu::cuda {

// Four elements as the cache has them.
template <u32 kType>
struct CacheQuad;
template <>
struct CacheQuad<kKvF32> {
    float4 v;
    AKUNU_DEVICE float4 value() const { return v; }
};
template <>
struct CacheQuad<kKvF16> {
    uint2 q;
    AKUNU_DEVICE float4 value() const {
        return {half_to_float(u16(q.x)), half_to_float(u16(q.x >> 16)), half_to_float(u16(q.y)),
                half_to_float(u16(q.y >> 16))};
    }
};
template <>
struct CacheQuad<kKvQ8> {
    u32 q;
    u16 scale;
    AKUNU_DEVICE float element(u32 i) const { return float(static_cast<signed char>(q >> (8 * i))); }
    AKUNU_DEVICE float4 value() const {
        const float d = half_to_float(scale);
        return {element(0) * d, element(1) * d, element(2) * d, element(3) * d};
    }
};
template <>
struct CacheQuad<kKvQ4> {
    u32 q;  // with four codes of another quad, which are above or below
    u16 scale, shift;
    AKUNU_DEVICE float element(u32 i) const { return float(q >> (8 * i + shift) & 15) - 8.0f; }
    AKUNU_DEVICE float4 value() const {
        const float d = half_to_float(scale);
        return {element(0) * d, element(1) * d, element(2) * d, element(3) * d};
    }
};

constexpr float kLog2E = 0x1.715476p+0f;
AKUNU_DEVICE float minus_infinity() { return bits_to_float(0xFF800000u); }

// One KV head's keys, or values, of a sequence.
template <u32 kType>
struct KvUnit {
    u8* cache;  // the unit in page 0
    const u32* pages;
    u64 page_bytes;
    u32 head_dim;

    AKUNU_DEVICE u8* page(u32 position) const { return cache + pages[position / kPagePositions] * page_bytes; }

    // Elements 4·quad to 4·quad + 3 of a position; zeros behind the head's end.
    AKUNU_DEVICE float4 load(u32 position, u32 quad) const {
        const u8* unit = page(position);
        const u32 row = position % kPagePositions, at = row * head_dim + quad * 4;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (kType == kKvF32) {
            const float* p = reinterpret_cast<const float*>(unit) + at;
            for (u32 i = 0; i < 4; ++i) v[i] = quad * 4 + i < head_dim ? p[i] : 0.0f;
        } else if (kType == kKvF16) {
            const u16* p = reinterpret_cast<const u16*>(unit) + at;
            if (head_dim % 4 == 0) {
                const uint2 q = *reinterpret_cast<const uint2*>(p);
                return {half_to_float(u16(q.x)), half_to_float(u16(q.x >> 16)), half_to_float(u16(q.y)),
                        half_to_float(u16(q.y >> 16))};
            }
            for (u32 i = 0; i < 4; ++i) v[i] = quad * 4 + i < head_dim ? half_to_float(p[i]) : 0.0f;
        } else if (kType == kKvQ4) {
            return quad_in(unit, row, quad).value();
        } else {
            const signed char* p = reinterpret_cast<const signed char*>(unit) + at;
            const u16* scales = reinterpret_cast<const u16*>(unit + q8_scales_offset(head_dim));
            const float d = half_to_float(scales[row * kv_row_blocks(head_dim) + quad / 8]);
            for (u32 i = 0; i < 4; ++i) v[i] = quad * 4 + i < head_dim ? float(p[i]) * d : 0.0f;
        }
        return {v[0], v[1], v[2], v[3]};
    }

    // The same of a position that there is, where heads have whole quads: without branches, so that many are on their
    // way.
    AKUNU_DEVICE CacheQuad<kType> quad(u32 position, u32 quad) const {
        return quad_in(page(position), position % kPagePositions, quad);
    }
    // Of a page's row.
    AKUNU_DEVICE CacheQuad<kType> quad_in(const u8* unit, u32 row, u32 quad) const {
        const u32 at = row * head_dim + quad * 4;
        CacheQuad<kType> out;
        if constexpr (kType == kKvF32) {
            out.v = *reinterpret_cast<const float4*>(unit + u64(at) * 4);
        } else if constexpr (kType == kKvF16) {
            out.q = *reinterpret_cast<const uint2*>(unit + u64(at) * 2);
        } else if constexpr (kType == kKvQ4) {
            const u16* scales = reinterpret_cast<const u16*>(unit + q4_scales_offset(head_dim));
            const u32 block = row * kv_row_blocks(head_dim) + quad / 8;
            out.q = *reinterpret_cast<const u32*>(unit + block * 16 + quad % 4 * 4);
            out.scale = scales[block];
            out.shift = quad % 8 / 4 * 4;
        } else {
            const u16* scales = reinterpret_cast<const u16*>(unit + q8_scales_offset(head_dim));
            out.q = *reinterpret_cast<const u32*>(unit + at);
            out.scale = scales[row * kv_row_blocks(head_dim) + quad / 8];
        }
        return out;
    }

    // A warp stores a whole row, and leaves in x what is read of it from then on.
    AKUNU_DEVICE void store(u32 position, float* x) const { store_in(page(position), position, x); }
    AKUNU_DEVICE void store_in(u8* unit, u32 position, float* x) const {
        const u32 row = position % kPagePositions;
        if (kType == kKvF16 && head_dim % 2 == 0) {
            for (u32 d = 2 * lane_id(); d < head_dim; d += 64) {
                const float2 v = *reinterpret_cast<const float2*>(x + d);
                const u32 both = pack_halves(v.x, v.y);
                *reinterpret_cast<u32*>(reinterpret_cast<u16*>(unit) + row * head_dim + d) = both;
                *reinterpret_cast<float2*>(x + d) = {half_to_float(u16(both)), half_to_float(u16(both >> 16))};
            }
            return;
        }
        for (u32 d0 = 0; d0 < head_dim; d0 += 32) {
            const u32 d = d0 + lane_id();
            const bool mine = d < head_dim;
            if (kType == kKvF32 && mine) reinterpret_cast<float*>(unit)[row * head_dim + d] = x[d];
            if (kType == kKvF16 && mine) {
                const u16 h = float_to_half(x[d]);
                reinterpret_cast<u16*>(unit)[row * head_dim + d] = h;
                x[d] = half_to_float(h);
            }
            if (kType == kKvQ8) {
                const float v = mine ? x[d] : 0.0f;
                const float scale = reduce_warp(fabsf(v), Larger()) / 127.0f;
                const float q = scale > 0.0f ? rintf(fminf(fmaxf(v / scale, -127.0f), 127.0f)) : 0.0f;
                u16* scales = reinterpret_cast<u16*>(unit + q8_scales_offset(head_dim));
                if (lane_id() == 0) scales[row * kv_row_blocks(head_dim) + d0 / 32] = to_half(scale);
                if (mine) {
                    reinterpret_cast<signed char*>(unit)[row * head_dim + d] = static_cast<signed char>(q);
                    x[d] = q * half_to_float(to_half(scale));
                }
            }
            if (kType == kKvQ4) {
                // The value that is farthest from 0 is -8 times the scale; of two as far the negative one.
                const float v = mine ? x[d] : 0.0f, high = reduce_warp(v, Larger()), low = -reduce_warp(-v, Larger());
                const float scale = (high > -low ? high : low) / -8.0f, inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
                const u32 code = u32(fminf(fmaxf(v * inverse + 8.5f, 0.0f), 15.0f));
                const u32 above = shuffle_xor(code, 16), block = row * kv_row_blocks(head_dim) + d0 / 32;
                u16* scales = reinterpret_cast<u16*>(unit + q4_scales_offset(head_dim));
                if (lane_id() == 0) scales[block] = to_half(scale);
                if (lane_id() < 16) unit[block * 16 + lane_id()] = u8(code | above << 4);
                if (mine) x[d] = (float(code) - 8.0f) * half_to_float(to_half(scale));
            }
        }
    }
};

// The keys, and the values, of a KV head.
template <u32 kTypes, typename P>
AKUNU_DEVICE KvUnit<key_type(kTypes)> key_unit(u8* cache, const u32* pages, const P& p, u32 slot, u32 kv) {
    return {cache + keys_at(kTypes, kv, p.head_dim), pages + u64(slot) * p.max_pages, u64(p.page_words) * 4,
            p.head_dim};
}
template <u32 kTypes, typename P>
AKUNU_DEVICE KvUnit<value_type(kTypes)> value_unit(u8* cache, const u32* pages, const P& p, u32 slot, u32 kv) {
    return {cache + values_at(kTypes, p.n_kv_heads, kv, p.head_dim), pages + u64(slot) * p.max_pages,
            u64(p.page_words) * 4, p.head_dim};
}

// By what a warp turns a row's heads; a lane has pairs of elements.
template <u32 kPairs>
struct Turn {
    float cosine[kPairs], sine[kPairs];
    AKUNU_DEVICE Turn(const float* table, u32 rope_dim) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kPairs; ++i) {
            const u32 pair = lane_id() + 32 * i;
            cosine[i] = pair < rope_dim / 2 ? table[2 * pair] : 1.0f;
            sine[i] = pair < rope_dim / 2 ? table[2 * pair + 1] : 0.0f;
        }
    }
    // Pair i of a lane.
    AKUNU_DEVICE float2 turned(u32 i, float2 v) const {
        return {v.x * cosine[i] - v.y * sine[i], v.x * sine[i] + v.y * cosine[i]};
    }
    // A head in shared memory.
    AKUNU_DEVICE void apply(u32 style, u32 rope_dim, float* head) const {
        AKUNU_UNROLL
        for (u32 i = 0; i < kPairs; ++i) {
            const u32 pair = lane_id() + 32 * i;
            if (pair >= rope_dim / 2) continue;
            const u32 at = style == kRopeInterleaved ? 2 * pair : pair;
            const u32 other = style == kRopeInterleaved ? at + 1 : pair + rope_dim / 2;
            const float2 v = turned(i, {head[at], head[other]});
            head[at] = v.x;
            head[other] = v.y;
        }
    }
};

// The parts of groups of query heads of which each is taken alone.
struct GroupParts {
    u32 heads, parts, all;  // heads of a part, parts of a KV head, and of all of these
    template <typename P>
    AKUNU_DEVICE explicit GroupParts(const P& p)
        : heads(group_part(p.n_heads / p.n_kv_heads)),
          parts(p.n_heads / p.n_kv_heads / heads),
          all(p.n_kv_heads * parts) {}
    AKUNU_DEVICE u32 kv(u32 part) const { return part / parts; }
};

// What attend() leaves of each query head of the part of a group, in shared memory.
struct HeadState {
    float top, sum, keep;
};

// What prompt_attention.cuh keeps in front of these while it takes row after row.
constexpr u32 kRunsBytes = 512;

// The parts of shared memory.
struct AttendMemory {
    float* q;       // [group][padded head_dim]
    float* scores;  // [group][kTileKeys]
    float* joined;  // [kJoinedHeads][slices][padded head_dim]
    HeadState* heads;
};
AKUNU_DEVICE AttendMemory attend_memory(Block b, u32 padded) {
    float* base = reinterpret_cast<float*>(b.shared() + kRunsBytes);
    float* scores = base + kMaxGroup * padded;
    float* joined = scores + kMaxGroup * kTileKeys;
    return {base, scores, joined, reinterpret_cast<HeadState*>(joined + kJoinedHeads * 4 * kThreads)};
}

// One row's heads of a part of a group against keys [first, end); calls out(head of the part, d, value) with what is to
// be divided by the head's sum.
template <u32 kTypes, u32 kGroup, typename Out>
AKUNU_DEVICE void attend(Block b, const AttentionParams& p, const GroupParts& groups, const float* q, u32 slot,
                         u32 part, u32 first, u32 end, Out&& out) {
    const u32 group = groups.heads, hd = p.head_dim, quads = (hd + 3) / 4, padded = quads * 4;
    const AttendMemory m = attend_memory(b, padded);
    const auto keys = key_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(4), p, slot, groups.kv(part));
    const auto values = value_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(4), p, slot, groups.kv(part));
    const float kNone = bits_to_float(0xFF800000u);
    sync_block();
    for (u32 i = thread_id(); i < group * padded; i += kThreads) {
        m.q[i] = i % padded < hd ? q[(part * group + i / padded) * hd + i % padded] : 0.0f;
    }
    if (thread_id() < group) m.heads[thread_id()] = {kNone, 0.0f, 0.0f};
    sync_block();

    const u32 slices = kThreads / quads, quad = thread_id() % quads, slice = thread_id() / quads;
    float acc[kGroup][4];
    AKUNU_UNROLL
    for (u32 g = 0; g < kGroup; ++g) acc[g][0] = acc[g][1] = acc[g][2] = acc[g][3] = 0.0f;
    for (u32 begin = first; begin < end; begin += kTileKeys) {
        const u32 n = smaller(kTileKeys, end - begin);
        // Eight lanes for a key.
        constexpr u32 kLanes = 8;
        for (u32 i = thread_id() / kLanes; i < kTileKeys; i += kThreads / kLanes) {
            float sum[kGroup];
            AKUNU_UNROLL
            for (u32 g = 0; g < kGroup; ++g) sum[g] = 0.0f;
            if (i < n) {
                for (u32 d = lane_id() % kLanes; d < quads; d += kLanes) {
                    const float4 k = keys.load(begin + i, d);
                    AKUNU_UNROLL
                    for (u32 g = 0; g < kGroup; ++g) {
                        if (g >= group) continue;
                        const float4 x = *reinterpret_cast<const float4*>(m.q + g * padded + d * 4);
                        sum[g] += x.x * k.x + x.y * k.y + x.z * k.z + x.w * k.w;
                    }
                }
            }
            AKUNU_UNROLL
            for (u32 g = 0; g < kGroup; ++g) {
                if (g >= group) continue;
                float s = sum[g];
                AKUNU_UNROLL
                for (u32 mask = kLanes / 2; mask > 0; mask /= 2) s += shuffle_xor(s, mask);
                if (lane_id() % kLanes == 0)
                    m.scores[g * kTileKeys + i] = i < n ? soft_cap(s * p.scale, p.softcap) : kNone;
            }
        }
        sync_block();
        for (u32 h = warp_id(); h < group; h += kWarps) {
            float* scores = m.scores + h * kTileKeys;
            HeadState& head = m.heads[h];
            float s[kTileKeys / 32], top = head.top;
            AKUNU_UNROLL
            for (u32 i = 0; i < kTileKeys / 32; ++i) {
                s[i] = scores[i * 32 + lane_id()];
                top = fmaxf(top, s[i]);
            }
            top = reduce_warp(top, Larger());
            float added = 0.0f;
            AKUNU_UNROLL
            for (u32 i = 0; i < kTileKeys / 32; ++i) {
                const float e = s[i] == kNone ? 0.0f : expf(s[i] - top);
                scores[i * 32 + lane_id()] = e;
                added += e;
            }
            added = reduce_warp(added, Add());
            if (lane_id() == 0) {
                head.keep = head.top == kNone ? 0.0f : expf(head.top - top);
                head.sum = head.sum * head.keep + added;
                head.top = top;
            }
        }
        sync_block();
        if (slice < slices) {
            AKUNU_UNROLL
            for (u32 g = 0; g < kGroup; ++g) {
                if (g >= group) continue;
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) acc[g][e] *= m.heads[g].keep;
            }
            for (u32 i = slice; i < n; i += slices) {
                const float4 v = values.load(begin + i, quad);
                AKUNU_UNROLL
                for (u32 g = 0; g < kGroup; ++g) {
                    if (g >= group) continue;
                    const float w = m.scores[g * kTileKeys + i];
                    acc[g][0] += w * v.x;
                    acc[g][1] += w * v.y;
                    acc[g][2] += w * v.z;
                    acc[g][3] += w * v.w;
                }
            }
        }
        sync_block();
    }
    // The slices' sums, of a few heads at a time.
    constexpr u32 kTogether = kGroup < kJoinedHeads ? kGroup : u32(kJoinedHeads);
    const u32 used = smaller(slices, end - first);
    AKUNU_UNROLL
    for (u32 g0 = 0; g0 < kGroup; g0 += kTogether) {
        if (g0 >= group) continue;
        AKUNU_UNROLL
        for (u32 j = 0; j < kTogether; ++j) {
            const u32 g = g0 + j;
            if (slice >= used) continue;
            *reinterpret_cast<float4*>(m.joined + (j * slices + slice) * padded + quad * 4) =
                float4{acc[g][0], acc[g][1], acc[g][2], acc[g][3]};
        }
        sync_block();
        for (u32 i = thread_id(); i < kTogether * hd; i += kThreads) {
            const u32 j = i / hd, d = i % hd;
            if (g0 + j >= group) continue;
            float v = 0.0f;
            for (u32 s = 0; s < used; ++s) v += m.joined[(j * slices + s) * padded + d];
            out(g0 + j, d, v, m.heads[g0 + j]);
        }
        sync_block();
    }
}

// What is added to the sum of a head's weights, each e^(score - top), where the head has a sink: a score that has no
// value.
AKUNU_DEVICE float sink_weight(const float* sinks, u32 head, float top) {
    return sinks ? expf(sinks[head] - top) : 0.0f;
}

// The keys that a row sees.
struct KeyRange {
    u32 first, end;
};
AKUNU_DEVICE u32 first_key(u32 position, u32 window) {
    return window != 0 && position >= window ? position + 1 - window : 0;
}
AKUNU_DEVICE KeyRange keys_of_one(const AttentionParams& p, u32 position) {
    if (p.fixed_keys) return {0, p.fixed_keys};
    return {first_key(position, p.window), position + 1};
}
// One row; its keys are dealt to the splits in equal parts.
template <u32 kTypes, u32 kGroup>
AKUNU_DEVICE_CALL void attention_split(Block b) {
    const auto& p = b.params<AttentionParams>();
    const Row row = b.buffer<Row>(3)[0];
    const KeyRange range = keys_of_one(p, row.position + p.step);
    const u32 first = range.first, n = range.end - first;
    const GroupParts groups(p);
    const u32 splits = splits_of(n);
    float* partials = b.buffer<float>(2);
    float* stats = partials + u64(p.n_heads) * kMaxSplits * p.head_dim;
    for (u32 u = b.first(); u < splits * groups.all; u += b.blocks()) {
        const u32 split = u / groups.all, part = u % groups.all;
        attend<kTypes, kGroup>(b, p, groups, b.buffer<float>(0), row.slot, part, first + u32(u64(n) * split / splits),
                               first + u32(u64(n) * (split + 1) / splits),
                               [&](u32 g, u32 d, float v, const HeadState& head) {
                                   const u32 at = (part * groups.heads + g) * kMaxSplits + split;
                                   partials[u64(at) * p.head_dim + d] = v;
                                   if (d != 0) return;
                                   stats[2 * at] = head.top;
                                   stats[2 * at + 1] = head.sum;
                               });
    }
}

// Elements of a value.
AKUNU_DEVICE u32 value_dim(const AttentionParams& p) { return p.latent ? p.latent : p.head_dim; }

// By a warp: what each split of a head's keys counts, in the lane of its number, and the sum by which their joined
// results are divided.
struct SplitWeights {
    float weight, sum;
    AKUNU_DEVICE SplitWeights(const float* stats, u32 head, u32 splits, const float* sinks) {
        const u32 lane = lane_id(), at = 2 * (head * kMaxSplits + lane);
        const bool mine = lane < splits;
        const float top = mine ? stats[at] : bits_to_float(0xFF800000u), most = reduce_warp(top, Larger());
        weight = mine ? expf(top - most) : 0.0f;
        sum = reduce_warp(mine ? weight * stats[at + 1] : 0.0f, Add()) + sink_weight(sinks, head, most);
    }
    AKUNU_DEVICE float of(u32 split) const { return shuffle(weight, split); }
};

// A warp joins the splits of some elements of a head.
AKUNU_DEVICE_CALL void attention_merge(Block b) {
    const auto& p = b.params<AttentionParams>();
    const u32 dim = value_dim(p);
    const float* partials = b.buffer<float>(0);
    const float* stats = partials + u64(p.n_heads) * kMaxSplits * dim;
    const Output out{b.buffer<float>(1), b.buffer<u16>(2), p.formats};
    const KeyRange range = keys_of_one(p, b.buffer<Row>(3)[0].position + p.step);
    const u32 splits = splits_of(range.end - range.first, p.latent ? kLatentKeys : kTileKeys), lane = lane_id();
    constexpr u32 kEach = 4;  // of a lane
    const u32 parts = (dim + 32 * kEach - 1) / (32 * kEach);
    for (u32 u = b.first() * kWarps + warp_id(); u < p.n_heads * parts; u += b.blocks() * kWarps) {
        const u32 h = u / parts, first = u % parts * 32 * kEach + lane;
        const SplitWeights weights(stats, h, splits, b.buffer<float>(4));
        float v[kEach] = {};
        for (u32 s = 0; s < splits; ++s) {
            const float* const from = partials + (u64(h) * kMaxSplits + s) * dim;
            const float weight = weights.of(s);
            AKUNU_UNROLL
            for (u32 i = 0; i < kEach; ++i) {
                if (first + 32 * i < dim) v[i] += weight * from[first + 32 * i];
            }
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) {
            if (first + 32 * i < dim) out.store(u64(h) * dim + first + 32 * i, v[i] / weights.sum);
        }
    }
}

AKUNU_DEVICE_CALL void copy_records(Block b) {
    const auto& p = b.params<CopyRecordsParams>();
    const u32* pairs = b.buffer<u32>(0);
    u32* records = b.buffer<u32>(1);
    const u32 parts = (p.record_words + kThreads - 1) / kThreads;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 r = u / parts, i = u % parts * kThreads + thread_id();
        if (i >= p.record_words) continue;
        records[u64(pairs[2 * r + 1]) * p.record_words + i] = records[u64(pairs[2 * r]) * p.record_words + i];
    }
}

}  // namespace akunu::cuda
