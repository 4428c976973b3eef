// x·Wᵀ of many tokens. Strips of kPanel rows of W, kStrips at a time, are taken apart a panel of k at a time, once for
// all tokens of a block (F32 is read where it is packed); the tokens' part of k is copied beside them, so that rows of
// a power-of-two length do not share cache sets. Sums stay in memory between panels.

namespace akunu::cpu::AKUNU_ISA {

// Tokens from which on panels are worth it: of floats, and of bytes.
constexpr std::size_t kPanelTokens = 3 * kTokenTile, kBytePanelTokens = kBytePanelTiles * kTokenTile;

// Form says what rows and panels look like:
//   kTile, kTokenBlock                              tokens of a tile; at most in a block, a multiple
//   kElems                                          of k in a panel
//   panel_bytes, row_bytes                          their sizes
//   copy_row(t, k0, n, row)                         token t
//   fill(group, k0, n, v, panel)                    vector v of the strip, from a packed group
//   ahead(group, k0, n, tokens)                     fetches what is filled next, where vector v comes from group(v)
//   add_products(rows, tokens, n, panel, sums, ahead)
//                                                   sums[t][kPanel] += rows·panel
template <typename Form>
class Panels {
  public:
    Panels(const Form& form, std::size_t k, const Worker& worker)
        : form_(form),
          k_(k),
          panel_(worker.scratch),
          rows_(panel_ + form.panel_bytes),
          sums_(reinterpret_cast<float*>(rows_ + Form::kTokenBlock * form.row_bytes)) {}

    // Calls done(t, n, s, sums) for all tokens and `strips`, as far as the worker claims them: n tokens from t on, and
    // `together` strips from s on, a divisor of kStrips and of their number. Sums are [strip][kTokenBlock][kPanel].
    // group(s, v) is the packed group of vector v of the strip, or behind the last one any.
    template <typename Group, typename Done>
    void for_blocks(std::size_t tokens, std::size_t strips, std::size_t together, const Worker& worker,
                    const Group& group, const Done& done) const {
        // None much smaller than the others.
        constexpr std::size_t kMost = Form::kTokenBlock, kTile = Form::kTile;
        const std::size_t parts = (tokens + kMost - 1) / kMost;
        const std::size_t block = ((tokens + parts - 1) / parts + kTile - 1) / kTile * kTile;
        const std::size_t blocks = (tokens + block - 1) / block;
        // Tokens are copied once for all strips that are run at once: as many as leave each worker some pieces.
        constexpr std::size_t kPiecesPerWorker = 4;
        std::size_t at_once = kStrips;
        while (at_once > together &&
               (strips + at_once - 1) / at_once * blocks < kPiecesPerWorker * static_cast<std::size_t>(worker.count)) {
            at_once /= 2;
        }
        constexpr std::size_t kProductsPerByte = 10;
        auto pieces = worker.claim((strips + at_once - 1) / at_once * blocks,
                                   at_once * kPanel * std::min(block, tokens) * k_ / kProductsPerByte);
        while (pieces.next()) {
            for (std::uint64_t i = pieces.begin; i < pieces.end; ++i) {
                const std::size_t t0 = i % blocks * block, s0 = i / blocks * at_once;
                run(t0, std::min(tokens, t0 + block), s0, std::min(strips, s0 + at_once), together, group, done);
            }
        }
    }

    // Runs the tokens [t0, t1), at most kTokenBlock, and the strips [s0, s1), at most kStrips.
    template <typename Group, typename Done>
    void run(std::size_t t0, std::size_t t1, std::size_t s0, std::size_t s1, std::size_t together, const Group& group,
             const Done& done) const {
        const std::size_t tiled = (t1 - t0 + Form::kTile - 1) / Form::kTile * Form::kTile;
        for (std::size_t s = s0; s < s1; ++s) std::memset(sums(s - s0), 0, tiled * kPanel * sizeof(float));
        for (std::size_t k0 = 0; k0 < k_; k0 += Form::kElems) {
            const std::size_t n = std::min(Form::kElems, k_ - k0);
            for (std::size_t t = t0; t < t1; ++t) form_.copy_row(t, k0, n, rows_ + (t - t0) * form_.row_bytes);
            for (std::size_t s = s0; s < s1; ++s) {
                for (int v = 0; v < kPanelVectors; ++v) form_.fill(group(s, v), k0, n, v, panel_);
                // Next come the same elements of the next strip, others of the first one, or the next piece.
                const bool around = s + 1 == s1 && k0 + n < k_;
                const std::size_t strip = around ? s0 : s + 1, first = around ? k0 + n : s + 1 < s1 ? k0 : 0;
                auto ahead = form_.ahead([&](int v) { return group(strip, v); }, first, n, t1 - t0);
                form_.add_products(rows_, t1 - t0, n, panel_, sums(s - s0), ahead);
            }
        }
        for (std::size_t s = s0; s < s1; s += together) done(t0, t1 - t0, s, sums(s - s0));
    }

    static constexpr std::size_t kStrips = 8, kStripSums = Form::kTokenBlock * kPanel;
    static constexpr std::size_t kScratch =
        Form::kMostPanelBytes + Form::kTokenBlock * Form::kMostRowBytes + kStrips * kStripSums * sizeof(float);
    static_assert(kScratch <= kWorkerScratch);

  private:
    float* sums(std::size_t strip) const { return sums_ + strip * kStripSums; }

    const Form& form_;
    std::size_t k_;
    std::byte *panel_, *rows_;
    float* sums_;
};

// Widens n rows of k of a group: [k][L].
using FillFloats = void (*)(const std::byte* group, const GroupLayout& layout, std::size_t k0, std::size_t n,
                            float* to);
template <typename F>
static void fill_floats(const std::byte* group, const GroupLayout&, std::size_t k0, std::size_t n, float* to) {
    constexpr std::size_t kBytes = F::kBytes * L;
    for (std::size_t k = 0; k < n; ++k) store(to + k * L, F::load_lanes(group + (k0 + k) * kBytes));
}

// Vectors of a strip, each [k][L].
template <int W>
struct VectorPanel {
    const float* vectors[W];
    explicit VectorPanel(const float* const* first) { std::copy_n(first, W, vectors); }
    vf row(std::size_t k, std::size_t column) const { return load(vectors[column / L] + k * L); }
};

// Float weights: F32 where it is packed, others widened. A panel says where its vectors are.
class FloatForm {
  public:
    static constexpr int kTile = kFloatTile;
    static constexpr std::size_t kTokenBlock = (128 + kTile - 1) / kTile * kTile;
    static constexpr std::size_t kElems = 128, kRow = kElems + 16;
    static constexpr std::size_t kMostPanelBytes = 64 + kElems * kPanel * sizeof(float),
                                 kMostRowBytes = kRow * sizeof(float);
    static constexpr std::size_t panel_bytes = kMostPanelBytes, row_bytes = kMostRowBytes;
    static_assert(kPanelVectors * sizeof(float*) <= 64);

    // Without `fill` the weights are F32. `rows`, where it is not null, says which row of x each token is.
    FloatForm(FillFloats fill, const GroupLayout& layout, const float* x, std::size_t k, const u32* rows = nullptr)
        : fill_(fill), layout_(layout), x_(x), k_(k), rows_(rows) {}

    void copy_row(std::size_t t, std::size_t k0, std::size_t n, std::byte* row) const {
        // By vectors: for so few bytes of unknown number memcpy takes longer than they do.
        const float* x = x_ + (rows_ ? rows_[t] : t) * k_ + k0;
        auto* to = reinterpret_cast<float*>(row);
        std::size_t k = 0;
        for (; k + L <= n; k += L) store(to + k, load(x + k));
        for (; k < n; ++k) to[k] = x[k];
    }
    void fill(const std::byte* group, std::size_t k0, std::size_t n, int v, std::byte* panel) const {
        const float*& vector = reinterpret_cast<const float**>(panel)[v];
        if (!fill_) {
            vector = reinterpret_cast<const float*>(group) + k0 * L;
            return;
        }
        auto* to = reinterpret_cast<float*>(panel + 64) + static_cast<std::size_t>(v) * kElems * L;
        fill_(group, layout_, k0, n, to);
        vector = to;
    }
    struct Nothing {};  // is fetched ahead: floats are worth panels where products take much longer than bytes
    template <typename Group>
    Nothing ahead(const Group&, std::size_t, std::size_t, std::size_t) const {
        return {};
    }
    void add_products(const std::byte* rows, std::size_t tokens, std::size_t n, const std::byte* panel, float* sums,
                      Nothing) const {
        const auto* x = reinterpret_cast<const float*>(rows);
        const auto* vectors = reinterpret_cast<const float* const*>(panel);
        for_token_tiles<kTile>(0, tokens, [&]<int M>(std::size_t t) {
            constexpr int W = wide<M, kPanelVectors>();
            for (int v = 0; v < kPanelVectors; v += W) {
                AKUNU_ISA::add_products<M, W>(RowsApart<kRow>{x + t * kRow}, n, VectorPanel<W>(vectors + v), W * L,
                                              sums + t * kPanel + static_cast<std::size_t>(v) * L, kPanel);
            }
        });
    }

  private:
    FillFloats fill_;
    const GroupLayout& layout_;
    const float* x_;
    std::size_t k_;
    const u32* rows_;
};

// Dot products of M tokens with the rows of W groups over a sub-block, each token for itself.
template <typename Dot, int M, int W>
struct DotEach {
    Dot dots[M][W];
    void start(int w, vi sum) {
        for (int m = 0; m < M; ++m) dots[m][w].start(sum);
    }
    // Four elements: w of the rows, x[m][at..] of the tokens.
    template <int kStep>
    void step(const vb (&w)[W], const std::int8_t* const* x, std::size_t at) {
        typename Dot::Weights weights[W];
        for (int i = 0; i < W; ++i) weights[i] = w[i];
        for (int m = 0; m < M; ++m) {
            for (int i = 0; i < W; ++i) dots[m][i].template step<kStep>(weights[i], x[m] + at);
        }
    }
    vi sum(int m, int w) const { return dots[m][w].sum(); }
};

// These dot products by instructions that multiply matrices, where the processor has them.
template <int M>
struct DotMatrix {
    DotPairs<M> pairs;
    template <int kStep>
    void step(const vb (&w)[1], const std::int8_t* const* x, std::size_t at) {
        pairs.template step<kStep>(w[0], x, at);
    }
    vi sum(int m, int) const { return pairs.sum(m); }
};

template <typename Dot, int M, int W>
using Dots = std::conditional_t<DotPairs<M>::kAvailable, DotMatrix<M>, DotEach<Dot, M, W>>;

// What sums a format's products, and what its bytes are then too much by.
template <typename F>
using DotOf = std::conditional_t<F::kSigned, DotS<F::kSub / 4>, DotU<F::kMax, F::kSub / 4>>;
template <typename F>
constexpr int kOffsetOf = F::kSigned ? kSignedOffset : F::kOffset;

// Adds a sub-block to `u`, the result of 32 elements but for the activation's scale. `dot` is an integer.
template <bool kFirst, bool kHasMin>
static inline vf add_sub_block(vf u, vf dot, vf d, [[maybe_unused]] vf sum, [[maybe_unused]] vf minus_min) {
    u = kFirst ? dot * d : fma(dot, d, u);
    if constexpr (kHasMin) u = fma(sum, minus_min, u);
    return u;
}

// The packed bytes that the next panel comes from. They are fetched into the second-level cache while one is
// multiplied, so that few tokens do not leave memory idle meanwhile.
struct PanelAhead {
    const std::byte* next[kPanelVectors];
    std::size_t lines, at_once;  // of each group
    void fetch() {
        for (std::size_t i = std::min(lines, at_once); i > 0; --i, --lines) {
            for (auto& line : next) {
                __builtin_prefetch(line, 0, 2);
                line += 64;
            }
        }
    }
};

// Quantised weights as one byte an element, without their offset, and scales as floats; what multiplies them. The same
// for all formats whose products are summed alike.
//
// Products of signed weights can need activations without a sign (kBiased): 128 is added to them, and each row's sums
// start at -128 times the sum of its weights.
template <typename DotType, int kSubElems, bool kWithMin, bool kWithBias, bool kWithCommon>
struct BytePanel {
    using Dot = DotType;
    static constexpr int kSub = kSubElems, kSteps = kSub / 4;
    static constexpr bool kHasMin = kWithMin, kBiased = kWithBias, kHasCommon = kWithCommon;
    static_assert(!(kBiased && DotPairs<kTokenTile>::kAvailable));

    static constexpr std::size_t kElems = 512;
    // A sub-block of a vector of rows: quants, starts, scales, minimums.
    static constexpr std::size_t kVector = L * sizeof(float), kStart = std::size_t{kSub} * L;
    static constexpr std::size_t kScale = kStart + (kBiased ? kVector : 0), kMinimum = kScale + kVector;
    static constexpr std::size_t kSubBytes = kMinimum + (kHasMin ? kVector : 0);
    // What the scales of 256 elements have in common lies behind all sub-blocks.
    static constexpr std::size_t kCommonElems = 256, kCommon = kElems / kSub * kSubBytes;
    static constexpr std::size_t kVectorBytes = kCommon + (kHasCommon ? kElems / kCommonElems * kVector : 0);
    // A token: q, scales, sums.
    static constexpr std::size_t kScales = kElems, kSums = kScales + kElems / 32 * sizeof(float);
    static constexpr std::size_t kRowBytes = kSums + kElems / kSub * sizeof(float) + 64;

    static void copy_row(const std::byte* from, const Q8Layout& at, std::size_t k0, std::size_t n, std::byte* row) {
        const auto* q = reinterpret_cast<const std::uint8_t*>(from + k0);
        for (std::size_t i = 0; i < n; i += 4 * L) {
            store_bytes(row + i, add_bytes(load_bytes(q + i), kBiased ? 128 : 0));
        }
        std::memcpy(row + kScales, from + at.d + k0 / 32 * sizeof(float), n / 32 * sizeof(float));
        if constexpr (kHasMin) {
            const std::size_t sums = kSub == 32 ? at.s : at.s16;
            std::memcpy(row + kSums, from + sums + k0 / kSub * sizeof(float), n / kSub * sizeof(float));
        }
    }

    [[gnu::flatten]] static void add_tile(const std::byte* rows, std::size_t n, const std::byte* panel, float* sums,
                                          PanelAhead& ahead) {
        constexpr int M = kTokenTile, W = kByteColumns, kParts = 32 / kSub;
        const bool fetches = ahead.lines > 0;
        vf acc[M][W];
        for (int m = 0; m < M; ++m) {
            for (int w = 0; w < W; ++w) acc[m][w] = kHasCommon ? zero() : load(sums + m * kPanel + w * L);
        }
        [[maybe_unused]] const std::byte* common = panel + kCommon;
        for (std::size_t k = 0; k < n; k += 32) {
            if (fetches) ahead.fetch();
            const std::byte* x = opaque(rows + k);
            const std::byte* scale = opaque(rows + kScales + k / 32 * sizeof(float));
            [[maybe_unused]] const std::byte* sum = opaque(rows + kSums + k / kSub * sizeof(float));
            const std::int8_t* q[M];
            for (int m = 0; m < M; ++m) q[m] = reinterpret_cast<const std::int8_t*>(x + m * kRowBytes);
            vf u[M][W];
            unroll<kParts>([&]<int part>() {
                const std::byte* sub[W];
                for (int w = 0; w < W; ++w) sub[w] = panel + static_cast<std::size_t>(w) * kVectorBytes;
                Dots<Dot, M, W> dots;
                if constexpr (kBiased) {
                    for (int w = 0; w < W; ++w) {
                        vi start;
                        std::memcpy(&start, sub[w] + kStart, sizeof start);
                        dots.start(w, start);
                    }
                }
                unroll<kSteps>([&]<int j>() {
                    vb quants[W];
                    for (int w = 0; w < W; ++w) {
                        quants[w] = load_bytes(reinterpret_cast<const std::uint8_t*>(sub[w]) + j * 4 * L);
                    }
                    dots.template step<j>(quants, q, part * kSub + 4 * j);
                });
                for (int w = 0; w < W; ++w) {
                    const vf d = load(reinterpret_cast<const float*>(sub[w] + kScale));
                    vf minus_min = zero();
                    if constexpr (kHasMin) minus_min = load(reinterpret_cast<const float*>(sub[w] + kMinimum));
                    for (int m = 0; m < M; ++m) {
                        vf n = zero();
                        if constexpr (kHasMin) n = set1(of_row(sum + part * sizeof(float), m));
                        u[m][w] = add_sub_block<part == 0, kHasMin>(u[m][w], to_float(dots.sum(m, w)), d, n, minus_min);
                    }
                }
                panel += kSubBytes;
            });
            for (int m = 0; m < M; ++m) {
                for (int w = 0; w < W; ++w) acc[m][w] = fma(u[m][w], set1(of_row(scale, m)), acc[m][w]);
            }
            if (kHasCommon && (k + 32) % kCommonElems == 0) {
                for (int w = 0; w < W; ++w) {
                    const vf d =
                        load(reinterpret_cast<const float*>(common + static_cast<std::size_t>(w) * kVectorBytes));
                    for (int m = 0; m < M; ++m) {
                        float* sum = sums + m * kPanel + w * L;
                        store(sum, fma(acc[m][w], d, load(sum)));
                        acc[m][w] = zero();
                    }
                }
                common += kVector;
            }
        }
        if constexpr (kHasCommon) return;
        for (int m = 0; m < M; ++m) {
            for (int w = 0; w < W; ++w) store(sums + m * kPanel + w * L, acc[m][w]);
        }
    }

    static const float& of_row(const std::byte* first, int m) {
        return *reinterpret_cast<const float*>(first + static_cast<std::size_t>(m) * kRowBytes);
    }
};

template <typename F>
struct BytePanelOf {
    static constexpr int kMin = F::kSigned ? -128 : -F::kOffset, kMax = F::kSigned ? 127 : F::kMax - F::kOffset;
    static constexpr int kMost = std::max(-kMin, kMax), kSteps = F::kSub / 4;
    static constexpr bool kBiased = kMin < 0 && kMost <= kBiasedMax;
    using Dot = std::conditional_t<kMin >= 0, DotU<kMax, kSteps>,
                                   std::conditional_t<kBiased, DotBiased<kMost, kSteps>, DotS<kSteps>>>;
    using Panel = BytePanel<Dot, F::kSub, F::kHasMin, kBiased, kHasCommon<F>>;

    // Where the sums of each row start.
    static vi start(const vb (&q)[kSteps]) {
        constexpr std::int8_t kOnes[4] = {1, 1, 1, 1};
        constexpr bool kInBytes = -kMin * kSteps <= 128 && kMax * kSteps <= 127;  // four sums are
        DotBiased<kMost, kInBytes ? 1 : kSteps> dot;
        dot.start(vi{});
        if constexpr (kInBytes) {
            vb sum = q[0];
            for (int j = 1; j < kSteps; ++j) sum = add_bytes(sum, q[j]);
            dot.template step<0>(sum, kOnes);
        } else {
            unroll<kSteps>([&]<int j>() { dot.template step<j>(q[j], kOnes); });
        }
        return dot.sum() * -128;
    }
};

// Takes [k0, k0 + n) of a group of `blocks` blocks a row apart.
template <typename F>
[[gnu::flatten]] static void fill_bytes(const std::byte* group, const GroupLayout& layout, std::size_t blocks,
                                        std::size_t k0, std::size_t n, std::byte* to) {
    using Panel = typename BytePanelOf<F>::Panel;
    const Fields fields(group, layout);
    FarLines far = BlockAhead<F>::far_lines(fields, layout.bytes, k0 / F::kBlock, blocks, 0, 1, 1);
    [[maybe_unused]] auto* common = reinterpret_cast<float*>(to + Panel::kCommon);
    for (std::size_t b = k0 / F::kBlock; b < (k0 + n) / F::kBlock; ++b) {
        const BlockAhead<F> ahead(fields, layout.bytes, b, blocks);
        const Fields block = Packing<F>::from_block(fields, b);
        vf d[F::kSubs], mins[F::kSubs];
        F::scales(block, d, mins);
        if constexpr (Panel::kHasCommon) {
            static_assert(F::kBlock == Panel::kCommonElems);
            store(common, F::common(block));
            common += L;
        }
        unroll<F::kSubs>([&]<int s>() {
            vb q[Panel::kSteps];
            unroll<Panel::kSteps>([&]<int j>() {
                ahead.template fetch<s * Panel::kSteps + j, F::kSubs * Panel::kSteps>(far);
                q[j] = sub_bytes(F::template quants<s, j>(block), F::kOffset);
                store_bytes(to + j * 4 * L, q[j]);
            });
            if constexpr (Panel::kBiased) {
                const vi start = BytePanelOf<F>::start(q);
                std::memcpy(to + Panel::kStart, &start, sizeof start);
            }
            store(reinterpret_cast<float*>(to + Panel::kScale), d[s]);
            if constexpr (F::kHasMin) store(reinterpret_cast<float*>(to + Panel::kMinimum), -mins[s]);
            to += Panel::kSubBytes;
        });
    }
}

// A format's functions, as data.
struct ByteFunctions {
    std::size_t row_bytes, vector_bytes, block;
    void (*copy_row)(const std::byte* from, const Q8Layout& at, std::size_t k0, std::size_t n, std::byte* row);
    void (*fill)(const std::byte* group, const GroupLayout& layout, std::size_t blocks, std::size_t k0, std::size_t n,
                 std::byte* to);
    void (*add_tile)(const std::byte* rows, std::size_t n, const std::byte* panel, float* sums, PanelAhead& ahead);

    template <typename F>
    static constexpr ByteFunctions of() {
        using Panel = typename BytePanelOf<F>::Panel;
        return {Panel::kRowBytes, Panel::kVectorBytes, F::kBlock, Panel::copy_row, fill_bytes<F>, Panel::add_tile};
    }
};

class ByteForm {
  public:
    using Largest = BytePanel<DotS<4>, 16, true, false, false>;
    static constexpr int kTile = kTokenTile;
    static constexpr std::size_t kTokenBlock = 128;
    static constexpr std::size_t kElems = Largest::kElems;
    static constexpr std::size_t kMostRowBytes = Largest::kRowBytes;
    static constexpr std::size_t kMostPanelBytes =
        kPanelVectors * (Largest::kVectorBytes + kElems / 16 * Largest::kVector);
    const std::size_t panel_bytes, row_bytes;

    // `rows`, where it is not null, says which row of x each token is.
    ByteForm(const ByteFunctions& functions, const GroupLayout& layout, const std::byte* x, std::size_t k,
             const u32* rows = nullptr)
        : panel_bytes(functions.vector_bytes * kPanelVectors),
          row_bytes(functions.row_bytes),
          f_(functions),
          layout_(layout),
          x_(x),
          k_(k),
          rows_(rows),
          at_(k),
          blocks_(k / functions.block) {}

    void copy_row(std::size_t t, std::size_t k0, std::size_t n, std::byte* row) const {
        f_.copy_row(x_ + (rows_ ? rows_[t] : t) * at_.stride, at_, k0, n, row);
    }
    void fill(const std::byte* group, std::size_t k0, std::size_t n, int v, std::byte* panel) const {
        std::byte* to = panel + static_cast<std::size_t>(v) * f_.vector_bytes;
        f_.fill(group, layout_, blocks_, k0, n, to);
    }
    // Nothing for many tokens, whose products take much longer than the bytes. Planes behind the records come with the
    // last elements.
    template <typename Group>
    PanelAhead ahead(const Group& group, std::size_t k0, std::size_t n, std::size_t tokens) const {
        PanelAhead next{};
        if (tokens > kTokenBlock / 2) return next;
        const std::size_t begin = layout_.bytes * k0 / k_, end = layout_.bytes * std::min(k0 + n, k_) / k_;
        const std::size_t tiles = (tokens + kTokenTile - 1) / kTokenTile * (kPanelVectors / kByteColumns);
        for (int v = 0; v < kPanelVectors; ++v) next.next[v] = group(v) + begin;
        next.lines = (end - begin + 63) / 64;
        next.at_once = next.lines / (tiles * (n / 32)) + 1;
        return next;
    }
    void add_products(const std::byte* rows, std::size_t tokens, std::size_t n, const std::byte* panel, float* sums,
                      PanelAhead& ahead) const {
        for (std::size_t t = 0; t < tokens; t += kTokenTile) {  // a last tile's other rows are there, and not used
            for (int v = 0; v < kPanelVectors; v += kByteColumns) {
                f_.add_tile(rows + t * row_bytes, n, panel + static_cast<std::size_t>(v) * f_.vector_bytes,
                            sums + t * kPanel + static_cast<std::size_t>(v) * L, ahead);
            }
        }
    }

  private:
    const ByteFunctions& f_;
    const GroupLayout& layout_;
    const std::byte* x_;
    std::size_t k_;
    const u32* rows_;
    Q8Layout at_;
    std::size_t blocks_;
};

}  // namespace akunu::cpu::AKUNU_ISA
