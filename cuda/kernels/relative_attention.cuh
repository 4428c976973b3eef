// Attention of whole sequences by the distance of a key from a query: see RelativeAttentionParams. A warp takes a row
// of a head, a lane a key of 32, and then an element of each value.
#pragma once

#include "attention.cuh"

namespace akunu::cuda {

AKUNU_DEVICE_CALL void relative_attention(Block b) {
    const auto& p = b.params<RelativeAttentionParams>();
    const float *k = b.buffer<float>(1), *v = b.buffer<float>(2);
    const u32* columns = b.buffer<u32>(3);
    const Row* rows = b.buffer<Row>(8);
    const u32 hd = p.head_dim, dim = p.n_heads * hd;
    constexpr u32 kOwn = kMaxHeadDim / 32;
    float* const weights = reinterpret_cast<float*>(b.shared()) + warp_id() * 32;
    const float kNone = bits_to_float(0xFF800000u);
    for (u32 u = b.first() * kWarps + warp_id(); u < p.rows * p.n_heads; u += b.blocks() * kWarps) {
        const u32 row = u / p.n_heads, head = u % p.n_heads, at = head * hd;
        const u32 slot = rows[row].slot, position = rows[row].position, sequence = row - position;
        const float* q = b.buffer<float>(0) + u64(row) * dim + at;
        float acc[kOwn], top = kNone, sum = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kOwn; ++i) acc[i] = 0.0f;
        for (u32 first = 0;; first += 32) {
            const u32 j = first + lane_id();
            const bool seen = sequence + j < p.rows && rows[sequence + j].slot == slot;
            if (!any_of_warp(seen)) break;
            float score = kNone;
            if (seen) {
                const u32 distance = j + p.reach < position ? 0 : smaller(j + p.reach - position, 2 * p.reach);
                const u64 c = columns[distance];
                const float* key = k + u64(sequence + j) * dim + at;
                const float* distance_key = b.buffer<float>(5) + c * dim + at;
                const float* distance_query = b.buffer<float>(6) + c * dim + at;
                float s = 0.0f;
                for (u32 d = 0; d < hd; ++d) {
                    s += q[d] * (p.has_keys ? key[d] + distance_key[d] : key[d]);
                    if (p.has_queries) s += key[d] * distance_query[d];
                }
                score = s * p.scale + (p.has_bias ? b.buffer<float>(4)[c * p.n_heads + head] : 0.0f);
            }
            const float most = reduce_warp(score > top ? score : top, Larger());
            const float kept = top == kNone ? 0.0f : expf(top - most), e = seen ? expf(score - most) : 0.0f;
            top = most;
            sum = sum * kept + reduce_warp(e, Add());
            sync_warp();
            weights[lane_id()] = e;
            sync_warp();
            const u32 n = ones_in(vote(seen));
            AKUNU_UNROLL
            for (u32 i = 0; i < kOwn; ++i) {
                const u32 d = lane_id() + 32 * i;
                if (d >= hd) continue;
                float value = acc[i] * kept;
                for (u32 w = 0; w < n; ++w) value += weights[w] * v[u64(sequence + first + w) * dim + at + d];
                acc[i] = value;
            }
        }
        float* out = b.buffer<float>(7) + u64(row) * dim + at;
        AKUNU_UNROLL
        for (u32 i = 0; i < kOwn; ++i) {
            const u32 d = lane_id() + 32 * i;
            if (d < hd) out[d] = acc[i] / sum;
        }
    }
}

}  // namespace akunu::cuda
