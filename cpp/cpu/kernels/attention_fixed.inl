// Attention in both directions by products of 16-bit integers, where its output is rounded to int8 anyway. Queries of a
// head share each block of keys and values, which is rounded once for them. A query, a key, and a run of values in a
// column have a scale each; weights are multiples of the greatest in the block, over kOne. Blocks are counted from the
// text's beginning and rounded whole, so that a text's result does not depend on the texts, or rows, beside it.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kFixedQueries = 512, kMostFixedHead = 512;
constexpr std::size_t kValueRun = 64;  // keys whose values have a scale

// Weights are up to kOne, and so the sums of a run of values up to kMostValues.
constexpr float kOne = 16383, kMostValues = 131000;
static_assert((131000.0 + kValueRun / 2) * 16383 < 2147483648.0);
static_assert(kPagePositions % kStrip == 0 && kValueRun % kPagePositions == 0 && kAttentionBlock % kValueRun == 0);

// kOne·2^x for x <= 0, relative error below 3e-6; below -40 next to nothing. A NaN stays one.
static inline vf weight_of(vf x) {
    x = max_(set1(-40.0f), x);
    const vf magic = set1(12582912.0f + 127);  // 1.5·2^23: adding it rounds to an integer in the low bits
    const vf t = x + magic, f = x - (t - magic);
    vf p = set1(9.58285e-3f * kOne);
    p = fma(p, f, set1(5.590643e-2f * kOne));
    p = fma(p, f, set1(2.4024099e-1f * kOne));
    p = fma(p, f, set1(6.9312419e-1f * kOne));
    p = fma(p, f, set1(kOne));
    vi bits;
    std::memcpy(&bits, &t, sizeof bits);
    bits <<= 23;
    vf power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

// A worker's memory. A strip of the right side is [pair][kStrip]; rows on the left have constant strides, which keep
// them from sharing cache sets.
struct FixedScratch {
    static constexpr std::size_t kQueryStride = kMostFixedHead / 2 + 16, kScoreStride = kAttentionBlock + 16;
    static constexpr std::size_t kRuns = kAttentionBlock / kValueRun;

    std::int32_t* q;       // [kFixedQueries][kQueryStride] pairs of elements
    float* q_scales;       // [kFixedQueries]
    std::int32_t* keys;    // [kAttentionBlock / kStrip] strips, pairs of elements
    float* key_scales;     // [kAttentionBlock]
    std::int32_t* values;  // [run][head_dim / kStrip] strips, pairs of keys L apart
    float* value_scales;   // [run][head_dim]
    float* scores;         // [kFixedTile][kScoreStride], which become pairs of weights

    FixedScratch(std::byte* memory, std::size_t head_dim)
        : q(reinterpret_cast<std::int32_t*>(memory)),
          q_scales(reinterpret_cast<float*>(q + kFixedQueries * kQueryStride)),
          keys(reinterpret_cast<std::int32_t*>(q_scales + kFixedQueries)),
          key_scales(reinterpret_cast<float*>(keys + kAttentionBlock * head_dim / 2)),
          values(reinterpret_cast<std::int32_t*>(key_scales + kAttentionBlock)),
          value_scales(reinterpret_cast<float*>(values + kAttentionBlock * head_dim / 2)),
          scores(value_scales + kRuns * head_dim) {}
    static constexpr std::size_t words(std::size_t head_dim) {
        return kFixedQueries * (kQueryStride + 1) + kAttentionBlock * (head_dim + 1) + kRuns * head_dim +
               kFixedTile * kScoreStride;
    }
};
static_assert(FixedScratch::words(kMostFixedHead) * 4 <= kWorkerScratch && kMostFixedHead / 2 <= kMostPairs);

// The rows of a span and one head.
class FixedHead {
  public:
    FixedHead(const DispatchCmd& cmd, const AttentionParams& params, const Span& rows, std::size_t head,
              const FixedScratch& scratch)
        : p_(params),
          span_(rows),
          kv_head_(head / (params.n_heads / params.n_kv_heads)),
          stride_(std::size_t{params.n_heads} * params.head_dim),
          q_(cmd.buffers[0].as<float>() + span_.first_row * stride_ + head * params.head_dim),
          out_(cmd.buffers[2].as<float>() + span_.first_row * stride_ + head * params.head_dim),
          cache_{cmd.buffers[1].as<std::byte>(), rows.pages, std::size_t{params.page_words} * 4, params.n_kv_heads,
                 params.head_dim},
          s_(scratch) {}

    void run() const {
        Softmax rows[kFixedQueries];
        for (std::size_t i = 0; i < span_.rows; ++i) {
            fetch(q_ + (i + kAhead) * stride_);
            s_.q_scales[i] = store_fixed_row(q_ + i * stride_, p_.head_dim, s_.q + i * FixedScratch::kQueryStride);
            std::memset(out_ + i * stride_, 0, p_.head_dim * sizeof(float));
        }
        const std::size_t end = end_of_keys(p_, span_, span_.rows - 1);
        std::size_t begin = first_key(span_.position, p_.window) / kAttentionBlock * kAttentionBlock;
        for (; begin < end; begin += kAttentionBlock) {
            attend(begin, std::min(span_.keys - begin, kAttentionBlock), rows);
        }
        for (std::size_t i = 0; i < span_.rows; ++i) {
            float* out = out_ + i * stride_;
            const vf inverse = set1(1 / rows[i].sum);
            for (std::size_t d = 0; d < p_.head_dim; d += L) store(out + d, load(out + d) * inverse);
        }
    }

  private:
    // Of the keys so far: the greatest score, times the scale and log2(e), and the sum of weights.
    struct Softmax {
        float max = -std::numeric_limits<float>::infinity(), sum = 0;
    };

    // Rows of a head lie apart, where the hardware does not see them coming.
    static constexpr std::size_t kAhead = 6;
    void fetch(const float* row) const {
        for (std::size_t d = 0; d < p_.head_dim; d += 64 / sizeof(float)) __builtin_prefetch(row + d);
    }

    // A block of `count` keys, from `begin` on.
    void attend(std::size_t begin, std::size_t count, Softmax* rows) const {
        for (std::size_t key = 0; key < count; key += kPagePositions) store_keys((begin + key) / kPagePositions, key);
        for (std::size_t key = 0; key < count; key += kValueRun) {
            store_values((begin + key) / kPagePositions, key / kValueRun, std::min(count - key, kValueRun));
        }
        const std::size_t padded = (count + kStrip - 1) / kStrip * kStrip;
        for_token_tiles<kFixedTile>(0, span_.rows, [&]<int N>(std::size_t first) {
            score<N>(first, padded);
            float add[N];
            for (std::size_t i = first; i < first + N; ++i) {
                const auto in_block = [&](std::size_t key) { return std::clamp(key, begin, begin + count) - begin; };
                const Keys seen{in_block(first_key(span_.position + i, p_.window)),
                                in_block(end_of_keys(p_, span_, i))};
                add[i - first] = weigh(seen, padded, i - first, s_.q_scales[i], rows[i], out_ + i * stride_);
            }
            mix<N>(first, padded, add);
        });
    }

    void store_keys(std::size_t page, std::size_t first) const {
        const float* from = cache_.keys(page, kv_head_).elems;
        const std::size_t hd = p_.head_dim;
        for (std::size_t key = 0; key < kPagePositions; key += L) {
            const float* x = from + key / kKeyGroup * hd * kKeyGroup + key % kKeyGroup;
            vf squares = zero(), top = zero(), inverse;
            for (std::size_t d = 0; d < hd; ++d) {
                const vf v = load(x + d * kKeyGroup);
                squares = fma(v, v, squares);
                top = max_(top, max_(v, -v));
            }
            store(s_.key_scales + first + key, fixed_scales(squares, top, inverse));
            std::int32_t* to = s_.keys + (first + key) / kStrip * kStrip * hd / 2 + key % kStrip;
            for (std::size_t d = 0; d < hd; d += 2, to += kStrip) {
                store_ints(to, pack_pairs(load(x + d * kKeyGroup) * inverse, load(x + (d + 1) * kKeyGroup) * inverse));
            }
        }
    }

    // A run of n values.
    void store_values(std::size_t page, std::size_t run, std::size_t n) const {
        const std::size_t hd = p_.head_dim;
        const float* pages[kValueRun / kPagePositions];
        for (std::size_t i = 0; i * kPagePositions < n; ++i) pages[i] = cache_.values(page + i, kv_head_).elems;
        for (std::size_t d = 0; d < hd; d += L) {
            const auto row = [&](std::size_t key) {
                return load(pages[key / kPagePositions] + key % kPagePositions * hd + d);
            };
            vf sum = zero(), top = zero();
            for (std::size_t key = 0; key < n; ++key) {
                const vf v = row(key), magnitude = max_(v, -v);
                sum += magnitude;
                top = max_(top, magnitude);
            }
            const vf scale = max_(top * set1(1 / kMostFixed), sum * set1(1 / kMostValues));
            const vf ones = set1(1.0f) / scale, inverse = scale > kLeastScale ? ones : zero();
            store(s_.value_scales + run * hd + d, scale);
            std::int32_t* to = s_.values + (run * hd + d / kStrip * kStrip) * kValueRun / 2 + d % kStrip;
            for (std::size_t key = 0; key < n; key += kStrip) {
                for (std::size_t i = key; i < key + L; ++i, to += kStrip) {
                    const vf first = i < n ? row(i) * inverse : zero();
                    store_ints(to, pack_pairs(first, i + L < n ? row(i + L) * inverse : zero()));
                }
            }
        }
    }

    // Scores of N queries with n keys, but for the queries' scales.
    template <int N>
    void score(std::size_t first, std::size_t n) const {
        const std::size_t pairs = p_.head_dim / 2;
        for (std::size_t key = 0; key < n; key += kStrip) {
            vi sum[N][kStripVectors] = {};
            multiply_pairs<N, FixedScratch::kQueryStride>(s_.q + first * FixedScratch::kQueryStride,
                                                          s_.keys + key * pairs, pairs, sum);
            for (std::size_t w = 0; w < kStripVectors; ++w) {
                const vf scale = load(s_.key_scales + key + w * L);
                for (std::size_t i = 0; i < N; ++i) {
                    store(s_.scores + i * FixedScratch::kScoreStride + key + w * L, to_float(sum[i][w]) * scale);
                }
            }
        }
    }

    // The i-th row's scores of n keys to weights, 0 where not seen. Multiplies `out` with what it is worth beside the
    // block, and returns what the block is.
    float weigh(const Keys& seen, std::size_t n, std::size_t i, float q_scale, Softmax& so_far, float* out) const {
        float* x = s_.scores + i * FixedScratch::kScoreStride;
        if (seen.empty()) {
            std::memset(x, 0, n / 2 * sizeof(float));
            return 0;
        }
        float scale = q_scale * p_.scale;
        if (p_.softcap > 0) {
            const vf cap = set1(p_.softcap), inverse = set1(scale / p_.softcap);
            for (std::size_t at = 0; at < n; at += L) store(x + at, cap * tanh_(load(x + at) * inverse));
            scale = 1;
        }
        constexpr float kMasked = -std::numeric_limits<float>::infinity();
        for (std::size_t at = 0; at < seen.from; ++at) x[at] = kMasked;
        for (std::size_t at = seen.to; at < n; ++at) x[at] = kMasked;
        vf top[2] = {load(x), load(x + L)};
        for (std::size_t at = kStrip; at < n; at += kStrip) {
            for (std::size_t j = 0; j < 2; ++j) top[j] = max_(top[j], load(x + at + j * L));
        }
        scale = std::max(scale * 1.44269504f, std::numeric_limits<float>::min());  // times -inf it is no NaN
        const float max = reduce_max(max_(top[0], top[1])) * scale;
        const vf factor = set1(scale), minus_max = set1(-max);
        vf sum[2] = {zero(), zero()};
        auto* weights = reinterpret_cast<std::int32_t*>(x);
        for (std::size_t at = 0; at < n; at += kStrip) {
            const vf a = weight_of(fma(load(x + at), factor, minus_max));
            const vf b = weight_of(fma(load(x + at + L), factor, minus_max));
            sum[0] += a;
            sum[1] += b;
            store_ints(weights + at / 2, pack_pairs(a, b));
        }
        const float before = so_far.max;
        so_far.max = std::max(before, max);
        const float keep = before == so_far.max ? 1 : std::exp2(before - so_far.max);
        const float add = max == so_far.max ? 1 : std::exp2(max - so_far.max);
        so_far.sum = so_far.sum * keep + reduce_add(sum[0] + sum[1]) * add;
        if (keep != 1) {
            for (std::size_t d = 0; d < p_.head_dim; d += L) store(out + d, load(out + d) * set1(keep));
        }
        return add;
    }

    // out += add·weights·values of N queries and n keys.
    template <int N>
    void mix(std::size_t first, std::size_t n, const float* add) const {
        const std::size_t hd = p_.head_dim;
        const auto* weights = reinterpret_cast<const std::int32_t*>(s_.scores);
        for (std::size_t d = 0; d < hd; d += kStrip) {
            for (std::size_t key = 0; key < n; key += kValueRun) {
                const std::size_t run = key / kValueRun;
                vi sum[N][kStripVectors] = {};
                multiply_pairs<N, FixedScratch::kScoreStride>(weights + key / 2,
                                                              s_.values + (run * hd + d) * kValueRun / 2,
                                                              std::min(n - key, kValueRun) / 2, sum);
                for (std::size_t w = 0; w < kStripVectors; ++w) {
                    const vf scale = load(s_.value_scales + run * hd + d + w * L);
                    for (std::size_t i = 0; i < N; ++i) {
                        float* out = out_ + (first + i) * stride_ + d + w * L;
                        store(out, fma(to_float(sum[i][w]) * set1(add[i]), scale, load(out)));
                    }
                }
            }
        }
    }

    const AttentionParams& p_;
    const Span& span_;
    const std::size_t kv_head_, stride_;
    const float* q_;
    float* out_;
    KvPages<float> cache_;
    const FixedScratch& s_;
};

static void attention_fixed(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    constexpr std::size_t kPartsPerWorker = 4, kFewest = 64;
    std::size_t at_once = kFixedQueries;
    while (at_once > kFewest &&
           p.rows * p.n_heads / at_once < kPartsPerWorker * static_cast<std::size_t>(worker.count)) {
        at_once /= 2;
    }
    const FixedScratch scratch(worker.scratch, p.head_dim);
    auto parts = worker.claim((p.rows + at_once - 1) / at_once * p.n_heads, at_once * keys_seen(p) * p.head_dim / 2);
    while (parts.next()) {
        for (std::uint64_t u = parts.begin; u < parts.end; ++u) {
            const std::size_t row = u / p.n_heads * at_once;
            for_spans(cmd, p, row, std::min<std::size_t>(p.rows, row + at_once),
                      [&](const Span& span) { FixedHead(cmd, p, span, u % p.n_heads, scratch).run(); });
        }
    }
}

// Rows that see all of their text are of one step; others must have the sums of attention.inl in every phase. What
// float weights multiply keeps the accuracy of F32.
static bool can_fix_attention(const DispatchCmd& cmd) {
    if (!kFixedPoint || cmd.kv != DType::F32) return false;
    const auto& p = params_as<AttentionParams>(cmd.params.data());
    return p.bidirectional && p.formats == kActQ8 && p.head_dim % kStrip == 0 && p.head_dim <= kMostFixedHead;
}

}  // namespace akunu::cpu::AKUNU_ISA
