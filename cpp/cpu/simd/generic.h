// Any processor: 16-byte vectors through the compiler, and NEON's integer products where they exist.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/half.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace akunu::cpu::AKUNU_ISA {

constexpr int L = 4;  // floats in a vector
using vf = float __attribute__((vector_size(16)));
using vi = std::int32_t __attribute__((vector_size(16)));
using vu = std::uint32_t __attribute__((vector_size(16)));

static inline vf load(const float* p) {
    vf r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
static inline void store(float* p, vf a) { std::memcpy(p, &a, sizeof a); }
static inline vf set1(float v) { return vf{v, v, v, v}; }
static inline vf max_(vf a, vf b) { return a > b ? a : b; }
static inline vf min_(vf a, vf b) { return a < b ? a : b; }
static inline vi set1i(std::int32_t v) { return vi{v, v, v, v}; }
#if defined(__ARM_NEON)
static inline vf fma(vf a, vf b, vf c) { return vf(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b))); }
static inline vf load_half(const std::uint16_t* p) { return vf(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))); }
static inline void store_half(std::uint16_t* p, vf a) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(float32x4_t(a))));
}
static inline vi round_int(vf a) { return vi(vcvtnq_s32_f32(float32x4_t(a))); }
#else
static inline vf fma(vf a, vf b, vf c) { return a * b + c; }
static inline vf load_half(const std::uint16_t* p) {
    return vf{half_to_float(p[0]), half_to_float(p[1]), half_to_float(p[2]), half_to_float(p[3])};
}
static inline void store_half(std::uint16_t* p, vf a) {
    for (int i = 0; i < L; ++i) p[i] = float_to_half(a[i]);
}
static inline vi round_int(vf a) {  // to nearest, ties to even; |a| < 2^22
    const vf magic = set1(12582912.0f);
    return __builtin_convertvector((a + magic) - magic, vi);
}
#endif
static inline vf load_bf16(const std::uint16_t* p) {
    const vi w = vi{p[0], p[1], p[2], p[3]} << 16;
    vf r;
    std::memcpy(&r, &w, sizeof r);
    return r;
}
static inline vi load_u8(const std::uint8_t* p) { return vi{p[0], p[1], p[2], p[3]}; }
static inline vi load_i8(const std::int8_t* p) { return vi{p[0], p[1], p[2], p[3]}; }
// What a code of 4 bits means, whatever the higher bits are.
static inline vf code_value(vi code) { return __builtin_convertvector((code & 15) - 8, vf); }
static inline vi load_u16(const std::uint16_t* p) { return vi{p[0], p[1], p[2], p[3]}; }
static inline void store_i8(std::int8_t* p, vi a) {
    for (int i = 0; i < L; ++i) p[i] = static_cast<std::int8_t>(a[i]);
}

static inline vf sqrt_(vf a) { return vf{std::sqrt(a[0]), std::sqrt(a[1]), std::sqrt(a[2]), std::sqrt(a[3])}; }
static inline vi load_ints(const std::int32_t* p) {
    vi r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
static inline void store_ints(std::int32_t* p, vi a) { std::memcpy(p, &a, sizeof a); }
static inline void store_i16(std::int16_t* p, vi a, vi b) {
    for (int i = 0; i < L; ++i) {
        p[i] = static_cast<std::int16_t>(a[i]);
        p[L + i] = static_cast<std::int16_t>(b[i]);
    }
}
// The words of a and b in 16 bits: pair i is of words narrow_pair(i) and the next, counted from the first of a to the
// last of b.
static inline vi narrow_pairs(vi a, vi b) {
    const vi first = {a[0], a[2], b[0], b[2]}, second = {a[1], a[3], b[1], b[3]};
    return (first & 0xFFFF) | (second << 16);
}
constexpr std::size_t narrow_pair(std::size_t i) { return 2 * i; }
// sum + the products of two signed words of 16 bits in each lane.
static inline vi add_pairs(vi sum, vi a, vi b) {
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}

#include "cpu/simd/common.h"

// The two halves of a·m.
static inline void mul_wide(vu a, std::uint32_t m, vu& low, vu& high) {
    using Wide = std::uint64_t __attribute__((vector_size(32)));
    const Wide p = __builtin_convertvector(a, Wide) * m;
    low = __builtin_convertvector(p, vu);
    high = __builtin_convertvector(p >> 32, vu);
}
// Transposes the 4x4 words in each 16 bytes.
static inline void transpose4(vu (&w)[4]) {
    std::uint32_t t[4][4];
    std::memcpy(t, w, sizeof t);
    for (int i = 0; i < 4; ++i) w[i] = vu{t[0][i], t[1][i], t[2][i], t[3][i]};
}

// Four bytes of each of the L rows of a group.
using vb = std::uint8_t __attribute__((vector_size(16)));
static inline vb load_bytes(const std::uint8_t* p) {
    vb r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
static inline vb and_bytes(vb a, std::uint8_t mask) { return a & mask; }
static inline vb or_bytes(vb a, vb b) { return a | b; }
static inline vb add_bytes(vb a, vb b) { return a + b; }
static inline vb sub_bytes(vb a, std::uint8_t n) { return a - n; }
static inline vb add_bytes(vb a, std::uint8_t n) { return a + n; }
static inline void store_bytes(std::byte* p, vb a) { std::memcpy(p, &a, sizeof a); }
template <int kBits>
static inline vb shift_right(vb a) {
    return a >> kBits;
}
template <int kBits>
static inline vb shift_left(vb a) {
    return a << kBits;
}
static inline vb lookup16(const std::int8_t* table, vb index) {
#if defined(__ARM_NEON)
    return vb(vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(table), uint8x16_t(index))));
#else
    vb r;
    for (int i = 0; i < 16; ++i) r[i] = static_cast<std::uint8_t>(table[index[i] & 15]);
    return r;
#endif
}

// Sum over each lane's four bytes of w·a, both int8.
static inline vi dot4(vi acc, vb w, const std::int8_t* a) {
#if defined(__ARM_FEATURE_DOTPROD)
    std::int32_t v;
    std::memcpy(&v, a, 4);
    return vi(vdotq_s32(int32x4_t(acc), vreinterpretq_s8_u8(uint8x16_t(w)), vreinterpretq_s8_s32(vdupq_n_s32(v))));
#elif defined(__ARM_NEON)
    std::int32_t v;
    std::memcpy(&v, a, 4);
    const int8x16_t x = vreinterpretq_s8_u8(uint8x16_t(w)), y = vreinterpretq_s8_s32(vdupq_n_s32(v));
    const int16x8_t lo = vmull_s8(vget_low_s8(x), vget_low_s8(y)), hi = vmull_s8(vget_high_s8(x), vget_high_s8(y));
    return vi(vaddq_s32(int32x4_t(acc), vpaddq_s32(vpaddlq_s16(lo), vpaddlq_s16(hi))));
#else
    std::int8_t bytes[16];
    std::memcpy(bytes, &w, 16);
    for (int i = 0; i < L; ++i) {
        acc[i] += bytes[4 * i] * a[0] + bytes[4 * i + 1] * a[1] + bytes[4 * i + 2] * a[2] + bytes[4 * i + 3] * a[3];
    }
    return acc;
#endif
}

template <int kSteps>
struct DotBytes {
    using Weights = vb;
    vi acc{};
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        acc = dot4(acc, w, a);
    }
    vi sum() const { return acc; }
};

using SignedBytes = vb;
constexpr int kSignedOffset = 0;

template <int kMax, int kSteps>
    requires(kMax < 128)
using DotU = DotBytes<kSteps>;
template <int kSteps>
using DotS = DotBytes<kSteps>;

constexpr int kBiasedMax = 0;  // products of signed bytes need no bias
template <int kMax, int kSteps>
struct DotBiased;

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Products of 2x8 by 8x2 matrices: two rows, two tokens, eight elements.
template <int M>
    requires(M % 2 == 0)
struct DotPairs<M> {
    static constexpr bool kAvailable = true;
    int32x4_t low[M / 2], high[M / 2];  // rows 0 and 1, rows 2 and 3, times a pair of tokens
    vb first;
    template <int kStep>
    void step(vb w, const std::int8_t* const* x, std::size_t at) {
        if constexpr (kStep % 2 == 0) {
            first = w;
            return;
        }
        const uint32x4_t a = vreinterpretq_u32_u8(uint8x16_t(first)), b = vreinterpretq_u32_u8(uint8x16_t(w));
        const int8x16_t rows01 = vreinterpretq_s8_u32(vzip1q_u32(a, b)),
                        rows23 = vreinterpretq_s8_u32(vzip2q_u32(a, b));
        for (int i = 0; i < M / 2; ++i) {
            const int8x16_t tokens = vcombine_s8(vld1_s8(x[2 * i] + at - 4), vld1_s8(x[2 * i + 1] + at - 4));
            low[i] = vmmlaq_s32(kStep == 1 ? vdupq_n_s32(0) : low[i], rows01, tokens);
            high[i] = vmmlaq_s32(kStep == 1 ? vdupq_n_s32(0) : high[i], rows23, tokens);
        }
    }
    vi sum(int m) const {
        return vi(m % 2 == 0 ? vuzp1q_s32(low[m / 2], high[m / 2]) : vuzp2q_s32(low[m / 2], high[m / 2]));
    }
};
#endif

// How far ahead weights are fetched, in bytes: into the first-level cache, and how much further into the second.
constexpr std::size_t kFetchNear = 4096, kFetchFar = 0;
constexpr bool kPairTiles = false;
constexpr int kByteColumns = 1;
constexpr bool kSharedRuns = false;  // several integer tiles share what was taken apart
constexpr bool kCommonLast = false;  // a block's scales multiply as integers
constexpr int kBytePanelTiles = 3;   // from which on weights are taken apart into panels of bytes
#if defined(__ARM_NEON)
constexpr int kVectorRegisters = 32;
constexpr int kTokenTile = 8, kFloatTile = 8;
constexpr bool kSmallTokenTiles = true;  // what a tile leaves over has tiles of half its tokens
#else
constexpr int kVectorRegisters = 16;
constexpr int kTokenTile = 4, kFloatTile = 4;
constexpr bool kSmallTokenTiles = false;  // hardly anyone's: it shall compile fast
#endif
constexpr bool kFixedPoint = false, kFixedMatmul = false;

}  // namespace akunu::cpu::AKUNU_ISA
