// Tiles that share what they multiply with: a run of 32 elements of neighbouring groups is taken apart once for all
// tokens of a batch, and each tile of tokens reads it from the first-level cache. Tokens are copied once for all runs
// of a command, to records that lie in the order in which tiles read them.

namespace akunu::cpu::AKUNU_ISA {

constexpr int kRunGroups = 2;

// Tokens from which on runs are worth it.
template <typename F>
constexpr std::size_t kRunTokens = (kHasPairTile<F> ? 2 : 1) * std::size_t{kTokenTile};

// The sums of unsigned weights without an offset.
template <typename Dot, int kSteps>
struct RunUnsigned {
    static constexpr int kVectors = 1, kBytes = 32;
    Dot dot;
    template <int kStep>
    void step(const vb* w, const std::int8_t* a) {
        dot.template step<kStep>(w[0], a + 4 * kStep);
    }
    vi sum() const { return dot.sum(); }
    static void split(vb w, vb* to) { to[0] = w; }
    static void split_token(const std::int8_t* a, std::byte* to) { std::memcpy(to, a, kBytes); }
};

// Formats whose products are summed alike share tiles.
template <typename F>
struct RunDotOf {
    static constexpr int kSteps = F::kSub / 4;
    static constexpr auto kind() {
        if constexpr (F::kSigned)
            return std::type_identity<RunSigned<kSteps>>{};
        else if constexpr (F::kOffset != 0)
            return std::type_identity<RunCentred<F::kOffset, std::max(F::kOffset, F::kMax - F::kOffset), kSteps>>{};
        else
            return std::type_identity<RunUnsigned<DotOf<F>, kSteps>>{};
    }
    using type = typename decltype(kind())::type;
};

// A token's record: 32 elements, their scale, and for each sub-block where its sum starts, and what a minimum
// multiplies.
template <typename Dot, int kParts, bool kHasMin>
struct RunRecord {
    static constexpr bool kStarts = requires(Dot dot, const std::byte* sums) { dot.start(sums); };
    static constexpr std::size_t kScale = Dot::kBytes, kStart = kScale + sizeof(float),
                                 kSums = kStart + (kStarts ? kParts * sizeof(float) : 0),
                                 kSize = kSums + (kHasMin ? kParts * sizeof(float) : 0);

    static void copy(const std::byte* row, const Q8Layout& at, std::size_t run, std::byte* to) {
        const auto* q = reinterpret_cast<const std::int8_t*>(row) + run * 32;
        if constexpr (kStarts) {
            Dot::split_token(q, to, to + kStart);
        } else {
            Dot::split_token(q, to);
        }
        std::memcpy(to + kScale, row + at.d + run * sizeof(float), sizeof(float));
        const std::size_t sums = kParts == 1 ? at.s : at.s16;
        if constexpr (kHasMin) std::memcpy(to + kSums, row + sums + run * kParts * sizeof(float), kSize - kSums);
    }
};

// A run of kRunGroups groups, and what multiplies it. Scales that have something in common are 16-bit integers, which
// multiply sums where these are widened.
template <typename Dot, int kParts, bool kHasMin, bool kIntegerScales>
struct OpenRun {
    using Record = RunRecord<Dot, kParts, kHasMin>;
    static constexpr int M = kTokenTile, W = kRunGroups, kSteps = 8 / kParts;
    vb quants[kParts][kSteps][W][Dot::kVectors];
    vf d[kParts][W], minus_min[kParts][W];
    vi scale[kParts][W];  // where they are integers

    // acc[kTokens][W] += the products of a tile of tokens, whose records these are, with four elements after the other:
    // weights<part, j>().
    template <int kTokens, typename Weights>
    void add_tile(const std::byte* records, const Weights& weights, vf* acc) const {
        const auto of_record = [&](int m, std::size_t i) {
            return set1(*reinterpret_cast<const float*>(records + m * Record::kSize + i));
        };
        vf u[kTokens][W];
        [[maybe_unused]] vi scaled[kTokens][W];
        unroll<kParts>([&]<int part>() {
            constexpr std::size_t kStart = Record::kStart + part * sizeof(float),
                                  kSum = Record::kSums + part * sizeof(float);
            Dot dots[kTokens][W];
            if constexpr (Record::kStarts) {
                for (int m = 0; m < kTokens; ++m) {
                    for (int w = 0; w < W; ++w) dots[m][w].start(records + m * Record::kSize + kStart);
                }
            }
            unroll<kSteps>([&]<int j>() {
                const auto* four = weights.template operator()<part, j>();
                for (int m = 0; m < kTokens; ++m) {
                    const auto* x = reinterpret_cast<const std::int8_t*>(records + m * Record::kSize);
                    for (int w = 0; w < W; ++w) dots[m][w].template step<j>(four[w], x + part * kSteps * 4);
                }
            });
            for (int m = 0; m < kTokens; ++m) {
                [[maybe_unused]] vf sum = zero();
                if constexpr (kHasMin) sum = of_record(m, kSum);
                for (int w = 0; w < W; ++w) {
                    if constexpr (kIntegerScales) {
                        const vi dot = dots[m][w].sum(scale[part][w]);
                        scaled[m][w] = part == 0 ? dot : scaled[m][w] + dot;
                        if constexpr (part == kParts - 1) u[m][w] = to_float(scaled[m][w]);
                    } else {
                        const vf dot = to_float(dots[m][w].sum());
                        u[m][w] = add_sub_block<part == 0, kHasMin>(u[m][w], dot, d[part][w], sum, minus_min[part][w]);
                    }
                }
            }
        });
        for (int m = 0; m < kTokens; ++m) {
            const vf scale = of_record(m, Record::kScale);
            for (int w = 0; w < W; ++w) acc[m * W + w] = fma(u[m][w], scale, acc[m * W + w]);
        }
    }

    // acc[token][W] += the products with the tokens of whole tiles, whose records these are.
    [[gnu::noinline, gnu::flatten]] void add_products(const std::byte* records, std::size_t tokens, vf* acc) const {
        const auto taken_apart = [&]<int part, int j>() { return quants[part][j]; };
        for (std::size_t t = 0; t < tokens; t += M, records += M * Record::kSize, acc += M * W) {
            add_tile<M>(records, taken_apart, acc);
        }
    }
    // This adds those of the tokens that are left, fewer than a tile's; whole tiles do not pay for it.
    [[gnu::noinline, gnu::flatten]] void add_rest(const std::byte* records, std::size_t tokens, vf* acc) const {
        const auto taken_apart = [&]<int part, int j>() { return quants[part][j]; };
        unroll<M - 1>([&]<int i>() {
            if (tokens == i + 1) add_tile<i + 1>(records, taken_apart, acc);
        });
    }
};

template <typename F>
using OpenRunOf = OpenRun<typename RunDotOf<F>::type, 32 / F::kSub, F::kHasMin, kHasCommon<F>>;

// Records of `tokens` tokens of k elements: [run][token].
template <typename Record>
[[gnu::flatten]] static void copy_records(const std::byte* x, const Q8Layout& at, std::size_t k, std::size_t tokens,
                                          std::byte* to) {
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t run = 0; run < k / 32; ++run) {
            Record::copy(x + t * at.stride, at, run, to + (run * tokens + t) * Record::kSize);
        }
    }
}

// out[m][w] = dot products of the tokens of such records, of a tile at least, with the rows of the w-th of kRunGroups
// groups.
template <typename F>
[[gnu::noinline, gnu::flatten]] static void dot_runs_q8(const std::byte* group, const GroupLayout& layout,
                                                        std::size_t k, const std::byte* records, std::size_t tokens,
                                                        vf* out) {
    constexpr int M = kTokenTile, W = kRunGroups, kSteps = F::kSub / 4, kParts = 32 / F::kSub;
    constexpr std::size_t kRecord = OpenRunOf<F>::Record::kSize;
    // The first tile multiplies with a run while it is taken apart. Of a block with several runs that would be more
    // code than the processor keeps decoded.
    constexpr bool kTogether = F::kBlock == 32;
    constexpr std::size_t kFirst = kTogether ? M : 0;  // tokens of that tile
    const std::size_t blocks = k / F::kBlock, next = W * layout.bytes, rest = tokens % M, whole = tokens - rest;
    std::fill_n(out, tokens * W, zero());
    static_assert(W == 2);
    const Fields fields[W] = {{group, layout}, {group + layout.bytes, layout}};
    FarLines far[W];
    for (int w = 0; w < W; ++w) far[w] = BlockAhead<F>::far_lines(fields[w], next, 0, blocks, 0, 1, 1);
    OpenRunOf<F> run;
    [[maybe_unused]] vf sums[kHasCommon<F> ? W * kMostTokens : 1]{};  // of a block
    for (std::size_t b = 0; b < blocks; ++b) {
        const BlockAhead<F> ahead[W] = {{fields[0], next, b, blocks}, {fields[1], next, b, blocks}};
        const Fields block[W] = {Packing<F>::from_block(fields[0], b), Packing<F>::from_block(fields[1], b)};
        [[maybe_unused]] vf d[W][F::kSubs], mins[W][F::kSubs];
        if constexpr (!kHasCommon<F>) {
            for (int w = 0; w < W; ++w) F::scales(block[w], d[w], mins[w]);
        }
        unroll<F::kBlock / 32>([&]<int r>() {
            const auto take_scales = [&]<int part>() {
                constexpr int s = r * kParts + part;
                for (int w = 0; w < W; ++w) {
                    if constexpr (kHasCommon<F>)
                        run.scale[part][w] = twice_16(F::template scale<s>(block[w]));
                    else
                        run.d[part][w] = d[w][s];
                    if constexpr (F::kHasMin) run.minus_min[part][w] = -mins[w][s];
                }
            };
            const auto take_four = [&]<int part, int j>() {
                constexpr int s = r * kParts + part;
                for (int w = 0; w < W; ++w) {
                    ahead[w].template fetch<s * kSteps + j, F::kSubs * kSteps>(far[w]);
                    RunDotOf<F>::type::split(F::template quants<s, j>(block[w]), run.quants[part][j][w]);
                }
                return run.quants[part][j];
            };
            vf* acc = kHasCommon<F> ? sums : out;
            if constexpr (kTogether) {
                unroll<kParts>(take_scales);
                run.template add_tile<M>(records, take_four, acc);
            } else {
                unroll<kParts>([&]<int part>() {
                    take_scales.template operator()<part>();
                    unroll<kSteps>([&]<int j>() { take_four.template operator()<part, j>(); });
                });
            }
            run.add_products(records + kFirst * kRecord, whole - kFirst, acc + kFirst * W);
            if (rest != 0) run.add_rest(records + whole * kRecord, rest, acc + whole * W);
            records += tokens * kRecord;
        });
        if constexpr (kHasCommon<F>) {
            const vf common[W] = {F::common(block[0]), F::common(block[1])};
            for (std::size_t i = 0; i < tokens * W; ++i) {
                out[i] = fma(sums[i], common[i % W], out[i]);
                sums[i] = zero();
            }
        }
    }
}

// A format's functions, as data; none where it has no runs.
struct RunFunctions {
    std::size_t tokens = 0;  // from which on they are worth it
    std::size_t record_bytes = 0;
    void (*copy)(const std::byte* x, const Q8Layout& at, std::size_t k, std::size_t tokens, std::byte* to) = nullptr;
    void (*dot)(const std::byte* group, const GroupLayout& layout, std::size_t k, const std::byte* records,
                std::size_t tokens, vf* out) = nullptr;

    template <typename F>
    static constexpr RunFunctions of() {
        if constexpr (kSharedRuns) {
            using Record = typename OpenRunOf<F>::Record;
            return {kRunTokens<F>, Record::kSize, copy_records<Record>, dot_runs_q8<F>};
        }
        return {};
    }
    // Whether n tokens of k elements are run so, with records in so much of a worker's scratch.
    bool share(std::size_t k, std::size_t n, std::size_t room = kWorkerScratch) const {
        return dot && n >= tokens && n * (k / 32) * record_bytes <= room;
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
