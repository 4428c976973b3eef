// Multi-head latent attention: all heads read the same row of a position, and a value is the beginning of its key. A
// page has [kPagePositions][head_dim], as values of other attention have it; a page's keys are turned into a panel
// once for all heads that a worker takes together. Blocks, sums and their order are those of attention.inl.

namespace akunu::cpu::AKUNU_ISA {

// Writes a row's latent, normed, and its rotated key to the cache, and rotates the queries.
static void latent_kv(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<LatentKvParams>(params);
    const auto* kv = cmd.buffers[0].as<float>();
    auto* q = cmd.buffers[1].as<float>();
    const auto* table = cmd.buffers[2].as<float>();
    const auto* norm = cmd.buffers[3].as<float>();
    const auto* where = cmd.buffers[5].as<Row>();
    const auto* pages = cmd.buffers[6].as<u32>();
    constexpr std::size_t kHeads = 8;
    const std::size_t key_dim = p.latent + p.rope_dim, query_dim = p.nope_dim + p.rope_dim;
    const std::size_t parts = 1 + (p.n_heads + kHeads - 1) / kHeads;
    const auto turn = [&](std::size_t row, float* x) { rotate(x, table + row * p.rope_dim, p.rope_dim, p.style); };
    auto units = worker.claim(p.rows * parts, 8 * key_dim);
    float* const kept = scratch_row(worker);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t row = u / parts, part = u % parts, pos = where[row].position + p.step;
            if (part == 0) {
                std::memcpy(kept, kv + row * key_dim, key_dim * sizeof(float));
                scale_row(kept, rms_scale(kept, p.latent, p.eps), norm, kept, p.latent);
                turn(row, kept + p.latent);
                const KvPages cache{cmd.buffers[4].as<std::byte>(),
                                    pages + std::size_t{where[row].slot} * p.max_pages,
                                    std::size_t{p.page_words} * 4,
                                    1,
                                    key_dim,
                                    cmd.kv};
                with_elements(cmd.kv.k, [&]<typename T>() {
                    cache.keys<T>(pos / kPagePositions, 0).store_value(pos % kPagePositions, kept, key_dim);
                });
                continue;
            }
            float scale = 1;
            if (p.temperature_length) {
                scale += p.temperature * std::log(1.0f + static_cast<float>(pos / p.temperature_length));
            }
            for (std::size_t h = (part - 1) * kHeads; h < std::min<std::size_t>(part * kHeads, p.n_heads); ++h) {
                float* const x = q + (row * p.n_heads + h) * query_dim;
                turn(row, x + p.nope_dim);
                if (scale == 1) continue;
                for (std::size_t i = 0; i < query_dim; ++i) x[i] *= scale;
            }
        }
    }
}

// Turns a page's rows into a panel of keys, [head_dim][kPanel].
template <typename T>
static inline void turn_rows(const KvUnit<T>& unit, std::size_t head_dim, Ahead ahead, const AttentionScratch& s) {
    const float* const scales = value_scales(unit, head_dim, kPagePositions, ahead, s);
    const CachedValues<T, Ahead> rows(unit, scales, head_dim, 0, kPagePositions, ahead);
    float* const panel = s.keys;
    for (std::size_t k = 0; k < kPagePositions; k += L) {
        std::size_t d = 0;
        for (; d + L <= head_dim; d += L) {
            vf v[L];
            unroll<L>([&]<int i>() {
                ahead.fetch(unit.elems + ((k + i) * head_dim + d) / (unit.kPaired ? 2 : 1));
                v[i] = rows.row(k + i, d);
            });
            transpose(v);
            unroll<L>([&]<int i>() { store(panel + (d + i) * kPanel + k, v[i]); });
        }
        for (; d < head_dim; ++d) {
            for (std::size_t i = 0; i < L; ++i) panel[d * kPanel + k + i] = rows.element(k + i, d);
        }
    }
}

// Some heads of a span's rows, numbered row by row: query i is head first_head + i % heads of row i / heads.
struct LatentQueries {
    const AttentionParams& p;
    const float* q;
    Span span;
    KvPages cache;
    std::size_t first_head, heads;
    LatentQueries(const DispatchCmd& cmd, const AttentionParams& params, const Span& rows, std::size_t head,
                  std::size_t n)
        : p(params),
          q(cmd.buffers[0].as<float>()),
          span(rows),
          cache{cmd.buffers[1].as<std::byte>(),
                rows.pages,
                std::size_t{params.page_words} * 4,
                1,
                params.head_dim,
                cmd.kv},
          first_head(head),
          heads(n) {}

    std::size_t count() const { return span.rows * heads; }
    std::size_t head(std::size_t i) const { return first_head + i % heads; }
    std::size_t end(std::size_t i) const { return span.position + i / heads + 1; }
    // Where number i stands among all heads of all rows.
    std::size_t place(std::size_t i) const { return (span.first_row + i / heads) * p.n_heads + head(i); }

    void load_queries(std::size_t first, std::size_t n, const AttentionScratch& s) const {
        for (std::size_t i = 0; i < n; ++i) {
            std::memcpy(s.q + i * p.head_dim, q + place(first + i) * p.head_dim, p.head_dim * sizeof(float));
        }
    }

    // `n` queries, loaded from `first` on, against one block: stats[i] and s.out.
    void attend(std::size_t first, std::size_t n, std::size_t block, const AttentionScratch& s,
                BlockStats* stats) const {
        BlockTask task{block * kAttentionBlock, n, {0, 0}, {}};
        for (std::size_t i = 0; i < n; ++i) {
            task.seen[i] = {0, std::clamp(end(first + i), task.begin, task.begin + kAttentionBlock) - task.begin};
            task.all.join(task.seen[i]);
            stats[i] = {0, 0};
        }
        std::memset(s.out, 0, n * s.stride * sizeof(float));
        with_elements(cache.types.k, [&]<typename T>() { score<T>(task, s); });
        task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
            const Keys padded{0, (some.to + kKeyGroup - 1) / kKeyGroup * kKeyGroup};
            for (std::size_t i = tile; i < tile + N; ++i) {
                stats[i] = softmax(p, task.seen[i], padded, s.scores + i * kAttentionBlock);
            }
        });
        with_elements(cache.types.k, [&]<typename T>() { mix<T>(task, s); });
    }

  private:
    std::byte* unit_at(const BlockTask& task, std::size_t key) const {
        return cache.key_unit_at((task.begin + key) / kPagePositions, 0);
    }
    template <typename T>
    [[gnu::noinline]] void score(const BlockTask& task, const AttentionScratch& s) const {
        for (std::size_t key = 0; key < task.all.to; key += kPanel) {
            std::byte* const now = unit_at(task, key);
            const bool more = key + kPanel < task.all.to;
            turn_rows(KvUnit<T>(now, p.head_dim), p.head_dim, more ? Ahead{unit_at(task, key + kPanel) - now} : Ahead{},
                      s);
            task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
                if (some.to <= key) return;
                panel_scores<N, false>(Rows<N>(s.q + tile * p.head_dim, p.head_dim), p.head_dim, WidePanel{s.keys},
                                       s.scores + tile * kAttentionBlock + key);
            });
        }
    }
    template <typename T>
    [[gnu::noinline]] void mix(const BlockTask& task, const AttentionScratch& s) const {
        for (std::size_t key = 0; key < task.all.to; key += kPagePositions) {
            const std::size_t count = std::min<std::size_t>(task.all.to - key, kPagePositions);
            const KvUnit<T> unit(unit_at(task, key), p.head_dim);
            const float* const scales = value_scales(unit, p.head_dim, count, NothingAhead{}, s);
            const CachedValues<T, NothingAhead> values(unit, scales, p.head_dim, 0, count, {});
            for (std::size_t d = 0; d < p.latent; d += kPanel) {
                widen_values(values, d, count, s.values);
                task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
                    if (some.to <= key) return;
                    add_products<N, wide<N, kPanelVectors>()>(
                        RowsApart<kAttentionBlock>{s.scores + tile * kAttentionBlock + key},
                        std::min(count, some.to - key), WidePanel{s.values}, kPanel, s.out + tile * s.stride + d,
                        s.stride);
                });
            }
        }
    }
};

// Heads that a worker takes together: fewer when there would not be enough `parts` of other work for all workers.
static inline std::size_t heads_at_once(const AttentionParams& p, std::size_t parts, int workers) {
    constexpr std::size_t kPartsPerWorker = 4;
    std::size_t n = std::min<std::size_t>(p.n_heads, kQueryBlock);
    while (n > kQueryTile && parts * ((p.n_heads + n - 1) / n) < kPartsPerWorker * static_cast<std::size_t>(workers)) {
        n = (n / 2 + kQueryTile - 1) / kQueryTile * kQueryTile;
    }
    return n;
}

static void attention_latent(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[2].as<float>();
    const std::size_t at_once = rows_at_once(p, worker.count), parts = (p.rows + at_once - 1) / at_once;
    const std::size_t heads = heads_at_once(p, parts, worker.count), slices = (p.n_heads + heads - 1) / heads;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    auto tasks = worker.claim(parts * slices, at_once * heads * keys_seen(p) * p.head_dim);
    while (tasks.next()) {
        for (std::uint64_t u = tasks.begin; u < tasks.end; ++u) {
            const std::size_t row = (parts - 1 - u / slices) * at_once, head = u % slices * heads;
            for_spans(cmd, p, row, std::min<std::size_t>(p.rows, row + at_once), [&](const Span& span) {
                const LatentQueries queries(cmd, p, span, head, std::min<std::size_t>(heads, p.n_heads - head));
                for (std::size_t first = 0; first < queries.count(); first += kQueryBlock) {
                    const std::size_t n = std::min(queries.count() - first, kQueryBlock);
                    Running running[kQueryBlock];
                    BlockStats stats[kQueryBlock];
                    for (std::size_t i = 0; i < n; ++i) running[i].out = out + queries.place(first + i) * p.latent;
                    queries.load_queries(first, n, scratch);
                    const std::size_t last = (queries.end(first + n - 1) - 1) / kAttentionBlock;
                    for (std::size_t b = 0; b <= last; ++b) {
                        queries.attend(first, n, b, scratch, stats);
                        for (std::size_t i = 0; i < n; ++i) {
                            running[i].merge(stats[i], scratch.out + i * scratch.stride, p.latent);
                        }
                    }
                    for (std::size_t i = 0; i < n; ++i) running[i].finish(p.latent, nullptr);
                }
            });
        }
    }
}

// One row: some heads and a block of keys are a task; partial results go to memory.
static void attention_latent_split(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[2].as<float>();
    const std::size_t stride = partial_floats(p.latent), blocks = (keys_seen(p) - 1) / kAttentionBlock + 1;
    const std::size_t max_blocks = attention_blocks(std::size_t{p.max_pages} * kPagePositions);
    const std::size_t heads = heads_at_once(p, blocks, worker.count), slices = (p.n_heads + heads - 1) / heads;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    auto tasks = worker.claim(slices * blocks, heads * kAttentionBlock * p.head_dim);
    while (tasks.next()) {
        const Span span = row_span(cmd, p, 0, 1);
        for (std::uint64_t t = tasks.begin; t < tasks.end; ++t) {
            const std::size_t block = t / slices, head = t % slices * heads;
            const LatentQueries queries(cmd, p, span, head, std::min<std::size_t>(heads, p.n_heads - head));
            BlockStats stats[kQueryBlock];
            queries.load_queries(0, queries.count(), scratch);
            queries.attend(0, queries.count(), block, scratch, stats);
            for (std::size_t i = 0; i < queries.count(); ++i) {
                float* partial = out + (queries.head(i) * max_blocks + block) * stride;
                partial[0] = stats[i].max;
                partial[1] = stats[i].sum;
                std::memcpy(partial + 2, scratch.out + i * scratch.stride, p.latent * sizeof(float));
            }
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
