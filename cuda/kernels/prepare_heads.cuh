// The heads of rows before attention: they are normed and turned in place, and keys and values go to the cache.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

// A warp takes some heads of a row, whose elements are asked for at once; a lane has kOwn of a head's.
template <u32 kTypes, u32 kOwn>
AKUNU_DEVICE_CALL void prepare_heads_heads(Block b) {
    constexpr u32 kAtOnce = 4, kHead = kOwn * 32;  // elements
    static_assert(kWarps * kAtOnce * kHead * 4 <= kOpBytes, "the ring begins behind them");
    const auto& p = b.params<PrepareHeadsParams>();
    const u32 turned = p.n_heads + p.n_kv_heads, heads = turned + p.n_kv_heads, hd = p.head_dim;
    const u32 parts = (heads + kAtOnce - 1) / kAtOnce;
    float* mine = reinterpret_cast<float*>(b.shared()) + warp_id() * kAtOnce * kHead;
    // Looked up once: behind each store to `mine` it would be looked up again. A LayerNorm has a weight for each head.
    const bool normed = p.qk_norm != 0, centred = p.qk_norm == kHeadNormLayer, changes = normed || p.rope_dim != 0;
    u8* const cache = b.buffer<u8>(4);
    sync_block();
    for (u32 u = b.first() * kWarps + warp_id(); u < p.rows * parts; u += b.blocks() * kWarps) {
        const u32 r = u / parts, first = u % parts * kAtOnce, end = smaller(first + kAtOnce, heads);
        const Row row = b.buffer<Row>(6)[r];
        const u32 position = row.position + p.step;
        const auto source = [&](u32 h) {
            if (h < p.n_heads) return b.buffer<float>(0) + (u64(r) * p.n_heads + h) * hd;
            const u32 is_v = h >= turned, kv = h - (is_v ? turned : p.n_heads);
            return b.buffer<float>(1 + is_v) + (u64(r) * p.n_kv_heads + kv) * hd;
        };
        float v[kAtOnce][kOwn];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const float* x = source(smaller(first + j, end - 1));
            AKUNU_UNROLL
            for (u32 i = 0; i < kOwn; ++i) v[j][i] = lane_id() + 32 * i < hd ? x[lane_id() + 32 * i] : 0.0f;
        }
        const Turn<kOwn / 2> turn(b.buffer<float>(3) + u64(r) * p.rope_dim, p.rope_dim);
        // The same for all heads: looked up once.
        const u64 page = p.n_kv_heads ? u64(p.page_words) * 4 *
                                            b.buffer<u32>(7)[u64(row.slot) * p.max_pages + position / kPagePositions]
                                      : 0;
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (normed && first + j < smaller(turned, end)) {
                const u32 h = first + j;
                const float* weight = b.buffer<float>(5) + (centred ? h : u32(h >= p.n_heads)) * hd;
                if (centred) {
                    float all = 0.0f;
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kOwn; ++i) all += v[j][i];
                    const float mean = reduce_warp(all, Add()) / float(hd);
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kOwn; ++i) {
                        if (lane_id() + 32 * i < hd) v[j][i] -= mean;
                    }
                }
                float sum = 0.0f;
                AKUNU_UNROLL
                for (u32 i = 0; i < kOwn; ++i) sum += v[j][i] * v[j][i];
                const float scale = 1.0f / sqrtf(reduce_warp(sum, Add()) / float(hd) + p.eps);
                AKUNU_UNROLL
                for (u32 i = 0; i < kOwn; ++i) {
                    if (lane_id() + 32 * i < hd) v[j][i] *= scale * weight[lane_id() + 32 * i];
                }
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < kOwn; ++i) mine[j * kHead + lane_id() + 32 * i] = v[j][i];
        }
        sync_warp();
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (first + j < smaller(turned, end)) turn.apply(p.style, p.rope_dim, mine + j * kHead);
        }
        sync_warp();
        AKUNU_NO_UNROLL
        for (u32 h = first; h < end; ++h) {
            float* head = mine + (h - first) * kHead;
            if (changes && h < turned) {
                float* x = source(h);
                for (u32 d = lane_id(); d < hd; d += 32) x[d] = head[d];
            }
            if (h < p.n_heads) continue;
            const auto keep = [&](const auto& unit) { unit.store_in(unit.cache + page, position, head); };
            if (h < turned) {
                keep(key_unit<kTypes>(cache, nullptr, p, 0, h - p.n_heads));
            } else {
                keep(value_unit<kTypes>(cache, nullptr, p, 0, h - turned));
            }
        }
        sync_warp();
    }
}

// Heads without norms whose pairs are half a head apart, of more rows than there are warps: a thread takes four pairs
// that follow one another, some at once. The cache is F16.
template <u32 kTypes>
AKUNU_DEVICE_CALL void prepare_many_heads(Block b) {
    constexpr u32 kAtOnce = 4;
    const auto& p = b.params<PrepareHeadsParams>();
    float *const queries = b.buffer<float>(0), *const keys = b.buffer<float>(1), *const values = b.buffer<float>(2);
    const float* const table = b.buffer<float>(3);
    u8* const cache = b.buffer<u8>(4);
    const Row* const rows = b.buffer<Row>(6);
    const u32* const pages = b.buffer<u32>(7);
    // Looked up once: behind each store they would be looked up again.
    const u32 q = p.n_heads, kv = p.n_kv_heads, heads = q + 2 * kv, hd = p.head_dim, half = hd / 2, quads = half / 4;
    const u32 step = p.step, max_pages = p.max_pages, all = p.rows * heads * quads, apart = b.blocks() * kThreads;
    const u64 page_bytes = u64(p.page_words) * 4;
    const bool turns = p.rope_dim != 0;
    for (u32 first = b.first() * kThreads + thread_id(); first < all; first += kAtOnce * apart) {
        float4 low[kAtOnce], high[kAtOnce], turn[kAtOnce][2];
        float* at[kAtOnce];
        u16* kept[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 u = smaller(first + j * apart, all - 1), quad = u % quads, h = u / quads % heads;
            const u32 r = u / quads / heads, which = h < q ? 0 : h < q + kv ? 1 : 2;
            const u32 of = which == 0 ? h : h - q - (which - 1) * kv, n = which == 0 ? q : kv;
            float* const from = (which == 0 ? queries : which == 1 ? keys : values) + (u64(r) * n + of) * hd + 4 * quad;
            low[j] = *reinterpret_cast<const float4*>(from);
            high[j] = *reinterpret_cast<const float4*>(from + half);
            at[j] = turns && which != 2 ? from : nullptr;
            kept[j] = nullptr;
            if (which != 0) {
                const u32 position = rows[r].position + step;
                const u64 page = pages[u64(rows[r].slot) * max_pages + position / kPagePositions] * page_bytes;
                const u64 unit = which == 1 ? keys_at(kTypes, of, hd) : values_at(kTypes, kv, of, hd);
                kept[j] = reinterpret_cast<u16*>(cache + unit + page) + position % kPagePositions * hd + 4 * quad;
            }
            if (at[j]) {
                const float4* const by = reinterpret_cast<const float4*>(table + u64(r) * hd + 8 * quad);
                turn[j][0] = by[0], turn[j][1] = by[1];
            }
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (first + j * apart >= all) continue;
            if (at[j]) {
                const float4 v = low[j], w = high[j], a = turn[j][0], c = turn[j][1];
                low[j] = {v.x * a.x - w.x * a.y, v.y * a.z - w.y * a.w, v.z * c.x - w.z * c.y, v.w * c.z - w.w * c.w};
                high[j] = {v.x * a.y + w.x * a.x, v.y * a.w + w.y * a.z, v.z * c.y + w.z * c.x, v.w * c.w + w.w * c.z};
                *reinterpret_cast<float4*>(at[j]) = low[j];
                *reinterpret_cast<float4*>(at[j] + half) = high[j];
            }
            if (!kept[j]) continue;
            const auto packed = [](const float4& v) -> uint2 { return {pack_halves(v.x, v.y), pack_halves(v.z, v.w)}; };
            *reinterpret_cast<uint2*>(kept[j]) = packed(low[j]);
            *reinterpret_cast<uint2*>(kept[j] + half) = packed(high[j]);
        }
    }
}
AKUNU_DEVICE bool has_plain_pairs(Block b, const PrepareHeadsParams& p) {
    return !p.qk_norm && p.head_dim % 8 == 0 && p.n_kv_heads != 0 && p.rows > b.blocks() * kWarps &&
           (p.rope_dim == 0 || (p.style == kRopeHalf && p.rope_dim == p.head_dim));
}

template <u32 kTypes>
AKUNU_DEVICE void prepare_heads(Block b) {
    const auto& p = b.params<PrepareHeadsParams>();
    if constexpr (kTypes == kv_pair(kKvF16, kKvF16)) {
        if (has_plain_pairs(b, p)) return prepare_many_heads<kTypes>(b);
    }
    if (p.head_dim <= 64) return prepare_heads_heads<kTypes, 2>(b);
    if (p.head_dim <= 128) return prepare_heads_heads<kTypes, 4>(b);
    p.head_dim <= 256 ? prepare_heads_heads<kTypes, 8>(b) : prepare_heads_heads<kTypes, kMaxHeadDim / 32>(b);
}

}  // namespace akunu::cuda
