// Argmax, the sampler and log-probabilities. docs/sampling.md defines what each step means.

namespace akunu::cpu::AKUNU_ISA {

struct Candidate {
    float logit;
    u32 id;
    // Best first: by logit, then lowest id.
    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    }
};

static inline Candidate best_of(const float* x, u32 n) {
    vf top = set1(-std::numeric_limits<float>::infinity());
    u32 i = 0;
    for (; i + L <= n; i += L) top = max_(top, load(x + i));
    float max = reduce_max(top);
    for (; i < n; ++i) max = std::max(max, x[i]);
    for (u32 id = 0; id < n; ++id) {
        if (x[id] == max) return {max, id};
    }
    return {max, 0};
}

static inline void emit_token(const SampleParams& p, u32* history, const SamplerState& s, Control& control, u32 id) {
    history[p.position] = id;
    ++control.produced;
    const auto* end = s.end_ids.data() + s.n_end_ids;
    if (std::find(s.end_ids.data(), end, id) != end) control.stop = 1;
}

static void argmax(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    if (worker.index != 0) return;
    const auto& p = params_as<SampleParams>(params);
    emit_token(p, cmd.buffers[1].as<u32>(), *cmd.buffers[2].as<SamplerState>(), *cmd.buffers[3].as<Control>(),
               best_of(cmd.buffers[0].as<float>(), p.vocab).id);
}

// scaled = (penalised(logits + bias)) / temperature. The second half of `scaled` counts window tokens; it is all zero between
// commands.
static void sample_prepare(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    const auto* logits = cmd.buffers[0].as<float>();
    const auto* history = cmd.buffers[1].as<u32>();
    const auto& s = *cmd.buffers[2].as<SamplerState>();
    auto* scaled = cmd.buffers[3].as<float>();
    auto* counts = cmd.buffers[3].as<u32>() + p.vocab;
    const auto range = worker.share(p.vocab);
    const auto mine = [&](u32 id) { return id >= range.begin && id < range.end; };

    std::copy(logits + range.begin, logits + range.end, scaled + range.begin);
    for (u32 i = 0; i < s.n_bias; ++i) {
        if (mine(s.bias[i].id)) scaled[s.bias[i].id] += s.bias[i].bias;
    }
    if (s.repeat_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0) {
        const u32 first = p.position - std::min(p.position, s.penalty_window);
        for (u32 i = first; i < p.position; ++i) {
            if (mine(history[i])) ++counts[history[i]];
        }
        for (u32 i = first; i < p.position; ++i) {
            const u32 id = history[i];
            if (!mine(id) || counts[id] == 0) continue;
            float l = scaled[id];
            l = l > 0 ? l / s.repeat_penalty : l * s.repeat_penalty;
            scaled[id] = l - s.presence_penalty - s.frequency_penalty * static_cast<float>(counts[id]);
            counts[id] = 0;
        }
    }
    if (s.temperature > 0) {
        const float inverse = 1.0f / s.temperature;
        for (std::uint64_t i = range.begin; i < range.end; ++i) scaled[i] *= inverse;
    }
}

// The k best of all tokens, best first.
static inline void top_k(const float* x, u32 n, u32 k, std::vector<Candidate>& out) {
    out.clear();
    for (u32 i = 0; i < k; ++i) out.push_back({x[i], i});
    std::make_heap(out.begin(), out.end());  // the worst on top
    const auto consider = [&](u32 id) {
        if (!(x[id] > out.front().logit)) return;  // an equal logit with a higher id loses
        std::pop_heap(out.begin(), out.end());
        out.back() = {x[id], id};
        std::push_heap(out.begin(), out.end());
    };
    u32 i = k;
    for (; i + L <= n; i += L) {
        if (reduce_max(load(x + i)) <= out.front().logit) continue;
        for (u32 j = i; j < i + L; ++j) consider(j);
    }
    for (; i < n; ++i) consider(i);
    std::sort(out.begin(), out.end());
}

static inline float sum_exp(const float* x, u32 n, float max) {
    vf sum = zero();
    u32 i = 0;
    for (; i + L <= n; i += L) sum += exp_(load(x + i) - set1(max));
    float total = reduce_add(sum);
    for (; i < n; ++i) total += std::exp(x[i] - max);
    return total;
}

// Enough of the best tokens, sorted, to hold a share `p` of the probability.
static inline void nucleus_candidates(const float* x, u32 n, float p, std::vector<Candidate>& out) {
    const float max = best_of(x, n).logit;
    const double want = static_cast<double>(p) * sum_exp(x, n, max);
    for (float depth = 4;; depth *= 2) {
        out.clear();
        double mass = 0;
        const bool all = depth > 200;
        for (u32 i = 0; i < n; ++i) {
            if (!all && !(x[i] >= max - depth)) continue;
            out.push_back({x[i], i});
            mass += std::exp(static_cast<double>(x[i] - max));
        }
        if (all || mass >= want * (1 + 1e-6)) break;
    }
    std::sort(out.begin(), out.end());
}

static inline std::vector<double> softmax(const std::vector<Candidate>& c) {
    std::vector<double> p(c.size());
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i) sum += p[i] = std::exp(static_cast<double>(c[i].logit) - c[0].logit);
    for (double& v : p) v /= sum;
    return p;
}

static inline void keep_typical(std::vector<Candidate>& c, float typical_p) {
    const std::vector<double> p = softmax(c);
    double entropy = 0;
    for (const double v : p) entropy -= v > 0 ? v * std::log(v) : 0;
    std::vector<std::pair<double, std::size_t>> order(c.size());
    for (std::size_t i = 0; i < c.size(); ++i) {
        order[i] = {p[i] > 0 ? std::abs(-std::log(p[i]) - entropy) : std::numeric_limits<double>::infinity(), i};
    }
    std::sort(order.begin(), order.end());
    std::vector<Candidate> kept;
    double mass = 0;
    for (const auto& [distance, i] : order) {
        kept.push_back(c[i]);
        mass += p[i];
        if (mass >= typical_p) break;
    }
    std::sort(kept.begin(), kept.end());
    c = std::move(kept);
}

// `total` is the softmax denominator relative to the best logit.
static inline void keep_nucleus(std::vector<Candidate>& c, float top_p, double total) {
    double mass = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
        mass += std::exp(static_cast<double>(c[i].logit) - c[0].logit);
        if (mass >= top_p * total) {
            c.resize(i + 1);
            return;
        }
    }
}

// Standard Gumbel noise of (seed, position, token). The uniform has 32 bits counted from the end where the noise is large, so
// the upper tail is as fine as the rest; the largest value is below kMaxGumbel.
constexpr float kMaxGumbel = 22.9f;
static inline float gumbel(const SamplerState& s, u32 position, u32 token) {
    const auto words = philox4x32({token / 4, position, 0, 0}, s.seed_lo, s.seed_hi);
    const float u = (static_cast<float>(words[token % 4]) + 0.5f) * 0x1p-32f;
    const float e = -std::log1p(-std::min(u, 1 - 0x1p-24f));
    return -std::log(e);
}

struct Draw {
    float key = -std::numeric_limits<float>::infinity();
    u32 id = 0;
    void offer(const SamplerState& s, u32 position, float logit, u32 token) {
        if (!(logit + kMaxGumbel >= key)) return;  // cannot win
        const float k = logit + gumbel(s, position, token);
        if (k > key || (k == key && token < id)) {
            key = k;
            id = token;
        }
    }
};

static void sample_select(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    if (worker.index != 0) return;
    const auto& p = params_as<SampleParams>(params);
    const auto* scaled = cmd.buffers[0].as<float>();
    auto* history = cmd.buffers[1].as<u32>();
    const auto& s = *cmd.buffers[2].as<SamplerState>();
    auto& control = *cmd.buffers[3].as<Control>();
    const Candidate best = best_of(scaled, p.vocab);
    if (s.temperature == 0) {
        emit_token(p, history, s, control, best.id);
        return;
    }
    Draw draw;
    draw.offer(s, p.position, best.logit, best.id);
    const bool limited = s.top_k > 0 && s.top_k < p.vocab, typical = s.typical_p < 1, nucleus = s.top_p < 1;
    const float min_gap = s.min_p > 0 ? std::log(s.min_p) : -std::numeric_limits<float>::infinity();
    if (!limited && !typical && !nucleus) {
        for (u32 i = 0; i < p.vocab; ++i) {
            if (scaled[i] - best.logit >= min_gap) draw.offer(s, p.position, scaled[i], i);
        }
    } else {
        static thread_local std::vector<Candidate> c;  // keeps its memory from token to token
        double total = 0;
        if (limited || typical) {
            top_k(scaled, p.vocab, limited ? s.top_k : p.vocab, c);
            if (typical) keep_typical(c, s.typical_p);
            for (const Candidate& x : c) total += std::exp(static_cast<double>(x.logit) - c[0].logit);
        } else {
            nucleus_candidates(scaled, p.vocab, s.top_p, c);
            total = sum_exp(scaled, p.vocab, best.logit);
        }
        if (nucleus) keep_nucleus(c, s.top_p, total);
        draw = {};
        for (const Candidate& x : c) {
            if (x.logit - c[0].logit >= min_gap) draw.offer(s, p.position, x.logit, x.id);
        }
    }
    emit_token(p, history, s, control, draw.id);
}

static void logprobs(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    if (worker.index != 0) return;
    const auto& p = params_as<SampleParams>(params);
    const auto* logits = cmd.buffers[0].as<float>();
    const auto* history = cmd.buffers[1].as<u32>();
    const auto& s = *cmd.buffers[2].as<SamplerState>();
    auto& out = cmd.buffers[3].as<LogprobRecord>()[p.step];
    const float max = best_of(logits, p.vocab).logit;
    const float log_sum = max + std::log(sum_exp(logits, p.vocab, max));
    out.chosen = logits[history[p.position]] - log_sum;
    if (s.n_logprobs == 0) return;
    static thread_local std::vector<Candidate> c;
    top_k(logits, p.vocab, std::min(s.n_logprobs, p.vocab), c);
    for (std::size_t i = 0; i < c.size(); ++i) {
        out.ids[i] = c[i].id;
        out.values[i] = c[i].logit - log_sum;
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
