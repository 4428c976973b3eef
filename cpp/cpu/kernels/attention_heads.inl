// Attention in both directions over F32 pages, a head of many rows at a time: what the kernels share whose queries
// multiply each block of keys and values together, once these have been brought into another form.

namespace akunu::cpu::AKUNU_ISA {

// The rows of a span and one head.
struct HeadRows {
    const AttentionParams& p;
    const Span& span;
    const std::size_t kv_head, stride;  // floats from one row of q, or out, to the next
    const float* const q;
    float* const out;
    const KvPages cache;

    HeadRows(const DispatchCmd& cmd, const AttentionParams& params, const Span& rows, std::size_t head)
        : p(params),
          span(rows),
          kv_head(head / (params.n_heads / params.n_kv_heads)),
          stride(std::size_t{params.n_heads} * params.head_dim),
          q(cmd.buffers[0].as<float>() + span.first_row * stride + head * params.head_dim),
          out(cmd.buffers[2].as<float>() + span.first_row * stride + head * params.head_dim),
          cache{cmd.buffers[1].as<std::byte>(),
                rows.pages,
                std::size_t{params.page_words} * 4,
                params.n_kv_heads,
                params.head_dim,
                {DType::F32, DType::F32}} {}

    const float* keys(std::size_t page) const { return cache.keys<float>(page, kv_head).elems; }
    const float* values(std::size_t page) const { return cache.values<float>(page, kv_head).elems; }

    // Calls f(begin, end) for each block that some row sees keys of, up to the last of those.
    template <typename F>
    void for_blocks(F&& f) const {
        const std::size_t end = end_of_keys(p, span, span.rows - 1);
        std::size_t begin = first_key(span.position, p.window) / kAttentionBlock * kAttentionBlock;
        for (; begin < end; begin += kAttentionBlock) f(begin, std::min(end, begin + kAttentionBlock));
    }
    // What the i-th row sees of `count` keys from `begin` on.
    Keys seen(std::size_t i, std::size_t begin, std::size_t count) const {
        const auto in_block = [&](std::size_t key) { return std::clamp(key, begin, begin + count) - begin; };
        return {in_block(first_key(span.position + i, p.window)), in_block(end_of_keys(p, span, i))};
    }
};

// Scores of n keys, two or more vectors: those that are not seen become -infinity. Returns the greatest.
static inline float mask_scores(const Keys& seen, std::size_t n, float* scores) {
    constexpr float kMasked = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < seen.from; ++i) scores[i] = kMasked;
    for (std::size_t i = seen.to; i < n; ++i) scores[i] = kMasked;
    vf top[2] = {load(scores), load(scores + L)};
    for (std::size_t i = 2 * L; i < n; i += 2 * L) {
        for (std::size_t j = 0; j < 2; ++j) top[j] = max_(top[j], load(scores + i + j * L));
    }
    return reduce_max(max_(top[0], top[1]));
}

// Calls f(rows) for each span and head, as far as the worker claims them: at most `most` rows at once, fewer where that
// would leave workers without a part.
template <typename F>
static inline void for_heads(const DispatchCmd& cmd, const AttentionParams& p, std::size_t most,
                             std::size_t products_per_byte, const Worker& worker, F&& f) {
    constexpr std::size_t kPartsPerWorker = 4, kFewest = 64;
    std::size_t at_once = most;
    while (at_once > kFewest &&
           p.rows * p.n_heads / at_once < kPartsPerWorker * static_cast<std::size_t>(worker.count)) {
        at_once /= 2;
    }
    auto parts = worker.claim((p.rows + at_once - 1) / at_once * p.n_heads,
                              at_once * keys_seen(p) * p.head_dim / products_per_byte);
    while (parts.next()) {
        for (std::uint64_t u = parts.begin; u < parts.end; ++u) {
            const std::size_t row = u / p.n_heads * at_once;
            for_spans(cmd, p, row, std::min<std::size_t>(p.rows, row + at_once),
                      [&](const Span& span) { f(HeadRows(cmd, p, span, u % p.n_heads)); });
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
