// Attention over the cache in blocks of 256 positions (flash attention with the blocks' edges fixed).
//
// Up to kQueryBlock queries of a KV head take a block together, in tiles whose sums are in registers. Several tiles
// share panels of its keys and values, widened to F32 once, that stay in the first-level cache; of a cache that is F32,
// and for a single tile, as in decode, they are the cache itself. Either way every element is summed in the same order.

namespace akunu::cpu::AKUNU_ISA {

// s[0, kAttentionBlock) = exp(score - max) for the keys that are seen, 0 for the others in [padded.from, padded.to).
static inline BlockStats softmax(const AttentionParams& p, const Keys& seen, const Keys& padded, float* s) {
    if (seen.empty()) {
        std::memset(s + padded.from, 0, (padded.to - padded.from) * sizeof(float));
        return {0, 0};
    }
    vf scale = set1(p.scale);
    if (p.softcap > 0) {
        const vf cap = set1(p.softcap);
        for (std::size_t i = padded.from; i < padded.to; i += L) store(s + i, cap * tanh_(load(s + i) * scale / cap));
        scale = set1(1);
    }
    constexpr float kMasked = -std::numeric_limits<float>::infinity();
    for (std::size_t i = padded.from; i < seen.from; ++i) s[i] = kMasked;
    for (std::size_t i = seen.to; i < padded.to; ++i) s[i] = kMasked;
    vf top[2] = {set1(kMasked), set1(kMasked)};
    std::size_t at = padded.from;
    for (; at + 2 * L <= padded.to; at += 2 * L) {
        for (std::size_t j = 0; j < 2; ++j) top[j] = max_(top[j], load(s + at + j * L) * scale);
    }
    for (; at < padded.to; at += L) top[0] = max_(top[0], load(s + at) * scale);
    const float max = reduce_max(max_(top[0], top[1]));
    const vf m = set1(max);
    vf sum = zero();
    for (std::size_t i = padded.from; i < padded.to; i += L) {
        const vf e = exp_below_88(load(s + i) * scale - m);
        store(s + i, e);
        sum += e;
    }
    return {max, reduce_add(sum)};
}

// The queries of one KV head in a span, numbered row by row: query i is head i % group of row i / group.
struct HeadQueries {
    const AttentionParams& p;
    const float* q;
    Span span;
    KvPages cache;
    std::size_t kv_head, group;
    ReadAhead ahead;
    const u32* ends;  // of rows that see what comes after them, or null
    HeadQueries(const DispatchCmd& cmd, const AttentionParams& params, const Span& rows, std::size_t kv)
        : p(params),
          q(cmd.buffers[0].as<float>()),
          span(rows),
          cache{cmd.buffers[1].as<std::byte>(),
                rows.pages,
                std::size_t{params.page_words} * 4,
                params.n_kv_heads,
                params.head_dim,
                cmd.kv},
          kv_head(kv),
          group(params.n_heads / params.n_kv_heads),
          ahead{p, span, cache, kv_head, group},
          ends(params.row_ends ? cmd.buffers[6].as<u32>() : nullptr) {}

    std::size_t row(std::size_t i) const { return span.first_row + i / group; }
    std::size_t head(std::size_t i) const { return kv_head * group + i % group; }
    std::size_t position(std::size_t i) const { return span.position + i / group; }
    // Behind the last key that query i sees.
    std::size_t end(std::size_t i) const {
        const std::size_t end = end_of_keys(p, span, i / group);
        return ends ? std::max<std::size_t>(end, ends[row(i)]) : end;
    }
    std::size_t offset(std::size_t i) const { return (row(i) * p.n_heads + head(i)) * p.head_dim; }

    void load_queries(std::size_t first, std::size_t count, const AttentionScratch& s) const {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(s.q + i * p.head_dim, q + offset(first + i), p.head_dim * sizeof(float));
        }
    }

    // `count` queries, loaded from `first` on, against one block: stats[i] and s.out.
    void attend(std::size_t first, std::size_t count, std::size_t block, const AttentionScratch& s,
                BlockStats* stats) const {
        BlockTask task{block * kAttentionBlock, count, {0, 0}, {}};
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t from = first_key(position(first + i), p.window), begin = task.begin;
            task.seen[i] = {std::max(from, begin) - begin,
                            std::clamp(end(first + i), begin, begin + kAttentionBlock) - begin};
            task.all.join(task.seen[i]);
            task.last = task.last && end(first + i) <= begin + kAttentionBlock;
            stats[i] = {0, 0};
        }
        with_elements(cache.types.k, [&]<typename T>() { score<T>(task, s); });
        task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
            const Keys padded{some.from / kKeyGroup * kKeyGroup, (some.to + kKeyGroup - 1) / kKeyGroup * kKeyGroup};
            for (std::size_t i = tile; i < tile + N; ++i) {
                stats[i] = softmax(p, task.seen[i], padded, s.scores + i * kAttentionBlock);
            }
        });
        with_elements(cache.types.v, [&]<typename T>() { mix<T>(task, s); });
    }

  private:
    template <typename T>
    static constexpr bool kPlain = std::is_same_v<T, float>;  // the cache is its own panels

    // s.scores of the keys that each tile sees. Keys and values have types of their own: a function for each type.
    template <typename T>
    [[gnu::noinline]] void score(const BlockTask& task, const AttentionScratch& s) const {
        const std::size_t hd = p.head_dim;
        for (std::size_t key = task.all.from / kPanel * kPanel; key < task.all.to; key += kPanel) {
            const std::size_t page = (task.begin + key) / kPagePositions;
            const auto keys = cache.keys<T>(page, kv_head);
            const auto score_tiles = [&](const auto& panel) {
                task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
                    if (some.from >= key + kPanel || some.to <= key) return;
                    const Rows<N> q(s.q + tile * hd, hd);
                    float* scores = s.scores + tile * kAttentionBlock + key;
                    // Without a group of keys that none sees.
                    static_assert(kPanel == 2 * kKeyGroup);
                    const bool no_first = some.from >= key + kKeyGroup, no_second = some.to <= key + kKeyGroup;
                    if (!task.several() && (no_first || no_second)) {
                        return panel_scores<N, KvUnit<T>::kScaled, kKeyGroup>(q, hd, panel, scores,
                                                                              no_first ? kKeyGroup : 0);
                    }
                    panel_scores<N, KvUnit<T>::kScaled>(q, hd, panel, scores);
                });
            };
            if (!task.several()) {
                score_tiles(CachedKeys<T, Ahead>{keys, hd, ahead.keys(task, page)});
            } else if constexpr (kPlain<T>) {
                score_tiles(CachedKeys<T, NothingAhead>{keys, hd, {}});
            } else {
                widen_keys(keys, hd, s);
                score_tiles(WidePanel{s.keys, s.key_scales});
            }
        }
    }

    // s.out = the values, weighted with what softmax made of the scores.
    template <typename T>
    [[gnu::noinline]] void mix(const BlockTask& task, const AttentionScratch& s) const {
        const std::size_t hd = p.head_dim;
        std::memset(s.out, 0, task.count * s.stride * sizeof(float));
        const std::size_t direct =  // elements read from the cache itself
            kPlain<T> || !task.several() ? hd / kPanel * kPanel : 0;
        for (std::size_t key = task.all.from / kPagePositions * kPagePositions; key < task.all.to;
             key += kPagePositions) {
            const Keys in_page = task.all.within({key, key + kPagePositions});
            const std::size_t page = (task.begin + key) / kPagePositions, count = in_page.to - in_page.from;
            const auto unit = cache.values<T>(page, kv_head);
            const Ahead next = task.several() ? Ahead{} : ahead.values(task, page);
            const float* const scales = value_scales(unit, hd, in_page.to - key, next, s);
            const auto add_tiles = [&]<typename Next>(Next fetched) {
                task.for_tiles([&]<int N>(std::size_t tile, const Keys& seen) {
                    const Keys some = seen.within(in_page);
                    if (some.empty()) return;
                    constexpr int kMost = 128 / L;  // a whole head at once, where registers suffice
                    add_products<N, wide<N, kMost>()>(
                        RowsApart<kAttentionBlock>{s.scores + tile * kAttentionBlock + some.from}, some.to - some.from,
                        CachedValues<T, Next>(unit, scales, hd, some.from - key, some.to - some.from, fetched), direct,
                        s.out + tile * s.stride, s.stride);
                });
            };
            if (!task.several()) {
                add_tiles(next);
            } else if constexpr (kPlain<T>) {
                add_tiles(NothingAhead{});
            }
            for (std::size_t d = direct; d < hd; d += kPanel) {
                widen_values(CachedValues<T, NothingAhead>(unit, scales, hd, in_page.from - key, count, {}), d, count,
                             s.values);
                task.for_tiles([&]<int N>(std::size_t tile, const Keys& seen) {
                    const Keys some = seen.within(in_page);
                    if (some.empty()) return;
                    add_products<N, wide<N, kPanelVectors>()>(
                        RowsApart<kAttentionBlock>{s.scores + tile * kAttentionBlock + some.from}, some.to - some.from,
                        WidePanel{s.values + (some.from - in_page.from) * kPanel}, kPanel, s.out + tile * s.stride + d,
                        s.stride);
                });
            }
        }
    }
};

// Rows that a worker takes together: fewer when there would not be enough parts for all workers.
static inline std::size_t rows_at_once(const AttentionParams& p, int workers) {
    constexpr std::size_t kPartsPerWorker = 4;
    const std::size_t group = p.n_heads / p.n_kv_heads;
    std::size_t n = std::max<std::size_t>(1, kQueryBlock / group);
    while (n * group > kQueryTile && n > 1 &&
           p.rows * p.n_kv_heads / n < kPartsPerWorker * static_cast<std::size_t>(workers)) {
        n /= 2;
    }
    return n;
}

// Queries [first, first + count) of a KV head, block by block.
static inline void attend_to_all(const HeadQueries& heads, const AttentionParams& p, std::size_t first,
                                 std::size_t count, const AttentionScratch& scratch, float* out, const float* sinks) {
    Running running[kQueryBlock];
    BlockStats stats[kQueryBlock];
    for (std::size_t i = 0; i < count; ++i) running[i].out = out + heads.offset(first + i);
    heads.load_queries(first, count, scratch);
    const std::size_t b0 = first_key(heads.position(first), p.window) / kAttentionBlock;
    const std::size_t b1 = (heads.end(first + count - 1) - 1) / kAttentionBlock;
    for (std::size_t b = b0; b <= b1; ++b) {
        heads.attend(first, count, b, scratch, stats);
        for (std::size_t i = 0; i < count; ++i)
            running[i].merge(stats[i], scratch.out + i * scratch.stride, p.head_dim);
    }
    for (std::size_t i = 0; i < count; ++i) {
        running[i].finish(p.head_dim, sinks ? sinks + heads.head(first + i) : nullptr);
    }
}

// Whole attention of some rows and a KV head, sequence by sequence. Used where there are many rows.
static void attention(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[2].as<float>();
    const float* const sinks = cmd.buffers[5] ? cmd.buffers[5].as<float>() : nullptr;
    const std::size_t at_once = rows_at_once(p, worker.count), parts = (p.rows + at_once - 1) / at_once;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    // Head by head, whose keys and values stay in the cache, in the order in which prepare_heads has just written some
    // of them; later parts, which see more keys, are dealt out first.
    auto tasks = worker.claim(parts * p.n_kv_heads, at_once * (p.n_heads / p.n_kv_heads) * keys_seen(p) * p.head_dim);
    while (tasks.next()) {
        std::size_t fetched = 0;
        const auto run = [&](const SpanHead& head, const SpanHead* next) {
            HeadQueries heads(cmd, p, head.span, head.kv_head);
            if (next || fetched > 0) heads.ahead.be_between(fetched, next);
            fetched = heads.ahead.next_early;
            const std::size_t queries = head.span.rows * heads.group;
            for (std::size_t first = 0; first < queries; first += kQueryBlock) {
                attend_to_all(heads, p, first, std::min(queries - first, kQueryBlock), scratch, out, sinks);
            }
        };
        std::optional<SpanHead> latest;
        for (std::uint64_t u = tasks.begin; u < tasks.end; ++u) {
            const std::size_t kv_head = u / parts, row = (parts - 1 - u % parts) * at_once;
            for_spans(cmd, p, row, std::min<std::size_t>(p.rows, row + at_once), [&](const Span& span) {
                const SpanHead next{span, kv_head};
                if (latest) run(*latest, &next);
                latest = next;
            });
        }
        run(*latest, nullptr);
    }
}

// One row: every (KV head, block) is a task; partial results go to memory.
static void attention_split(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[2].as<float>();
    const std::size_t stride = partial_floats(p.head_dim), position = keys_seen(p) - 1;
    const std::size_t max_blocks = attention_blocks(std::size_t{p.max_pages} * kPagePositions);
    const std::size_t b0 = first_key(position, p.window) / kAttentionBlock;
    const std::size_t blocks = position / kAttentionBlock + 1 - b0;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    auto tasks = worker.claim(
        std::uint64_t{p.n_kv_heads} * blocks,
        kAttentionBlock / kPagePositions * (kv_unit_bytes(cmd.kv.k, p.head_dim) + kv_unit_bytes(cmd.kv.v, p.head_dim)));
    while (tasks.next()) {
        const Span span = row_span(cmd, p, 0, 1);
        for (std::uint64_t t = tasks.begin; t < tasks.end; ++t) {
            const HeadQueries heads(cmd, p, span, t / blocks);
            const std::size_t block = b0 + t % blocks;
            for (std::size_t first = 0; first < heads.group; first += kQueryBlock) {
                const std::size_t count = std::min(heads.group - first, kQueryBlock);
                BlockStats stats[kQueryBlock];
                heads.load_queries(first, count, scratch);
                heads.attend(first, count, block, scratch, stats);
                for (std::size_t i = 0; i < count; ++i) {
                    float* partial = out + (heads.head(first + i) * max_blocks + block) * stride;
                    partial[0] = stats[i].max;
                    partial[1] = stats[i].sum;
                    std::memcpy(partial + 2, scratch.out + i * scratch.stride, p.head_dim * sizeof(float));
                }
            }
        }
    }
}

// Merges those partial results, in the order of the blocks, and writes the formats that the output projection reads.
static void attention_merge(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* partials = cmd.buffers[0].as<float>();
    auto* out_f32 = cmd.buffers[1].as<float>();
    auto* out_q8 = cmd.buffers[2].as<std::byte>();
    const std::size_t position = keys_seen(p) - 1;
    const std::size_t stride = partial_floats(value_dim(p.head_dim, p.latent));
    const std::size_t max_blocks = attention_blocks(std::size_t{p.max_pages} * kPagePositions);
    const std::size_t b0 = first_key(position, p.window) / kAttentionBlock, b1 = position / kAttentionBlock;
    const std::size_t hd = value_dim(p.head_dim, p.latent), dim = p.n_heads * hd;
    // A q8 block must lie in one worker's heads.
    std::size_t unit = 1;
    if (p.formats & kActQ8) {
        while (unit * hd % 32 != 0) ++unit;
    }
    const Q8Layout at(dim);
    auto* scratch = reinterpret_cast<float*>(worker.scratch);
    auto units = worker.claim((p.n_heads + unit - 1) / unit, (b1 - b0 + 2) * unit * hd * 8);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t h0 = u * unit, h1 = std::min<std::size_t>(p.n_heads, h0 + unit);
            float* base = p.formats & kActF32 ? out_f32 + h0 * hd : scratch;
            for (std::size_t h = h0; h < h1; ++h) {
                Running running;
                running.out = base + (h - h0) * hd;
                for (std::size_t b = b0; b <= b1; ++b) {
                    float* partial = partials + (h * max_blocks + b) * stride;
                    running.merge({partial[0], partial[1]}, partial + 2, hd);
                }
                running.finish(hd, cmd.buffers[4] ? cmd.buffers[4].as<float>() + h : nullptr);
            }
            if (p.formats & kActQ8) {
                for (std::size_t i = 0; i < (h1 - h0) * hd / 32; ++i) {
                    quantize_block({out_q8, at}, h0 * hd / 32 + i, base + i * 32);
                }
            }
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
