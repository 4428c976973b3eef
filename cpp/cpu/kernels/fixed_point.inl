// Products of 16-bit integers: rows of floats that are rounded to multiples of a scale of their own. A processor adds
// up twice as many of them as of F32. Elements go in pairs, the first in the lower half of a word.
//
// Sums are of 32 bits and cannot overflow: a row's norm is at most kMostNorm, and no dot product is more than the
// product of the norms. So the elements of a row that is like noise have 12 to 15 bits, and the error is about that
// of F16. A row with a NaN or an infinity, or whose squares overflow, has NaN for its scale.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kStripVectors = 2, kStrip = kStripVectors * L;  // columns of a tile
constexpr int kFixedTile = kFloatTile;                                // its rows

// Before rounding, which adds at most half the square root of the number of elements.
constexpr float kMostNorm = 46300, kMostFixed = 32767;
constexpr std::size_t kMostPairs = 512;
static_assert((46300.5 + 16) * (46300.5 + 16) < 2147483648.0 && 2 * kMostPairs <= 4 * 16 * 16);

// A row whose scale is smaller counts as zeros.
constexpr float kLeastScale = 1e-30f;

static inline vi pack_pairs(vf first, vf second) { return (round_int(first) & 0xFFFF) | (round_int(second) << 16); }

// Scales of L rows, of their squares' sums and greatest elements; and what to multiply the elements with.
static inline vf fixed_scales(vf squares, vf top, vf& inverse) {
    const vf scale = max_(top * set1(1 / kMostFixed), sqrt_(squares) * set1(1 / kMostNorm));  // the second may be NaN
    const vf ones = set1(1.0f) / scale;
    inverse = scale > kLeastScale ? ones : zero();
    return scale < std::numeric_limits<float>::infinity() ? scale : set1(std::numeric_limits<float>::quiet_NaN());
}

// The scale of one row, and its inverse.
static inline float fixed_scale(float squares, float top, float& inverse) {
    const float norm = std::sqrt(squares) * (1 / kMostNorm), most = top * (1 / kMostFixed);
    const float scale = most > norm ? most : norm;  // the second may be NaN
    inverse = scale > kLeastScale ? 1 / scale : 0.0f;
    return scale < std::numeric_limits<float>::infinity() ? scale : std::numeric_limits<float>::quiet_NaN();
}

// A row of n elements, a multiple of kStrip, as n / 2 pairs. Returns its scale.
static inline float store_fixed_row(const float* x, std::size_t n, std::int32_t* pairs) {
    vf squares = zero(), top = zero();
    for (std::size_t i = 0; i < n; i += L) {
        const vf v = load(x + i);
        squares = fma(v, v, squares);
        top = max_(top, max_(v, -v));
    }
    float one;
    const float scale = fixed_scale(reduce_add(squares), reduce_max(top), one);
    const vf inverse = set1(one);
    auto* to = reinterpret_cast<std::int16_t*>(pairs);
    for (std::size_t i = 0; i < n; i += kStrip) {
        store_i16(to + i, round_int(load(x + i) * inverse), round_int(load(x + i + L) * inverse));
    }
    return scale;
}

// Calls f<n, w>(Σ of `pairs` of row n, kStride words apart, times vector w of a panel), [pair] of which lies kApart
// words behind the one before. The caller is flattened: every index of `acc` must be a constant when GCC looks at it,
// or the sums are kept in memory. So are those of a loop that is unrolled. Ahead of each pair's products is each(pair).
template <int N, std::size_t kStride, std::size_t kApart, typename F, typename Each>
static inline void multiply_pairs(const std::int32_t* rows, const std::int32_t* const (&panel)[kStripVectors],
                                  std::size_t pairs, F&& f, Each&& each) {
    vi acc[N][kStripVectors];
    unroll<N>([&]<int n>() { unroll<kStripVectors>([&]<int w>() { acc[n][w] = vi{}; }); });
    for (std::size_t k = 0; k < pairs; ++k) {
        each(k);
        vi b[kStripVectors];
        unroll<kStripVectors>([&]<int w>() { b[w] = load_ints(panel[w] + k * kApart); });
        unroll<N>([&]<int n>() {
            const vi a = set1i(rows[n * kStride + k]);
            unroll<kStripVectors>([&]<int w>() { acc[n][w] = add_pairs(acc[n][w], a, b[w]); });
        });
    }
    unroll<N>([&]<int n>() { unroll<kStripVectors>([&]<int w>() { f.template operator()<n, w>(acc[n][w]); }); });
}

// Multiplies pairs with a panel [pair][kStrip].
template <int N, std::size_t kStride, typename F>
static inline void multiply_pairs(const std::int32_t* rows, const std::int32_t* panel, std::size_t pairs, F&& f) {
    const std::int32_t* vectors[kStripVectors];
    for (std::size_t w = 0; w < kStripVectors; ++w) vectors[w] = panel + w * L;
    multiply_pairs<N, kStride, kStrip>(rows, vectors, pairs, f, [](std::size_t) {});
}

}  // namespace akunu::cpu::AKUNU_ISA
