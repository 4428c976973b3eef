// Products by tiles of bytes (AMX) with weights that are 16-bit integers of two digits (cpu/digits.h). Of an activation
// and a weight, high·high, high·low + low·high and low·low are summed apart, and become one number at the end of a
// block.

namespace akunu::cpu::AKUNU_ISA {

static_assert(L == kWholeRows && kTileRows == kWholeRows);

class DigitProducts {
  public:
    static constexpr std::size_t kTokens = kTileRows, kMostTokens = 256, kProductsPerByte = 64;
    static constexpr std::size_t kMostRowBytes =
        (kMostWholeColumns / kDigitBlock + 1) * sizeof(float) + 2 * kMostWholeColumns;

    DigitProducts(DType, std::size_t k) : k_(k), blocks_((k + kDigitBlock - 1) / kDigitBlock) {}

    static std::size_t group_bytes(DType dtype, std::size_t k) { return digit_group_bytes(dtype, k); }
    std::size_t row_bytes() const { return blocks_ * sizeof(float) + digit_steps(k_) * 2 * kDigitColumns; }

    // To [tile of rows][block]: the rows' scales, and steps of a tile of high digits and one of low ones,
    // [row][column].
    void store_row(const float* x, std::size_t t, std::byte* rows) const {
        std::byte* to = rows + t / kTokens * kTokens * row_bytes();
        for (std::size_t k = 0; k < k_; k += kDigitBlock) {
            const std::size_t n = std::min(kDigitBlock, k_ - k);
            store_block(x + k, n, t % kTokens, to);
            to += kDigitScales + digit_steps(n) * 2 * kDigitTile;
        }
    }

    template <typename F>
    void multiply(const std::byte* rows, std::size_t tokens, const std::byte* first, const std::byte* second,
                  float* sums, F&& soon) const {
        constexpr std::size_t kStrip = 2 * kWholeRows;
        const auto *first_scales = reinterpret_cast<const float*>(first),
                   *second_scales = reinterpret_cast<const float*>(second);
        const vf ones = set1(1.0f);
        for (std::size_t b = 0; b < blocks_; ++b) {
            const std::size_t steps = digit_steps(std::min(kDigitBlock, k_ - b * kDigitBlock));
            const std::size_t weights = kDigitScales + b * kDigitBlock / kDigitColumns * 2 * kDigitTile;
            const bool last = b + 1 == blocks_;
            const vf scales[2] = {last ? load(first_scales) : ones, last ? load(second_scales) : ones};
            const std::byte* tile = rows + b * (kDigitScales + kDigitBlock * 2 * kTileRows);
            for (std::size_t t = 0; t < tokens; t += kTokens, tile += kTokens * row_bytes()) {
                alignas(64) std::int32_t digits[kSums][kTileRows * L];
                if (last) soon(t, std::min(kTokens, tokens - t));
                multiply_tile(tile + kDigitScales, first + weights, second + weights, steps, digits);
                add_digits(digits, reinterpret_cast<const float*>(tile), scales, b == 0, sums + t * kStrip);
            }
        }
    }

  private:
    static constexpr int kSums = 6;  // high, middle and low ones, of the first group and the second by turns

    // A tile of rows and two groups of weights.
    static void multiply_tile(const std::byte* x, const std::byte* first, const std::byte* second, std::size_t steps,
                              std::int32_t (&digits)[kSums][kTileRows * L]) {
        tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>(), tile_zero<4>(), tile_zero<5>();
        for (std::size_t s = 0; s < steps; ++s) {
            tile_load<6>(x, 64);
            tile_load<7>(first, 64), tile_dot_bytes<0, 6, 7>();
            tile_load<7>(second, 64), tile_dot_bytes<1, 6, 7>();
            tile_load<7>(first + kDigitTile, 64), tile_dot_bytes<2, 6, 7>();
            tile_load<7>(second + kDigitTile, 64), tile_dot_bytes<3, 6, 7>();
            tile_load<6>(x + kDigitTile, 64), tile_dot_bytes<5, 6, 7>();
            tile_load<7>(first + kDigitTile, 64), tile_dot_bytes<4, 6, 7>();
            tile_load<7>(first, 64), tile_dot_bytes<2, 6, 7>();
            tile_load<7>(second, 64), tile_dot_bytes<3, 6, 7>();
            x += 2 * kDigitTile, first += 2 * kDigitTile, second += 2 * kDigitTile;
        }
        tile_store<0>(digits[0], 64), tile_store<1>(digits[1], 64), tile_store<2>(digits[2], 64);
        tile_store<3>(digits[3], 64), tile_store<4>(digits[4], 64), tile_store<5>(digits[5], 64);
    }

    // sums[row][strip] (+)= the integers of a block, times the rows' scales; the last block's times the weights' too.
    static void add_digits(const std::int32_t (&digits)[kSums][kTileRows * L], const float* row_scales,
                           const vf (&scales)[2], bool first, float* sums) {
        const vf base = set1(256.0f);
        for (std::size_t r = 0; r < kTileRows; ++r) {
            const vf scale = set1(row_scales[r]);
            for (std::size_t v = 0; v < 2; ++v, sums += L) {
                const auto part = [&](std::size_t i) { return to_float(load_ints(digits[2 * i + v] + r * L)); };
                const vf whole = fma(fma(part(0), base, part(1)), base, part(2));
                store(sums, fma(whole, scale, first ? zero() : load(sums)) * scales[v]);
            }
        }
    }

    static void store_block(const float* x, std::size_t n, std::size_t row, std::byte* to) {
        alignas(64) float padded[kDigitBlock];
        if (n % kDigitColumns > 0) {
            std::memset(padded, 0, sizeof padded);
            std::memcpy(padded, x, n * sizeof(float));
            x = padded;
            n = digit_steps(n) * kDigitColumns;
        }
        const float top = greatest(x, n), scale = top * (1 / kMostDigits);
        reinterpret_cast<float*>(to)[row] =
            top <= std::numeric_limits<float>::max() ? scale : std::numeric_limits<float>::quiet_NaN();
        const vf inverse = set1(scale >= std::numeric_limits<float>::min() ? 1 / scale : 0.0f);
        to += kDigitScales + row * kDigitColumns;
        for (std::size_t i = 0; i < n; i += kDigitColumns, to += 2 * kDigitTile) {
            store_digits(x + i, inverse, to, to + kDigitTile);
        }
    }

    // The greatest magnitude; a NaN counts as more than infinity.
    static float greatest(const float* x, std::size_t n) {
        __m512i top[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
        for (std::size_t i = 0; i < n; i += 2 * L) {
            for (std::size_t j = 0; j < 2; ++j) {
                top[j] = _mm512_max_epu32(top[j], _mm512_and_si512(_mm512_loadu_si512(x + i + j * L), magnitude));
            }
        }
        return std::bit_cast<float>(_mm512_reduce_max_epu32(_mm512_max_epu32(top[0], top[1])));
    }

    // 64 elements.
    static void store_digits(const float* x, vf inverse, std::byte* high, std::byte* low) {
        const auto whole = [&](std::size_t i) { return __m512i(round_int(load(x + i * L) * inverse)); };
        // Vectors' quarters by turns, which the permutation of the bytes, four at a time, undoes.
        const __m512i a = _mm512_packs_epi32(whole(0), whole(1)), b = _mm512_packs_epi32(whole(2), whole(3));
        const __m512i turns = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const auto upper = [](__m512i v) { return _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(128)), 8); };
        const auto lower = [](__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi16(255)); };
        store_bytes(high, _mm512_permutexvar_epi32(turns, _mm512_packs_epi16(upper(a), upper(b))));
        store_bytes(low, _mm512_permutexvar_epi32(turns, _mm512_packus_epi16(lower(a), lower(b))));
    }

    std::size_t k_, blocks_;
    TileShapes shapes_;
};

}  // namespace akunu::cpu::AKUNU_ISA
