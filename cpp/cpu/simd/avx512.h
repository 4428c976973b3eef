// AVX-512 (F, BW, DQ, VL), with VNNI where the translation unit is compiled for it.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/half.h"

namespace akunu::cpu::AKUNU_ISA {

constexpr int L = 16;  // floats in a vector
using vf = __m512;
using vi = std::int32_t __attribute__((vector_size(64)));
using vu = std::uint32_t __attribute__((vector_size(64)));

static inline vf load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf set1(float v) { return _mm512_set1_ps(v); }
static inline vi set1i(std::int32_t v) { return vi(_mm512_set1_epi32(v)); }
// These are a > b ? a : b, and a < b ? a : b.
static inline vf max_(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf min_(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf load_half(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
static inline void store_half(std::uint16_t* p, vf a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf load_bf16(const std::uint16_t* p) {
    const __m512i w = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}
static inline vi load_u8(const std::uint8_t* p) {
    return vi(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
static inline vi load_i8(const std::int8_t* p) {
    return vi(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// What a code of 4 bits means, whatever the higher bits are.
static inline vf code_value(vi code) {
    const vf values = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return _mm512_permutexvar_ps(__m512i(code), values);
}
static inline vi load_u16(const std::uint16_t* p) {
    return vi(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}
static inline vi round_int(vf a) { return vi(_mm512_cvtps_epi32(a)); }
static inline void store_i8(std::int8_t* p, vi a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(__m512i(a)));
}

static inline vf sqrt_(vf a) { return _mm512_sqrt_ps(a); }
static inline vi load_ints(const std::int32_t* p) { return vi(_mm512_loadu_si512(p)); }
static inline void store_ints(std::int32_t* p, vi a) { _mm512_storeu_si512(p, __m512i(a)); }
static inline void store_i16(std::int16_t* p, vi a, vi b) {
    const __m512i both[2] = {__m512i(a), __m512i(b)};
    for (int i = 0; i < 2; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + i * L), _mm512_cvtsepi32_epi16(both[i]));
    }
}
// The words of a and b in 16 bits: pair i is of words narrow_pair(i) and the next, counted from the first of a to the
// last of b.
static inline vi narrow_pairs(vi a, vi b) { return vi(_mm512_packs_epi32(__m512i(a), __m512i(b))); }
constexpr std::size_t narrow_pair(std::size_t i) { return i / 2 % 2 * L + i / 4 * 4 + i % 2 * 2; }
// sum + the products of two signed words of 16 bits in each lane.
static inline vi add_pairs(vi sum, vi a, vi b) {
#ifdef __AVX512VNNI__
    // Not the intrinsic: GCC copies its sums from register to register, and to the stack.
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return sum + vi(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#endif
}

#include "cpu/simd/common.h"

// The two halves of a·m.
static inline void mul_wide(vu a, std::uint32_t m, vu& low, vu& high) {
    const __m512i x = __m512i(a), k = _mm512_set1_epi32(static_cast<int>(m));
    const __m512i even = _mm512_mul_epu32(x, k), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), k);
    low = vu(_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32)));
    high = vu(_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd));
}
// Transposes the 4x4 words in each 16 bytes.
static inline void transpose4(vu (&w)[4]) {
    const __m512i a = __m512i(w[0]), b = __m512i(w[1]), c = __m512i(w[2]), d = __m512i(w[3]);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    const __m512i ab2 = _mm512_unpackhi_epi32(a, b), cd2 = _mm512_unpackhi_epi32(c, d);
    w[0] = vu(_mm512_unpacklo_epi64(ab, cd));
    w[1] = vu(_mm512_unpackhi_epi64(ab, cd));
    w[2] = vu(_mm512_unpacklo_epi64(ab2, cd2));
    w[3] = vu(_mm512_unpackhi_epi64(ab2, cd2));
}

// Four bytes of each of the L rows of a group.
using vb = __m512i;
static inline vb load_bytes(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
static inline vb and_bytes(vb a, std::uint8_t mask) {
    return _mm512_and_si512(a, _mm512_set1_epi8(static_cast<char>(mask)));
}
static inline vb or_bytes(vb a, vb b) { return _mm512_or_si512(a, b); }
static inline vb add_bytes(vb a, vb b) { return _mm512_add_epi8(a, b); }
static inline vb sub_bytes(vb a, std::uint8_t n) { return _mm512_sub_epi8(a, _mm512_set1_epi8(static_cast<char>(n))); }
static inline vb add_bytes(vb a, std::uint8_t n) { return _mm512_add_epi8(a, _mm512_set1_epi8(static_cast<char>(n))); }
static inline void store_bytes(std::byte* p, vb a) { _mm512_storeu_si512(reinterpret_cast<__m512i*>(p), a); }
template <int kBits>
static inline vb shift_right(vb a) {  // bits cross bytes: mask afterwards
    return _mm512_srli_epi16(a, kBits);
}
template <int kBits>
static inline vb shift_left(vb a) {
    return _mm512_slli_epi16(a, kBits);
}
static inline vb lookup16(const std::int8_t* table, vb index) {
    const __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return _mm512_shuffle_epi8(t, index);
}
static inline __m512i broadcast4(const std::int8_t* a) {
    std::int32_t v;
    std::memcpy(&v, a, 4);
    return _mm512_set1_epi32(v);
}

// Sums w·a over a (half) block: kSteps groups of four bytes a lane. DotU: weights 0..kMax. DotS: any int8 weight.
// DotBiased: weights -kMax..kMax, up to kBiasedMax, and activations as unsigned bytes that are 128 too much; the sum
// starts at what makes up for that.
#ifdef __AVX512VNNI__

template <int kSteps>
struct DotUnsigned {
    using Weights = vb;
    __m512i acc = _mm512_setzero_si512();
    void start(vi sum) { acc = __m512i(sum); }
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        acc = _mm512_dpbusd_epi32(acc, w, broadcast4(a));
    }
    vi sum() const { return vi(acc); }
};

struct SignedBytes {
    __m512i biased;  // w + 128
    SignedBytes() = default;
    SignedBytes(vb w) : biased(_mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(0x80)))) {}
};
constexpr int kSignedOffset = 128;  // DotS sums (w + 128)·a

template <int kSteps>
struct DotS {
    using Weights = SignedBytes;
    __m512i acc = _mm512_setzero_si512();
    void start(vi sum) { acc = __m512i(sum); }
    template <int kStep>
    void step(const SignedBytes& w, const std::int8_t* a) {
        acc = _mm512_dpbusd_epi32(acc, w.biased, broadcast4(a));
    }
    vi sum() const { return vi(acc); }
};

constexpr int kBiasedMax = 128;

template <int kSteps>
struct DotShifted {
    using Weights = vb;
    __m512i acc;
    void start(vi sum) { acc = __m512i(sum); }
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        acc = _mm512_dpbusd_epi32(acc, broadcast4(a), w);
    }
    vi sum() const { return vi(acc); }
};

template <int kMax, int kSteps>
using DotU = DotUnsigned<kSteps>;
template <int kMax, int kSteps>
using DotBiased = DotShifted<kSteps>;

#else

// vpmaddubsw adds two products in 16 bits: |sum| <= 2·kMax·127. So many of those fit before they must be widened. A
// power of two of steps, up to all, so that ranges of weights that are alike share code.
static constexpr int fitting(int most, int steps) {
    const int fit = 32767 / (2 * most);
    return fit >= steps ? steps : static_cast<int>(std::bit_floor(static_cast<unsigned>(fit)));
}

template <int kFit, int kSteps>
struct DotUnsigned {
    using Weights = vb;
    static_assert(kFit >= 1);
    __m512i acc = _mm512_setzero_si512(), narrow = _mm512_setzero_si512();
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        const __m512i t = _mm512_maddubs_epi16(w, broadcast4(a));
        narrow = kStep % kFit == 0 ? t : _mm512_add_epi16(narrow, t);
        if constexpr (kStep % kFit == kFit - 1 || kStep == kSteps - 1) {
            const __m512i wide = _mm512_madd_epi16(narrow, _mm512_set1_epi16(1));
            acc = kStep < kFit ? wide : _mm512_add_epi32(acc, wide);
        }
    }
    vi sum() const { return vi(acc); }
};

struct SignedBytes {
    __m512i magnitude;
    __mmask64 negative;
    SignedBytes() = default;
    SignedBytes(vb w) : magnitude(_mm512_abs_epi8(w)), negative(_mm512_movepi8_mask(w)) {}
};
constexpr int kSignedOffset = 0;

template <int kSteps>
struct DotS {
    using Weights = SignedBytes;
    __m512i acc = _mm512_setzero_si512();
    template <int kStep>
    void step(const SignedBytes& w, const std::int8_t* a) {
        const __m512i b = broadcast4(a);
        const __m512i s = _mm512_mask_sub_epi8(b, w.negative, _mm512_setzero_si512(), b);
        acc = _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w.magnitude, s), _mm512_set1_epi16(1)));
    }
    vi sum() const { return vi(acc); }
};

constexpr int kBiasedMax = 32767 / (2 * 255);

template <int kFit, int kSteps>
struct DotShifted {
    using Weights = vb;
    static_assert(kFit >= 1);
    __m512i acc, narrow = _mm512_setzero_si512();
    void start(vi sum) { acc = __m512i(sum); }
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        const __m512i t = _mm512_maddubs_epi16(broadcast4(a), w);
        narrow = kStep % kFit == 0 ? t : _mm512_add_epi16(narrow, t);
        if constexpr (kStep % kFit == kFit - 1 || kStep == kSteps - 1) {
            acc = _mm512_add_epi32(acc, _mm512_madd_epi16(narrow, _mm512_set1_epi16(1)));
        }
    }
    vi sum() const { return vi(acc); }
};

template <int kMax, int kSteps>
using DotU = DotUnsigned<fitting(kMax * 127, kSteps), kSteps>;
template <int kMax, int kSteps>
using DotBiased = DotShifted<fitting(kMax * 255, kSteps), kSteps>;

#endif

// How far ahead weights are fetched, in bytes: into the first-level cache, and how much further into the second.
#ifdef __AVX512VNNI__
constexpr std::size_t kFetchNear = 2048, kFetchFar = 8192;
constexpr bool kPairTiles = true;  // integer tiles of two groups
#else
constexpr std::size_t kFetchNear = 4096, kFetchFar = 0;
constexpr bool kPairTiles = false;
#endif
constexpr int kByteColumns = 2;      // vectors of a panel of bytes that a tile takes together
constexpr bool kSharedRuns = false;  // several integer tiles share what was taken apart
constexpr bool kCommonLast = false;  // a block's scales multiply as integers
constexpr int kBytePanelTiles = 3;   // from which on weights are taken apart into panels of bytes
constexpr int kVectorRegisters = 32;
constexpr bool kSmallTokenTiles = true;  // what a tile leaves over has tiles of half its tokens
constexpr int kTokenTile = 8;            // tokens of a matmul tile: their accumulators fill the registers
constexpr int kFloatTile = 12;           // the same where a tile is two vectors of floats wide
constexpr bool kFixedPoint = true;       // sixteen-bit products are twice as many as those of floats
#ifdef __AVX512VNNI__
constexpr bool kFixedMatmul = true;  // of float weights, likewise
#else
constexpr bool kFixedMatmul = false;  // they take two instructions on the units that floats have
#endif

}  // namespace akunu::cpu::AKUNU_ISA
