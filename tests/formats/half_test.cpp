// Exhaustive check of core/half.h: every 16-bit value survives a round trip, and around every
// midpoint between neighbours rounding goes to the nearest, at the midpoint to the even one.
#include "core/half.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>

namespace {

int failures = 0;

void expect(std::uint16_t found, std::uint16_t expected, float value) {
    if (found == expected) return;
    ++failures;
    std::printf("%a became %04x, expected %04x\n", static_cast<double>(value), found, expected);
}

// `infinity` is the encoding of +inf; all below it are finite, in increasing order.
template <typename ToNarrow, typename ToFloat>
void check(std::uint16_t infinity, double beyond, ToNarrow narrow, ToFloat widen) {
    for (std::uint32_t bits = 0; bits <= infinity; ++bits) {
        for (const std::uint32_t sign : {0u, 0x8000u}) {
            const auto code = static_cast<std::uint16_t>(bits | sign);
            expect(narrow(widen(code)), code, widen(code));
        }
        if (bits == infinity) break;
        const auto low = static_cast<std::uint16_t>(bits);
        const auto high = static_cast<std::uint16_t>(bits + 1);
        const double next = high == infinity ? beyond : static_cast<double>(widen(high));
        const auto middle = static_cast<float>((static_cast<double>(widen(low)) + next) / 2);
        const auto below = std::nextafterf(middle, 0.0f);
        const auto above = std::nextafterf(middle, INFINITY);
        expect(narrow(below), low, below);
        expect(narrow(middle), low % 2 == 0 ? low : high, middle);
        expect(narrow(above), high, above);
        expect(narrow(-middle), static_cast<std::uint16_t>(0x8000 | (low % 2 == 0 ? low : high)), -middle);
    }
    expect(narrow(3.4028235e38f), infinity, 3.4028235e38f);
    if (!std::isnan(widen(narrow(NAN))) || !std::isnan(widen(narrow(-NAN)))) {
        ++failures;
        std::printf("NaN was lost\n");
    }
}

}  // namespace

int main() {
    check(0x7C00, 0x1p16, akunu::float_to_half, akunu::half_to_float);
    check(0x7F80, 0x1p128, akunu::float_to_bf16, akunu::bf16_to_float);
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
