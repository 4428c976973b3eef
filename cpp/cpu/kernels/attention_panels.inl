// Keys and values of the cache as attention multiplies them: as they lie there, or as panels that several tiles of
// queries share, widened to F32 once.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kQueryTile = kVectorRegisters >= 32 ? 8 : 4, kQueryBlock = 64;
constexpr std::size_t kValueRows = kPagePositions;  // values of a panel

// A worker's memory, for heads of up to kMaxHead.
struct AttentionScratch {
    std::size_t stride;   // floats of an output row
    float* scores;        // [kQueryBlock][kAttentionBlock]
    float* values;        // panel [kValueRows][kPanel]
    float* keys;          // panel [head_dim][kPanel]
    float* key_scales;    // panel [runs][kPanel]
    float* value_scales;  // [kValueRows][runs]
    float* q;             // [kQueryBlock][head_dim]
    float* out;           // [kQueryBlock][stride], unnormalised
    AttentionScratch(std::byte* memory, std::size_t head_dim)
        : stride((head_dim + kPanel - 1) / kPanel * kPanel),
          scores(reinterpret_cast<float*>(memory)),
          values(scores + kQueryBlock * kAttentionBlock),
          keys(values + kValueRows * kPanel),
          key_scales(keys + head_dim * kPanel),
          value_scales(key_scales + scale_runs(head_dim) * kPanel),
          q(value_scales + scale_runs(head_dim) * kValueRows),
          out(q + kQueryBlock * head_dim) {}
};
static_assert(kQueryBlock * kAttentionBlock + kValueRows * kPanel +
                  kMaxHead * (kPanel + kPanel / kScaleRun + kValueRows / kScaleRun + 2 * kQueryBlock) <=
              kMaxRow);

static_assert(kPanel == kPagePositions);

// A page's keys as a panel. A row is an element of the heads.
template <typename T, typename Next>
struct CachedKeys {
    const KvUnit<T> unit;
    std::size_t head_dim;
    Next ahead;
    std::size_t runs = scale_runs(head_dim);
    const T* at(std::size_t row, std::size_t column) const {
        return unit.elems + (column / kKeyGroup * unit.width(head_dim) + row) * kKeyGroup + column % kKeyGroup;
    }
    vf row(std::size_t d, std::size_t column) const {
        if constexpr (KvUnit<T>::kPaired) {
            return two_rows(d, column).row[d % 2];
        } else {
            return load_cache(at(d, column));
        }
    }
    TwoRows two_rows(std::size_t d, std::size_t column) const
        requires(KvUnit<T>::kPaired)
    {
        const vi codes = load_codes(at(d / 2, column));
        return {{code_value(codes), code_value(codes >> 4)}};
    }
    // A share of what is ahead, as large as kColumns elements of a row: each line once, in the order of memory.
    template <std::size_t kColumns>
    void fetch(std::size_t d, std::size_t column) const {
        const std::size_t elems = column * head_dim + d * kColumns;
        ahead.template fetch<kColumns>(unit.elems + (KvUnit<T>::kPaired ? elems / 2 : elems));
    }
    vf scale(std::size_t run, std::size_t column) const {
        const std::size_t scale = (column / kKeyGroup * runs + run) * kKeyGroup + column % kKeyGroup;
        return load_cache(ahead.fetch(unit.scales + scale));
    }
};

// A page's scales of values, as F32.
template <typename T, typename Next>
static inline const float* value_scales(const KvUnit<T>& unit, std::size_t head_dim, std::size_t positions, Next ahead,
                                        const AttentionScratch& s) {
    if constexpr (!KvUnit<T>::kPaired) {
        return unit.scales;
    } else {
        for (std::size_t i = 0; i < positions * scale_runs(head_dim); i += L) {
            store(s.value_scales + i, load_half(ahead.fetch(unit.scales + i)));
        }
        return s.value_scales;
    }
}

// A page's values from `key` on; a column is an element of the head.
template <typename T, typename Next>
struct CachedValues {
    static constexpr bool kPaired = KvUnit<T>::kPaired;
    const T* elems;
    const float* scales;
    std::size_t head_dim, width, runs, count;
    Next ahead;
    // `value_scales`: of the page.
    CachedValues(const KvUnit<T>& unit, const float* value_scales, std::size_t hd, std::size_t key, std::size_t n,
                 Next next)
        : elems(unit.elems + key * unit.width(hd)),
          scales(value_scales + key * scale_runs(hd)),
          head_dim(hd),
          width(unit.width(hd)),
          runs(scale_runs(hd)),
          count(n),
          ahead(next) {}
    vf row(std::size_t k, std::size_t column) const {
        if constexpr (kPaired) {
            return code_value(load_codes(pair(k, column)) >> shift(column)) *
                   set1(scales[k * runs + column / kScaleRun]);
        } else {
            const vf v = load_cache(elems + k * head_dim + column);
            if constexpr (KvUnit<T>::kScaled) return v * set1(*ahead.fetch(scales + k * runs + column / kScaleRun));
            return v;
        }
    }
    template <std::size_t kColumns>
    void fetch(std::size_t k, std::size_t column) const {
        const std::size_t at = column * count + k * kColumns;
        ahead.template fetch<kPaired ? kColumns / 2 : kColumns>(elems + (kPaired ? at / 2 : at));
    }
    float element(std::size_t k, std::size_t column) const {
        if constexpr (kPaired) {
            return code_value(unsigned{pair(k, column)->two} >> shift(column)) * scales[k * runs + column / kScaleRun];
        } else {
            const float v = cache_value(elems[k * head_dim + column]);
            if constexpr (KvUnit<T>::kScaled) return v * scales[k * runs + column / kScaleRun];
            return v;
        }
    }

  private:
    // Where the codes of elements are that share bytes with those 16 behind, or before them, and in which bits.
    static constexpr std::size_t kHalf = kScaleRun / 2;
    const T* pair(std::size_t k, std::size_t column) const {
        return elems + k * width + column / kScaleRun * kHalf + column % kHalf;
    }
    static int shift(std::size_t column) { return column & kHalf ? 4 : 0; }
};

// Widens a page's keys; scales stay apart.
template <typename T>
static inline void widen_keys(const KvUnit<T>& keys, std::size_t head_dim, const AttentionScratch& s) {
    const CachedKeys<T, NothingAhead> panel{keys, head_dim, {}};
    for (std::size_t column = 0; column < kPanel; column += L) {
        std::size_t d = 0;
        if constexpr (KvUnit<T>::kPaired) {
            for (; d + 2 <= head_dim; d += 2) {
                const TwoRows rows = panel.two_rows(d, column);
                for (std::size_t i = 0; i < 2; ++i) store(s.keys + (d + i) * kPanel + column, rows.row[i]);
            }
        }
        for (; d < head_dim; ++d) store(s.keys + d * kPanel + column, panel.row(d, column));
        if constexpr (KvUnit<T>::kScaled) {
            for (std::size_t r = 0; r < panel.runs; ++r)
                store(s.key_scales + r * kPanel + column, panel.scale(r, column));
        }
    }
}

// Widens elements [d0, d0 + kPanel) of `count` values, with their scales; 0 behind the head's end.
template <typename T>
static inline void widen_values(const CachedValues<T, NothingAhead>& rows, std::size_t d0, std::size_t count,
                                float* panel) {
    for (std::size_t k = 0; k < count; ++k, panel += kPanel) {
        if (d0 + kPanel <= rows.head_dim) {
            for (std::size_t i = 0; i < kPanel; i += L) store(panel + i, rows.row(k, d0 + i));
        } else {
            for (std::size_t i = 0; i < kPanel; ++i) panel[i] = d0 + i < rows.head_dim ? rows.element(k, d0 + i) : 0.0f;
        }
    }
}

// Scores of N queries with the keys of a panel, into s[n][0, kPanel), or with `kKeys` of them from `first` on.
template <int N, bool kScaled, std::size_t kKeys = kPanel, typename Panel>
static inline void panel_scores(const Rows<N>& q, std::size_t head_dim, const Panel& panel, float* s,
                                std::size_t first = 0) {
    constexpr int W = wide<N, static_cast<int>(kKeys) / L>();
    for (std::size_t column = first; column < first + kKeys; column += W * L) {
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

// What several queries see of a block, whose first key is `begin`.
struct BlockTask {
    std::size_t begin, count;
    Keys all;
    Keys seen[kQueryBlock];
    bool last = true;                                    // no query sees keys behind the block
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

}  // namespace akunu::cpu::AKUNU_ISA
