// Attention of whole sequences by the distance of a key from a query: see RelativeAttentionParams. A SIMD-group takes a row of
// a head, a lane a key of 32, and then an element of each value.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "relative_sizes.h"

kernel void relative_attention(device const float* q [[buffer(0)]],
                               device const float* k [[buffer(1)]],
                               device const float* v [[buffer(2)]],
                               device const uint* columns [[buffer(3)]],
                               device const float* bias [[buffer(4)]],
                               device const float* distance_keys [[buffer(5)]],
                               device const float* distance_queries [[buffer(6)]],
                               device float* out [[buffer(7)]],
                               device const Row* rows [[buffer(8)]],
                               constant RelativeAttentionParams& p [[buffer(kParamsIndex)]],
                               uint2 at [[threadgroup_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]]) {
    constexpr uint kOwn = kMostRelativeHead / 32;
    const uint head = at.x, row = at.y, hd = p.head_dim, dim = p.n_heads * hd, column = head * hd;
    const uint slot = rows[row].slot, position = rows[row].position, sequence = row - position;
    q += ulong(row) * dim + column;
    float acc[kOwn] = {}, top = -FLT_MAX, sum = 0.0f;
    for (uint first = 0;; first += 32) {
        const uint j = first + lane;
        const bool seen = sequence + j < p.rows && rows[sequence + j].slot == slot;
        const uint n = simd_sum(seen ? 1u : 0u);
        if (n == 0) break;
        float score = -FLT_MAX;
        if (seen) {
            const uint distance = j + p.reach < position ? 0 : min(j + p.reach - position, 2 * p.reach);
            const ulong c = columns[distance];
            device const float* key = k + ulong(sequence + j) * dim + column;
            device const float* distance_key = distance_keys + (p.has_keys ? c * dim + column : 0);
            device const float* distance_query = distance_queries + (p.has_queries ? c * dim + column : 0);
            float s = 0.0f;
            for (uint d = 0; d < hd; ++d) {
                s += q[d] * (p.has_keys ? key[d] + distance_key[d] : key[d]);
                if (p.has_queries) s += key[d] * distance_query[d];
            }
            score = s * p.scale + (p.has_bias ? bias[c * p.n_heads + head] : 0.0f);
        }
        const float most = simd_max(max(score, top));
        const float kept = first == 0 ? 0.0f : precise::exp(top - most), e = seen ? precise::exp(score - most) : 0.0f;
        top = most;
        sum = sum * kept + simd_sum(e);
        for (uint i = 0; i < kOwn; ++i) acc[i] *= kept;
        for (uint w = 0; w < n; ++w) {
            const float weight = simd_broadcast(e, ushort(w));
            device const float* value = v + ulong(sequence + first + w) * dim + column;
            for (uint i = 0; i < kOwn; ++i) {
                if (lane + 32 * i < hd) acc[i] += weight * value[lane + 32 * i];
            }
        }
    }
    for (uint i = 0; i < kOwn; ++i) {
        if (lane + 32 * i < hd) out[ulong(row) * dim + column + lane + 32 * i] = acc[i] / sum;
    }
}
