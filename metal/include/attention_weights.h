// The weights that some heads give to the first keys of a slot: out[i][row][key] = softmax(scale·q·Kᵀ) of the i-th of these
// heads. A threadgroup per row and head.
#pragma once

#include <metal_stdlib>

#include "attention_kv.h"
#include "buffer_index.h"
#include "reduce.h"

template <typename Kv>
[[kernel]] void attention_weights(device const float* q [[buffer(0)]],
                                  device const uchar* cache [[buffer(1)]],
                                  device const uint* heads [[buffer(2)]],
                                  device float* out [[buffer(3)]],
                                  device const Row* rows [[buffer(4)]],
                                  device const uint* pages [[buffer(5)]],
                                  constant AttentionWeightsParams& p [[buffer(kParamsIndex)]],
                                  uint2 group [[threadgroup_position_in_grid]],
                                  uint tid [[thread_index_in_threadgroup]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float4 query[kMaxHeadDim / 4];
    threadgroup float tops[kAttentionSimdgroups], sums[kAttentionSimdgroups];
    const uint row = group.x, head = heads[group.y];
    const KvHead keys = key_head<Kv>(pages, p, rows[row].slot, head / kGroup);
    q += (ulong(row) * p.n_heads + head) * kHeadDim;
    out += (ulong(group.y) * p.out_rows + row) * p.fixed_keys;
    for (uint quad = tid; quad < head_quads(); quad += kAttentionThreads) query[quad] = load_head_quad(q, quad * 4) * p.scale;
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);

    // A thread has every n-th key, from its score to its weight.
    float top = kMasked;
    for (uint key = tid; key < p.fixed_keys; key += kAttentionThreads) {
        const KvRow at = keys.at(key);
        float score = 0.0f;
        for (uint quad = 0; quad < head_quads(); ++quad) score += metal::dot(query[quad], Kv::Keys::load(cache, at, quad));
        out[key] = score;
        top = metal::max(top, score);
    }
    top = threadgroup_max(top, tops, lane, simdgroup, kAttentionSimdgroups);
    float sum = 0.0f;
    for (uint key = tid; key < p.fixed_keys; key += kAttentionThreads) {
        const float e = metal::exp(out[key] - top);
        out[key] = e;
        sum += e;
    }
    const float share = 1.0f / threadgroup_sum(sum, sums, lane, simdgroup, kAttentionSimdgroups);
    for (uint key = tid; key < p.fixed_keys; key += kAttentionThreads) out[key] *= share;
}
