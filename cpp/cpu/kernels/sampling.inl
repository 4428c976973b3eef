// Argmax, the sampler's first steps, the sample, log-probabilities, and what becomes of sampled tokens.
// docs/sampling.md defines what each step means.

namespace akunu::cpu::AKUNU_ISA {

// x to the n-th, by squaring; what is too large counts as the largest float.
static inline float power(float x, u32 n) {
    float y = 1;
    for (; n; n >>= 1) {
        if (n & 1) y *= x;
        x *= x;
    }
    return finite(y);
}

static void argmax(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    const auto* logits = cmd.buffers[0].as<float>();
    auto* sampled = cmd.buffers[1].as<u32>();
    for_logit_rows(p, worker, [&](u32 i) { sampled[i] = best_of(logits + std::size_t{i} * p.vocab, p.vocab).id; });
}

// A token's set among sequence breakers; see BreakerLimits.
static inline u32 breaker_set(const u32* breakers, u32 id) {
    return breakers[breakers[kBreakerBytesAt + id / 4] >> (8 * (id % 4)) & 0xFF];
}

// How long a repeat of the last `window` tokens before `end` may be: it begins behind the last sequence breaker. One
// that is far enough back for repeats of `longest` is not looked for.
static u32 repeat_limit(const u32* breakers, const u32* end, u32 window, u32 longest) {
    const u32 look = longest < window ? std::min(window, longest + 1 + kBreakerTailIds) : window;
    for (u32 back = 0; back < look; ++back) {  // from the last token on
        const u32 set = breaker_set(breakers, end[-1 - std::ptrdiff_t{back}]);
        bool found = set & kIsBreaker;
        u32 behind = 0;  // tokens of the breaker after this one
        const u32* tail = breakers + kBreakerSets + (set & 0xFFFF) * kBreakerTailWords;
        for (u32 i = 0; i < (set >> 16 & 0x7FFF); ++i, tail += kBreakerTailWords) {
            if (tail[0] < behind || tail[0] > back || !std::equal(tail + 1, tail + 1 + tail[0], end - back)) continue;
            found = true;
            behind = tail[0];
        }
        if (found) return back - behind;
    }
    return window;
}

// DRY: takes from the logit of each token that would go on with a repeat of what the sequence ends with. `counts` are
// zero before and after.
template <typename Mine>
static void penalise_repeats(const SamplerState& s, const u32* breakers, const u32* end, u32 position, Mine&& mine,
                             float* scaled, u32* counts) {
    const u32 window = std::min(position, s.dry_window);
    if (s.dry_multiplier == 0 || window <= s.dry_allowed) return;
    u32 longest = s.dry_longest;
    if (breakers) longest = std::min(longest, repeat_limit(breakers, end, window, longest));
    if (longest < s.dry_allowed) return;
    // Calls f(token, back) for mine that followed what may be the end of the sequence, which was `back` tokens ago.
    const auto each = [&](auto&& f) {
        for (u32 back = 1; back < window; ++back) {
            const u32 id = end[-std::ptrdiff_t{back}];
            if (mine(id) && (s.dry_allowed == 0 || end[-1 - std::ptrdiff_t{back}] == end[-1])) f(id, back);
        }
    };
    each([&](u32 id, u32 back) {
        const u32 most = std::min(longest, window - back);
        if (counts[id] > most) return;
        u32 n = 0;
        while (n < most && end[-1 - std::ptrdiff_t{n}] == end[-1 - std::ptrdiff_t{n} - back]) ++n;
        if (n >= s.dry_allowed) counts[id] = std::max(counts[id], n + 1);
    });
    each([&](u32 id, u32) {
        if (counts[id] == 0) return;
        const bool breaks = breakers && (breaker_set(breakers, id) & kIsBreaker);
        const float penalty = s.dry_multiplier * power(s.dry_base, counts[id] - 1 - s.dry_allowed);
        if (!breaks) scaled[id] = finite(scaled[id] - penalty);
        counts[id] = 0;
    });
}

// The tokens [begin, end) of a row of sample_prepare.
static inline void prepare_range(const DispatchCmd& cmd, const SampleParams& p, u32 r, u32 begin, u32 end) {
    const LogitRow row = logit_row(cmd.buffers[6].as<Row>(), cmd.buffers[7].as<u32>(), p, r);
    const auto* logits = cmd.buffers[0].as<float>() + std::size_t{r} * p.vocab;
    const auto* history = cmd.buffers[1].as<u32>() + std::size_t{row.slot} * p.history_stride;
    const auto& s = cmd.buffers[2].as<SamplerState>()[row.slot];
    const auto* bias = cmd.buffers[3].as<LogitBias>() + std::size_t{row.slot} * kMaxLogitBias;
    const auto* mask = cmd.buffers[4].as<u32>() + std::size_t{r} * mask_words(p.vocab);
    auto* scaled = cmd.buffers[5].as<float>() + std::size_t{r} * 2 * p.vocab;
    auto* counts = cmd.buffers[5].as<u32>() + std::size_t{r} * 2 * p.vocab + p.vocab;
    const auto mine = [&](u32 id) { return id >= begin && id < end; };

    for (u32 i = begin; i < end; i += L) store_tokens(scaled + i, finite(load_tokens(logits + i, end - i)), end - i);
    if (s.masked) {
        for (u32 i = begin; i < end; ++i) {
            if (!(mask[i / 32] >> (i % 32) & 1)) scaled[i] = -kInfinity;
        }
    }
    for (u32 i = 0; i < s.n_bias; ++i) {
        const u32 id = bias[i].id;
        if (mine(id)) scaled[id] = finite(scaled[id] + bias[i].bias);
    }
    if (s.repeat_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0) {
        const u32 first = row.position - std::min(row.position, s.penalty_window);
        for (u32 i = first; i < row.position; ++i) {
            if (mine(history[i])) ++counts[history[i]];
        }
        for (u32 i = first; i < row.position; ++i) {
            const u32 id = history[i];
            if (!mine(id) || counts[id] == 0) continue;
            const float l = scaled[id] > 0 ? scaled[id] / s.repeat_penalty : scaled[id] * s.repeat_penalty;
            scaled[id] = finite(l - s.presence_penalty - s.frequency_penalty * static_cast<float>(counts[id]));
            counts[id] = 0;
        }
    }
    const u32* breakers = nullptr;
    if (s.has_dry_breakers) breakers = cmd.buffers[8].as<u32>() + std::size_t{row.slot} * breaker_words(p.vocab);
    penalise_repeats(s, breakers, history + row.position, row.position, mine, scaled, counts);
}

// scaled = penalised(logits + bias), or -inf where the mask forbids. The second half of a row of `scaled` counts window
// tokens; it is all zero between commands.
static void sample_prepare(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    constexpr u32 kPart = 4096;  // tokens; each part looks for its own in the window
    const u32 of_row = (p.vocab + kPart - 1) / kPart;
    auto parts = worker.claim(std::uint64_t{p.rows} * of_row, 16 * kPart);
    while (parts.next()) {
        for (auto i = static_cast<u32>(parts.begin); i < parts.end; ++i) {
            const u32 begin = i % of_row * kPart;
            prepare_range(cmd, p, i / of_row, begin, std::min(p.vocab, begin + kPart));
        }
    }
}

// ---- the sample ----------------------------------------------------------------------------

// Standard Gumbel noise of a random word. The uniform (word + 0.5)·2^-32 is a distance from 1, so the upper tail, where
// the winners are, is as fine as the rest; the largest value is below kMaxGumbel.
constexpr double kMaxGumbel = 22.9;
static inline double gumbel(u32 word) {
    const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
    return -std::log(-std::log1p(-u));
}

// Not below gumbel(word): -log(-log1p(-u)) <= -log u, and the bits of a float are, as an integer, a piecewise linear
// function not above its logarithm. At most 0.07 too large where the noise is above 3.
static inline vf gumbel_bound(vu word) {
    const vf u = to_float(vi(word >> 1)) + set1(0.25f);  // in units of 2^-31, rounded down
    vi bits;
    std::memcpy(&bits, &u, sizeof bits);
    constexpr float kLn2 = 0.6931472f, kSlack = 1e-4f;  // the float holds `bits` to 1e-5
    return fma(to_float(bits), set1(-kLn2 * 0x1p-23f), set1(kLn2 * (31 + 127) + kSlack));
}

struct Winner {
    double key = -std::numeric_limits<double>::infinity();
    u32 id = 0;
    void offer(float logit, u32 token, u32 word) {
        const double k = static_cast<double>(logit) + gumbel(word);
        if (k > key || (k == key && token < id)) {
            key = k;
            id = token;
        }
    }
    bool hopeless(float logit) const { return !(static_cast<double>(logit) + kMaxGumbel >= key); }
};

static inline u32 random_word(const SamplerState& s, u32 position, u32 token) {
    return philox4x32({token / 4, position, 0, 0}, s.seed_lo, s.seed_hi)[token % 4];
}

// The words of tokens [first, first + 4L), in order.
static inline void random_words(const SamplerState& s, u32 position, u32 first, vu (&words)[4]) {
    alignas(64) u32 counters[L];
    // Lane 4q + e holds counter e·L/4 + q, so that transposing within each 16 bytes puts the tokens in order.
    for (u32 i = 0; i < u32{L}; ++i) counters[i] = first / 4 + i % 4 * (L / 4) + i / 4;
    vu c0, c1 = vu{} + position, c2 = vu{}, c3 = vu{};
    std::memcpy(&c0, counters, sizeof c0);
    u32 k0 = s.seed_lo, k1 = s.seed_hi;
    for (int round = 0; round < 10; ++round) {
        vu low0, high0, low1, high1;
        mul_wide(c0, 0xD2511F53u, low0, high0);
        mul_wide(c2, 0xCD9E8D57u, low1, high1);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
    transpose4(words);
}

// The number in (0, 1) that decides whether XTC applies at a position.
static inline double chance(const SamplerState& s, u32 position) {
    return (static_cast<double>(philox4x32({0, position, 1, 0}, s.seed_lo, s.seed_hi)[0]) + 0.5) * 0x1p-32;
}

// argmax of logit + noise over the tokens with logits from `floor`; `best` has the highest logit.
static u32 draw_from_all(const Survivors& s, const SamplerState& state, u32 position, Best best, float floor) {
    Winner winner;
    winner.offer(best.logit, best.id, random_word(state, position, best.id));
    u32 first = 0;
    for (; first + 4 * L <= s.n; first += 4 * L) {
        vf t[4];
        for (u32 j = 0; j < 4; ++j) t[j] = load(s.x + first + j * L);
        const float top = reduce_max(max_(max_(t[0], t[1]), max_(t[2], t[3])));
        if (top < floor || winner.hopeless(top)) continue;
        vu words[4];
        random_words(state, position, first, words);
        vf bound = set1(-kInfinity);
        for (u32 j = 0; j < 4; ++j) bound = max_(t[j] + gumbel_bound(words[j]), bound);
        if (static_cast<double>(reduce_max(bound)) < winner.key) continue;
        alignas(64) u32 word[4 * L];
        std::memcpy(word, words, sizeof word);
        for (u32 i = 0; i < 4 * u32{L}; ++i) {
            const float logit = s.x[first + i];
            if (logit >= floor && !winner.hopeless(logit)) winner.offer(logit, first + i, word[i]);
        }
    }
    for (; first < s.n; ++first) {
        if (s.x[first] < floor || winner.hopeless(s.x[first])) continue;
        winner.offer(s.x[first], first, random_word(state, position, first));
    }
    return winner.id;
}

// The token of one row; `x` are its penalised logits, which are overwritten.
static u32 select(float* x, u32 vocab, u32 position, const SamplerState& s, SampleScratch& scratch) {
    Best best = best_of(x, vocab);
    if (s.temperature == 0 || best.logit == -kInfinity) return best.id;
    if (s.top_n_sigma > 0) keep_sigmas(x, vocab, best.logit, s.top_n_sigma);
    // Relative to the best first: then nothing overflows but to -inf, whatever the temperature.
    const float inverse = finite(1.0f / s.temperature);
    for (u32 i = 0; i < vocab; i += L) {
        const u32 lanes = vocab - i;
        store_tokens(x + i, (load_tokens(x + i, lanes) - set1(best.logit)) * set1(inverse), lanes);
    }
    best.logit = 0;
    Survivors survivors{x, vocab, scratch};
    if (s.top_k > 0) keep_top_k(survivors, s.top_k);
    if (s.typical_p < 1) {
        keep_mass(survivors, ByDistance{mean_logit(survivors)}, static_cast<double>(s.typical_p), s.min_keep);
        if (!survivors.listed) best = best_of(x, vocab);
    }
    if (s.top_p < 1) keep_mass(survivors, ByLogit{}, static_cast<double>(s.top_p), s.min_keep);
    float gap = s.min_p > 0 ? std::log(s.min_p) : -kInfinity;
    // What follows counts what min_p leaves.
    const bool excludes = s.xtc_probability > 0 && chance(s, position) < static_cast<double>(s.xtc_probability);
    if (s.min_keep > 1 || excludes) {
        if (s.min_p > 0) keep_above(survivors, gap, s.min_keep);
        gap = -kInfinity;
    }
    if (excludes && exclude_top(survivors, s.xtc_threshold, s.min_keep) && !survivors.listed) best = best_of(x, vocab);
    if (!survivors.listed) return draw_from_all(survivors, s, position, best, best.logit + gap);
    float top = -kInfinity;
    for (const Candidate& c : survivors.list()) top = c.logit > top ? c.logit : top;
    Winner winner;
    for (const Candidate& c : survivors.list()) {
        if (c.logit - top >= gap && !winner.hopeless(c.logit)) {
            winner.offer(c.logit, c.id, random_word(s, position, c.id));
        }
    }
    return winner.id;
}

static void sample_select(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    auto* sampled = cmd.buffers[2].as<u32>();
    for_logit_rows(p, worker, [&](u32 i) {
        const LogitRow row = logit_row(cmd.buffers[3].as<Row>(), cmd.buffers[4].as<u32>(), p, i);
        sampled[i] =
            select(cmd.buffers[0].as<float>() + std::size_t{i} * 2 * p.vocab, p.vocab, row.position,
                   cmd.buffers[1].as<SamplerState>()[row.slot], *reinterpret_cast<SampleScratch*>(worker.scratch));
    });
}

static void logprobs(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    for_logit_rows(p, worker, [&](u32 r) {
        const LogitRow row = logit_row(cmd.buffers[4].as<Row>(), cmd.buffers[5].as<u32>(), p, r);
        const auto& s = cmd.buffers[2].as<SamplerState>()[row.slot];
        if (!s.want_logprobs) return;
        const auto* logits = cmd.buffers[0].as<float>() + std::size_t{r} * p.vocab;
        auto& out = cmd.buffers[3].as<LogprobRecord>()[std::size_t{p.step} * p.rows + r];
        const double max = static_cast<double>(best_of(logits, p.vocab).logit);
        const double log_sum = max + std::log(sum_exp(logits, p.vocab, static_cast<float>(max)));
        const auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) - log_sum); };
        out.chosen = logprob(logits[cmd.buffers[1].as<u32>()[r]]);
        if (s.n_logprobs == 0) return;
        Candidate* best = reinterpret_cast<SampleScratch*>(worker.scratch)->list;
        const u32 k = k_best(logits, p.vocab, s.n_logprobs < p.vocab ? s.n_logprobs : p.vocab, best);
        std::sort(best, best + k);
        for (u32 i = 0; i < k; ++i) {
            out.ids[i] = best[i].id;
            out.values[i] = logprob(best[i].logit);
        }
    });
}

// Writes the sampled tokens into the histories. Where a sequence has several rows, those after the first are drafts: a
// row counts as long as what was sampled for the row before it is the token that it was run for.
static void accept(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    auto all = worker.claim(1, 0);
    if (!all.next()) return;
    const auto& p = params_as<SampleParams>(params);
    const auto* sampled = cmd.buffers[0].as<u32>();
    auto& control = *cmd.buffers[4].as<Control>();
    u32 slot_before = 0xFFFFFFFFu;
    bool drafts_hold = true;
    for (u32 i = 0; i < p.rows; ++i) {
        const LogitRow row = logit_row(cmd.buffers[5].as<Row>(), cmd.buffers[6].as<u32>(), p, i);
        if (row.slot != slot_before) drafts_hold = true;
        slot_before = row.slot;
        SlotState& slot = cmd.buffers[3].as<SlotState>()[row.slot];
        if (slot.stopped || !drafts_hold) continue;
        u32& next = cmd.buffers[1].as<u32>()[std::size_t{row.slot} * p.history_stride + row.position];
        drafts_hold = next == sampled[i];
        next = sampled[i];
        const auto& s = cmd.buffers[2].as<SamplerState>()[row.slot];
        const bool ended = std::find(s.end_ids, s.end_ids + s.n_end_ids, sampled[i]) != s.end_ids + s.n_end_ids;
        if (++slot.produced == slot.limit || ended) {
            slot.stopped = ended ? kStoppedAtEnd : kStoppedAtLimit;
            if (--control.active == 0) control.stop = 1;
        }
    }
}

// Moves the rows on to what follows the tokens that the step gave; see ChainRecord. Those of a sequence that ended then
// stand behind its last token, and stay.
static void advance(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    auto all = worker.claim(1, 0);
    if (!all.next()) return;
    const auto& p = params_as<AdvanceParams>(params);
    Row *own = cmd.buffers[0].as<Row>(), *drafted = cmd.buffers[4].as<Row>(), *sampled = cmd.buffers[7].as<Row>();
    const auto move_axes = [&](std::size_t buffer, u32 row, u32 by) {
        if (!p.has_axes) return;
        u32* axes = cmd.buffers[buffer].as<u32>() + std::size_t{row} * kPositionAxes;
        for (u32 axis = 0; axis < kPositionAxes; ++axis) axes[axis] += by;
    };
    u32 each = 1;
    while (each < p.rows && own[each].slot == own[0].slot) ++each;
    for (u32 i = 0; i * each < p.rows; ++i) {
        const u32 slot = own[i * each].slot;
        ChainRecord& record = cmd.buffers[3].as<ChainRecord>()[slot];
        const u32 next = record.start + cmd.buffers[2].as<SlotState>()[slot].produced;
        const u32 tokens = next - own[i * each].position;
        cmd.buffers[8].as<SlotState>()[slot] = {};
        if (tokens == 0) continue;  // it had ended before
        record.tokens[record.steps++] = tokens;
        for (u32 row = i * each; row < (i + 1) * each; ++row) {
            own[row].position += tokens;
            move_axes(1, row, tokens);
        }
        drafted[i].position += tokens;
        move_axes(5, i, tokens);
        cmd.buffers[6].as<u32>()[i] = i * each + tokens - 1;
        sampled[i].position += tokens;
        if (!p.has_spans) continue;
        StateSpan& span = cmd.buffers[9].as<StateSpan>()[slot];
        span = {span.to, next + 1};
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
