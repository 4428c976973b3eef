#include "cpu/fixed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

namespace akunu::cpu {

// NaN where an element is no number.
static float scale_of(const float* x, std::size_t n) {
    double norm = 0;
    float top = 0;
    for (std::size_t begin = 0; begin < n; begin += kFixedBlock) {
        // Several sums, which the compiler adds up side by side.
        double sums[8] = {};
        float tops[8] = {};
        static_assert(kWholeColumns % std::size(sums) == 0);
        for (std::size_t i = begin; i < std::min(n, begin + kFixedBlock); i += std::size(sums)) {
            for (std::size_t j = 0; j < std::size(sums); ++j) {
                sums[j] += double{x[i + j]} * x[i + j];
                tops[j] = std::max(tops[j], std::abs(x[i + j]));
            }
        }
        const double squares = std::accumulate(std::begin(sums), std::end(sums), 0.0);
        if (!std::isfinite(squares)) return std::numeric_limits<float>::quiet_NaN();
        norm = std::max(norm, std::sqrt(squares));
        top = std::max(top, *std::ranges::max_element(tops));
    }
    constexpr double kMost = std::numeric_limits<std::int16_t>::max();
    return static_cast<float>(std::max(double{top} / kMost, norm / double{kMostWeightNorm}));
}

static void store_fixed_row(DType, const float* x, std::size_t steps, std::size_t row, std::byte* group) {
    const std::size_t n = steps * kWholeColumns;
    const float scale = scale_of(x, n);
    reinterpret_cast<float*>(group)[row] = scale;
    const float inverse = scale >= std::numeric_limits<float>::min() ? 1 / scale : 0;  // or the scale is no number
    auto* to = reinterpret_cast<std::int32_t*>(group + kFixedScales) + row;
    for (std::size_t c = 0; c < n; c += kWholeColumns, to += kWholeColumns / 2 * kWholeRows) {
        std::int16_t rounded[kWholeColumns];
        for (std::size_t i = 0; i < kWholeColumns; ++i) {
            constexpr float kRounds = 0x1.8p23f;  // sums with it are rounded to whole numbers
            const float value = inverse == 0 ? 0 : x[c + i] * inverse + kRounds - kRounds;
            rounded[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(std::min(value, 32767.0f)));
        }
        std::int32_t pairs[kWholeColumns / 2];
        std::memcpy(pairs, rounded, sizeof pairs);
        for (std::size_t i = 0; i < std::size(pairs); ++i) to[i * kWholeRows] = pairs[i];
    }
}

void load_fixed_row(const std::byte* group, std::size_t cols, std::size_t row, float* x) {
    const float scale = reinterpret_cast<const float*>(group)[row];
    const auto* from = reinterpret_cast<const std::int16_t*>(group + kFixedScales) + row * 2;
    for (std::size_t c = 0; c < cols; ++c) x[c] = static_cast<float>(from[c / 2 * kWholeRows * 2 + c % 2]) * scale;
}

const WholeFormat kFixedFormat{fixed_group_bytes, store_fixed_row};

}  // namespace akunu::cpu
