// The router of experts: which of them each row goes to, and with what weights. And logits of the clusters of tokens
// that were chosen so.

namespace akunu::cpu::AKUNU_ISA {

// The best of what was offered, best first: of equal ones the first.
struct BestScores {
    std::size_t most, count = 0;
    float score[kMostChosen];
    u32 id[kMostChosen];
    explicit BestScores(std::size_t n) : most(n) {}
    void offer(float s, std::size_t of) {
        if (count == most && !(s > score[most - 1])) return;
        std::size_t at = count < most ? count++ : most - 1;
        for (; at > 0 && s > score[at - 1]; --at) {
            score[at] = score[at - 1];
            id[at] = id[at - 1];
        }
        score[at] = s;
        id[at] = static_cast<u32>(of);
    }
};

// gates[i] = those of n logits.
static inline void gates_of(u32 gating, const float* logits, std::size_t n, float* gates) {
    if (gating == kGateSigmoid) {
        for (std::size_t i = 0; i < n; ++i) gates[i] = 1 / (1 + std::exp(-logits[i]));
    } else if (gating == kGateSqrtSoftplus) {
        // log(1 + e^x), of a large x without the power.
        for (std::size_t i = 0; i < n; ++i) {
            gates[i] = std::sqrt(std::max(logits[i], 0.0f) + std::log1p(std::exp(-std::abs(logits[i]))));
        }
    } else {
        const float top = *std::max_element(logits, logits + n);
        float sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += gates[i] = std::exp(logits[i] - top);
        for (std::size_t i = 0; i < n; ++i) gates[i] /= sum;
    }
}

static inline void route_row(const RouteParams& p, const float* logits, const float* choice_bias, const float* own,
                             u32* ids, float* weights) {
    float gates[kMostExperts], biased[kMostExperts];
    const float* scores = logits;  // which have the order of their softmax
    if (p.gating != kGateSoftmaxChosen) {
        gates_of(p.gating, logits, p.experts, gates);
        scores = gates;
    }
    if (p.has_choice_bias) {
        for (std::size_t i = 0; i < p.experts; ++i) biased[i] = scores[i] + choice_bias[i];
        scores = biased;
    }
    BestScores best(p.chosen);
    if (p.groups == 0) {
        for (std::size_t i = 0; i < p.experts; ++i) best.offer(scores[i], i);
    } else {
        const std::size_t size = p.experts / p.groups;
        BestScores groups(p.groups_used);
        for (std::size_t g = 0; g < p.groups; ++g) {
            BestScores top(p.group_top);
            for (std::size_t i = 0; i < size; ++i) top.offer(scores[g * size + i], i);
            float sum = 0;
            for (std::size_t i = 0; i < top.count; ++i) sum += top.score[i];
            groups.offer(sum, g);
        }
        // By their numbers, as without groups.
        for (std::size_t g = 0; g < p.groups; ++g) {
            bool used = false;
            for (std::size_t i = 0; i < groups.count; ++i) used = used || groups.id[i] == g;
            if (!used) continue;
            for (std::size_t i = g * size; i < (g + 1) * size; ++i) best.offer(scores[i], i);
        }
    }
    const std::size_t n = best.count;
    for (std::size_t i = 0; i < n; ++i) {
        ids[i] = best.id[i];
        weights[i] = p.gating == kGateSoftmaxChosen ? logits[ids[i]] : gates[ids[i]];
    }
    if (p.gating == kGateSoftmaxChosen) gates_of(kGateSoftmax, weights, n, weights);
    float factor = p.scale;
    if (p.renormalise) {
        float sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += weights[i];
        factor /= std::max(sum + p.sum_eps, p.sum_min);
    }
    for (std::size_t i = 0; i < n; ++i) weights[i] *= p.has_expert_scale ? factor * own[ids[i]] : factor;
}

static void route(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<RouteParams>(params);
    const auto* logits = cmd.buffers[0].as<float>();
    const auto *choice_bias = cmd.buffers[1].as<float>(), *own = cmd.buffers[2].as<float>();
    auto* ids = cmd.buffers[3].as<u32>();
    auto* weights = cmd.buffers[4].as<float>();
    auto rows = worker.claim(p.rows, 64 * std::uint64_t{p.experts});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            route_row(p, logits + r * p.experts, choice_bias, own, ids + r * p.chosen, weights + r * p.chosen);
        }
    }
}

static void cluster_logits(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ClusterLogitsParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto *ids = cmd.buffers[1].as<u32>(), *order = cmd.buffers[2].as<u32>();
    auto* y = cmd.buffers[3].as<float>();
    auto rows = worker.claim(p.rows, 4 * std::uint64_t{p.vocab});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* to = y + r * p.vocab;
            std::fill_n(to, p.vocab, -std::numeric_limits<float>::infinity());
            for (std::size_t c = r * p.chosen; c < (r + 1) * p.chosen; ++c) {
                const u32* tokens = order + std::size_t{ids[c]} * p.n;
                for (std::size_t i = 0; i < p.n; ++i) to[tokens[i]] = x[c * p.n + i];
            }
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
