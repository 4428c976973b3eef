// Products of 16-bit integers with weights that are such (cpu/fixed.h).

namespace akunu::cpu::AKUNU_ISA {

class FixedProducts {
  public:
    static constexpr std::size_t kTokens = kFixedTile, kMostTokens = (128 + kTokens - 1) / kTokens * kTokens;
    static constexpr std::size_t kProductsPerByte = 20;
    // Words of a row in a block of k: its pairs, its scale, and what keeps rows from sharing cache sets.
    static constexpr std::size_t kPairs = kFixedBlock / 2, kStride = kPairs + 16;
    static constexpr std::size_t kMostRowBytes = kMostWholeColumns / kFixedBlock * kStride * 4;
    static_assert(kWholeColumns % kStrip == 0 && kWholeRows % L == 0);

    FixedProducts(DType, std::size_t k) : k_(k), blocks_((k + kFixedBlock - 1) / kFixedBlock) {}

    static std::size_t group_bytes(DType dtype, std::size_t k) { return fixed_group_bytes(dtype, k); }
    std::size_t row_bytes() const { return blocks_ * kStride * sizeof(std::int32_t); }

    // To [tile of rows][block][row of the tile][kStride].
    void store_row(const float* x, std::size_t t, std::byte* rows) const {
        std::int32_t* to = tile(reinterpret_cast<std::int32_t*>(rows), t);
        for (std::size_t k = 0; k < k_; k += kFixedBlock, to += kTokens * kStride) {
            store_block(x + k, std::min(kFixedBlock, k_ - k), to);
        }
    }

    template <typename F>
    void multiply(const std::byte* rows, std::size_t tokens, const std::byte* first, const std::byte* second,
                  float* sums, F&& soon) const {
        const std::byte* const groups[2] = {first, second};
        // What comes next goes to the second-level cache: with each tile a part of the strip behind this one, or, where
        // a tile's tokens wait for memory, with each pair what is read soon.
        const std::size_t group = fixed_group_bytes(DType::F32, k_), next = second == first + group ? 2 * group : group,
                          tiles = blocks_ * ((tokens + kTokens - 1) / kTokens), lines = group / tiles / 64 + 1;
        const bool streams = tokens <= kTokens;
        std::size_t ahead = next;
        for (std::size_t b = 0; b < blocks_; ++b) {
            const std::size_t pairs = std::min(kPairs, whole_steps(k_) * kWholeColumns / 2 - b * kPairs);
            for_token_tiles<kFixedTile>(0, tokens, [&]<int N>(std::size_t t) {
                const std::int32_t* x = tile(reinterpret_cast<const std::int32_t*>(rows), t) + b * kTokens * kStride;
                for (std::size_t end = ahead + lines * 64; !streams && ahead < end; ahead += 64) {
                    for (const std::byte* of : groups) __builtin_prefetch(of + ahead, 0, 2);
                }
                const std::size_t at = b + kFarBlocks, block = kPairs * kPairBytes;
                const std::size_t far = at < blocks_ ? at * block : next + (at - blocks_) * block;
                if (b + 1 == blocks_) soon(t, N);
                for (std::size_t column = 0; column < 2 * kWholeRows; column += kStrip) {
                    const std::int32_t* panel[kStripVectors];
                    const float* scales[kStripVectors];
                    for (std::size_t w = 0; w < kStripVectors; ++w) {
                        const std::byte* group = groups[(column + w * L) / kWholeRows];
                        const std::size_t row = (column + w * L) % kWholeRows;
                        scales[w] = reinterpret_cast<const float*>(group) + row;
                        panel[w] =
                            reinterpret_cast<const std::int32_t*>(group + kFixedScales) + b * kPairs * kWholeRows + row;
                    }
                    float* to = sums + t * 2 * kWholeRows + column;
                    const bool last = b + 1 == blocks_;
                    const auto add = streams ? (last ? add_tile<N, true, true> : add_tile<N, false, true>)
                                             : (last ? add_tile<N, true, false> : add_tile<N, false, false>);
                    add(x, panel, pairs, b > 0, scales, to, far);
                }
            });
        }
    }

  private:
    // What a pair of columns has in a group; how many blocks ahead they are fetched into the second-level cache where
    // they stream. The first level's as well would be twice as many fetches, of which Intel's cores have few at a time.
    static constexpr std::size_t kPairBytes = kWholeRows * sizeof(std::int32_t), kFarBlocks = 2;

    // sums[n][2 * kWholeRows] (+)= N rows times a strip's panel, times the rows' scales; in the end all times the
    // strip's. What is `far` from the groups' beginnings is fetched where kStreams.
    template <int N, bool kLast, bool kStreams>
    [[gnu::noinline, gnu::flatten]] static void add_tile(const std::int32_t* x,
                                                         const std::int32_t* const (&panel)[kStripVectors],
                                                         std::size_t pairs, bool add,
                                                         const float* const (&scales)[kStripVectors], float* sums,
                                                         std::size_t far) {
        const auto finish = [&]<int n, int w>(vi sum) {
            float* to = sums + n * 2 * kWholeRows + w * L;
            const vf scale = set1(std::bit_cast<float>(x[n * kStride + kPairs]));
            const vf total = fma(to_float(sum), scale, add ? load(to) : zero());
            store(to, kLast ? total * load(scales[w]) : total);
        };
        multiply_pairs<N, kStride, kWholeRows>(x, panel, pairs, finish, [&](std::size_t k) {
            if constexpr (!kStreams) return;
            for (std::size_t w = 0; w < kStripVectors; w += kWholeRows / L) {
                __builtin_prefetch(reinterpret_cast<const std::byte*>(scales[w]) + far + k * kPairBytes, 0, 2);
            }
        });
    }

    template <typename Word>
    Word* tile(Word* rows, std::size_t t) const {
        return rows + (t / kTokens * blocks_ * kTokens + t % kTokens) * kStride;
    }

    static void store_block(const float* x, std::size_t n, std::int32_t* to) {
        alignas(64) float padded[kFixedBlock];
        if (n % kWholeColumns > 0) {
            std::memset(padded, 0, sizeof padded);
            std::memcpy(padded, x, n * sizeof(float));
            x = padded;
            n = (n + kWholeColumns - 1) / kWholeColumns * kWholeColumns;
        }
        vf squares[2] = {zero(), zero()};
        for (std::size_t i = 0; i < n; i += 2 * L) {
            for (std::size_t j = 0; j < 2; ++j) squares[j] = fma(load(x + i + j * L), load(x + i + j * L), squares[j]);
        }
        float sum = reduce_add(squares[0] + squares[1]);
        constexpr float kLeast = 1e-30f, kMost = std::numeric_limits<float>::max();
        const float norm = sum >= kLeast && sum <= kMost ? std::sqrt(sum) : wide_norm(x, n);
        const float scale = norm * (1 / kMostFixedNorm);
        const vf inverse = set1(scale >= std::numeric_limits<float>::min() ? 1 / scale : 0.0f);
        auto* integers = reinterpret_cast<std::int16_t*>(to);
        for (std::size_t i = 0; i < n; i += 2 * L) {
            store_i16(integers + i, round_int(load(x + i) * inverse), round_int(load(x + i + L) * inverse));
        }
        to[kPairs] = std::bit_cast<std::int32_t>(scale);
    }

    // Where F32 has no room for squares. NaN where an element is no number.
    [[gnu::noinline]] static float wide_norm(const float* x, std::size_t n) {
        double squares = 0;
        for (std::size_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
        return squares < std::numeric_limits<double>::infinity() ? static_cast<float>(std::sqrt(squares))
                                                                 : std::numeric_limits<float>::quiet_NaN();
    }

    std::size_t k_, blocks_;
};

static inline void embed_fixed(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const std::size_t dim = params_as<EmbedParams>(params).dim, group = fixed_group_bytes(cmd.weight, dim);
    const auto* table = cmd.buffers[1].as<std::byte>();
    for_embedded(cmd, params, worker, [&](std::size_t id, float* out) {
        load_fixed_row(table + id / kWholeRows * group, dim, id % kWholeRows, out);
    });
}

}  // namespace akunu::cpu::AKUNU_ISA
