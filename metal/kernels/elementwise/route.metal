// The router of experts: which of them each row goes to, and with what weights. And logits of the clusters of tokens that were chosen so.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "expert_tiles.h"
#include "tokens.h"

static constant constexpr uint kMostGroups = 256;

static inline Ranked score_rank(float score, uint id) { return ranked(rank_of(finite_bits(as_type<uint>(score))), id); }
static inline float score_of(Ranked r) { return as_type<float>(bits_of_rank(r.key)); }

// log(1 + e^x), of a large x without the power.
static inline float softplus(float x) { return max(x, 0.0f) + precise::log(1.0f + precise::exp(-fabs(x))); }

// The best of n scores that are behind `limit`, in every lane.
static inline Ranked best_behind(threadgroup const float* scores, uint n, Ranked limit, bool all, uint lane) {
    Ranked best = nothing();
    for (uint i = lane; i < n; i += 32) {
        const Ranked r = score_rank(scores[i], i);
        if (all || is_better(limit, r)) best = better(r, best);
    }
    return simd_best(best);
}

// A SIMD-group takes a row.
kernel void route(
    device const float* logits [[buffer(0)]],
    device const float* choice_bias [[buffer(1)]],
    device const float* expert_scale [[buffer(2)]],
    device uint* ids [[buffer(3)]],
    device float* weights [[buffer(4)]],
    constant RouteParams& p [[buffer(kParamsIndex)]],
    uint row [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float gates[2 * kMostExperts], sums[kMostGroups];
    // Clusters' scores are their gates.
    threadgroup float* const scores = p.has_choice_bias != 0 || p.groups != 0 ? gates + kMostExperts : gates;
    logits += ulong(row) * p.experts;
    float top = -FLT_MAX, sum = 0.0f;
    if (p.gating == kGateSoftmax) {
        for (uint i = lane; i < p.experts; i += 32) top = max(top, logits[i]);
        top = simd_max(top);
        for (uint i = lane; i < p.experts; i += 32) sum += precise::exp(logits[i] - top);
        sum = simd_sum(sum);
    }
    for (uint i = lane; i < p.experts; i += 32) {
        const float x = logits[i];
        float gate = x;  // those of a softmax of the chosen ones are known later; logits have its order
        if (p.gating == kGateSoftmax) gate = precise::exp(x - top) / sum;
        if (p.gating == kGateSigmoid) gate = sigmoid(x);
        if (p.gating == kGateSqrtSoftplus) gate = precise::sqrt(softplus(x));
        gates[i] = gate;
        scores[i] = p.has_choice_bias != 0 ? gate + choice_bias[i] : gate;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (p.groups != 0) {
        // Of a group the sum of its best scores, best first.
        const uint size = p.experts / p.groups;
        for (uint g = lane; g < p.groups; g += 32) {
            float all = 0.0f;
            Ranked last = nothing();
            for (uint n = 0; n < min(p.group_top, size); ++n) {
                Ranked best = nothing();
                for (uint i = 0; i < size; ++i) {
                    const Ranked r = score_rank(scores[g * size + i], i);
                    if (n == 0 || is_better(last, r)) best = better(r, best);
                }
                all += score_of(best);
                last = best;
            }
            sums[g] = all;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        Ranked last = nothing();  // group that is used
        for (uint n = 0; n < p.groups_used; ++n) last = best_behind(sums, p.groups, last, n == 0, lane);
        for (uint g = lane; g < p.groups; g += 32) {
            if (!is_better(last, score_rank(sums[g], g))) continue;
            for (uint i = 0; i < size; ++i) scores[g * size + i] = as_type<float>(kMinusInfinity);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    Ranked best = nothing();
    uint id = 0;  // a lane's choice
    for (uint n = 0; n < p.chosen; ++n) {
        best = best_behind(scores, p.experts, best, n == 0, lane);
        if (lane == n) id = best.id;
    }
    const bool mine = lane < p.chosen;
    float weight = mine ? gates[id] : 0.0f;
    if (p.gating == kGateSoftmaxChosen) {
        const float most = simd_max(mine ? weight : -FLT_MAX);
        weight = mine ? precise::exp(weight - most) : 0.0f;
        weight /= simd_sum(weight);
    }
    float factor = p.scale;
    const float chosen_sum = simd_sum(weight);
    if (p.renormalise != 0) factor /= max(chosen_sum + p.sum_eps, p.sum_min);
    if (!mine) return;
    ids[ulong(row) * p.chosen + lane] = id;
    weights[ulong(row) * p.chosen + lane] = weight * (p.has_expert_scale != 0 ? factor * expert_scale[id] : factor);
}

// A threadgroup takes some of a row's tokens.
kernel void cluster_logits(device const float* x [[buffer(0)]],
                           device const uint* ids [[buffer(1)]],
                           device const uint* order [[buffer(2)]],
                           device float* y [[buffer(3)]],
                           constant ClusterLogitsParams& p [[buffer(kParamsIndex)]],
                           uint2 at [[threadgroup_position_in_grid]],
                           uint index [[thread_index_in_threadgroup]],
                           uint threads [[threads_per_threadgroup]]) {
    const uint first = at.x * kClusterColumns, end = min(first + kClusterColumns, p.vocab);
    y += ulong(at.y) * p.vocab;
    for (uint i = first + index; i < end; i += threads) y[i] = as_type<float>(kMinusInfinity);
    threadgroup_barrier(mem_flags::mem_device);
    for (uint i = index; i < p.chosen * p.n; i += threads) {
        const uint choice = at.y * p.chosen + i / p.n;
        const uint token = order[ulong(ids[choice]) * p.n + i % p.n];
        if (token >= first && token < end) y[token] = x[ulong(choice) * p.n + i % p.n];
    }
}
