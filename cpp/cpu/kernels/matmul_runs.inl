// Tiles that share what they multiply with: a run of 32 elements of neighbouring groups is taken apart once for all
// tokens of a batch, and each tile of tokens reads it from the first-level cache.

namespace akunu::cpu::AKUNU_ISA {

constexpr int kRunGroups = 2;

// A run of kRunGroups groups, and what multiplies it: the same for all formats whose products are summed alike.
template <typename Dot, int kSub, int kOffset, bool kHasMin>
struct OpenRun {
    static constexpr int M = kTokenTile, W = kRunGroups, kSteps = kSub / 4, kParts = 32 / kSub;
    vb quants[kParts][kSteps][W];
    vf d[kParts][W], minus_min[kParts][W];

    // acc[token][W] += the products with tokens whose q8 bytes begin at x, d and sums so far behind them.
    [[gnu::noinline, gnu::flatten]] void add_products(const std::byte* x, std::size_t d_at, std::size_t s_at,
                                                      std::size_t stride, std::size_t tokens, vf* acc) const {
        for (std::size_t t = 0; t < tokens; t += M, x += M * stride, acc += M * W) {
            const std::int8_t* row[M];
            for (int m = 0; m < M; ++m) {
                row[m] = reinterpret_cast<const std::int8_t*>(x) + static_cast<std::size_t>(m) * stride;
            }
            vf u[M][W];
            unroll<kParts>([&]<int part>() {
                Dots<Dot, M, W> dots;
                unroll<kSteps>([&]<int j>() {
                    vb four[W];
                    for (int w = 0; w < W; ++w) four[w] = quants[part][j][w];
                    dots.template step<j>(four, row, part * kSub + 4 * j);
                });
                for (int m = 0; m < M; ++m) {
                    const vf sum = set1(reinterpret_cast<const float*>(row[m] + s_at)[part]);
                    for (int w = 0; w < W; ++w) {
                        vf dot = to_float(dots.sum(m, w));
                        if constexpr (kOffset != 0) dot = fma(set1(static_cast<float>(-kOffset)), sum, dot);
                        u[m][w] = add_sub_block<part == 0, kHasMin>(u[m][w], dot, d[part][w], sum, minus_min[part][w]);
                    }
                }
            });
            for (int m = 0; m < M; ++m) {
                const vf scale = set1(*reinterpret_cast<const float*>(row[m] + d_at));
                for (int w = 0; w < W; ++w) acc[m * W + w] = fma(u[m][w], scale, acc[m * W + w]);
            }
        }
    }
};

// out[m][w] = dot products of `tokens` tokens, a multiple of kTokenTile, with the rows of the w-th of kRunGroups
// groups.
template <typename F>
[[gnu::noinline, gnu::flatten]] static void dot_runs_q8(const std::byte* group, const GroupLayout& layout,
                                                        std::size_t k, const std::byte* x, const Q8Layout& at,
                                                        std::size_t tokens, vf* out) {
    constexpr int W = kRunGroups, kSteps = F::kSub / 4, kParts = 32 / F::kSub;
    const std::size_t s_at = F::kSub == 32 ? at.s : at.s16, blocks = k / F::kBlock, next = W * layout.bytes;
    std::fill_n(out, tokens * W, zero());
    const auto of_groups = [](auto&& f) {
        return [&]<int... w>(std::integer_sequence<int, w...>) {
            return std::array{f(w)...};
        }(std::make_integer_sequence<int, W>{});
    };
    const auto fields =
        of_groups([&](int w) { return Fields(group + static_cast<std::size_t>(w) * layout.bytes, layout); });
    auto far = of_groups([&](int w) { return BlockAhead<F>::far_lines(fields[w], next, 0, blocks, 0, 1, 1); });
    OpenRun<DotOf<F>, F::kSub, kOffsetOf<F>, F::kHasMin> run;
    for (std::size_t b = 0; b < blocks; ++b) {
        const auto ahead = of_groups([&](int w) { return BlockAhead<F>(fields[w], next, b, blocks); });
        const auto block = of_groups([&](int w) { return Packing<F>::from_block(fields[w], b); });
        vf d[W][F::kSubs], mins[W][F::kSubs];
        for (int w = 0; w < W; ++w) F::scales(block[w], d[w], mins[w]);
        unroll<F::kBlock / 32>([&]<int r>() {
            unroll<kParts>([&]<int part>() {
                constexpr int s = r * kParts + part;
                for (int w = 0; w < W; ++w) {
                    run.d[part][w] = d[w][s];
                    if constexpr (F::kHasMin) run.minus_min[part][w] = -mins[w][s];
                }
                unroll<kSteps>([&]<int j>() {
                    for (int w = 0; w < W; ++w) {
                        ahead[w].template fetch<s * kSteps + j, F::kSubs * kSteps>(far[w]);
                        run.quants[part][j][w] = F::template quants<s, j>(block[w]);
                    }
                });
            });
            const std::size_t i = b * (F::kBlock / 32) + r, first = i * 32;
            run.add_products(x + first, at.d + i * sizeof(float) - first, s_at + i * kParts * sizeof(float) - first,
                             at.stride, tokens, out);
        });
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
