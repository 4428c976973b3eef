#include "core/dequantize.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/half.h"
#include "core/recode.h"

// A fused multiply-add rounds once where the reference rounds twice. GCC has no pragma for one
// file; the build passes -ffp-contract=off.
#if defined(__clang__)
#pragma clang fp contract(off)
#endif

namespace akunu {
namespace {

// Signed values of the non-linear 4-bit code of IQ4_NL and IQ4_XS.
constexpr std::array<float, 16> kIq4Values{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Twice the E2M1 values of the OCP Microscaling specification 1.0, table 5; the block scale below
// is halved to match, which keeps both integers and powers of two exact.
constexpr std::array<float, 16> kMxfp4Values{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

uint8_t u8(const std::byte* src) { return static_cast<uint8_t>(*src); }

uint16_t u16(const std::byte* src) {
    uint16_t value;
    std::memcpy(&value, src, sizeof value);
    return value;
}

uint32_t u32(const std::byte* src) {
    uint32_t value;
    std::memcpy(&value, src, sizeof value);
    return value;
}

float f16(const std::byte* src) { return half_to_float(u16(src)); }

float i8(const std::byte* src) { return static_cast<float>(static_cast<int8_t>(*src)); }

// Half of the E8M0 scale 2^(exponent - 127); exponents 0 and 1 give subnormals.
float e8m0_half(uint8_t exponent) {
    const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : static_cast<uint32_t>(exponent - 1) << 23;
    return std::bit_cast<float>(bits);
}

// ---- one element ---------------------------------------------------------------------------

void f16_row(const std::byte* src, float* dst, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) dst[i] = f16(src + 2 * i);
}

void bf16_row(const std::byte* src, float* dst, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) dst[i] = bf16_to_float(u16(src + 2 * i));
}

// ---- blocks of 32: byte j holds element j (low nibble) and j + 16 (high nibble) ------------

void q4_0_block(const std::byte* src, float* dst) {  // d(q - 8)
    const float d = f16(src);
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 2 + j);
        dst[j] = d * static_cast<float>((q & 15) - 8);
        dst[j + 16] = d * static_cast<float>((q >> 4) - 8);
    }
}

void q4_1_block(const std::byte* src, float* dst) {  // dq + m
    const float d = f16(src);
    const float m = f16(src + 2);
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 4 + j);
        dst[j] = d * static_cast<float>(q & 15) + m;
        dst[j + 16] = d * static_cast<float>(q >> 4) + m;
    }
}

// The fifth bit of element i is bit i of `high`.
int fifth_bit(uint32_t high, int i) { return static_cast<int>((high >> i) & 1u) << 4; }

void q5_0_block(const std::byte* src, float* dst) {  // d(q - 16)
    const float d = f16(src);
    const uint32_t high = u32(src + 2);
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 6 + j);
        dst[j] = d * static_cast<float>(((q & 15) | fifth_bit(high, j)) - 16);
        dst[j + 16] = d * static_cast<float>(((q >> 4) | fifth_bit(high, j + 16)) - 16);
    }
}

void q5_1_block(const std::byte* src, float* dst) {  // dq + m
    const float d = f16(src);
    const float m = f16(src + 2);
    const uint32_t high = u32(src + 4);
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 8 + j);
        dst[j] = d * static_cast<float>((q & 15) | fifth_bit(high, j)) + m;
        dst[j + 16] = d * static_cast<float>((q >> 4) | fifth_bit(high, j + 16)) + m;
    }
}

void q8_0_block(const std::byte* src, float* dst) {  // dq
    const float d = f16(src);
    for (int j = 0; j < 32; ++j) dst[j] = i8(src + 2 + j) * d;
}

void iq4_nl_block(const std::byte* src, float* dst) {  // d * value[q]
    const float d = f16(src);
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 2 + j);
        dst[j] = d * kIq4Values[q & 15];
        dst[j + 16] = d * kIq4Values[q >> 4];
    }
}

void mxfp4_block(const std::byte* src, float* dst) {  // 2^(e - 127) * value[q]
    const float d = e8m0_half(u8(src));
    for (int j = 0; j < 16; ++j) {
        const int q = u8(src + 1 + j);
        dst[j] = d * kMxfp4Values[q & 15];
        dst[j + 16] = d * kMxfp4Values[q >> 4];
    }
}

// ---- super-blocks of 256 -------------------------------------------------------------------

// Two-bit field of element i: per half of 128, 32 bytes hold element 32 j + l at bits 2j of byte l.
int two_bits(const std::byte* qs, int i) {
    const int half = i / 128;
    const int shift = 2 * (i % 128 / 32);
    return (u8(qs + 32 * half + i % 32) >> shift) & 3;
}

void q2_k_block(const std::byte* src, float* dst) {  // d(s & 15)q - dmin(s >> 4)
    const std::byte* scales = src;
    const std::byte* qs = src + 16;
    const float d = f16(src + 80);
    const float dmin = f16(src + 82);
    for (int group = 0; group < 16; ++group) {
        const int s = u8(scales + group);
        const float scale = d * static_cast<float>(s & 15);
        const float min = dmin * static_cast<float>(s >> 4);
        for (int i = 16 * group; i < 16 * group + 16; ++i) {
            dst[i] = scale * static_cast<float>(two_bits(qs, i)) - min;
        }
    }
}

// Six-bit scale of group t of Q3_K: low four bits in nibbles of bytes 0-7, high two in bytes 8-11.
int q3_k_scale(const std::byte* scales, int t) {
    const int low = t < 8 ? u8(scales + t) & 15 : u8(scales + t - 8) >> 4;
    const int high = (u8(scales + 8 + t % 4) >> (2 * (t / 4))) & 3;
    return (low | high << 4) - 32;
}

void q3_k_block(const std::byte* src, float* dst) {  // d(s - 32)(q - 4)
    const std::byte* hmask = src;
    const std::byte* qs = src + 32;
    const std::byte* scales = src + 96;
    const float d = f16(src + 108);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(q3_k_scale(scales, group));
        for (int i = 16 * group; i < 16 * group + 16; ++i) {
            const int high = (u8(hmask + i % 32) >> (i / 32)) & 1;
            dst[i] = scale * static_cast<float>(two_bits(qs, i) - (high != 0 ? 0 : 4));
        }
    }
}

// Four-bit field of element i of Q4_K and Q5_K: each 32 bytes hold 64 elements, low nibbles first.
int nibble(const std::byte* qs, int i) {
    const int byte = u8(qs + 32 * (i / 64) + i % 32);
    return i % 64 < 32 ? byte & 15 : byte >> 4;
}

void q4_k_block(const std::byte* src, float* dst) {  // d s q - dmin m
    const float d = f16(src);
    const float dmin = f16(src + 2);
    const std::byte* qs = src + 16;
    for (int j = 0; j < 8; ++j) {
        const ScaleMin sm = scale_min(src + 4, static_cast<std::uint32_t>(j));
        const float scale = d * static_cast<float>(sm.scale);
        const float min = dmin * static_cast<float>(sm.min);
        for (int i = 32 * j; i < 32 * j + 32; ++i) {
            dst[i] = scale * static_cast<float>(nibble(qs, i)) - min;
        }
    }
}

void q5_k_block(const std::byte* src, float* dst) {  // d s q - dmin m
    const float d = f16(src);
    const float dmin = f16(src + 2);
    const std::byte* qh = src + 16;
    const std::byte* qs = src + 48;
    for (int j = 0; j < 8; ++j) {
        const ScaleMin sm = scale_min(src + 4, static_cast<std::uint32_t>(j));
        const float scale = d * static_cast<float>(sm.scale);
        const float min = dmin * static_cast<float>(sm.min);
        for (int l = 0; l < 32; ++l) {
            const int q = nibble(qs, 32 * j + l) | fifth_bit(u8(qh + l), j);
            dst[32 * j + l] = scale * static_cast<float>(q) - min;
        }
    }
}

void q6_k_block(const std::byte* src, float* dst) {  // d s(q - 32)
    const std::byte* ql = src;
    const std::byte* qh = src + 128;
    const std::byte* scales = src + 192;
    const float d = f16(src + 208);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * i8(scales + group);
        for (int i = 16 * group; i < 16 * group + 16; ++i) {
            const int half = i / 128;
            const int byte = u8(ql + 64 * half + i % 64);
            const int low = i % 128 < 64 ? byte & 15 : byte >> 4;
            dst[i] = scale * static_cast<float>((low | two_bits(qh, i) << 4) - 32);
        }
    }
}

void iq4_xs_block(const std::byte* src, float* dst) {  // d(s - 32) * value[q]
    const float d = f16(src);
    const uint32_t scales_high = u16(src + 2);
    const std::byte* scales_low = src + 4;
    const std::byte* qs = src + 8;
    for (int j = 0; j < 8; ++j) {
        const int low = (u8(scales_low + j / 2) >> (4 * (j % 2))) & 15;
        const int high = static_cast<int>((scales_high >> (2 * j)) & 3u);
        const float scale = d * static_cast<float>((low | high << 4) - 32);
        for (int l = 0; l < 16; ++l) {
            const int q = u8(qs + 16 * j + l);
            dst[32 * j + l] = scale * kIq4Values[q & 15];
            dst[32 * j + l + 16] = scale * kIq4Values[q >> 4];
        }
    }
}

// ---- types that are recoded, and what they become ---------------------------------------------

// d(2s + 1) / 8 * level: every product is exact, so that their order does not matter.
template <DType dtype>
void three_bit_levels(const std::byte* src, float* dst) {
    const std::int8_t* levels = levels_of(dtype);
    const float d = f16(src + kThreeBitLevels.d) * 0.125f;
    for (int i = 0; i < 256; ++i) {
        const int high = u8(src + kThreeBitLevels.high + i % 32) >> (i / 32) & 1;
        const int s = u8(src + kThreeBitLevels.scales + i / 32) >> (i / 16 % 2 * 4) & 15;
        dst[i] = d * static_cast<float>(2 * s + 1) * static_cast<float>(levels[two_bits(src, i) | high << 2]);
    }
}

template <DType dtype>
void four_bit_levels(const std::byte* src, float* dst) {
    const std::int8_t* levels = levels_of(dtype);
    const float d = f16(src + kFourBitLevels.d) * 0.125f;
    for (int run = 0; run < 8; ++run) {
        const int s = u8(src + kFourBitLevels.scales + run / 2) >> (run % 2 * 4) & 15;
        const float scale = d * static_cast<float>(2 * s + 1);
        for (int l = 0; l < 16; ++l) {
            const int q = u8(src + 16 * run + l);
            dst[32 * run + l] = scale * static_cast<float>(levels[q & 15]);
            dst[32 * run + l + 16] = scale * static_cast<float>(levels[q >> 4]);
        }
    }
}

// d(q - 1), with q of two bits, from the affine blocks that these weights become; where those have a zero, here it has
// the sign of d.
void centred_block(const DTypeInfo& affine, const std::byte* src, float* dst) {
    const float d = f16(src + affine.planes.codes);
    for (uint32_t i = 0; i < affine.block_elems; ++i) {
        dst[i] = d * static_cast<float>((u8(src + i / 4) >> (i % 4 * 2) & 3) - 1);
    }
}

void recoded_row(const DTypeInfo& info, const DTypeInfo& to, const std::byte* src, float* dst, uint64_t n) {
    std::array<std::byte, 256> memory;  // of a block, which may become several
    const uint64_t bytes = row_bytes(info.id, n);
    for (uint64_t at = 0; at < bytes; at += info.block_bytes) {
        recode_row(info.id, src + at, memory.data(), info.block_elems);
        const std::byte* block = memory.data();
        for (uint32_t i = 0; i < info.block_elems;
             i += to.block_elems, block += to.block_bytes, dst += to.block_elems) {
            if (to.planar()) {
                centred_block(to, block, dst);
            } else {
                dequantize_row(to.id, block, dst, to.block_elems);
            }
        }
    }
}

// ---- planar types: codes, then scales and biases ---------------------------------------------

// E4M3 of the OCP 8-bit floating point specification: no infinities, one NaN.
float f8_e4m3(uint8_t bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
    const float value = exponent == 0
                            ? static_cast<float>(mantissa) * 0x1p-9f
                            : std::bit_cast<float>(static_cast<uint32_t>((exponent + 120) << 23 | mantissa << 20));
    return bits & 0x80 ? -value : value;
}

void nvfp4_block(const std::byte* src, float* dst) {  // E4M3 / 2 * value[q], of each 16
    for (int run = 0; run < 4; ++run) {
        const auto bits = static_cast<uint8_t>(u8(src + run) & 0x7F);
        const float scale = bits == 0x7F ? 0.0f : f8_e4m3(bits) * 0.5f;
        for (int j = 0; j < 8; ++j) {
            const int q = u8(src + 4 + 8 * run + j);
            dst[16 * run + j] = scale * kMxfp4Values[q & 15];
            dst[16 * run + j + 8] = scale * kMxfp4Values[q >> 4];
        }
    }
}

float scale_value(DType type, const std::byte* src) {
    switch (type) {
        case DType::F8E8M0:
            return 2 * e8m0_half(u8(src));
        case DType::F8E4M3:
            return f8_e4m3(u8(src));
        case DType::F16:
            return f16(src);
        case DType::BF16:
            return bf16_to_float(u16(src));
        default:
            return std::bit_cast<float>(u32(src));
    }
}

void affine_block(const AffineType& type, const Planes& planes, const std::byte* src, float* dst) {  // sq + b
    const float scale = scale_value(type.scales, src + planes.codes);
    const float bias = scale_value(type.scales, src + planes.codes + planes.scales);
    const uint64_t mask = (1u << type.bits) - 1;
    for (uint32_t i = 0; i < type.group; i += 8) {  // as many bytes as a code has bits
        uint64_t codes = 0;
        std::memcpy(&codes, src + i / 8 * type.bits, type.bits);
        for (uint32_t j = 0; j < 8; ++j) {
            dst[i + j] = scale * static_cast<float>(codes >> (j * type.bits) & mask) + bias;
        }
    }
}

// Scale times code; codes are E2M1, of 4 bits, or E4M3.
void float_code_block(const DTypeInfo& info, const std::byte* src, float* dst) {
    const uint32_t scale_bytes = dtype_info(info.scale_type).block_bytes;
    const uint32_t run = info.block_elems / (info.planes.scales / scale_bytes);
    for (uint32_t i = 0; i < info.block_elems; ++i) {
        const float scale = scale_value(info.scale_type, src + info.planes.codes + i / run * scale_bytes);
        const float code =
            info.has_float_codes() ? f8_e4m3(u8(src + i)) : 0.5f * kMxfp4Values[u8(src + i / 2) >> (i % 2 * 4) & 15];
        dst[i] = scale * code;
    }
}

using BlockFn = void (*)(const std::byte*, float*);

BlockFn block_function(DType dtype) {
    switch (dtype) {
        case DType::F32:  // rows of these are read at once
        case DType::F16:
        case DType::BF16:
            break;
        case DType::Q4_0:
            return q4_0_block;
        case DType::Q4_1:
            return q4_1_block;
        case DType::Q5_0:
            return q5_0_block;
        case DType::Q5_1:
            return q5_1_block;
        case DType::Q8_0:
            return q8_0_block;
        case DType::Q2_K:
            return q2_k_block;
        case DType::Q3_K:
            return q3_k_block;
        case DType::Q4_K:
            return q4_k_block;
        case DType::Q5_K:
            return q5_k_block;
        case DType::Q6_K:
            return q6_k_block;
        case DType::IQ4_NL:
            return iq4_nl_block;
        case DType::IQ4_XS:
            return iq4_xs_block;
        case DType::MXFP4:
            return mxfp4_block;
        case DType::NVFP4:
            return nvfp4_block;
        case DType::Iq1Levels:
            return three_bit_levels<DType::Iq1Levels>;
        case DType::Iq2Levels:
            return three_bit_levels<DType::Iq2Levels>;
        case DType::Iq3XxsLevels:
            return four_bit_levels<DType::Iq3XxsLevels>;
        case DType::Iq3SLevels:
            return four_bit_levels<DType::Iq3SLevels>;
        case DType::IQ1_S:  // are recoded first
        case DType::IQ1_M:
        case DType::IQ2_XXS:
        case DType::IQ2_XS:
        case DType::IQ2_S:
        case DType::IQ3_XXS:
        case DType::IQ3_S:
        case DType::TQ1_0:
        case DType::TQ2_0:
        case DType::Q1_0:
        case DType::Q2_0:
            break;
        case DType::I8:
        case DType::I16:
        case DType::I32:
        case DType::I64:
        case DType::F64:
        case DType::Bool:
        case DType::U8:
        case DType::U16:
        case DType::U32:
        case DType::U64:
        case DType::F8E4M3:
        case DType::F8E5M2:
        case DType::F8E8M0:
        case DType::MlxMxfp4:
        case DType::MlxNvfp4:
        case DType::MlxMxfp8:
        case DType::F8Group32:
        case DType::F8Group128:
            break;
    }
    return nullptr;
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* src, float* dst, uint64_t n) {
    if (dtype == DType::F32) {
        if (n != 0) std::memcpy(dst, src, n * sizeof(float));
        return;
    }
    if (dtype == DType::F16) return f16_row(src, dst, n);
    if (dtype == DType::BF16) return bf16_row(src, dst, n);
    if (dtype == DType::F8E8M0) {
        for (uint64_t i = 0; i < n; ++i) dst[i] = scale_value(dtype, src + i);
        return;
    }
    const DTypeInfo& info = dtype_info(dtype);
    if (const DType to = recoded_type(dtype); to != dtype && dtype != DType::NVFP4)
        return recoded_row(info, dtype_info(to), src, dst, n);
    if (info.planar()) {
        const auto affine = affine_type(dtype);
        const uint64_t bytes = row_bytes(dtype, n);
        for (uint64_t at = 0; at < bytes; at += info.block_bytes, dst += info.block_elems) {
            affine ? affine_block(*affine, info.planes, src + at, dst) : float_code_block(info, src + at, dst);
        }
        return;
    }
    const BlockFn block = block_function(dtype);
    if (block == nullptr) {
        throw InvalidArgumentError("dequantize: " + std::string(info.name) + " is not a weight type");
    }
    const uint64_t bytes = row_bytes(dtype, n);  // checks that n is whole blocks
    for (uint64_t at = 0; at < bytes; at += info.block_bytes, dst += info.block_elems) {
        block(src + at, dst);
    }
}

}  // namespace akunu
