#include "core/recode.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "core/codebooks.h"
#include "core/error.h"

namespace akunu {
namespace {

// By code. A level's number is its place in the codebook's alphabet, and behind all of these are the same ones with
// the other sign; of IQ1, which has no signs but a shift of an eighth up or down, those that are shifted down. All are
// eight times what the format says, so that every type has the same scales.
constexpr std::int8_t kIq2Levels[16] = {8, 25, 43, 0, -8, -25, -43, 0};
constexpr std::int8_t kIq1Levels[16] = {-7, 1, 9, 0, -9, -1, 7, 0};
constexpr std::int8_t kIq3XxsLevels[16] = {8, 24, 40, 56, 72, 88, 104, 124, -8, -24, -40, -56, -72, -88, -104, -124};
constexpr std::int8_t kIq3SLevels[16] = {8, 24, 40, 56, 72, 88, 104, 120, -8, -24, -40, -56, -72, -88, -104, -120};

using Byte = std::uint8_t;

std::uint32_t load(const Byte* p, int bytes) {
    std::uint32_t v = 0;
    std::memcpy(&v, p, static_cast<std::size_t>(bytes));
    return v;
}

// A block that is being taken apart: the code of each weight, and s of each 16 or 32.
struct Codes {
    std::array<Byte, 256> code;
    std::array<Byte, 16> scale;
    std::uint16_t d;

    // Eight, or four, weights from `at` on: levels of so many bits, with a bit each that adds `more`.
    void put(std::size_t at, std::uint32_t entry, int bits, int n, std::uint32_t more_bits, int more) {
        const std::uint32_t mask = (1u << bits) - 1;
        for (int i = 0; i < n; ++i) {
            const auto code = static_cast<int>(entry >> (i * bits) & mask);
            this->code[at + static_cast<std::size_t>(i)] =
                static_cast<Byte>(code + ((more_bits >> i & 1) != 0 ? more : 0));
        }
    }
};

// Seven signs are stored; of all eight, an even number are negative.
std::uint32_t eight_signs(std::uint32_t seven) {
    return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1u) << 7;
}

void take_iq2_xxs(const Byte* b, Codes& c) {  // d, then for each 32: four indices, four times seven signs, s
    for (std::size_t run = 0; run < 8; ++run) {
        const Byte* at = b + 2 + 8 * run;
        const std::uint32_t signs = load(at + 4, 4);
        for (std::size_t i = 0; i < 4; ++i) {
            c.put(32 * run + 8 * i, kIq2XxsGrid[at[i]], 2, 8, eight_signs(signs >> (7 * i) & 127), 4);
        }
        c.scale[2 * run] = c.scale[2 * run + 1] = static_cast<Byte>(signs >> 28);
    }
}

void take_iq2_xs(const Byte* b, Codes& c) {  // d, 32 indices with seven signs each, s of each 16
    for (std::size_t i = 0; i < 32; ++i) {
        const std::uint32_t q = load(b + 2 + 2 * i, 2);
        c.put(8 * i, kIq2XsGrid[q & 511], 2, 8, eight_signs(q >> 9), 4);
    }
    for (std::size_t i = 0; i < 16; ++i) c.scale[i] = b[66 + i / 2] >> (i % 2 * 4) & 15;
}

void take_iq2_s(const Byte* b, Codes& c) {  // d, 32 indices, 32 times eight signs, high bits of indices, s of each 16
    for (std::size_t i = 0; i < 32; ++i) {
        const std::uint32_t high = b[66 + i / 4] >> (i % 4 * 2) & 3u;
        c.put(8 * i, kIq2SGrid[b[2 + i] | high << 8], 2, 8, b[34 + i], 4);
    }
    for (std::size_t i = 0; i < 16; ++i) c.scale[i] = b[74 + i / 2] >> (i % 2 * 4) & 15;
}

void take_iq3_xxs(const Byte* b, Codes& c) {  // d, 64 indices, then for each 32: four times seven signs, s
    for (std::size_t run = 0; run < 8; ++run) {
        const std::uint32_t signs = load(b + 66 + 4 * run, 4);
        for (std::size_t i = 0; i < 8; ++i) {
            const std::uint32_t eight = eight_signs(signs >> (7 * (i / 2)) & 127);
            c.put(32 * run + 4 * i, kIq3XxsGrid[b[2 + 8 * run + i]], 3, 4, eight >> (i % 2 * 4), 8);
        }
        c.scale[run] = static_cast<Byte>(signs >> 28);
    }
}

void take_iq3_s(const Byte* b, Codes& c) {  // d, 64 indices, their high bits, 32 times eight signs, s of each 32
    for (std::size_t i = 0; i < 64; ++i) {
        const std::uint32_t high = b[66 + i / 8] >> (i % 8) & 1u;
        c.put(4 * i, kIq3SGrid[b[2 + i] | high << 8], 3, 4, static_cast<std::uint32_t>(b[74 + i / 2]) >> (i % 2 * 4),
              8);
    }
    for (std::size_t i = 0; i < 8; ++i) c.scale[i] = b[106 + i / 2] >> (i % 2 * 4) & 15;
}

void take_iq1_s(const Byte* b,
                Codes& c) {  // d, 32 indices, then for each 32: their high bits, s, direction of the shift
    for (std::size_t run = 0; run < 8; ++run) {
        const std::uint32_t h = load(b + 34 + 2 * run, 2), down = h >> 15 != 0 ? 255 : 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const std::uint32_t high = h >> (3 * i) & 7;
            c.put(32 * run + 8 * i, kIq1Grid[b[2 + 4 * run + i] | high << 8], 2, 8, down, 4);
        }
        c.scale[2 * run] = c.scale[2 * run + 1] = h >> 12 & 7;
    }
}

void take_iq1_m(const Byte* b, Codes& c) {  // 32 indices, their high bits and shifts, s of each 16 with a quarter of d
    c.d = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const std::uint32_t scales = load(b + 48 + 2 * i, 2);
        c.d |= static_cast<std::uint16_t>(scales >> 12 << (4 * i));
        for (std::size_t k = 0; k < 4; ++k) c.scale[4 * i + k] = scales >> (3 * k) & 7;
    }
    for (std::size_t i = 0; i < 32; ++i) {
        const std::uint32_t h = b[32 + i / 2] >> (i % 2 * 4) & 15u;
        c.put(8 * i, kIq1Grid[b[i] | (h & 7) << 8], 2, 8, h >> 3 != 0 ? 255 : 0, 4);
    }
}

void put_levels3(const Codes& c, Byte* to) {
    std::memset(to, 0, kThreeBitLevels.d);
    for (std::size_t i = 0; i < 256; ++i) {
        const std::size_t run = i % 128 / 32;
        to[i / 128 * 32 + i % 32] |= static_cast<Byte>((c.code[i] & 3) << (2 * run));
        to[kThreeBitLevels.high + i % 32] |= static_cast<Byte>(c.code[i] >> 2 << (i / 128 * 4 + run));
    }
    for (std::size_t i = 0; i < 16; ++i)
        to[kThreeBitLevels.scales + i / 2] |= static_cast<Byte>(c.scale[i] << (i % 2 * 4));
    std::memcpy(to + kThreeBitLevels.d, &c.d, 2);
}

void put_levels4(const Codes& c, Byte* to) {
    for (std::size_t i = 0; i < 128; ++i) {
        const std::size_t at = i / 16 * 32 + i % 16;
        to[i] = static_cast<Byte>(c.code[at] | c.code[at + 16] << 4);
    }
    for (std::size_t i = 0; i < 4; ++i)
        to[kFourBitLevels.scales + i] = static_cast<Byte>(c.scale[2 * i] | c.scale[2 * i + 1] << 4);
    std::memcpy(to + kFourBitLevels.d, &c.d, 2);
}

template <void (*take)(const Byte*, Codes&), void (*put)(const Codes&, Byte*)>
void recode_levels(const Byte* from, Byte* to) {
    Codes c;
    std::memcpy(&c.d, from, 2);  // of all but IQ1_M, which reads its own
    take(from, c);
    put(c, to);
}

// Two affine blocks of 128 weights, -1 to 1 or 2 times d, from 256 codes of two bits: scale d, bias -d.
struct AffineTwo {
    std::array<Byte, 256> code{};
    void put(const Byte* d, Byte* to) const {
        for (std::size_t half = 0; half < 2; ++half, to += 36) {
            for (std::size_t i = 0; i < 32; ++i) {
                const Byte* q = code.data() + 128 * half + 4 * i;
                to[i] = static_cast<Byte>(q[0] | q[1] << 2 | q[2] << 4 | q[3] << 6);
            }
            put_scales(d, to + 32);
        }
    }
    static void put_scales(const Byte* d, Byte* to) {
        std::memcpy(to, d, 2);
        std::memcpy(to + 2, d, 2);
        to[3] ^= 0x80;
    }
};

void recode_tq2_0(const Byte* from, Byte* to) {
    AffineTwo c;
    for (std::size_t i = 0; i < 256; ++i) c.code[i] = from[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    c.put(from + 64, to);
}

// Five digits of base 3 in a byte, the first one that of 81, as a fraction of 243 that is rounded up: 48 bytes with
// five each, by 32 and 16, and four with four.
void recode_tq1_0(const Byte* from, Byte* to) {
    constexpr Byte kPowers[5] = {1, 3, 9, 27, 81};
    AffineTwo c;
    std::size_t at = 0;
    const auto take = [&](std::size_t first, std::size_t bytes, std::size_t digits) {
        for (std::size_t n = 0; n < digits; ++n) {
            for (std::size_t i = 0; i < bytes; ++i) {
                const auto shifted = static_cast<Byte>(from[first + i] * kPowers[n]);
                c.code[at++] = static_cast<Byte>(shifted * 3u >> 8);
            }
        }
    };
    take(0, 32, 5);
    take(32, 16, 5);
    take(48, 4, 4);
    c.put(from + 52, to);
}

void recode_q1_0(const Byte* from, Byte* to) {  // 0 and 2: -d and d
    for (std::size_t i = 0; i < 32; ++i) {
        const int four = from[2 + i / 2] >> (i % 2 * 4) & 15;
        to[i] = static_cast<Byte>((four & 1) << 1 | (four & 2) << 2 | (four & 4) << 3 | (four & 8) << 4);
    }
    AffineTwo::put_scales(from, to + 32);
}

void recode_q2_0(const Byte* from, Byte* to) {
    std::memcpy(to, from + 2, 16);
    AffineTwo::put_scales(from, to + 16);
}

// Each 16 weights' scale, E4M3 without a sign, where NaN is 0; then their codes, the first eight in the low nibbles.
void recode_nvfp4(const Byte* from, Byte* to) {
    for (std::size_t half = 0; half < 2; ++half, to += 18) {
        for (std::size_t sub = 0; sub < 2; ++sub) {
            const Byte* codes = from + 4 + 8 * (2 * half + sub);
            for (std::size_t i = 0; i < 4; ++i) {
                to[8 * sub + i] = static_cast<Byte>((codes[2 * i] & 15) | (codes[2 * i + 1] & 15) << 4);
                to[8 * sub + 4 + i] = static_cast<Byte>(codes[2 * i] >> 4 | (codes[2 * i + 1] & 0xF0));
            }
            const Byte scale = from[2 * half + sub] & 0x7F;
            to[16 + sub] = scale == 0x7F ? 0 : scale;
        }
    }
}

struct Recoding {
    DType from, to;
    std::uint32_t elems;  // that a call takes
    void (*recode)(const Byte* from, Byte* to);
};

constexpr DType kTwoBits64 = affine_dtype({2, 64, DType::F16}), kTwoBits128 = affine_dtype({2, 128, DType::F16});

constexpr Recoding kRecodings[] = {
    {DType::IQ1_S, DType::Iq1Levels, 256, recode_levels<take_iq1_s, put_levels3>},
    {DType::IQ1_M, DType::Iq1Levels, 256, recode_levels<take_iq1_m, put_levels3>},
    {DType::IQ2_XXS, DType::Iq2Levels, 256, recode_levels<take_iq2_xxs, put_levels3>},
    {DType::IQ2_XS, DType::Iq2Levels, 256, recode_levels<take_iq2_xs, put_levels3>},
    {DType::IQ2_S, DType::Iq2Levels, 256, recode_levels<take_iq2_s, put_levels3>},
    {DType::IQ3_XXS, DType::Iq3XxsLevels, 256, recode_levels<take_iq3_xxs, put_levels4>},
    {DType::IQ3_S, DType::Iq3SLevels, 256, recode_levels<take_iq3_s, put_levels4>},
    {DType::TQ1_0, kTwoBits128, 256, recode_tq1_0},
    {DType::TQ2_0, kTwoBits128, 256, recode_tq2_0},
    {DType::Q1_0, kTwoBits128, 128, recode_q1_0},
    {DType::Q2_0, kTwoBits64, 64, recode_q2_0},
    {DType::NVFP4, DType::MlxNvfp4, 64, recode_nvfp4},
};

const Recoding* find(DType dtype) {
    for (const Recoding& r : kRecodings) {
        if (r.from == dtype) return &r;
    }
    return nullptr;
}

}  // namespace

DType recoded_type(DType dtype) {
    const Recoding* r = find(dtype);
    return r ? r->to : dtype;
}

void recode_row(DType dtype, const std::byte* src, std::byte* dst, std::uint64_t n) {
    const Recoding* r = find(dtype);
    if (!r) throw InvalidArgumentError("recode: " + std::string(dtype_info(dtype).name) + " is used as it is");
    const std::uint64_t from_bytes = row_bytes(dtype, r->elems), to_bytes = row_bytes(r->to, r->elems);
    row_bytes(dtype, n);  // checks that n is whole blocks
    for (; n > 0; n -= r->elems, src += from_bytes, dst += to_bytes) {
        r->recode(reinterpret_cast<const Byte*>(src), reinterpret_cast<Byte*>(dst));
    }
}

const std::int8_t* levels_of(DType dtype) {
    switch (dtype) {
        case DType::Iq1Levels:
            return kIq1Levels;
        case DType::Iq2Levels:
            return kIq2Levels;
        case DType::Iq3XxsLevels:
            return kIq3XxsLevels;
        case DType::Iq3SLevels:
            return kIq3SLevels;
        default:
            return nullptr;
    }
}

}  // namespace akunu
