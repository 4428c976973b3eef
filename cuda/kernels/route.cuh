// The router of experts: which of them each row goes to, and with what weights. And logits of the clusters of tokens
// that were chosen so.
#pragma once

#include "fragments.cuh"
#include "tokens.cuh"

namespace akunu::cuda {

constexpr u32 kMostGroups = 256;  // of experts
constexpr u32 kRouteFloats = kMostClusters + kMostGroups;

// By a warp: use(i, load(i)) of i below n. A lane loads eight before it waits for one.
template <typename Load, typename Use>
AKUNU_DEVICE void each_of_warp(u32 n, Load&& load, Use&& use) {
    constexpr u32 kAtOnce = 8;
    AKUNU_NO_UNROLL
    for (u32 first = lane_id(); first < n; first += 32 * kAtOnce) {
        decltype(load(0)) v[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            v[j] = {};
            if (first + 32 * j < n) v[j] = load(first + 32 * j);
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (first + 32 * j < n) use(first + 32 * j, v[j]);
        }
    }
}

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

// Offsets in shared memory where a warp chooses: a row's gates, which begin as its logits, what ranks them, and sums of
// groups.
struct RouteScratch {
    u32 gates, scores, sums;
};
// What a lane has of a row's choices, of which there are no more than lanes.
struct Chosen {
    u32 id;
    float weight;
};
// Scores of groups, of which a lane takes one after the other: those of groups that are not used become the least.
AKUNU_DEVICE_CALL void leave_groups(const RouteParams& p, float* scores, float* sums) {
    const u32 lane = lane_id(), size = p.experts / p.groups;
    // The sum of a group's best scores, best first.
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
        for (u32 i = 0; i < size; ++i) scores[g * size + i] = bits_to_float(0xFF800000u);
    }
    sync_warp();
}

// By a warp, which has written the logits. `choice_bias` is added to what ranks experts, `own` are their own factors.
AKUNU_DEVICE_CALL Chosen choose(const RouteParams& p, const RouteScratch at, const float* choice_bias,
                                const float* own) {
    const auto gate = [&](u32 i) -> float& { return shared_at<float>(at.gates + i * 4); };
    const bool ranked_apart = p.has_choice_bias || p.groups != 0, softmax = p.gating == kGateSoftmax;
    const u32 scores = ranked_apart ? at.scores : at.gates;
    const auto score = [&](u32 i) -> float& { return shared_at<float>(scores + i * 4); };
    // Their logits rank experts as a softmax does, whose values are those of the chosen then.
    const bool by_logits = !ranked_apart && (softmax || p.gating == kGateSoftmaxChosen);
    const u32 lane = lane_id();
    sync_warp();
    float top = bits_to_float(0xFF800000u), sum = 0.0f;
    if (softmax) {
        for (u32 i = lane; i < p.experts; i += 32) top = fmaxf(top, gate(i));
        top = reduce_warp(top, Larger());
        for (u32 i = lane; i < p.experts; i += 32) {
            const float e = expf(gate(i) - top);
            sum += e;
            if (!by_logits) gate(i) = e;
        }
        sum = reduce_warp(sum, Add());
    }
    if (!by_logits && p.gating != kGateSoftmaxChosen) {
        for (u32 i = lane; i < p.experts; i += 32) gate(i) = softmax ? gate(i) / sum : gate_of(p.gating, gate(i));
    }
    if (ranked_apart) {
        each_of_warp(
            p.experts, [&](u32 i) { return p.has_choice_bias ? choice_bias[i] : 0.0f; },
            [&](u32 i, float x) { score(i) = gate(i) + x; });
        sync_warp();
        if (p.groups != 0) leave_groups(p, &shared_at<float>(scores), &shared_at<float>(at.sums));
    }
    // Scores become numbers in their order, of which those that are chosen become 0. A lane knows the best of its own,
    // and has them in registers where they are so few.
    constexpr u32 kHeld = 8;
    const bool held = p.experts <= 32 * kHeld;
    const auto key_at = [&](u32 i) -> u32& { return shared_at<u32>(scores + i * 4); };
    u32 keys[kHeld], best = 0, which = ~0u;
    const auto rank = [&](u32 i, u32 key) {
        which = key > best ? i : which;
        best = larger(best, key);
    };
    const auto rank_held = [&](u32 but) {
        best = 0;
        which = ~0u;
        AKUNU_UNROLL
        for (u32 j = 0; j < kHeld; ++j) {
            if (lane + 32 * j == but) keys[j] = 0;
            rank(lane + 32 * j, keys[j]);
        }
    };
    for (u32 i = lane; i < p.experts; i += 32) {
        const u32 key = u32(rank_of(finite(score(i)), i) >> 32);
        key_at(i) = key;
        rank(i, key);
    }
    AKUNU_UNROLL
    for (u32 j = 0; j < kHeld; ++j) {
        const u32 i = lane + 32 * j;
        keys[j] = held && i < p.experts ? key_at(i) : 0;
    }
    u32 id = 0, key = 0;  // of a lane's choice
    AKUNU_NO_UNROLL
    for (u32 n = 0; n < p.chosen; ++n) {
        const u32 most = largest_of_warp(best), first = ~largest_of_warp(best == most ? ~which : 0);
        if (lane == n) id = first, key = most;
        if (held) {
            rank_held(first);
            continue;
        }
        if (which != first) continue;
        key_at(first) = best = 0;
        which = ~0u;
        each_of_warp(p.experts, [&](u32 i) { return key_at(i); }, rank);
    }
    sync_warp();
    const bool mine = lane < p.chosen;
    float weight =
        mine ? ranked_apart ? gate(id) : logit_of(u64(key) << 32) : 0.0f;  // else the keys are in the gates' place
    if (p.gating == kGateSoftmaxChosen) {
        top = reduce_warp(mine ? weight : top, Larger());
        weight = mine ? expf(weight - top) : 0.0f;
        sum = reduce_warp(weight, Add());
    } else if (by_logits) {
        weight = mine ? expf(weight - top) : 0.0f;
    }
    if (p.gating == kGateSoftmaxChosen || by_logits) weight /= sum;
    float factor = p.scale;
    if (p.renormalise) factor /= fmaxf(reduce_warp(weight, Add()) + p.sum_eps, p.sum_min);
    if (mine && p.has_expert_scale) factor *= own[id];
    return {id, weight * factor};
}

// Buffers of a router: the logits of a row, what is added to its choices, the experts' own factors, and its results.
struct RouteBuffers {
    const float *logits, *choice_bias, *own;
    u32* ids;
    float* weights;
};
// A warp takes a row, whose gates and scores are in its part of shared memory.
AKUNU_DEVICE void route_row(Block b, const RouteParams& p, const RouteBuffers& at) {
    static_assert(kWarps * kRouteFloats * sizeof(float) <= kOpBytes, "the ring begins behind it");
    const u32 gates = kSharedHead + warp_id() * kRouteFloats * 4;
    sync_warp();
    each_of_warp(
        p.experts, [&](u32 i) { return load_fresh(at.logits + i); },
        [&](u32 i, float x) { shared_at<float>(gates + i * 4) = x; });
    const Chosen c = choose(p, {gates, gates + kMostExperts * 4, gates + kMostClusters * 4}, at.choice_bias, at.own);
    if (lane_id() >= p.chosen) return;
    at.ids[lane_id()] = c.id;
    at.weights[lane_id()] = c.weight;
}

AKUNU_DEVICE_CALL void route(Block b) {
    const auto& p = b.params<RouteParams>();
    for (u32 r = b.first() * kWarps + warp_id(); r < p.rows; r += b.blocks() * kWarps) {
        route_row(b, p,
                  {b.buffer<float>(0) + u64(r) * p.experts, b.buffer<float>(1), b.buffer<float>(2),
                   b.buffer<u32>(3) + u64(r) * p.chosen, b.buffer<float>(4) + u64(r) * p.chosen});
    }
}

// Of one row: norms it, multiplies it by the router's weights, and chooses. A block has the logits of some experts, for
// which it finds out the norm itself; the last one that has its logits chooses.
AKUNU_DEVICE_CALL void norm_route(Block b) {
    constexpr u32 kFours = kRouterInputs / kThreads / 4;
    const auto& p = b.params<NormRouteParams>();
    const Output out{b.buffer<float>(2), b.buffer<u16>(3), p.formats};
    const float *input = b.buffer<float>(0), *norm = b.buffer<float>(1), *bias = b.buffer<float>(5);
    const auto weights_of = [&](u32 i) {
        return in_global(reinterpret_cast<const float*>(b.command().weights[i].codes));
    };
    const u32 experts = p.route.experts, results = experts + p.shared;
    float* logits = b.buffer<float>(4);
    const auto four = [&](const float* from, u32 i) {
        const u32 at = (i * kThreads + thread_id()) * 4;
        return at < p.dim ? *reinterpret_cast<const float4*>(from + at) : float4{0, 0, 0, 0};
    };
    const auto router_four = [&](u32 n, u32 i) {
        return four(n < experts ? weights_of(0) + u64(n) * p.dim : weights_of(1), i);
    };
    const u32 first = b.first();
    float4 factors[kFours], row[kFours], x[kFours];
    // What no command writes is read while the block waits.
    AKUNU_UNROLL
    for (u32 i = 0; i < kFours; ++i) {
        factors[i] = four(norm, i);
        row[i] = router_four(smaller(first, results - 1), i);
    }
    b.wait();
    if (first >= results) return;
    float squares = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kFours; ++i) {
        x[i] = four(input, i);
        squares += (x[i].x * x[i].x + x[i].y * x[i].y) + (x[i].z * x[i].z + x[i].w * x[i].w);
        x[i] = {x[i].x * factors[i].x, x[i].y * factors[i].y, x[i].z * factors[i].z, x[i].w * factors[i].w};
    }
    const float scale = 1.0f / sqrtf(reduce_block(b, squares, Add()) / float(p.dim) + p.eps);
    AKUNU_UNROLL
    for (u32 i = 0; i < kFours; ++i) {
        const u32 at = (i * kThreads + thread_id()) * 4;
        x[i] = {x[i].x * scale, x[i].y * scale, x[i].z * scale, x[i].w * scale};
        if (first == 0 && at < p.dim) out.store4(at, x[i]);
    }
    for (u32 n = first; n < results; n += b.blocks()) {
        float sum = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kFours; ++i) {
            if (n != first) row[i] = router_four(n, i);
            sum += (row[i].x * x[i].x + row[i].y * x[i].y) + (row[i].z * x[i].z + row[i].w * x[i].w);
        }
        sum = reduce_block(b, sum, Add());
        if (thread_id() != 0) continue;
        if (n < experts) {
            logits[n] = p.has_bias ? sum + bias[n] : sum;
        } else {
            b.buffer<u32>(10)[0] = 0;
            b.buffer<float>(11)[0] = gate_of(kGateSigmoid, sum);
        }
    }
    if (!comes_last(b.grid()->tickets[0], smaller(b.blocks(), results)) || warp_id() != 0) return;
    route_row(b, p.route, {logits, b.buffer<float>(6), b.buffer<float>(7), b.buffer<u32>(8), b.buffer<float>(9)});
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
