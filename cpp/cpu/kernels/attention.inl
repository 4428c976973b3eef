// Attention over the cache in blocks of 256 positions (flash attention with the blocks' edges fixed).
//
// Up to kQueryBlock queries of a KV head take a block together, in tiles whose sums are in registers. Several tiles
// share panels of its keys and values, widened to F32 once, that stay in the first-level cache; a single tile, as in
// decode, reads the cache itself. Either way every element is summed in the same order.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kQueryTile = kVectorRegisters >= 32 ? 8 : 4, kQueryBlock = 64;
constexpr std::size_t kValueRows = 64;  // values of a panel

// The keys that a query, or one of several, sees of a block: [from, to).
struct Keys {
    std::size_t from, to;
    bool empty() const { return from >= to; }
    void join(const Keys& other) {
        if (other.empty()) return;
        *this = empty() ? other : Keys{std::min(from, other.from), std::max(to, other.to)};
    }
    Keys within(const Keys& other) const { return {std::max(from, other.from), std::min(to, other.to)}; }
};

// The first key that a query at position `pos` sees; the last is at `pos`.
static inline std::size_t first_key(std::size_t pos, u32 window) {
    return window && pos + 1 > window ? pos + 1 - window : 0;
}

// A worker's memory, for heads of up to kMaxHead.
struct AttentionScratch {
    std::size_t stride;  // floats of an output row
    float* scores;       // [kQueryBlock][kAttentionBlock]
    float* values;       // panel [kValueRows][kPanel]
    float* keys;         // panel [head_dim][kPanel]
    float* key_scales;   // panel [runs][kPanel]
    float* q;            // [kQueryBlock][head_dim]
    float* out;          // [kQueryBlock][stride], unnormalised
    AttentionScratch(std::byte* memory, std::size_t head_dim)
        : stride((head_dim + kPanel - 1) / kPanel * kPanel),
          scores(reinterpret_cast<float*>(memory)),
          values(scores + kQueryBlock * kAttentionBlock),
          keys(values + kValueRows * kPanel),
          key_scales(keys + head_dim * kPanel),
          q(key_scales + scale_runs(head_dim) * kPanel),
          out(q + kQueryBlock * head_dim) {}
};
static_assert(kQueryBlock * kAttentionBlock + kValueRows * kPanel +
                  kMaxHead * (kPanel + kPanel / kScaleRun + 2 * kQueryBlock) <=
              kMaxRow);

// A panel where the cache has it: kPanel keys from group `g` on. A row is an element of the heads.
template <typename T>
struct CachedKeys {
    const T* elems;
    const float* scales;
    std::size_t head_dim, runs;
    CachedKeys(const HeadCache<T>& keys, std::size_t hd, std::size_t g)
        : elems(keys.elems + g * hd * kKeyGroup),
          scales(keys.scales + g * scale_runs(hd) * kKeyGroup),
          head_dim(hd),
          runs(scale_runs(hd)) {}
    vf row(std::size_t d, std::size_t column) const {
        return load_cache(elems + (column / kKeyGroup * head_dim + d) * kKeyGroup + column % kKeyGroup);
    }
    vf scale(std::size_t run, std::size_t column) const {
        return load(scales + (column / kKeyGroup * runs + run) * kKeyGroup + column % kKeyGroup);
    }
};

// Values from `key` on; a column is an element of the head.
template <typename T>
struct CachedValues {
    const T* elems;
    const float* scales;
    std::size_t head_dim, runs;
    CachedValues(const HeadCache<T>& values, std::size_t hd, std::size_t key)
        : elems(values.elems + key * hd),
          scales(values.scales + key * scale_runs(hd)),
          head_dim(hd),
          runs(scale_runs(hd)) {}
    vf row(std::size_t k, std::size_t column) const {
        const vf v = load_cache(elems + k * head_dim + column);
        if constexpr (HeadCache<T>::kScaled) return v * set1(scales[k * runs + column / kScaleRun]);
        return v;
    }
    float element(std::size_t k, std::size_t column) const {
        const float v = cache_value(elems[k * head_dim + column]);
        if constexpr (HeadCache<T>::kScaled) return v * scales[k * runs + column / kScaleRun];
        return v;
    }
};

// Widens the keys [key, key + kPanel) before `to`, whole groups; scales stay apart.
template <typename T>
static inline void widen_keys(const HeadCache<T>& keys, std::size_t head_dim, std::size_t key, std::size_t to,
                              const AttentionScratch& s) {
    for (std::size_t column = 0; column < kPanel && key + column < to; column += kKeyGroup) {
        const std::size_t g = (key + column) / kKeyGroup;
        const T* from = keys.elems + g * head_dim * kKeyGroup;
        for (std::size_t d = 0; d < head_dim; ++d) {
            for (std::size_t i = 0; i < kKeyGroup; i += L) {
                store(s.keys + d * kPanel + column + i, load_cache(from + d * kKeyGroup + i));
            }
        }
        if constexpr (HeadCache<T>::kScaled) {
            const std::size_t runs = scale_runs(head_dim);
            for (std::size_t r = 0; r < runs; ++r) {
                std::memcpy(s.key_scales + r * kPanel + column, keys.scales + (g * runs + r) * kKeyGroup,
                            kKeyGroup * sizeof(float));
            }
        }
    }
}

// Widens elements [d0, d0 + kPanel) of the values [key, to), with their scales; 0 behind the head's end.
template <typename T>
static inline void widen_values(const HeadCache<T>& values, std::size_t head_dim, std::size_t d0, std::size_t key,
                                std::size_t to, float* panel) {
    const CachedValues rows(values, head_dim, key);
    for (std::size_t k = 0; k < to - key; ++k, panel += kPanel) {
        if (d0 + kPanel <= head_dim) {
            for (std::size_t i = 0; i < kPanel; i += L) store(panel + i, rows.row(k, d0 + i));
        } else {
            for (std::size_t i = 0; i < kPanel; ++i) panel[i] = d0 + i < head_dim ? rows.element(k, d0 + i) : 0.0f;
        }
    }
}

// Scores of N queries with the keys of a panel, into s[n][0, kPanel).
template <int N, bool kScaled, typename Panel>
static inline void panel_scores(const Rows<N>& q, std::size_t head_dim, const Panel& panel, float* s) {
    constexpr int W = wide<N, kPanelVectors>();
    for (std::size_t column = 0; column < kPanel; column += W * L) {
        vf acc[N][W] = {};
        if constexpr (kScaled) {
            for (std::size_t run = 0; run < scale_runs(head_dim); ++run) {
                vf sum[N][W] = {};
                multiply(q, panel, column, run * kScaleRun, std::min(head_dim, (run + 1) * kScaleRun), sum);
                for (int w = 0; w < W; ++w) {
                    const vf d = panel.scale(run, column + static_cast<std::size_t>(w) * L);
                    for (int n = 0; n < N; ++n) acc[n][w] = fma(sum[n][w], d, acc[n][w]);
                }
            }
        } else {
            multiply(q, panel, column, 0, head_dim, acc);
        }
        for (int n = 0; n < N; ++n) {
            for (int w = 0; w < W; ++w) store(s + n * kAttentionBlock + column + w * L, acc[n][w]);
        }
    }
}

// One block's result for a query: the greatest score and Σ exp(score - max), which is 0 when no key is seen.
struct BlockStats {
    float max, sum;
};

// s[0, kAttentionBlock) = exp(score - max) for the keys that are seen, 0 for the others in [padded.from, padded.to).
static inline BlockStats softmax(const AttentionParams& p, const Keys& seen, const Keys& padded, float* s) {
    if (seen.empty()) {
        std::memset(s + padded.from, 0, (padded.to - padded.from) * sizeof(float));
        return {0, 0};
    }
    const vf scale = set1(p.scale), cap = set1(p.softcap);
    for (std::size_t i = padded.from; i < padded.to; i += L) {
        vf v = load(s + i) * scale;
        if (p.softcap > 0) v = cap * tanh_(v / cap);
        store(s + i, v);
    }
    constexpr float kMasked = -std::numeric_limits<float>::infinity();
    for (std::size_t i = padded.from; i < seen.from; ++i) s[i] = kMasked;
    for (std::size_t i = seen.to; i < padded.to; ++i) s[i] = kMasked;
    vf top = set1(kMasked);
    for (std::size_t i = padded.from; i < padded.to; i += L) top = max_(top, load(s + i));
    const float max = reduce_max(top);
    const vf m = set1(max);
    vf sum = zero();
    for (std::size_t i = padded.from; i < padded.to; i += L) {
        const vf e = exp_(load(s + i) - m);
        store(s + i, e);
        sum += e;
    }
    return {max, reduce_add(sum)};
}

// Running softmax over blocks: (max, sum, out) of what has been merged so far.
struct Running {
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0;
    float* out;
    void merge(const BlockStats& b, const float* b_out, std::size_t head_dim) {
        if (b.sum == 0) return;
        const float top = std::max(max, b.max);
        const float keep = sum == 0 ? 0.0f : std::exp(max - top), add = std::exp(b.max - top);
        for (std::size_t d = 0; d < head_dim; ++d) out[d] = (keep == 0 ? 0.0f : out[d] * keep) + b_out[d] * add;
        sum = sum * keep + b.sum * add;
        max = top;
    }
    void finish(std::size_t head_dim) const {
        for (std::size_t d = 0; d < head_dim; ++d) out[d] /= sum;
    }
};

// What several queries see of a block, whose first key is `begin`.
struct BlockTask {
    std::size_t begin, count;
    Keys all;
    Keys seen[kQueryBlock];
    bool several() const { return count > kQueryTile; }  // tiles
    // Calls f.operator()<N>(tile, keys that the tile sees) for each tile of N queries that sees any.
    template <typename F>
    void for_tiles(F&& f) const {
        for_token_tiles<kQueryTile>(0, count, [&]<int N>(std::size_t tile) {
            Keys keys{0, 0};
            for (std::size_t i = tile; i < tile + N; ++i) keys.join(seen[i]);
            if (!keys.empty()) f.template operator()<N>(tile, keys);
        });
    }
};

// The queries of one KV head, numbered row by row: query i is head i % group of row i / group.
template <typename T>
struct HeadQueries {
    const AttentionParams& p;
    const float* q;
    HeadCache<T> keys, values;
    std::size_t kv_head, group;
    HeadQueries(const DispatchCmd& cmd, const AttentionParams& params, std::size_t kv)
        : p(params),
          q(cmd.buffers[0].as<float>()),
          keys(cmd.buffers[1].as<std::byte>(), kv, params.context, params.head_dim),
          values(cmd.buffers[2].as<std::byte>(), kv, params.context, params.head_dim),
          kv_head(kv),
          group(params.n_heads / params.n_kv_heads) {}
    std::size_t row(std::size_t i) const { return i / group; }
    std::size_t head(std::size_t i) const { return kv_head * group + i % group; }
    std::size_t position(std::size_t i) const { return p.position + row(i); }
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
            const std::size_t pos = position(first + i), from = first_key(pos, p.window), begin = task.begin;
            task.seen[i] = {std::max(from, begin) - begin, std::clamp(pos + 1, begin, begin + kAttentionBlock) - begin};
            task.all.join(task.seen[i]);
            stats[i] = {0, 0};
        }
        score(task, s);
        task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
            const Keys padded{some.from / kKeyGroup * kKeyGroup, (some.to + kKeyGroup - 1) / kKeyGroup * kKeyGroup};
            for (std::size_t i = tile; i < tile + N; ++i) {
                stats[i] = softmax(p, task.seen[i], padded, s.scores + i * kAttentionBlock);
            }
        });
        mix(task, s);
    }

  private:
    // s.scores of the keys that each tile sees.
    void score(const BlockTask& task, const AttentionScratch& s) const {
        constexpr bool kScaled = HeadCache<T>::kScaled;
        const std::size_t hd = p.head_dim;
        const std::size_t stored = task.begin + (task.all.to + kKeyGroup - 1) / kKeyGroup * kKeyGroup;  // whole groups
        for (std::size_t key = task.all.from / kPanel * kPanel; key < task.all.to; key += kPanel) {
            const bool widen = task.several() || task.begin + key + kPanel > stored;
            if (widen) widen_keys(keys, hd, task.begin + key, stored, s);
            task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
                if (some.from >= key + kPanel || some.to <= key) return;
                const Rows<N> x(s.q + tile * hd, hd);
                float* to = s.scores + tile * kAttentionBlock + key;
                if (widen) {
                    panel_scores<N, kScaled>(x, hd, WidePanel{s.keys, s.key_scales}, to);
                } else {
                    panel_scores<N, kScaled>(x, hd, CachedKeys(keys, hd, (task.begin + key) / kKeyGroup), to);
                }
            });
        }
    }

    // s.out = the values, weighted with what softmax made of the scores.
    void mix(const BlockTask& task, const AttentionScratch& s) const {
        const std::size_t hd = p.head_dim;
        std::memset(s.out, 0, task.count * s.stride * sizeof(float));
        const std::size_t direct = task.several() ? 0 : hd / kPanel * kPanel;  // elements read from the cache itself
        if (direct > 0) {
            task.for_tiles([&]<int N>(std::size_t tile, const Keys& some) {
                constexpr int kMost = 128 / L;  // a whole head at once, where registers suffice
                add_products<N, wide<N, kMost>()>(
                    Rows<N>(s.scores + tile * kAttentionBlock + some.from, kAttentionBlock), some.to - some.from,
                    CachedValues(values, hd, task.begin + some.from), direct, s.out + tile * s.stride, s.stride);
            });
        }
        for (std::size_t key = task.all.from / kValueRows * kValueRows; key < task.all.to; key += kValueRows) {
            const Keys panel = task.all.within({key, key + kValueRows});
            for (std::size_t d = direct; d < hd; d += kPanel) {
                widen_values(values, hd, d, task.begin + panel.from, task.begin + panel.to, s.values);
                task.for_tiles([&]<int N>(std::size_t tile, const Keys& seen) {
                    const Keys some = seen.within(panel);
                    if (some.empty()) return;
                    add_products<N, wide<N, kPanelVectors>()>(
                        Rows<N>(s.scores + tile * kAttentionBlock + some.from, kAttentionBlock), some.to - some.from,
                        WidePanel{s.values + (some.from - panel.from) * kPanel}, kPanel, s.out + tile * s.stride + d,
                        s.stride);
                });
            }
        }
    }
};

// Queries that a worker takes together: fewer when there would not be enough parts for all workers.
static inline std::size_t query_block(std::size_t queries, std::size_t kv_heads, int workers) {
    constexpr std::size_t kPartsPerWorker = 4;
    std::size_t n = kQueryBlock;
    while (n > kQueryTile && queries * kv_heads / n < kPartsPerWorker * static_cast<std::size_t>(workers)) n /= 2;
    return n;
}

// Whole attention of a tile of queries, block by block. Used where there are many rows.
template <typename T>
static void attention(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[3].as<float>();
    const std::size_t queries = std::size_t{p.rows} * (p.n_heads / p.n_kv_heads);
    const std::size_t at_once = query_block(queries, p.n_kv_heads, worker.count);
    const std::size_t parts = (queries + at_once - 1) / at_once;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    // Later parts see more keys, and are dealt out first.
    const std::uint64_t n = parts * p.n_kv_heads, keys = p.position + p.rows;
    auto tasks = worker.claim(n, at_once * keys * p.head_dim);
    while (tasks.next()) {
        for (std::uint64_t u = tasks.begin; u < tasks.end; ++u) {
            const std::size_t t = n - 1 - u;
            const HeadQueries<T> heads(cmd, p, t % p.n_kv_heads);
            const std::size_t first = t / p.n_kv_heads * at_once, count = std::min(queries - first, at_once);
            Running running[kQueryBlock];
            BlockStats stats[kQueryBlock];
            for (std::size_t i = 0; i < count; ++i) running[i].out = out + heads.offset(first + i);
            heads.load_queries(first, count, scratch);
            const std::size_t b0 = first_key(heads.position(first), p.window) / kAttentionBlock;
            const std::size_t b1 = heads.position(first + count - 1) / kAttentionBlock;
            for (std::size_t b = b0; b <= b1; ++b) {
                heads.attend(first, count, b, scratch, stats);
                for (std::size_t i = 0; i < count; ++i) {
                    running[i].merge(stats[i], scratch.out + i * scratch.stride, p.head_dim);
                }
            }
            for (std::size_t i = 0; i < count; ++i) running[i].finish(p.head_dim);
        }
    }
}

// One row: every (KV head, block) is a task; partial results go to memory.
template <typename T>
static void attention_split(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[3].as<float>();
    const std::size_t stride = partial_floats(p.head_dim), max_blocks = attention_blocks(p.context);
    const std::size_t b0 = first_key(p.position, p.window) / kAttentionBlock;
    const std::size_t blocks = p.position / kAttentionBlock + 1 - b0;
    const AttentionScratch scratch(worker.scratch, p.head_dim);
    auto tasks = worker.claim(std::uint64_t{p.n_kv_heads} * blocks, 2 * sizeof(T) * kAttentionBlock * p.head_dim);
    while (tasks.next()) {
        for (std::uint64_t t = tasks.begin; t < tasks.end; ++t) {
            const HeadQueries<T> heads(cmd, p, t / blocks);
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
    const std::size_t stride = partial_floats(p.head_dim), max_blocks = attention_blocks(p.context);
    const std::size_t b0 = first_key(p.position, p.window) / kAttentionBlock, b1 = p.position / kAttentionBlock;
    const std::size_t hd = p.head_dim, dim = p.n_heads * hd;
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
                running.finish(hd);
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
