// Tiles (AMX), beside simd/avx512.h: products of matrices of bytes, summed in 32 bits, and of BF16, summed in F32.
//
// With BF16, tiles 0 to 3 are sums [row of the left side][row of a weight]; 4 and 5 are factors of the left side
// [row][k], 6 and 7 of the right [k / 2][row][k % 2].
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kTileRows = 16;

// All tiles have 16 rows of 64 bytes while it lives, on the thread that made it.
class TileShapes {
  public:
    TileShapes() {
        Shapes s;
        for (int i = 0; i < 8; ++i) {
            s.rows[i] = kTileRows;
            s.row_bytes[i] = 64;
        }
        asm volatile("ldtilecfg %0" : : "m"(s));
    }
    ~TileShapes() { asm volatile("tilerelease"); }
    TileShapes(const TileShapes&) = delete;
    TileShapes& operator=(const TileShapes&) = delete;

  private:
    struct alignas(64) Shapes {
        std::uint8_t palette = 1, start = 0, reserved[14] = {};
        std::uint16_t row_bytes[16] = {};
        std::uint8_t rows[16] = {};
    };
};

// GCC's intrinsics are macros that take literals, and do not say that a load reads memory.
template <int kTile>
static inline void tile_load(const void* first, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(first), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
static inline void tile_store(void* first, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(first), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
static inline void tile_zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
// sums += a·b
template <int kSums, int kA, int kB>
static inline void tile_dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}

// Bytes have rows of 64, and [k / 4][row][k % 4].
template <int kSums, int kA, int kB>
static inline void tile_dot_bytes() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}

// Floats as the sum of two BF16, the second of which holds what rounding took from the first: 16 bits of mantissa.
// Products leave out that of the two low parts.
struct Split {
    __m512i high, low;
};

constexpr std::size_t kSplitTile = kTileRows * 64;  // bytes

static inline __m512i to_bf16(vf a, vf b) { return __m512i(_mm512_cvtne2ps_pbh(b, a)); }

// a's elements, then b's.
static inline Split split(vf a, vf b) {
    const __m512i high = to_bf16(a, b);
    const auto widen = [](__m256i v) { return vf(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); };
    const vf rest_a = a - widen(_mm512_castsi512_si256(high)), rest_b = b - widen(_mm512_extracti64x4_epi64(high, 1));
    return {high, to_bf16(rest_a, rest_b)};
}

// a's elements and b's by turns, as the right side has them.
static inline Split split_pairs(vf a, vf b) {
    alignas(64) static constexpr std::int16_t kTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                            21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i turns = _mm512_load_si512(kTurns);
    const __m512i high = _mm512_permutexvar_epi16(turns, to_bf16(a, b));
    const vf rest_a = a - vf(_mm512_slli_epi32(high, 16));
    const vf rest_b = b - vf(_mm512_and_si512(high, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
    return {high, _mm512_permutexvar_epi16(turns, to_bf16(rest_a, rest_b))};
}

static inline void store_split(std::byte* high, std::byte* low, const Split& s) {
    store_bytes(high, s.high);
    store_bytes(low, s.low);
}

static inline vf load_up_to(const float* x, std::size_t n) {
    return n >= L ? load(x) : load_first(x, static_cast<int>(n));
}

// The left side of a product in memory, [row / 16][step of 32 elements][high, low][row % 16]: tiles that follow each
// other, so that what is next is fetched ahead.
struct LeftTiles {
    static constexpr std::size_t kTileBytes = kTileRows * 64, kStep = 2 * kTileBytes;

    // Row `row` of n elements; zeros behind them.
    static void store_row(const float* x, std::size_t n, std::size_t row, std::byte* tiles) {
        const std::size_t steps = (n + 2 * L - 1) / (2 * L);
        std::byte* to = tiles + row / kTileRows * steps * kStep + row % kTileRows * 64;
        for (; n >= 2 * L; n -= 2 * L, x += 2 * L, to += kStep) {
            store_split(to, to + kTileBytes, split(load(x), load(x + L)));
        }
        if (n == 0) return;
        store_split(to, to + kTileBytes, split(load_up_to(x, n), n > L ? load_up_to(x + L, n - L) : zero()));
    }
};

// What a product of splits reads. Of the left side: two tiles of high parts, whose rows are `stride` bytes apart, how
// far behind them the low ones are, and the next 32 elements of k. Of the right side likewise, in tiles without gaps.
struct SplitFactors {
    const std::byte *a0, *a1;
    std::size_t stride, a_low, a_step;
    const std::byte *b0, *b1;
    std::size_t b_step;
};

// sums[M][2] += a·b over `steps` of 32 elements, for M tiles of the left side and both of the right.
template <int M>
static inline void multiply_split(SplitFactors f, std::size_t steps) {
    static_assert(M == 1 || M == 2);
    const auto load_a = [&](std::size_t part) {
        tile_load<4>(f.a0 + part, f.stride);
        if constexpr (M == 2) tile_load<5>(f.a1 + part, f.stride);
    };
    const auto load_b = [&](std::size_t part) {
        tile_load<6>(f.b0 + part, 64);
        tile_load<7>(f.b1 + part, 64);
    };
    const auto products = [] {
        tile_dot<0, 4, 6>();
        tile_dot<1, 4, 7>();
        if constexpr (M == 2) {
            tile_dot<2, 5, 6>();
            tile_dot<3, 5, 7>();
        }
    };
    for (std::size_t s = 0; s < steps; ++s) {
        load_a(0);
        load_b(LeftTiles::kTileBytes), products();
        load_b(0), products();
        load_a(f.a_low), products();
        f.a0 += f.a_step, f.a1 += f.a_step, f.b0 += f.b_step, f.b1 += f.b_step;
    }
}

// What to do with each of a product's sums: f.operator()<tile>(first row, vector).
template <int M, typename F>
static inline void for_sums(F&& f) {
    f.template operator()<0>(0, 0), f.template operator()<1>(0, 1);
    if constexpr (M == 2) f.template operator()<2>(kTileRows, 0), f.template operator()<3>(kTileRows, 1);
}

// Calls f.operator()<M>(first) over pairs of tiles of rows, and a last one. Rows behind the end are there, and not
// used.
template <typename F>
static inline void for_row_tiles(std::size_t rows, F&& f) {
    std::size_t row = 0;
    for (; row + kTileRows < rows; row += 2 * kTileRows) f.template operator()<2>(row);
    if (row < rows) f.template operator()<1>(row);
}

}  // namespace akunu::cpu::AKUNU_ISA
