// What speech needs besides: the inputs of convolutions, the weights of cross-attention, and the rules of transcripts.

namespace akunu::cpu::AKUNU_ISA {

static void unfold(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<UnfoldParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    auto* out = cmd.buffers[1].as<float>();
    const std::size_t channels = p.channels, bytes = channels * sizeof(float);
    auto rows = worker.claim(p.rows, 8 * p.taps * channels);
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* to = out + r * p.taps * channels;
            for (u32 tap = 0; tap < p.taps; ++tap, to += channels) {
                const std::size_t at = r * p.stride + tap, before = (p.taps - 1) / 2;
                if (at >= before && at - before < p.length) {
                    std::memcpy(to, x + (at - before) * channels, bytes);
                } else {
                    std::memset(to, 0, bytes);
                }
            }
        }
    }
}

static void attention_weights(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionWeightsParams>(params);
    const auto* q = cmd.buffers[0].as<float>();
    const auto* chosen = cmd.buffers[2].as<u32>();
    auto* out = cmd.buffers[3].as<float>();
    const auto* where = cmd.buffers[4].as<Row>();
    const std::size_t hd = p.head_dim, n = p.fixed_keys, padded = (n + L - 1) / L * L;
    auto* s = reinterpret_cast<float*>(worker.scratch);
    auto units = worker.claim(std::uint64_t{p.rows} * p.chosen, 4 * n * hd);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t row = u / p.chosen, i = u % p.chosen, head = chosen[i];
            const KvPages cache{cmd.buffers[1].as<std::byte>(),
                                cmd.buffers[5].as<u32>() + std::size_t{where[row].slot} * p.max_pages,
                                std::size_t{p.page_words} * 4,
                                p.n_kv_heads,
                                hd,
                                cmd.kv};
            const Rows<1> query(q + (row * p.n_heads + head) * hd, hd);
            with_elements(cmd.kv.k, [&]<typename T>() {
                for (std::size_t key = 0; key < n; key += kPanel) {
                    const auto keys = cache.keys<T>(key / kPagePositions, head / (p.n_heads / p.n_kv_heads));
                    panel_scores<1, KvUnit<T>::kScaled>(query, hd, CachedKeys<T, NothingAhead>{keys, hd, {}}, s + key);
                }
            });
            for (std::size_t k = n; k < padded; ++k) s[k] = -kInfinity;
            vf top = set1(-kInfinity), sum = zero();
            for (std::size_t k = 0; k < padded; k += L) top = max_(top, load(s + k));
            const vf max = set1(reduce_max(top) * p.scale);
            for (std::size_t k = 0; k < padded; k += L) {
                const vf e = exp_(load(s + k) * set1(p.scale) - max);
                store(s + k, e);
                sum += e;
            }
            const float share = 1 / reduce_add(sum);
            float* to = out + (i * p.out_rows + row) * n;
            for (std::size_t k = 0; k < n; ++k) to[k] = s[k] * share;
        }
    }
}

// Makes the tokens [from, to) impossible.
static inline void forbid(float* x, u32 from, u32 to) {
    for (u32 i = from; i < to; ++i) x[i] = -kInfinity;
}

static inline void forbid(float* x, u32 vocab, const u32* mask) {
    for (u32 word = 0; word < mask_words(vocab); ++word) {
        for (u32 bits = mask[word]; bits != 0; bits &= bits - 1) {
            const u32 id = word * 32 + static_cast<u32>(std::countr_zero(bits));
            if (id < vocab) x[id] = -kInfinity;
        }
    }
}

// Times come in pairs, at the beginning and between segments, and never go back. `said` are the n tokens so far.
static void timestamp_rules(float* x, u32 vocab, const SpeechRules& rules, const u32* said, u32 n) {
    const u32 begin = rules.timestamp_begin < vocab ? rules.timestamp_begin : vocab;
    if (n == 0) {
        forbid(x, 0, begin);
        if (rules.max_initial < vocab - begin) forbid(x, begin + rules.max_initial + 1, vocab);
        return;
    }
    const bool after = said[n - 1] >= begin, twice = n < 2 || said[n - 2] >= begin;
    if (after && twice) {
        forbid(x, begin, vocab);  // the second of a pair: text follows
    } else if (after) {
        forbid(x, 0, rules.end < vocab ? rules.end : vocab);  // the end of a segment: its twin follows, or the end
    }
    u32 i = n;
    while (i > 0 && said[i - 1] < begin) --i;
    if (i > 0) {
        const u32 last = said[i - 1] < vocab ? said[i - 1] : vocab - 1;
        forbid(x, begin, last + (after && !twice ? 0 : 1));
    }
    // All times together against the best word.
    const float word = max_of(x, begin), time = max_of(x + begin, vocab - begin), top = word > time ? word : time;
    if (!(top > -kInfinity && top < kInfinity)) return;
    if (std::log(sum_exp(x + begin, vocab - begin, top)) > static_cast<double>(word - top)) forbid(x, 0, begin);
}

static void speech_rules(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SampleParams>(params);
    for_logit_rows(p, worker, [&](u32 r) {
        const LogitRow row = logit_row(cmd.buffers[4].as<Row>(), cmd.buffers[5].as<u32>(), p, r);
        auto* x = cmd.buffers[0].as<float>() + std::size_t{r} * p.vocab;
        const auto* said = cmd.buffers[1].as<u32>() + std::size_t{row.slot} * p.history_stride;
        const auto& rules = cmd.buffers[2].as<SpeechRules>()[row.slot];
        const auto* masks = cmd.buffers[3].as<u32>() + std::size_t{row.slot} * 2 * mask_words(p.vocab);
        const u32 n = row.position > rules.prompt ? row.position - rules.prompt : 0;
        forbid(x, p.vocab, masks);
        if (n == 0) forbid(x, p.vocab, masks + mask_words(p.vocab));
        if (rules.timestamp_begin != 0) timestamp_rules(x, p.vocab, rules, said + rules.prompt, n);
    });
}

}  // namespace akunu::cpu::AKUNU_ISA
