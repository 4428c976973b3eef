// Attention in both directions by tiles (AMX): queries, keys, weights and values are sums of two BF16. Queries of a
// head share each block of keys and values, which is split once for them, and take it a pair of tiles at a time, whose
// scores stay in the first-level cache. Blocks are counted from the sequence's beginning, so that a sequence's result
// does not depend on the sequences beside it.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kQueries = 256, kQueryPair = 2 * kTileRows;
constexpr std::size_t kMostSplitHead = 512;  // elements that fit in a worker's memory

// 2^x for x <= 0, relative error below 2^-22: the polynomial of Cephes' exp2f. Below -125 the result is 2^-125: what
// underflows takes a hundred times as long.
static inline vf exp2_(vf x) {
    x = _mm512_max_ps(set1(-125.0f), x);  // in this order a NaN stays one
    const vf n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = x - n;
    vf p = set1(1.535336188319500e-4f);
    p = fma(p, f, set1(1.339887440266574e-3f));
    p = fma(p, f, set1(9.618437357674640e-3f));
    p = fma(p, f, set1(5.550332471162809e-2f));
    p = fma(p, f, set1(2.402264791363012e-1f));
    p = fma(p, f, set1(6.931472028550421e-1f));
    return _mm512_scalef_ps(fma(p, f, set1(1.0f)), n);
}

// A worker's memory. A step is 32 elements of a head, or 32 keys; its factors on the right side are four tiles.
struct SplitScratch {
    static constexpr std::size_t kStepBytes = 4 * kSplitTile, kBlockSteps = kAttentionBlock / kWholeColumns;
    // The extra line keeps rows from sharing cache sets.
    static constexpr std::size_t kScoreStride = kAttentionBlock * sizeof(float) + 64;

    std::size_t steps, stride;  // of a head; bytes of a row of output
    std::byte* q;               // LeftTiles
    std::byte* keys;            // [kBlockSteps][steps]: the right side of scores
    std::byte* values;          // [steps][kBlockSteps]: the right side of the output
    std::byte* scores;  // [kQueryPair][kScoreStride]: F32, which become weights: 32 high parts, 32 low ones, ...
    std::byte* out;     // [kQueryPair][stride]: F32, unnormalised

    SplitScratch(std::byte* memory, std::size_t head_dim)
        : steps(whole_steps(head_dim)),
          stride(steps * 128 + 64),
          q(memory),
          keys(q + kQueries / kTileRows * steps * LeftTiles::kStep),
          values(keys + kBlockSteps * steps * kStepBytes),
          scores(values + kBlockSteps * steps * kStepBytes),
          out(scores + kQueryPair * kScoreStride) {}

    std::byte* key_step(std::size_t page, std::size_t step) const { return keys + (page * steps + step) * kStepBytes; }
    std::byte* value_step(std::size_t step, std::size_t page) const {
        return values + (step * kBlockSteps + page) * kStepBytes;
    }
};
static_assert(kPagePositions == kWholeColumns && kKeyGroup == kWholeRows);
static_assert((kQueries + kQueryPair) * (kMostSplitHead * 4 + 64) + 2 * kAttentionBlock * kMostSplitHead * 4 +
                  kQueryPair * SplitScratch::kScoreStride <=
              kWorkerScratch);

// A head of rows, at most kQueries.
class SplitHead {
  public:
    SplitHead(const HeadRows& rows, const SplitScratch& scratch) : h_(rows), hd_(rows.p.head_dim), s_(scratch) {}

    void run() const {
        for (std::size_t i = 0; i < h_.span.rows; ++i) LeftTiles::store_row(h_.q + i * h_.stride, hd_, i, s_.q);
        Softmax rows[kQueries];
        h_.for_blocks([&](std::size_t begin, std::size_t end) { attend(begin, end - begin, rows); });
        for (std::size_t i = 0; i < h_.span.rows; ++i) {
            float* out = h_.out + i * h_.stride;
            for (std::size_t d = 0; d < hd_; ++d) out[d] /= rows[i].sum;
        }
    }

  private:
    // What the keys so far have come to: the greatest score, times the scale and log2(e), and Σ 2^(score - max).
    struct Softmax {
        float max = -std::numeric_limits<float>::infinity(), sum = 0;
    };

    // A block of `count` keys, from `begin` on.
    void attend(std::size_t begin, std::size_t count, Softmax* rows) const {
        for (std::size_t key = 0; key < count; key += kPagePositions) {
            const std::size_t page = (begin + key) / kPagePositions, in_block = key / kPagePositions;
            split_keys(h_.keys(page), in_block);
            split_values(h_.values(page), in_block, std::min(count - key, kWholeColumns));
        }
        const std::size_t steps = whole_steps(count);
        for_row_tiles(h_.span.rows, [&]<int M>(std::size_t first) {
            score<M>(first, steps);
            const std::size_t last = std::min(h_.span.rows, first + M * kTileRows);
            float keep[kQueryPair];
            for (std::size_t i = first; i < last; ++i) {
                keep[i - first] = weigh(h_.seen(i, begin, count), steps * kWholeColumns,
                                        s_.scores + (i - first) * SplitScratch::kScoreStride, rows[i]);
            }
            mix<M>(steps);
            for (std::size_t i = first; i < last; ++i) add(keep[i - first], i - first, h_.out + i * h_.stride);
        });
    }

    void split_keys(const float* keys, std::size_t page) const {
        for (std::size_t g = 0; g < 2; ++g, keys += hd_ * kKeyGroup) {
            const auto row = [&](std::size_t d) { return d < hd_ ? load(keys + d * kKeyGroup) : zero(); };
            for (std::size_t d = 0; d < s_.steps * kWholeColumns; d += 2) {
                std::byte* to = s_.key_step(page, d / kWholeColumns) + g * 2 * kSplitTile + d % kWholeColumns / 2 * 64;
                store_split(to, to + kSplitTile, split_pairs(row(d), row(d + 1)));
            }
        }
    }
    // Only the first n positions of the page are there.
    void split_values(const float* values, std::size_t page, std::size_t n) const {
        for (std::size_t key = 0; key < kWholeColumns; key += 2) {
            for (std::size_t d = 0; d < s_.steps * kWholeColumns; d += L) {
                const auto row = [&](std::size_t k) {
                    return k < n && d < hd_ ? load_up_to(values + k * hd_ + d, hd_ - d) : zero();
                };
                std::byte* to =
                    s_.value_step(d / kWholeColumns, page) + d % kWholeColumns / L * 2 * kSplitTile + key / 2 * 64;
                store_split(to, to + kSplitTile, split_pairs(row(key), row(key + 1)));
            }
        }
    }

    // to[M tiles of rows][32] = a·b
    template <int M>
    static void multiply(const SplitFactors& factors, std::size_t steps, std::byte* to, std::size_t to_stride) {
        for_sums<M>([]<int i>(std::size_t, std::size_t) { tile_zero<i>(); });
        multiply_split<M>(factors, steps);
        for_sums<M>(
            [&]<int i>(std::size_t m, std::size_t v) { tile_store<i>(to + m * to_stride + v * 64, to_stride); });
    }
    template <int M>
    void score(std::size_t row, std::size_t steps) const {
        const std::byte* q = s_.q + row / kTileRows * s_.steps * LeftTiles::kStep;
        for (std::size_t step = 0; step < steps; ++step) {
            const std::byte* keys = s_.key_step(step, 0);
            multiply<M>({q, q + s_.steps * LeftTiles::kStep, 64, LeftTiles::kTileBytes, LeftTiles::kStep, keys,
                         keys + 2 * kSplitTile, SplitScratch::kStepBytes},
                        s_.steps, s_.scores + step * 128, SplitScratch::kScoreStride);
        }
    }
    template <int M>
    void mix(std::size_t steps) const {
        for (std::size_t step = 0; step < s_.steps; ++step) {
            const std::byte* values = s_.value_step(step, 0);
            multiply<M>({s_.scores, s_.scores + kTileRows * SplitScratch::kScoreStride, SplitScratch::kScoreStride, 64,
                         128, values, values + 2 * kSplitTile, SplitScratch::kStepBytes},
                        steps, s_.out + step * 128, s_.stride);
        }
    }

    // Scores of n keys to what their values are multiplied with: 2^(score - max), next to nothing where not seen.
    // Returns what the output so far has to be multiplied with.
    float weigh(const Keys& seen, std::size_t n, std::byte* row, Softmax& so_far) const {
        if (seen.empty()) {
            std::memset(row, 0, n * sizeof(float));
            return so_far.sum == 0 ? 0.0f : 1.0f;
        }
        auto* x = reinterpret_cast<float*>(row);
        if (h_.p.softcap > 0) {
            const vf cap = set1(h_.p.softcap / h_.p.scale), inverse = set1(h_.p.scale / h_.p.softcap);
            for (std::size_t i = 0; i < n; i += L) store(x + i, cap * tanh_(load(x + i) * inverse));
        }
        const float scale = h_.p.scale * 1.44269504f, before = so_far.max;
        so_far.max = std::max(before, mask_scores(seen, n, x) * scale);
        const vf factor = set1(scale), minus_max = set1(-so_far.max);
        vf sum[2] = {zero(), zero()};
        for (std::size_t i = 0; i < n; i += 2 * L, row += 128) {
            const vf a = exp2_(fma(load(x + i), factor, minus_max)), b = exp2_(fma(load(x + i + L), factor, minus_max));
            sum[0] += a;
            sum[1] += b;
            store_split(row, row + 64, split(a, b));
        }
        const float keep = so_far.sum == 0 ? 0.0f : before == so_far.max ? 1.0f : exp2_(set1(before - so_far.max))[0];
        so_far.sum = so_far.sum * keep + _mm512_reduce_add_ps(sum[0] + sum[1]);
        return keep;
    }

    // out = out·keep + the i-th row of the block's; before the first block of a row `out` has nothing, and keep is 0.
    void add(float keep, std::size_t i, float* out) const {
        const auto* block = reinterpret_cast<const float*>(s_.out + i * s_.stride);
        for (std::size_t d = 0; d < hd_; d += L) {
            const int n = static_cast<int>(std::min<std::size_t>(L, hd_ - d));
            const vf old = keep == 0 ? zero() : n == L ? load(out + d) : load_first(out + d, n);
            const vf sum = fma(old, set1(keep), load(block + d));
            n == L ? store(out + d, sum) : store_first(out + d, sum, n);
        }
    }

    const HeadRows& h_;
    const std::size_t hd_;
    const SplitScratch& s_;
};

static void attention_split_floats(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    const TileShapes shapes;
    const SplitScratch scratch(worker.scratch, p.head_dim);
    constexpr std::size_t kProductsPerByte = 4;
    for_heads(cmd, p, kQueries, kProductsPerByte, worker,
              [&](const HeadRows& rows) { SplitHead(rows, scratch).run(); });
}

// Rows that see all of their sequence are of one step; others must have the sums of attention.inl in every phase.
static bool can_split_attention(const DispatchCmd& cmd) {
    if (cmd.op != Op::kAttention || cmd.kv != KvTypes{DType::F32, DType::F32}) return false;
    const auto& p = params_as<AttentionParams>(cmd.params.data());
    // Smaller heads leave most of a tile empty.
    return p.bidirectional && p.head_dim >= kTileRows && p.head_dim <= kMostSplitHead;
}

}  // namespace akunu::cpu::AKUNU_ISA
