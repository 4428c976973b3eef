// Conversions clang calls for bfloat on CPUs without AVX512-BF16; GCC 12's libgcc has none.
#include <cstdint>
#include <cstring>

namespace {
__bf16 round_to_bfloat(float x) {
    uint32_t u;
    std::memcpy(&u, &x, sizeof u);
    const bool nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    // Round to nearest, ties to even; a NaN stays one (quiet).
    const uint16_t h =
        nan ? static_cast<uint16_t>(u >> 16 | 0x40u) : static_cast<uint16_t>((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
    __bf16 r;
    std::memcpy(&r, &h, sizeof r);
    return r;
}
}  // namespace

extern "C" __bf16 __truncsfbf2(float x) { return round_to_bfloat(x); }
extern "C" __bf16 __truncdfbf2(double x) {
    // Via float with round-to-odd, so that the value is rounded once.
    float f = static_cast<float>(x);
    if (static_cast<double>(f) != x && f - f == 0) {
        uint32_t u;
        std::memcpy(&u, &f, sizeof u);
        const bool too_large = static_cast<double>(f) > x != (x < 0);
        if (!(u & 1u)) u = too_large ? u - 1 : u | 1u;
        std::memcpy(&f, &u, sizeof f);
    }
    return round_to_bfloat(f);
}
