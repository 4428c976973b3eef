// Tiles of two neighbouring groups: four bytes of a token are loaded once for both, where a tile of one group loads
// them for every product.

namespace akunu::cpu::AKUNU_ISA {

static inline vi bits_of(vf v) {
    vi bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline vf float_of(vi bits) {
    vf v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}

// Integer sums that may start anywhere, at no cost.
template <typename Dot>
concept Startable = requires(Dot dot, vi sum) { dot.start(sum); };

// Whether 1.5·2^23 times a scale is a float: a half times a small integer.
// Where a block of 256 has a scale for 32, a Zen 5 is 1.2 to 1.35 times as fast with one group (Q4_K, Q5_K).
template <typename F>
constexpr bool kHasStartedPair =
    kPairTiles && (F::kBlock == 32 || F::kSub == 16) && F::kHalfScales && Startable<DotU<F::kMax, F::kSub / 4>>;

// Other sums: the scales of two long blocks leave no registers.
template <typename F>
constexpr bool kHasPairTile = kHasStartedPair<F> || (kPairTiles && !Startable<DotU<15, 8>> && F::kBlock == 32);

// kTokenTile tokens, as dot_tile_q8 but for out[m][2].
//
// The integer sums start at the bits of 1.5·2^23 - offset·(the sum of the token's bytes), and so end as those of
// f = 1.5·2^23 + dot. f·d - 1.5·2^23·d is rounded once, as dot·d is: the results have the same bits, without
// operations that convert dot, and subtract the offset.
template <typename F>
[[gnu::noinline, gnu::flatten]] static void dot_pair_q8(const std::byte* group, const GroupLayout& layout,
                                                        std::size_t k, const std::byte* x, const Q8Layout& at,
                                                        std::size_t token, std::size_t tokens, vf* out) {
    constexpr int M = kTokenTile, W = 2, kSteps = F::kSub / 4, kParts = 32 / F::kSub;
    using Dot = DotOf<F>;
    constexpr int kOffset = kOffsetOf<F>;
    constexpr std::size_t kBlocks = L / F::kSubs;  // whose sums are a vector
    const vf base = set1(0x1.8p23f);
    const std::size_t d_at = at.d, s_at = F::kSub == 32 ? at.s : at.s16, blocks = k / F::kBlock;
    const std::size_t next = W * layout.bytes;
    const std::int8_t* row[M];
    vf acc[M][W];
    for (int m = 0; m < M; ++m) {
        row[m] = reinterpret_cast<const std::int8_t*>(x) + (token + static_cast<std::size_t>(m)) * at.stride;
        for (int w = 0; w < W; ++w) acc[m][w] = zero();
    }
    const Fields fields[W] = {{group, layout}, {group + layout.bytes, layout}};
    FarLines far[W];
    for (int w = 0; w < W; ++w) far[w] = BlockAhead<F>::far_lines(fields[w], next, 0, blocks, token, M, tokens);
    alignas(64) float starts[M][L];
    for (std::size_t b = 0; b < blocks; ++b) {
        if (kOffset != 0 && b % kBlocks == 0) {
            for (int m = 0; m < M; ++m) {
                const auto* sums = reinterpret_cast<const float*>(row[m] + s_at) + b * F::kSubs;
                store(starts[m], fma(set1(static_cast<float>(-kOffset)), load(sums), base));
            }
        }
        const BlockAhead<F> ahead[W] = {{fields[0], next, b, blocks}, {fields[1], next, b, blocks}};
        const Fields block[W] = {Packing<F>::from_block(fields[0], b), Packing<F>::from_block(fields[1], b)};
        vf d[W][F::kSubs], mins[W][F::kSubs], u[M][W];
        for (int w = 0; w < W; ++w) F::scales(block[w], d[w], mins[w]);
        unroll<F::kSubs>([&]<int s>() {
            const std::size_t first = b * F::kBlock + s * F::kSub;
            Dot dots[M][W];
            for (int m = 0; m < M; ++m) {
                vf start = base;
                if constexpr (kOffset != 0) start = set1(starts[m][b % kBlocks * F::kSubs + s]);
                for (int w = 0; w < W; ++w) dots[m][w].start(bits_of(start));
            }
            unroll<kSteps>([&]<int j>() {
                typename Dot::Weights weights[W];
                for (int w = 0; w < W; ++w) {
                    ahead[w].template fetch<s * kSteps + j, F::kSubs * kSteps>(far[w]);
                    weights[w] = F::template quants<s, j>(block[w]);
                }
                for (int m = 0; m < M; ++m) {
                    for (int w = 0; w < W; ++w) dots[m][w].template step<j>(weights[w], row[m] + first + 4 * j);
                }
            });
            for (int w = 0; w < W; ++w) {
                const vf minus_base = -base * d[w][s];
                for (int m = 0; m < M; ++m) {
                    const vf f = float_of(dots[m][w].sum());
                    u[m][w] = s % kParts == 0 ? fma(f, d[w][s], minus_base) : fma(f - base, d[w][s], u[m][w]);
                    if constexpr (F::kHasMin) {
                        const vf sum = set1(reinterpret_cast<const float*>(row[m] + s_at)[first / F::kSub]);
                        u[m][w] = fma(sum, -mins[w][s], u[m][w]);
                    }
                    if constexpr (s % kParts == kParts - 1) {
                        const vf scale = set1(reinterpret_cast<const float*>(row[m] + d_at)[first / 32]);
                        acc[m][w] = fma(u[m][w], scale, acc[m][w]);
                    }
                }
            }
        });
    }
    for (int m = 0; m < M; ++m) {
        for (int w = 0; w < W; ++w) out[m * W + w] = acc[m][w];
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
