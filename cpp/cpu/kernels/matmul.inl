// y = x·Wᵀ for packed weights. Few tokens read them as they are, in tiles of a group of L rows times M tokens; many
// share panels (matmul_panels.inl). Either way every output element is summed in the same order, so that a token's
// result does not depend on the batch that it is in.

namespace akunu::cpu::AKUNU_ISA {

// Integer formats: x is q8. out[m][w] = dot products of the m-th token from `token` on, of `tokens`, with the rows of
// the w-th group from `group` on.
template <typename F, int M, int... kGroups>
[[gnu::noinline, gnu::flatten]] static void dot_tile_q8(const std::byte* group, const GroupLayout& layout,
                                                        std::size_t k, const std::byte* x, const Q8Layout& at,
                                                        std::size_t token, std::size_t tokens, vf* out) {
    constexpr int W = sizeof...(kGroups), kSteps = F::kSub / 4, kParts = 32 / F::kSub;
    using Dot = DotOf<F>;
    constexpr int kOffset = kOffsetOf<F>;
    const std::int8_t* row[M];
    vf acc[M][W];  // local, as the offsets: the compiler must assume that a store to `out` changes what it points to
    for (int m = 0; m < M; ++m) {
        row[m] = reinterpret_cast<const std::int8_t*>(x) + (token + static_cast<std::size_t>(m)) * at.stride;
        for (int w = 0; w < W; ++w) acc[m][w] = zero();
    }
    const std::size_t d_at = at.d, s_at = F::kSub == 32 ? at.s : at.s16, blocks = k / F::kBlock;
    const std::size_t bytes = layout.bytes, next = W * bytes;
    const vf offset = set1(static_cast<float>(-kOffset));
    const Fields fields[W] = {{group + kGroups * bytes, layout}...};
    FarLines far[W] = {BlockAhead<F>::far_lines(fields[kGroups], next, 0, blocks, token, M, tokens)...};
    for (std::size_t b = 0; b < blocks; ++b) {
        const BlockAhead<F> ahead[W] = {{fields[kGroups], next, b, blocks}...};
        const Fields block[W] = {Packing<F>::from_block(fields[kGroups], b)...};
        vf d[W][F::kSubs], mins[W][F::kSubs], u[M][W];
        [[maybe_unused]] vf sums[M][W]{};  // of the block, where its scales have something in common
        for (int w = 0; w < W; ++w) F::scales(block[w], d[w], mins[w]);
        unroll<F::kSubs>([&]<int s>() {
            const std::size_t first = b * F::kBlock + s * F::kSub;
            Dots<Dot, M, W> dots;
            unroll<kSteps>([&]<int j>() {
                vb quants[W];
                for (int w = 0; w < W; ++w) {
                    ahead[w].template fetch<s * kSteps + j, F::kSubs * kSteps>(far[w]);
                    quants[w] = F::template quants<s, j>(block[w]);
                }
                dots.template step<j>(quants, row, first + 4 * j);
            });
            for (int m = 0; m < M; ++m) {
                const vf sum = set1(reinterpret_cast<const float*>(row[m] + s_at)[first / F::kSub]);
                for (int w = 0; w < W; ++w) {
                    vf dot = to_float(dots.sum(m, w)), minus_min = zero();
                    if constexpr (F::kHasMin) minus_min = -mins[w][s];
                    if constexpr (kOffset != 0) dot = fma(offset, sum, dot);  // exact: integers below 2^24
                    u[m][w] = add_sub_block<s % kParts == 0, F::kHasMin>(u[m][w], dot, d[w][s], sum, minus_min);
                    if constexpr (s % kParts == kParts - 1) {
                        const vf scale = set1(reinterpret_cast<const float*>(row[m] + d_at)[first / 32]);
                        vf& sum_of = kHasCommon<F> ? sums[m][w] : acc[m][w];
                        sum_of = fma(u[m][w], scale, sum_of);
                    }
                }
            }
        });
        if constexpr (kHasCommon<F>) {
            for (int w = 0; w < W; ++w) {
                const vf common = F::common(block[w]);
                for (int m = 0; m < M; ++m) acc[m][w] = fma(sums[m][w], common, acc[m][w]);
            }
        }
    }
    for (int m = 0; m < M; ++m) {
        for (int w = 0; w < W; ++w) out[m * W + w] = acc[m][w];
    }
}

// Float formats: x is f32. acc[m * G + g] for G neighbouring groups; accumulation runs straight along k.
struct FormatF32 {
    static constexpr DType kType = DType::F32;
    static constexpr int kBytes = 4;
    static vf load_lanes(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};
struct FormatF16 {
    static constexpr DType kType = DType::F16;
    static constexpr int kBytes = 2;
    static vf load_lanes(const std::byte* p) { return load_half(reinterpret_cast<const std::uint16_t*>(p)); }
};
struct FormatBF16 {
    static constexpr DType kType = DType::BF16;
    static constexpr int kBytes = 2;
    static vf load_lanes(const std::byte* p) { return load_bf16(reinterpret_cast<const std::uint16_t*>(p)); }
};

// Neighbouring groups that a float tile takes: for one token they are the independent accumulators.
constexpr int groups_per_tile(std::size_t tokens) { return tokens == 1 ? 8 : tokens <= 3 ? 4 : 2; }
constexpr int kMostSums = std::max(12, 2 * kTokenTile);  // of such a tile

template <typename F, int M, int G>
[[gnu::noinline]] static void dot_tile_f32(const std::byte* group, const GroupLayout& layout, std::size_t n,
                                           const float* x, vf* acc) {
    const std::size_t group_bytes = layout.bytes;
    vf sum[M * G];
    for (auto& v : sum) v = zero();
    constexpr std::size_t kStride = F::kBytes * L, kPerLine = kStride < 64 ? 64 / kStride : 1;
    constexpr std::size_t kNear = 2 * kFetchNear / G, kFar = 2 * kFetchFar / G;  // of each group
    const auto step = [&](std::size_t k) {
        vf w[G];
        for (int g = 0; g < G; ++g)
            w[g] = F::load_lanes(group + static_cast<std::size_t>(g) * group_bytes + k * kStride);
        for (int m = 0; m < M; ++m) {
            const vf xv = set1(x[static_cast<std::size_t>(m) * n + k]);
            for (int g = 0; g < G; ++g) sum[m * G + g] = fma(xv, w[g], sum[m * G + g]);
        }
    };
    std::size_t k = 0;
    for (; k + kPerLine <= n; k += kPerLine) {
        if constexpr (M == 1) {
            for (int g = 0; g < G; ++g) {
                const std::byte* ahead = group + static_cast<std::size_t>(g) * group_bytes + k * kStride + kNear;
                __builtin_prefetch(ahead);
                if constexpr (kFar != 0) __builtin_prefetch(ahead + kFar, 0, 2);
            }
        }
        unroll<static_cast<int>(kPerLine)>([&]<int i>() { step(k + i); });
    }
    for (; k < n; ++k) step(k);
    for (int i = 0; i < M * G; ++i) acc[i] = sum[i];
}

// E4M3 codes with a scale for each run of 32, or for several.
struct FormatF8 {
    static constexpr DType kType = DType::MlxMxfp8;  // stands for all

    class Rows {
      public:
        Rows(const std::byte* group, const GroupLayout& layout)
            : codes_(group + layout.field[0]), scales_(group + layout.field[1]), layout_(layout) {}
        const std::byte* codes(std::size_t run) const {
            return codes_ + (run >> layout_.runs) * layout_.stride[0] + run % (std::size_t{1} << layout_.runs) * 32 * L;
        }
        vf scale(std::size_t run) const {
            const std::byte* at = scales_ + (run >> layout_.runs) * layout_.stride[1];
            if (layout_.scale_type == DType::F32) return load(reinterpret_cast<const float*>(at));
            const vi e = load_u8(reinterpret_cast<const std::uint8_t*>(at));
            const vi bits = e < 1 ? set1i(0x00400000) : e << 23;
            vf scale;
            std::memcpy(&scale, &bits, sizeof scale);
            return scale;
        }
        static vf load_lanes(const std::byte* code) { return load_e4m3(reinterpret_cast<const std::int8_t*>(code)); }

      private:
        const std::byte *codes_, *scales_;
        const GroupLayout& layout_;
    };
};

template <int M, int G>
[[gnu::noinline]] static void dot_tile_f8(const std::byte* group, const GroupLayout& layout, std::size_t n,
                                          const float* x, vf* acc) {
    using Rows = FormatF8::Rows;
    constexpr std::size_t kPerLine = 64 / L;
    vf sum[M * G];
    for (auto& v : sum) v = zero();
    for (std::size_t run = 0; run < n / 32; ++run) {
        const std::byte* codes[G];
        vf scale[G];
        for (int g = 0; g < G; ++g) {
            const Rows rows(group + static_cast<std::size_t>(g) * layout.bytes, layout);
            codes[g] = rows.codes(run);
            scale[g] = rows.scale(run);
        }
        for (std::size_t j = 0; j < 32; ++j) {
            if (M == 1 && j % kPerLine == 0) {
                for (int g = 0; g < G; ++g) __builtin_prefetch(codes[g] + j * L + 2 * kFetchNear / G);
            }
            vf w[G];
            for (int g = 0; g < G; ++g) w[g] = Rows::load_lanes(codes[g] + j * L) * scale[g];
            for (int m = 0; m < M; ++m) {
                const vf xv = set1(x[static_cast<std::size_t>(m) * n + run * 32 + j]);
                for (int g = 0; g < G; ++g) sum[m * G + g] = fma(xv, w[g], sum[m * G + g]);
            }
        }
    }
    for (int i = 0; i < M * G; ++i) acc[i] = sum[i];
}

static void fill_f8(const std::byte* group, const GroupLayout& layout, std::size_t k0, std::size_t n, float* to) {
    const FormatF8::Rows rows(group, layout);
    for (std::size_t run = k0 / 32; run < (k0 + n) / 32; ++run) {
        const std::byte* codes = rows.codes(run);
        const vf scale = rows.scale(run);
        for (std::size_t j = 0; j < 32; ++j, to += L) {
            store(to, FormatF8::Rows::load_lanes(codes + j * L) * scale);
        }
    }
}

// What matmul and gate-up share of a format. Tiles of M tokens are at M - 1; null where this set has none.
using TileSizes = std::make_integer_sequence<int, kTokenTile>;

struct IntegerFormat {
    using Tile = void (*)(const std::byte* group, const GroupLayout& layout, std::size_t k, const std::byte* x,
                          const Q8Layout& at, std::size_t token, std::size_t tokens, vf* out);
    DType type;
    Tile tiles[kTokenTile];
    Tile pair;  // of kTokenTile tokens and two groups
    RunFunctions runs;
    ByteFunctions bytes;

    template <typename F, int M>
    static constexpr Tile tile() {
        if constexpr (M == kTokenTile && kHasPairTile<F>) return nullptr;
        if constexpr (kHasTokenTile<kTokenTile, M>) return dot_tile_q8<F, M, 0>;
        return nullptr;
    }
    template <typename F>
    static constexpr Tile pair_tile() {
        if constexpr (kHasStartedPair<F>)
            return dot_pair_q8<F>;
        else if constexpr (kHasPairTile<F>)
            return dot_tile_q8<F, kTokenTile, 0, 1>;
        return nullptr;
    }
    template <typename F, int... I>
    static constexpr IntegerFormat of(std::integer_sequence<int, I...>) {
        return {F::kType, {tile<F, I + 1>()...}, pair_tile<F>(), RunFunctions::of<F>(), ByteFunctions::of<F>()};
    }
    template <typename F>
    static constexpr IntegerFormat of() {
        return of<F>(TileSizes{});
    }
};
static constexpr IntegerFormat kIntegerFormats[] = {
    IntegerFormat::of<FormatQ4_0>(),          IntegerFormat::of<FormatQ4_1>(),
    IntegerFormat::of<FormatQ5_0>(),          IntegerFormat::of<FormatQ5_1>(),
    IntegerFormat::of<FormatQ8_0>(),          IntegerFormat::of<FormatQ2_K>(),
    IntegerFormat::of<FormatQ3_K>(),          IntegerFormat::of<FormatQ4_K>(),
    IntegerFormat::of<FormatQ5_K>(),          IntegerFormat::of<FormatQ6_K>(),
    IntegerFormat::of<FormatIQ4_NL>(),        IntegerFormat::of<FormatIQ4_XS>(),
    IntegerFormat::of<FormatMXFP4>(),         IntegerFormat::of<FormatNvfp4>(),
    IntegerFormat::of<FormatAffine<2>>(),     IntegerFormat::of<FormatAffine<3>>(),
    IntegerFormat::of<FormatAffine<4>>(),     IntegerFormat::of<FormatAffine<5>>(),
    IntegerFormat::of<FormatAffine<6>>(),     IntegerFormat::of<FormatAffine<8>>(),
    IntegerFormat::of<FormatQ1_0>(),          IntegerFormat::of<FormatThreeBitLevels>(),
    IntegerFormat::of<FormatFourBitLevels>(),
};

struct FloatFormat {
    using Tile = void (*)(const std::byte* group, const GroupLayout& layout, std::size_t k, const float* x, vf* out);
    DType type;
    Tile wide[kTokenTile], narrow[kTokenTile];  // of groups_per_tile groups, and of one
    FillFloats fill;                            // null: read where they are packed

    template <typename F, int M, int G>
    static constexpr Tile tile() {
        if constexpr (kHasTokenTile<kTokenTile, M>) {
            if constexpr (std::is_same_v<F, FormatF8>)
                return dot_tile_f8<M, G>;
            else
                return dot_tile_f32<F, M, G>;
        }
        return nullptr;
    }
    template <typename F>
    static constexpr FillFloats fill_of() {
        if constexpr (std::is_same_v<F, FormatF8>)
            return fill_f8;
        else if constexpr (std::is_same_v<F, FormatF32>)
            return nullptr;
        else
            return fill_floats<F>;
    }
    template <typename F, int... I>
    static constexpr FloatFormat of(std::integer_sequence<int, I...>) {
        return {F::kType, {tile<F, I + 1, groups_per_tile(I + 1)>()...}, {tile<F, I + 1, 1>()...}, fill_of<F>()};
    }
    template <typename F>
    static constexpr FloatFormat of() {
        return of<F>(TileSizes{});
    }
};
static constexpr FloatFormat kFloatFormats[] = {
    FloatFormat::of<FormatF32>(),
    FloatFormat::of<FormatF16>(),
    FloatFormat::of<FormatBF16>(),
    FloatFormat::of<FormatF8>(),
};

// The type that stands for all whose kernels are the same.
static inline DType kernel_type(DType weight) {
    if (const auto affine = affine_type(weight)) {
        return affine_dtype({affine->bits, kAffineGroups[0], kAffineScales[0]});
    }
    if (weight == DType::MlxMxfp4) return DType::MXFP4;
    if (levels_of(weight)) {
        return has_four_bit_levels(weight) ? FormatFourBitLevels::kType : FormatThreeBitLevels::kType;
    }
    return dtype_info(weight).code_type == DType::F8E4M3 ? FormatF8::kType : weight;
}

template <typename Format, std::size_t N>
static const Format* find_format(const Format (&formats)[N], DType weight) {
    const DType type = kernel_type(weight);
    for (const Format& f : formats) {
        if (f.type == type) return &f;
    }
    return nullptr;
}

// The kernel for many tokens.
template <typename Form>
static void matmul_panels(const MatmulParams& p, const Form& form, const std::byte* w, std::size_t group_bytes,
                          Epilogue& out, const Worker& worker) {
    const std::size_t groups = (p.n + L - 1) / L;
    const Panels<Form> panels(form, p.k, worker);
    panels.for_blocks(
        p.rows, (groups + kPanelVectors - 1) / kPanelVectors, 1, worker,
        [&](std::size_t s, int v) {
            return w + std::min(s * kPanelVectors + static_cast<std::size_t>(v), groups - 1) * group_bytes;
        },
        [&](std::size_t t, std::size_t n, std::size_t s, const float* sums) {
            out.store(reinterpret_cast<const vf*>(sums), static_cast<int>(n), kPanelVectors, t, s * kPanel);
        });
}

// Calls f(first, n) for tiles of tokens: one of all that a whole tile leaves over, so that they read the weights once.
template <typename F>
static inline void for_tile_sizes(std::size_t tokens, const F& f) {
    for (std::size_t t = 0, n; t < tokens; t += n) {
        n = kSmallTokenTiles || tokens - t >= kTokenTile ? std::min<std::size_t>(kTokenTile, tokens - t) : 1;
        f(t, n);
    }
}

// The tiles of a command: of up to kMostTokens tokens, and one group or two.
struct IntegerTiles {
    const IntegerFormat& format;
    GroupLayout layout;
    std::size_t k, tokens;
    const std::byte* x;
    Q8Layout at{k};
    bool shared = format.runs.share(k, tokens);  // whether tiles share runs
    const std::byte* records = nullptr;          // of all tokens then

    void copy_tokens(std::byte* scratch) {
        if (shared) format.runs.copy(x, at, k, tokens, scratch);
        records = scratch;
    }
    // Calls f(first, n) for all tokens.
    template <typename F>
    void for_tiles(const F& f) const {
        if (shared) return f(std::size_t{0}, tokens);
        for_tile_sizes(tokens, f);
    }
    // Groups, of `most` that follow each other, that a tile of n tokens takes together.
    int together(std::size_t n, std::uint64_t most) const {
        return n >= kTokenTile && (shared || format.pair) && most >= 2 ? 2 : 1;
    }
    // acc[n][groups] of the tokens from `token` on.
    void run(int groups, const std::byte* group, std::size_t token, std::size_t n, vf* acc) const {
        if (groups == 2) {
            if (shared) return format.runs.dot(group, layout, k, records, tokens, acc);
            return format.pair(group, layout, k, x, at, token, tokens, acc);
        }
        std::size_t m = std::min<std::size_t>(n, kTokenTile);
        if (!format.tiles[m - 1]) m /= 2;  // of formats that have pairs, a last group alone
        for (const std::size_t end = token + n; token < end; token += m, acc += m) {
            m = std::min(m, end - token);
            format.tiles[m - 1](group, layout, k, x, at, token, tokens, acc);
        }
    }
};

// Those of one group.
struct NarrowTiles {
    const FloatFormat& format;
    GroupLayout layout;
    std::size_t k, tokens;
    const float* x;
    void copy_tokens(std::byte*) {}
    template <typename F>
    void for_tiles(const F& f) const {
        for_tile_sizes(tokens, f);
    }
    int together(std::size_t, std::uint64_t) const { return 1; }
    void run(int, const std::byte* group, std::size_t token, std::size_t n, vf* acc) const {
        format.narrow[n - 1](group, layout, k, x + token * k, acc);
    }
};

static inline GroupLayout layout_of(const DispatchCmd& cmd, std::size_t k) {
    return {pack_format(cmd.weight), k / dtype_info(cmd.weight).block_elems, L};
}

// What a packed group costs a tile of tokens, as Worker::claim counts it: its bytes, or, for several tokens, products.
static inline std::uint64_t group_cost(std::size_t group_bytes, std::size_t rows) {
    return group_bytes * std::max<std::size_t>(1, rows / 4);
}

static void matmul_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const IntegerFormat& format = *find_format(kIntegerFormats, cmd.weight);
    const auto* x = cmd.buffers[0].as<std::byte>();
    const auto* w = cmd.buffers[1].as<std::byte>();
    Epilogue out(cmd, p);
    const GroupLayout layout = layout_of(cmd, p.k);
    if (p.rows >= kBytePanelTokens) {
        return matmul_panels(p, ByteForm(format.bytes, layout, x, p.k), w, layout.bytes, out, worker);
    }
    IntegerTiles tiles{format, layout, p.k, p.rows, x};
    const std::uint64_t groups = (p.n + L - 1) / L;
    const std::uint64_t step = p.format == kActQ8                                      ? 32 / L
                               : (format.pair || tiles.shared) && p.rows >= kTokenTile ? 2
                                                                                       : 1;
    auto steps = worker.claim((groups + step - 1) / step, step * group_cost(layout.bytes, p.rows));
    if (!steps.next()) return;
    tiles.copy_tokens(worker.scratch);
    do {
        for (std::uint64_t s = steps.begin; s < steps.end; ++s) {
            const std::uint64_t end = std::min(groups, (s + 1) * step);
            tiles.for_tiles([&](std::size_t t, std::size_t m) {
                for (std::uint64_t g = s * step; g < end;) {
                    const int n = tiles.together(m, end - g);
                    vf acc[2 * kMostTokens];
                    tiles.run(n, w + g * layout.bytes, t, m, acc);
                    out.store(acc, static_cast<int>(m), n, t, g * L);
                    g += static_cast<std::uint64_t>(n);
                }
            });
        }
    } while (steps.next());
}

static void matmul_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const FloatFormat& format = *find_format(kFloatFormats, cmd.weight);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* w = cmd.buffers[1].as<std::byte>();
    Epilogue out(cmd, p);
    const GroupLayout layout = layout_of(cmd, p.k);
    if (p.rows >= kPanelTokens) {
        return matmul_panels(p, FloatForm(format.fill, layout, x, p.k), w, layout.bytes, out, worker);
    }
    constexpr std::uint64_t kStep = 8;  // groups whose tokens tiles run together
    static_assert(kStep * L % 32 == 0);
    const std::uint64_t groups = (p.n + L - 1) / L;
    const auto run = [&](std::uint64_t g0, std::uint64_t g1) {
        for_tile_sizes(p.rows, [&](std::size_t t, std::size_t m) {
            const std::uint64_t most = groups_per_tile(m);
            for (std::uint64_t g = g0, n; g < g1; g += n) {
                n = g + most <= g1 ? most : 1;
                vf acc[kMostSums];
                (n == 1 ? format.narrow : format.wide)[m - 1](w + g * layout.bytes, layout, p.k, x + t * p.k, acc);
                out.store(acc, static_cast<int>(m), static_cast<int>(n), t, g * L);
            }
        });
    };
    std::uint64_t step = kStep;  // less of few rows, such as a router's, so that every worker has some
    while (step * L > 32 && (groups + step - 1) / step < static_cast<std::uint64_t>(worker.count)) step /= 2;
    auto steps = worker.claim((groups + step - 1) / step, step * group_cost(layout.bytes, p.rows));
    while (steps.next()) {
        for (std::uint64_t s = steps.begin; s < steps.end; ++s) run(s * step, std::min(groups, (s + 1) * step));
    }
}

// act(gate)·up, 32 rows at a time so that a whole q8 block can be written.
template <typename Tiles>
static void gate_up(const DispatchCmd& cmd, const GateUpParams& p, Tiles tiles, const Worker& worker) {
    const std::size_t group_bytes = tiles.layout.bytes;
    const GatedOutput out(cmd, p);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    auto units = worker.claim((p.n + 31) / 32, 2 * (32 / L) * group_cost(group_bytes, p.rows));
    if (!units.next()) return;
    tiles.copy_tokens(worker.scratch);
    do {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::uint64_t g0 = u * (32 / L), g1 = std::min<std::uint64_t>(g0 + 32 / L, (p.n + L - 1) / L);
            tiles.for_tiles([&](std::size_t t, std::size_t m) {
                float values[kMostTokens][32];
                for (std::uint64_t g = g0; g < g1;) {
                    const int n = tiles.together(m, g1 - g);
                    vf gate[2 * kMostTokens], up[2 * kMostTokens];
                    tiles.run(n, w_gate + g * group_bytes, t, m, gate);
                    tiles.run(n, w_up + g * group_bytes, t, m, up);
                    out.gated(gate, up, static_cast<int>(m), n, values[0] + (g - g0) * L);
                    g += static_cast<std::uint64_t>(n);
                }
                for (std::size_t i = 0; i < m; ++i) out.store(values[i], t + i, u);
            });
        }
    } while (units.next());
}

// The kernel for many tokens. A strip is half a unit: 16 rows of gate, then the same of up.
template <typename Form>
static void gate_up_panels(const DispatchCmd& cmd, const GateUpParams& p, const Form& form, std::size_t group_bytes,
                           const Worker& worker) {
    constexpr int kHalf = kPanelVectors / 2;
    static_assert(kPanel == 32 && kHalf * L == 16);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const GatedOutput out(cmd, p);
    const std::uint64_t groups = (p.n + L - 1) / L;
    const Panels<Form> panels(form, p.k, worker);
    alignas(64) float values[32];
    panels.for_blocks(
        p.rows, 2 * ((p.n + 31) / 32), 2, worker,
        [&](std::size_t s, int v) {
            const std::uint64_t g = std::min(s * kHalf + static_cast<std::uint64_t>(v % kHalf), groups - 1);
            return (v < kHalf ? w_gate : w_up) + g * group_bytes;
        },
        [&](std::size_t t, std::size_t n, std::size_t s, const float* sums) {
            for (std::size_t i = 0; i < n; ++i, sums += kPanel) {
                for (std::size_t half = 0; half < 2; ++half) {
                    const auto* strip = reinterpret_cast<const vf*>(sums + half * Form::kTokenBlock * kPanel);
                    out.gated(strip, strip + kHalf, 1, kHalf, values + half * 16);
                }
                out.store(values, t + i, s / 2);
            }
        });
}

static void gate_up_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const IntegerFormat& format = *find_format(kIntegerFormats, cmd.weight);
    const GroupLayout layout = layout_of(cmd, p.k);
    const auto* x = cmd.buffers[0].as<std::byte>();
    if (p.rows >= kBytePanelTokens) {
        return gate_up_panels(cmd, p, ByteForm(format.bytes, layout, x, p.k), layout.bytes, worker);
    }
    gate_up(cmd, p, IntegerTiles{format, layout, p.k, p.rows, x}, worker);
}

static void gate_up_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const FloatFormat& format = *find_format(kFloatFormats, cmd.weight);
    const GroupLayout layout = layout_of(cmd, p.k);
    const auto* x = cmd.buffers[0].as<float>();
    if (p.rows >= kPanelTokens) {
        return gate_up_panels(cmd, p, FloatForm(format.fill, layout, x, p.k), layout.bytes, worker);
    }
    gate_up(cmd, p, NarrowTiles{format, layout, p.k, p.rows, x}, worker);
}

// The kernel of kMatmul or kGateUp for a weight type.
static Kernel find_matmul(Op op, DType weight) {
    const bool matmul = op == Op::kMatmul;
    if (find_format(kIntegerFormats, weight)) return matmul ? matmul_q8 : gate_up_q8;
    if (find_format(kFloatFormats, weight)) return matmul ? matmul_f32 : gate_up_f32;
    return nullptr;
}

}  // namespace akunu::cpu::AKUNU_ISA
