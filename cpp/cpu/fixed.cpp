#include "cpu/fixed.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace akunu::cpu {

// NaN where an element is no number.
static float scale_of(const float* x, std::size_t n) {
    double norm = 0, top = 0;
    for (std::size_t begin = 0; begin < n; begin += kFixedBlock) {
        double squares = 0;
        for (std::size_t i = begin; i < std::min(n, begin + kFixedBlock); ++i) {
            squares += double{x[i]} * x[i];
            top = std::max(top, std::abs(double{x[i]}));
        }
        if (!std::isfinite(squares)) return std::numeric_limits<float>::quiet_NaN();
        norm = std::max(norm, std::sqrt(squares));
    }
    constexpr double kMost = std::numeric_limits<std::int16_t>::max();
    return static_cast<float>(std::max(top / kMost, norm / double{kMostWeightNorm}));
}

static void store_fixed_row(DType, const float* x, std::size_t steps, std::size_t row, std::byte* group) {
    const std::size_t n = steps * kWholeColumns;
    const float scale = scale_of(x, n);
    reinterpret_cast<float*>(group)[row] = scale;
    auto* to = reinterpret_cast<std::int16_t*>(group + kFixedScales) + row * 2;
    for (std::size_t c = 0; c < n; ++c) {
        const float value = scale >= std::numeric_limits<float>::min() ? std::nearbyint(x[c] / scale) : 0.0f;
        to[c / 2 * kWholeRows * 2 + c % 2] = static_cast<std::int16_t>(std::clamp(value, -32767.0f, 32767.0f));
    }
}

const WholeFormat kFixedFormat{fixed_group_bytes, store_fixed_row};

}  // namespace akunu::cpu
