// The router of experts: which of them each row goes to, and with what weights. And logits of the clusters of tokens
// that were chosen so.
#pragma once

#include "tokens.cuh"

namespace akunu::cuda {

constexpr u32 kMostGroups = 256;  // of experts
constexpr u32 kRouteFloats = kMostClusters + kMostGroups;

// By a warp: of n scores those that rank below `limit`, the best one's rank.
template <typename Score>
AKUNU_DEVICE u64 best_score(u32 n, u64 limit, Score&& score) {
    u64 best = 0;
    for (u32 i = lane_id(); i < n; i += 32) {
        const u64 rank = score(i);
        if (rank < limit && rank > best) best = rank;
    }
    const u32 high = largest_of_warp(u32(best >> 32));
    return u64(high) << 32 | largest_of_warp(u32(best >> 32) == high ? u32(best) : 0);
}

AKUNU_DEVICE float gate_of(u32 gating, float x) {
    if (gating == kGateSigmoid) return 1.0f / (1.0f + expf(-x));
    // log(1 + e^x), of a large x without the power.
    return sqrtf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))));
}

// A warp takes a row, whose gates and scores are in its part of shared memory.
AKUNU_DEVICE_CALL void route(Block b) {
    static_assert(kWarps * kRouteFloats * sizeof(float) <= kOpBytes, "the ring begins behind it");
    const auto& p = b.params<RouteParams>();
    const float *choice_bias = b.buffer<float>(1), *own = b.buffer<float>(2);
    float* gates = reinterpret_cast<float*>(b.shared()) + warp_id() * kRouteFloats;
    // Clusters' scores are their gates.
    float* scores = p.has_choice_bias || p.groups != 0 ? gates + kMostExperts : gates;
    float* sums = gates + kMostClusters;  // of groups
    const float none = bits_to_float(0xFF800000u);
    const u32 lane = lane_id();
    for (u32 r = b.first() * kWarps + warp_id(); r < p.rows; r += b.blocks() * kWarps) {
        const float* logits = b.buffer<float>(0) + u64(r) * p.experts;
        sync_warp();
        if (p.gating == kGateSoftmax) {
            float top = none, sum = 0.0f;
            for (u32 i = lane; i < p.experts; i += 32) top = fmaxf(top, logits[i]);
            top = reduce_warp(top, Larger());
            for (u32 i = lane; i < p.experts; i += 32) {
                gates[i] = expf(logits[i] - top);
                sum += gates[i];
            }
            sum = reduce_warp(sum, Add());
            for (u32 i = lane; i < p.experts; i += 32) gates[i] /= sum;
        } else {
            // Those of a softmax of the chosen ones are known later; logits have its order.
            const bool plain = p.gating == kGateSoftmaxChosen;
            for (u32 i = lane; i < p.experts; i += 32) gates[i] = plain ? logits[i] : gate_of(p.gating, logits[i]);
        }
        for (u32 i = lane; scores != gates && i < p.experts; i += 32) {
            scores[i] = p.has_choice_bias ? gates[i] + choice_bias[i] : gates[i];
        }
        sync_warp();
        if (p.groups != 0) {
            // Of a group the sum of its best scores, best first; a lane takes a group.
            const u32 size = p.experts / p.groups;
            const auto group_sum = [&](u32 g) {
                float all = 0.0f;
                u64 limit = ~u64(0);
                for (u32 n = 0; n < smaller(p.group_top, size); ++n) {
                    u64 best = 0;
                    for (u32 i = 0; i < size; ++i) {
                        const u64 rank = rank_of(finite(scores[g * size + i]), i);
                        if (rank < limit && rank > best) best = rank;
                    }
                    all += logit_of(best);
                    limit = best;
                }
                return all;
            };
            for (u32 g = lane; g < p.groups; g += 32) sums[g] = group_sum(g);
            sync_warp();
            u64 last = ~u64(0);  // the rank of the last group that is used
            for (u32 n = 0; n < p.groups_used; ++n) {
                last = best_score(p.groups, last, [&](u32 g) { return rank_of(finite(sums[g]), g); });
            }
            for (u32 g = lane; g < p.groups; g += 32) {
                if (rank_of(finite(sums[g]), g) >= last) continue;
                for (u32 i = 0; i < size; ++i) scores[g * size + i] = none;
            }
            sync_warp();
        }
        u64 limit = ~u64(0);
        u32 id = 0;  // a lane's choice
        for (u32 n = 0; n < p.chosen; ++n) {
            limit = best_score(p.experts, limit, [&](u32 i) { return rank_of(finite(scores[i]), i); });
            if (lane == n) id = id_of(limit);
        }
        const bool mine = lane < p.chosen;
        float weight = mine ? gates[id] : 0.0f;
        if (p.gating == kGateSoftmaxChosen) {
            const float top = reduce_warp(mine ? weight : none, Larger());
            weight = mine ? expf(weight - top) : 0.0f;
            weight /= reduce_warp(weight, Add());
        }
        float factor = p.scale;
        if (p.renormalise) factor /= fmaxf(reduce_warp(weight, Add()) + p.sum_eps, p.sum_min);
        if (!mine) continue;
        b.buffer<u32>(3)[u64(r) * p.chosen + lane] = id;
        b.buffer<float>(4)[u64(r) * p.chosen + lane] = weight * (p.has_expert_scale ? factor * own[id] : factor);
    }
}

// A block takes some of a row's tokens.
AKUNU_DEVICE_CALL void cluster_logits(Block b) {
    const auto& p = b.params<ClusterLogitsParams>();
    const float* x = b.buffer<float>(0);
    const u32 *ids = b.buffer<u32>(1), *order = b.buffer<u32>(2);
    const u32 parts = (p.vocab + kClusterColumns - 1) / kClusterColumns;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 row = u / parts, first = u % parts * kClusterColumns, end = smaller(first + kClusterColumns, p.vocab);
        float* y = b.buffer<float>(3) + u64(row) * p.vocab;
        for (u32 i = first + thread_id(); i < end; i += kThreads) y[i] = bits_to_float(0xFF800000u);
        sync_block();
        for (u32 i = thread_id(); i < p.chosen * p.n; i += kThreads) {
            const u32 choice = row * p.chosen + i / p.n;
            const u32 token = order[u64(ids[choice]) * p.n + i % p.n];
            if (token >= first && token < end) y[token] = x[u64(choice) * p.n + i % p.n];
        }
    }
}

}  // namespace akunu::cuda
