// Attention in both directions by products of 16-bit integers, where the matmul behind it has integers too. Queries of
// a head share each block of keys and values, which is rounded once for them. A query, a key, and a run of values in a
// column have a scale each; weights are multiples of the greatest in the block, over kOne. Blocks are counted from the
// sequence's beginning and rounded whole, so that a sequence's result does not depend on the sequences, or rows, beside
// it.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kFixedQueries = 512, kMostFixedHead = 512;
constexpr std::size_t kValueRun = 64;  // keys whose values have a scale

// Weights are up to kOne, and so the sums of a run of values up to kMostValues. Of numbers like noise values have an
// error of 1.3e-8 of their square; weights one of up to 8e-8, where the greatest is most of their squares and many are
// small.
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
    std::int32_t* values;  // [run][head_dim / kStrip] strips, pairs of keys as narrow_pairs has them
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

// A head of rows, at most kFixedQueries.
class FixedHead {
  public:
    FixedHead(const HeadRows& rows, const FixedScratch& scratch) : h_(rows), hd_(rows.p.head_dim), s_(scratch) {}

    void run() const {
        Softmax rows[kFixedQueries];
        for (std::size_t i = 0; i < h_.span.rows; ++i) {
            fetch(h_.q + (i + kAhead) * h_.stride);
            fetch(h_.out + (i + kAhead) * h_.stride);
            s_.q_scales[i] = store_fixed_row(h_.q + i * h_.stride, hd_, s_.q + i * FixedScratch::kQueryStride);
            float* out = h_.out + i * h_.stride;
            for (std::size_t d = 0; d < hd_; d += L) store(out + d, zero());
            rows[i] = kNoKeys;
        }
        h_.for_blocks([&](std::size_t begin, std::size_t) {
            attend(begin, std::min(h_.span.keys - begin, kAttentionBlock), rows);
        });
        for (std::size_t i = 0; i < h_.span.rows; ++i) {
            float* out = h_.out + i * h_.stride;
            const vf inverse = set1(1 / rows[i].sum);
            for (std::size_t d = 0; d < hd_; d += L) store(out + d, load(out + d) * inverse);
        }
    }

  private:
    // What the keys so far have come to: the greatest score, times the scale and log2(e), and the sum of weights.
    struct Softmax {
        float max, sum;
    };
    static constexpr Softmax kNoKeys{-std::numeric_limits<float>::infinity(), 0};

    // Rows of a head lie apart, where the hardware does not see them coming.
    static constexpr std::size_t kAhead = 6;
    void fetch(const float* row) const {
        for (std::size_t d = 0; d < hd_; d += 64 / sizeof(float)) __builtin_prefetch(row + d);
    }

    // A block of `count` keys, from `begin` on.
    void attend(std::size_t begin, std::size_t count, Softmax* rows) const {
        for (std::size_t key = 0; key < count; key += kPagePositions) store_keys((begin + key) / kPagePositions, key);
        for (std::size_t key = 0; key < count; key += kValueRun) {
            store_values((begin + key) / kPagePositions, key / kValueRun, std::min(count - key, kValueRun));
        }
        const std::size_t padded = (count + kStrip - 1) / kStrip * kStrip;
        for_token_tiles<kFixedTile>(0, h_.span.rows, [&]<int N>(std::size_t first) {
            score<N>(first, padded);
            Keys seen[N];
            for (std::size_t i = 0; i < N; ++i) seen[i] = h_.seen(first + i, begin, count);
            float add[N];
            weigh<N>(seen, padded, first, rows + first, add);
            mix<N>(first, padded, add);
        });
    }

    void store_keys(std::size_t page, std::size_t first) const {
        const float* from = h_.keys(page);
        for (std::size_t key = 0; key < kPagePositions; key += L) {
            const float* x = from + key / kKeyGroup * hd_ * kKeyGroup + key % kKeyGroup;
            vf squares = zero(), top = zero(), inverse;
            for (std::size_t d = 0; d < hd_; ++d) {
                const vf v = load(x + d * kKeyGroup);
                squares = fma(v, v, squares);
                top = max_(top, max_(v, -v));
            }
            store(s_.key_scales + first + key, fixed_scales(squares, top, inverse));
            std::int32_t* to = s_.keys + (first + key) / kStrip * kStrip * hd_ / 2 + key % kStrip;
            for (std::size_t d = 0; d < hd_; d += 2, to += kStrip) {
                store_ints(to, pack_pairs(load(x + d * kKeyGroup) * inverse, load(x + (d + 1) * kKeyGroup) * inverse));
            }
        }
    }

    // A run of n values.
    void store_values(std::size_t page, std::size_t run, std::size_t n) const {
        const float* pages[kValueRun / kPagePositions];
        for (std::size_t i = 0; i * kPagePositions < n; ++i) pages[i] = h_.values(page + i);
        for (std::size_t d = 0; d < hd_; d += L) {
            const auto row = [&](std::size_t key) {
                return load(pages[key / kPagePositions] + key % kPagePositions * hd_ + d);
            };
            vf sum = zero(), top = zero();
            for (std::size_t key = 0; key < n; ++key) {
                const vf v = row(key), magnitude = max_(v, -v);
                sum += magnitude;
                top = max_(top, magnitude);
            }
            const vf scale = max_(top * set1(1 / kMostFixed), sum * set1(1 / kMostValues));
            const vf ones = set1(1.0f) / scale, inverse = scale > kLeastScale ? ones : zero();
            store(s_.value_scales + run * hd_ + d, scale);
            std::int32_t* to = s_.values + (run * hd_ + d / kStrip * kStrip) * kValueRun / 2 + d % kStrip;
            for (std::size_t key = 0; key < n; key += kStrip) {
                for (std::size_t i = 0; i < L; ++i, to += kStrip) {
                    const std::size_t first = key + narrow_pair(i), second = first + 1;
                    store_ints(to, pack_pairs(first < n ? row(first) * inverse : zero(),
                                              second < n ? row(second) * inverse : zero()));
                }
            }
        }
    }

    // Scores of N queries with n keys, but for the queries' scales.
    template <int N>
    [[gnu::noinline, gnu::flatten]] void score(std::size_t first, std::size_t n) const {
        const std::size_t pairs = hd_ / 2;
        for (std::size_t key = 0; key < n; key += kStrip) {
            const float* scales = s_.key_scales + key;
            float* scores = s_.scores + key;
            multiply_pairs<N, FixedScratch::kQueryStride>(
                s_.q + first * FixedScratch::kQueryStride, s_.keys + key * pairs, pairs, [&]<int i, int w>(vi sum) {
                    store(scores + i * FixedScratch::kScoreStride + w * L, to_float(sum) * load(scales + w * L));
                });
        }
    }

    // Scores of N queries and n keys to weights, 0 where not seen. Multiplies `out` with what it is worth beside the
    // block, and sets `add` to what the block is. Each step is done for all queries: what one of them waits for, the
    // greatest of its scores or the sum of its weights, is ready when its next step comes.
    template <int N>
    void weigh(const Keys (&seen)[N], std::size_t n, std::size_t first, Softmax* so_far, float* add) const {
        const auto scores = [&](std::size_t i) { return s_.scores + i * FixedScratch::kScoreStride; };
        float scale[N], max[N];
        for (std::size_t i = 0; i < N; ++i) {
            if (seen[i].empty()) continue;
            scale[i] = capped(scores(i), n, s_.q_scales[first + i] * h_.p.scale) * 1.44269504f;
            scale[i] = std::max(scale[i], std::numeric_limits<float>::min());  // times -inf it is no NaN
            max[i] = mask_scores(seen[i], n, scores(i)) * scale[i];
        }
        vf sums[N];
        for (std::size_t i = 0; i < N; ++i) {
            float* x = scores(i);
            if (seen[i].empty()) {
                std::memset(x, 0, n / 2 * sizeof(float));
                continue;
            }
            const vf factor = set1(scale[i]), minus_max = set1(-max[i]);
            vf sum[2] = {zero(), zero()};
            auto* weights = reinterpret_cast<std::int32_t*>(x);
            for (std::size_t at = 0; at < n; at += kStrip) {
                const vf a = weight_of(fma(load(x + at), factor, minus_max));
                const vf b = weight_of(fma(load(x + at + L), factor, minus_max));
                sum[0] += a;
                sum[1] += b;
                store_ints(weights + at / 2, narrow_pairs(round_int(a), round_int(b)));
            }
            sums[i] = sum[0] + sum[1];
        }
        for (std::size_t i = 0; i < N; ++i) {
            add[i] =
                seen[i].empty() ? 0 : merge(max[i], reduce_add(sums[i]), so_far[i], h_.out + (first + i) * h_.stride);
        }
    }

    // Caps the n scores of a row, which count `scale`, where the model does. Returns what they count then.
    float capped(float* x, std::size_t n, float scale) const {
        if (h_.p.softcap <= 0) return scale;
        const vf cap = set1(h_.p.softcap), inverse = set1(scale / h_.p.softcap);
        for (std::size_t at = 0; at < n; at += L) store(x + at, cap * tanh_(load(x + at) * inverse));
        return 1;
    }

    // Returns what a block of that maximum and sum is worth beside those before it, which `out` has.
    float merge(float max, float total, Softmax& so_far, float* out) const {
        const float before = so_far.max;
        if (before == kNoKeys.max) {
            so_far = {max, total};
            return 1;
        }
        so_far.max = std::max(before, max);
        const float keep = before == so_far.max ? 1 : std::exp2(before - so_far.max);
        const float add = max == so_far.max ? 1 : std::exp2(max - so_far.max);
        so_far.sum = so_far.sum * keep + total * add;
        if (keep != 1) {
            for (std::size_t d = 0; d < hd_; d += L) store(out + d, load(out + d) * set1(keep));
        }
        return add;
    }

    // out += add·weights·values of N queries and n keys.
    template <int N>
    [[gnu::noinline, gnu::flatten]] void mix(std::size_t first, std::size_t n, const float* add) const {
        const auto* weights = reinterpret_cast<const std::int32_t*>(s_.scores);
        for (std::size_t d = 0; d < hd_; d += kStrip) {
            for (std::size_t key = 0; key < n; key += kValueRun) {
                const std::size_t run = key / kValueRun;
                const float* scales = s_.value_scales + run * hd_ + d;
                float* out = h_.out + first * h_.stride + d;
                multiply_pairs<N, FixedScratch::kScoreStride>(
                    weights + key / 2, s_.values + (run * hd_ + d) * kValueRun / 2, std::min(n - key, kValueRun) / 2,
                    [&, stride = h_.stride]<int i, int w>(vi sum) {
                        float* to = out + i * stride + w * L;
                        store(to, fma(to_float(sum) * set1(add[i]), load(scales + w * L), load(to)));
                    });
            }
        }
    }

    const HeadRows& h_;
    const std::size_t hd_;
    const FixedScratch& s_;
};

static void attention_fixed(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AttentionParams>(params);
    const FixedScratch scratch(worker.scratch, p.head_dim);
    constexpr std::size_t kProductsPerByte = 2;
    for_heads(cmd, p, kFixedQueries, kProductsPerByte, worker,
              [&](const HeadRows& rows) { FixedHead(rows, scratch).run(); });
}

// Rows that see all of their sequence are of one step; others must have the sums of attention.inl in every phase. Where
// a matmul of floats has sums of F32, so has attention.
static bool can_fix_attention(const DispatchCmd& cmd) {
    if (!kFixedPoint || cmd.op != Op::kAttention || cmd.kv != KvTypes{DType::F32, DType::F32}) return false;
    const auto& p = params_as<AttentionParams>(cmd.params.data());
    const bool fixed_behind = p.formats == kActQ8 || kFixedMatmul;
    return fixed_behind && p.bidirectional && p.head_dim % kStrip == 0 && p.head_dim <= kMostFixedHead;
}

}  // namespace akunu::cpu::AKUNU_ISA
