// Attention over the cache in blocks of 256 positions (flash attention with the blocks' edges fixed).

namespace akunu::cpu::AKUNU_ISA {

constexpr int kQueryTile = 8;

// One block's result for a query.
struct Partial {
    float max;
    float sum;
    float* out;  // [head_dim], unnormalised
};

// Keys that a query at position `pos` sees: [first, pos].
static inline std::size_t first_key(std::size_t pos, u32 window) {
    return window && pos + 1 > window ? pos + 1 - window : 0;
}

// Scores of N queries with the keys [16·g0, 16·g1) of one head, into s[query][key - block_begin].
template <int N, typename T>
static inline void block_scores(const float* const* q, const HeadCache<T>& keys, std::size_t head_dim, std::size_t g0,
                                std::size_t g1, std::size_t block_begin, float (*s)[kAttentionBlock]) {
    constexpr int kParts = static_cast<int>(kKeyGroup) / L;
    // Vectors of keys taken together: with few queries they are the independent accumulators.
    constexpr int kWide = N >= 4 ? 1 : 4 / N;
    const auto run = [&]<int W>(std::size_t g, int part) {
        vf acc[N][W];
        for (auto& row : acc) {
            for (vf& a : row) a = zero();
        }
        const T* base = keys.elems + g * head_dim * kKeyGroup + static_cast<std::size_t>(part) * L;
        const auto dot = [&](std::size_t d0, std::size_t d1, vf(&sum)[N][W]) {
            for (std::size_t d = d0; d < d1; ++d) {
                vf k[W];
                for (int w = 0; w < W; ++w) {
                    k[w] = load_cache(base + (static_cast<std::size_t>(w) * head_dim + d) * kKeyGroup);
                }
                for (int n = 0; n < N; ++n) {
                    const vf x = set1(q[n][d]);
                    for (int w = 0; w < W; ++w) sum[n][w] = fma(x, k[w], sum[n][w]);
                }
            }
        };
        if constexpr (HeadCache<T>::kScaled) {
            const std::size_t runs = scale_runs(head_dim);
            const float* scale = keys.scales + g * runs * kKeyGroup + static_cast<std::size_t>(part) * L;
            for (std::size_t r = 0; r < runs; ++r) {
                vf sum[N][W] = {};
                dot(r * kScaleRun, std::min(head_dim, (r + 1) * kScaleRun), sum);
                for (int w = 0; w < W; ++w) {
                    const vf d = load(scale + (static_cast<std::size_t>(w) * runs + r) * kKeyGroup);
                    for (int n = 0; n < N; ++n) acc[n][w] = fma(sum[n][w], d, acc[n][w]);
                }
            }
        } else {
            dot(0, head_dim, acc);
        }
        for (int n = 0; n < N; ++n) {
            for (int w = 0; w < W; ++w) {
                const std::size_t key =
                    (g + static_cast<std::size_t>(w)) * kKeyGroup + static_cast<std::size_t>(part) * L;
                store(s[n] + (key - block_begin), acc[n][w]);
            }
        }
    };
    for (int part = 0; part < kParts; ++part) {
        std::size_t g = g0;
        for (; g + kWide <= g1; g += kWide) run.template operator()<kWide>(g, part);
        for (; g < g1; ++g) run.template operator()<1>(g, part);
    }
}

// out[n][0, head_dim) = Σ_key p[n][key]·V[key]
template <int N, typename T>
static inline void block_values(const float (*p)[kAttentionBlock], const HeadCache<T>& values, std::size_t head_dim,
                                std::size_t k0, std::size_t k1, std::size_t block_begin, const Partial* partials) {
    [[maybe_unused]] const std::size_t runs = scale_runs(head_dim);
    const auto run = [&]<int W>(std::size_t d) {
        vf acc[N][W];
        for (auto& row : acc) {
            for (vf& a : row) a = zero();
        }
        for (std::size_t key = k0; key < k1; ++key) {
            vf v[W];
            for (int w = 0; w < W; ++w) {
                const std::size_t at = d + static_cast<std::size_t>(w) * L;
                v[w] = load_cache(values.elems + key * head_dim + at);
                if constexpr (HeadCache<T>::kScaled) v[w] *= set1(values.scales[key * runs + at / kScaleRun]);
            }
            for (int n = 0; n < N; ++n) {
                const vf x = set1(p[n][key - block_begin]);
                for (int w = 0; w < W; ++w) acc[n][w] = fma(x, v[w], acc[n][w]);
            }
        }
        for (int n = 0; n < N; ++n) {
            for (int w = 0; w < W; ++w) store(partials[n].out + d + static_cast<std::size_t>(w) * L, acc[n][w]);
        }
    };
    constexpr int kWide = N >= 8 ? 1 : N >= 4 ? 2 : 4;
    std::size_t d = 0;
    for (; d + kWide * L <= head_dim; d += kWide * L) run.template operator()<kWide>(d);
    for (; d + L <= head_dim; d += L) run.template operator()<1>(d);
    for (; d < head_dim; ++d) {  // a head_dim that is no multiple of the vector
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (std::size_t key = k0; key < k1; ++key) {
                float v = cache_value(values.elems[key * head_dim + d]);
                if constexpr (HeadCache<T>::kScaled) v *= values.scales[key * runs + d / kScaleRun];
                sum += p[n][key - block_begin] * v;
            }
            partials[n].out[d] = sum;
        }
    }
}

// N queries of one KV head against one block. A query that sees no key of the block gets sum 0.
template <int N, typename T>
static inline void attend_block(const AttentionParams& p, const float* const* q, const std::size_t* pos,
                                const HeadCache<T>& keys, const HeadCache<T>& values, std::size_t block,
                                Partial* partials) {
    alignas(64) float s[N][kAttentionBlock];
    const std::size_t begin = block * kAttentionBlock, end = begin + kAttentionBlock;
    std::size_t lo = end, hi = begin;  // keys that any of the queries sees
    for (int n = 0; n < N; ++n) {
        lo = std::min(lo, std::clamp(first_key(pos[n], p.window), begin, end));
        hi = std::max(hi, std::min(pos[n] + 1, end));
    }
    if (lo >= hi) {
        for (int n = 0; n < N; ++n) partials[n].sum = 0;
        return;
    }
    const std::size_t g0 = lo / kKeyGroup, g1 = (hi + kKeyGroup - 1) / kKeyGroup;
    block_scores<N>(q, keys, p.head_dim, g0, g1, begin, s);

    const std::size_t s0 = g0 * kKeyGroup - begin, s1 = g1 * kKeyGroup - begin;
    const vf scale = set1(p.scale), cap = set1(p.softcap);
    for (int n = 0; n < N; ++n) {
        const std::size_t first = std::clamp(first_key(pos[n], p.window), begin, end);
        const std::size_t last = std::min(pos[n] + 1, end);
        if (first >= last) {
            std::memset(s[n] + s0, 0, (s1 - s0) * sizeof(float));
            partials[n].sum = 0;
            continue;
        }
        for (std::size_t i = s0; i < s1; i += L) {
            vf v = load(s[n] + i) * scale;
            if (p.softcap > 0) v = cap * tanh_(v / cap);
            store(s[n] + i, v);
        }
        constexpr float kMasked = -std::numeric_limits<float>::infinity();
        for (std::size_t i = s0; i < first - begin; ++i) s[n][i] = kMasked;
        for (std::size_t i = last - begin; i < s1; ++i) s[n][i] = kMasked;
        vf top = set1(kMasked);
        for (std::size_t i = s0; i < s1; i += L) top = max_(top, load(s[n] + i));
        const float max = reduce_max(top);
        const vf m = set1(max);
        vf sum = zero();
        for (std::size_t i = s0; i < s1; i += L) {
            const vf e = exp_(load(s[n] + i) - m);
            store(s[n] + i, e);
            sum += e;
        }
        partials[n].max = max;
        partials[n].sum = reduce_add(sum);
    }
    block_values<N>(s, values, p.head_dim, lo, hi, begin, partials);
}

// Running softmax over blocks: (max, sum, out) of what has been merged so far.
struct Running {
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0;
    float* out;
    void merge(const Partial& b, std::size_t head_dim) {
        if (b.sum == 0) return;
        const float top = std::max(max, b.max);
        const float keep = sum == 0 ? 0.0f : std::exp(max - top), add = std::exp(b.max - top);
        for (std::size_t d = 0; d < head_dim; ++d) out[d] = (keep == 0 ? 0.0f : out[d] * keep) + b.out[d] * add;
        sum = sum * keep + b.sum * add;
        max = top;
    }
    void finish(std::size_t head_dim) const {
        for (std::size_t d = 0; d < head_dim; ++d) out[d] /= sum;
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

    template <int N>
    void attend(std::size_t first, std::size_t block, Partial* partials) const {
        const float* queries[N];
        std::size_t positions[N];
        for (std::size_t n = 0; n < N; ++n) {
            queries[n] = q + offset(first + n);
            positions[n] = position(first + n);
        }
        attend_block<N>(p, queries, positions, keys, values, block, partials);
    }
};

// Whole attention of a tile of queries, block by block. Used where there are many rows.
template <typename T>
static void attention(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    auto* out = cmd.buffers[3].as<float>();
    const std::size_t queries = std::size_t{p.rows} * (p.n_heads / p.n_kv_heads);
    const std::size_t tiles = (queries + kQueryTile - 1) / kQueryTile;
    auto* scratch = reinterpret_cast<float*>(worker.scratch);
    // Later tiles see more keys: dealing them out in turn balances the threads.
    for (std::size_t t = static_cast<std::size_t>(worker.index); t < tiles * p.n_kv_heads;
         t += static_cast<std::size_t>(worker.count)) {
        const HeadQueries<T> heads(cmd, p, t % p.n_kv_heads);
        const std::size_t begin = t / p.n_kv_heads * kQueryTile, end = std::min(queries, begin + kQueryTile);
        for_token_tiles<kQueryTile>(begin, end, [&]<int N>(std::size_t first) {
            Running running[N];
            Partial partials[N];
            for (std::size_t n = 0; n < N; ++n) {
                running[n].out = out + heads.offset(first + n);
                partials[n].out = scratch + n * p.head_dim;
            }
            const std::size_t b0 = first_key(heads.position(first), p.window) / kAttentionBlock;
            const std::size_t b1 = heads.position(first + N - 1) / kAttentionBlock;
            for (std::size_t b = b0; b <= b1; ++b) {
                heads.template attend<N>(first, b, partials);
                for (int n = 0; n < N; ++n) running[n].merge(partials[n], p.head_dim);
            }
            for (int n = 0; n < N; ++n) running[n].finish(p.head_dim);
        });
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
    const auto tasks = worker.share(std::uint64_t{p.n_kv_heads} * blocks);
    for (std::uint64_t t = tasks.begin; t < tasks.end; ++t) {
        const HeadQueries<T> heads(cmd, p, t / blocks);
        const std::size_t block = b0 + t % blocks;
        for_token_tiles<kQueryTile>(0, heads.group, [&]<int N>(std::size_t first) {
            Partial partials[N];
            for (std::size_t n = 0; n < N; ++n) {
                partials[n].out = out + (heads.head(first + n) * max_blocks + block) * stride + 2;
            }
            heads.template attend<N>(first, block, partials);
            for (int n = 0; n < N; ++n) {
                partials[n].out[-2] = partials[n].max;
                partials[n].out[-1] = partials[n].sum;
            }
        });
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
    const auto units = worker.share((p.n_heads + unit - 1) / unit);
    for (std::uint64_t u = units.begin; u < units.end; ++u) {
        const std::size_t h0 = u * unit, h1 = std::min<std::size_t>(p.n_heads, h0 + unit);
        float* base = p.formats & kActF32 ? out_f32 + h0 * hd : scratch;
        for (std::size_t h = h0; h < h1; ++h) {
            Running running;
            running.out = base + (h - h0) * hd;
            for (std::size_t b = b0; b <= b1; ++b) {
                float* partial = partials + (h * max_blocks + b) * stride;
                running.merge({partial[0], partial[1], partial + 2}, hd);
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

}  // namespace akunu::cpu::AKUNU_ISA
