#include "cpu/digits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace akunu::cpu {

// NaN where an element is no number.
static float digit_scale(const float* x, std::size_t n) {
    float top = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
        top = std::max(top, std::abs(x[i]));
    }
    return top / kMostDigits;
}

static void store_digits(DType, const float* x, std::size_t steps, std::size_t row, std::byte* group) {
    const std::size_t n = steps * kWholeColumns;
    const float scale = digit_scale(x, n);
    reinterpret_cast<float*>(group)[row] = scale;
    for (std::size_t c = 0; c < digit_steps(n) * kDigitColumns; ++c) {
        const bool counts = c < n && scale >= std::numeric_limits<float>::min();
        const float value = counts ? std::clamp(std::nearbyint(x[c] / scale), -kMostDigits, kMostDigits) : 0.0f;
        const auto whole = static_cast<int>(value), high = (whole + 128) >> 8;
        auto* to = reinterpret_cast<std::int8_t*>(group + kDigitScales + c / kDigitColumns * 2 * kDigitTile) +
                   (c % kDigitColumns / 4 * kWholeRows + row) * 4 + c % 4;
        to[0] = static_cast<std::int8_t>(high);
        to[kDigitTile] = static_cast<std::int8_t>(whole - 256 * high);
    }
}

const WholeFormat kDigitFormat{digit_group_bytes, store_digits};

}  // namespace akunu::cpu
