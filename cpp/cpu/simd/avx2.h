// AVX2 with FMA and F16C, with AVX-VNNI where the translation unit is compiled for it.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/half.h"

namespace akunu::cpu::AKUNU_ISA {

constexpr int L = 8;  // floats in a vector
using vf = __m256;
using vi = std::int32_t __attribute__((vector_size(32)));
using vu = std::uint32_t __attribute__((vector_size(32)));

static inline vf load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf set1(float v) { return _mm256_set1_ps(v); }
static inline vi set1i(std::int32_t v) { return vi(_mm256_set1_epi32(v)); }
// These are a > b ? a : b, and a < b ? a : b.
static inline vf max_(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf min_(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf load_half(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline void store_half(std::uint16_t* p, vf a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
static inline vi load_u16(const std::uint16_t* p) {
    return vi(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
static inline vf load_bf16(const std::uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(__m256i(load_u16(p)), 16));
}
static inline vi load_u8(const std::uint8_t* p) {
    return vi(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
static inline vi load_i8(const std::int8_t* p) {
    return vi(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
// What a code of 4 bits means, whatever the higher bits are.
static inline vf code_value(vi code) { return __builtin_convertvector((code & 15) - 8, vf); }
static inline vi round_int(vf a) { return vi(_mm256_cvtps_epi32(a)); }
static inline void store_i8(std::int8_t* p, vi a) {
    const __m256i x = __m256i(a);
    const __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(w, w));
}

static inline vf sqrt_(vf a) { return _mm256_sqrt_ps(a); }
static inline vi load_ints(const std::int32_t* p) {
    return vi(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
static inline void store_ints(std::int32_t* p, vi a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), __m256i(a)); }
static inline void store_i16(std::int16_t* p, vi a, vi b) {
    const __m256i packed = _mm256_packs_epi32(__m256i(a), __m256i(b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
}
// The words of a and b in 16 bits: pair i is of words narrow_pair(i) and the next, counted from the first of a to the
// last of b.
static inline vi narrow_pairs(vi a, vi b) { return vi(_mm256_packs_epi32(__m256i(a), __m256i(b))); }
constexpr std::size_t narrow_pair(std::size_t i) { return i / 2 % 2 * L + i / 4 * 4 + i % 2 * 2; }
// sum + the products of two signed words of 16 bits in each lane.
static inline vi add_pairs(vi sum, vi a, vi b) {
#ifdef __AVXVNNI__
    return vi(_mm256_dpwssd_avx_epi32(__m256i(sum), __m256i(a), __m256i(b)));
#else
    return sum + vi(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#endif
}

#include "cpu/simd/common.h"

// The two halves of a·m.
static inline void mul_wide(vu a, std::uint32_t m, vu& low, vu& high) {
    const __m256i x = __m256i(a), k = _mm256_set1_epi32(static_cast<int>(m));
    const __m256i even = _mm256_mul_epu32(x, k), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), k);
    low = vu(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA));
    high = vu(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA));
}
// Integers of 16 bits, in both halves of their lanes.
static inline vi twice_16(vi a) {
    const __m256i low = _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 0, 1, 0, 1, 4, 5, 4, 5, 8,
                                         9, 8, 9, 12, 13, 12, 13);
    return vi(_mm256_shuffle_epi8(__m256i(a), low));
}
// Transposes the 4x4 words in each 16 bytes.
static inline void transpose4(vu (&w)[4]) {
    const __m256i a = __m256i(w[0]), b = __m256i(w[1]), c = __m256i(w[2]), d = __m256i(w[3]);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    const __m256i ab2 = _mm256_unpackhi_epi32(a, b), cd2 = _mm256_unpackhi_epi32(c, d);
    w[0] = vu(_mm256_unpacklo_epi64(ab, cd));
    w[1] = vu(_mm256_unpackhi_epi64(ab, cd));
    w[2] = vu(_mm256_unpacklo_epi64(ab2, cd2));
    w[3] = vu(_mm256_unpackhi_epi64(ab2, cd2));
}

// Four bytes of each of the L rows of a group.
using vb = __m256i;
static inline vb load_bytes(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
static inline vb and_bytes(vb a, std::uint8_t mask) {
    return _mm256_and_si256(a, _mm256_set1_epi8(static_cast<char>(mask)));
}
static inline vb or_bytes(vb a, vb b) { return _mm256_or_si256(a, b); }
static inline vb add_bytes(vb a, vb b) { return _mm256_add_epi8(a, b); }
static inline vb sub_bytes(vb a, std::uint8_t n) { return _mm256_sub_epi8(a, _mm256_set1_epi8(static_cast<char>(n))); }
static inline vb add_bytes(vb a, std::uint8_t n) { return _mm256_add_epi8(a, _mm256_set1_epi8(static_cast<char>(n))); }
static inline void store_bytes(std::byte* p, vb a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
template <int kBits>
static inline vb shift_right(vb a) {  // bits cross bytes: mask afterwards
    return _mm256_srli_epi16(a, kBits);
}
template <int kBits>
static inline vb shift_left(vb a) {
    return _mm256_slli_epi16(a, kBits);
}
static inline vb lookup16(const std::int8_t* table, vb index) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return _mm256_shuffle_epi8(t, index);
}
static inline __m256i broadcast4(const std::int8_t* a) {
    std::int32_t v;
    std::memcpy(&v, a, 4);
    return _mm256_set1_epi32(v);
}

// Sums w·a over a (half) block: kSteps groups of four bytes a lane. DotU: weights 0..kMax. DotS: any int8 weight.
// DotBiased: weights -kMax..kMax, up to kBiasedMax, and activations as unsigned bytes that are 128 too much; the sum
// starts at what makes up for that.
#ifdef __AVXVNNI__

template <int kSteps>
struct DotUnsigned {
    using Weights = vb;
    __m256i acc = _mm256_setzero_si256();
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        acc = _mm256_dpbusd_avx_epi32(acc, w, broadcast4(a));
    }
    vi sum() const { return vi(acc); }
};

struct SignedBytes {
    __m256i biased;  // w + 128
    SignedBytes() = default;
    SignedBytes(vb w) : biased(_mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)))) {}
};
constexpr int kSignedOffset = 128;  // DotS sums (w + 128)·a

template <int kSteps>
struct DotS {
    using Weights = SignedBytes;
    __m256i acc = _mm256_setzero_si256();
    template <int kStep>
    void step(const SignedBytes& w, const std::int8_t* a) {
        acc = _mm256_dpbusd_avx_epi32(acc, w.biased, broadcast4(a));
    }
    vi sum() const { return vi(acc); }
};

constexpr int kBiasedMax = 128;

template <int kSteps>
struct DotShifted {
    using Weights = vb;
    __m256i acc;
    void start(vi sum) { acc = __m256i(sum); }
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        acc = _mm256_dpbusd_avx_epi32(acc, broadcast4(a), w);
    }
    vi sum() const { return vi(acc); }
};

template <int kMax, int kSteps>
using DotU = DotUnsigned<kSteps>;
template <int kMax, int kSteps>
using DotBiased = DotShifted<kSteps>;

// In a run a sum of (w - kOffset)·a is one of w·a that starts at -kOffset times the sum of its activations.
template <int kOffset, int kMost, int kSteps>
struct RunCentred {
    static constexpr int kVectors = 1, kBytes = 32;
    __m256i acc;
    void start(const std::byte* sums) { acc = broadcast4(reinterpret_cast<const std::int8_t*>(sums)); }
    template <int kStep>
    void step(const vb* w, const std::int8_t* a) {
        acc = _mm256_dpbusd_avx_epi32(acc, w[0], broadcast4(a + 4 * kStep));
    }
    vi sum() const { return vi(acc); }

    static void split(vb w, vb* to) { to[0] = w; }
    // 32 elements of a token, and the starts of their 8 / kSteps sums.
    static void split_token(const std::int8_t* a, std::byte* to, std::byte* starts) {
        std::memcpy(to, a, kBytes);
        for (int part = 0; part < 8 / kSteps; ++part) {
            std::int32_t sum = 0;
            for (int i = 0; i < 4 * kSteps; ++i) sum += a[part * 4 * kSteps + i];
            sum *= -kOffset;
            std::memcpy(starts + part * sizeof sum, &sum, sizeof sum);
        }
    }
};

template <int kSteps>
struct RunSigned : RunCentred<kSignedOffset, 0, kSteps> {
    static void split(vb w, vb* to) { to[0] = SignedBytes(w).biased; }
};

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
    __m256i acc = _mm256_setzero_si256(), narrow = _mm256_setzero_si256();
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        const __m256i t = _mm256_maddubs_epi16(w, broadcast4(a));
        narrow = kStep % kFit == 0 ? t : _mm256_add_epi16(narrow, t);
        if constexpr (kStep % kFit == kFit - 1 || kStep == kSteps - 1) {
            const __m256i wide = _mm256_madd_epi16(narrow, _mm256_set1_epi16(1));
            acc = kStep < kFit ? wide : _mm256_add_epi32(acc, wide);
        }
    }
    vi sum() const { return vi(acc); }
};

struct SignedBytes {
    __m256i value, magnitude;
    SignedBytes() = default;
    SignedBytes(vb w) : value(w), magnitude(_mm256_abs_epi8(w)) {}
};
constexpr int kSignedOffset = 0;

template <int kSteps>
struct DotS {
    using Weights = SignedBytes;
    __m256i acc = _mm256_setzero_si256();
    template <int kStep>
    void step(const SignedBytes& w, const std::int8_t* a) {
        const __m256i s = _mm256_sign_epi8(broadcast4(a), w.value);
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w.magnitude, s), _mm256_set1_epi16(1)));
    }
    vi sum() const { return vi(acc); }
};

constexpr int kBiasedMax = 32767 / (2 * 255);

template <int kFit, int kSteps>
struct DotShifted {
    using Weights = vb;
    static_assert(kFit >= 1);
    __m256i acc, narrow = _mm256_setzero_si256();
    void start(vi sum) { acc = __m256i(sum); }
    template <int kStep>
    void step(vb w, const std::int8_t* a) {
        const __m256i t = _mm256_maddubs_epi16(broadcast4(a), w);
        narrow = kStep % kFit == 0 ? t : _mm256_add_epi16(narrow, t);
        if constexpr (kStep % kFit == kFit - 1 || kStep == kSteps - 1) {
            acc = _mm256_add_epi32(acc, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)));
        }
    }
    vi sum() const { return vi(acc); }
};

// A run's weights are `split` once into kVectors, and so are tokens, of kBytes in all, for every four elements.

// 16 bits are enough for what a sum comes to, Σ(w - kOffset)·a with |w - kOffset| <= kMost, and not for what it is on
// the way: additions wrap. It starts at -kOffset times the sum of its activations.
template <int kOffset, int kMost, int kSteps>
struct RunCentred {
    static constexpr int kVectors = 1, kBytes = 32;
    static_assert(2 * kSteps * kMost * 127 <= 32767);
    __m256i narrow;
    void start(const std::byte* sums) { narrow = broadcast4(reinterpret_cast<const std::int8_t*>(sums)); }
    template <int kStep>
    void step(const vb* w, const std::int8_t* a) {
        narrow = _mm256_add_epi16(narrow, _mm256_maddubs_epi16(w[0], broadcast4(a + 4 * kStep)));
    }
    vi sum() const { return vi(_mm256_madd_epi16(narrow, _mm256_set1_epi16(1))); }
    // Times the lanes' integers, which twice_16 has prepared.
    vi sum(vi scale) const { return vi(_mm256_madd_epi16(narrow, __m256i(scale))); }

    static void split(vb w, vb* to) { to[0] = w; }
    // 32 elements of a token, and the starts of their 8 / kSteps sums.
    static void split_token(const std::int8_t* a, std::byte* to, std::byte* starts) {
        const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), q);
        // A word has two sums of a step's four elements, as the products have.
        __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
        sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0x4E));
        sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0xB1));
        sums = _mm256_mullo_epi16(sums, _mm256_set1_epi16(-kOffset));
        const int halves[2] = {_mm256_cvtsi256_si32(sums), _mm256_extract_epi32(sums, 4)};
        if constexpr (kSteps == 4) {
            std::memcpy(starts, halves, sizeof halves);
        } else {
            _mm_storeu_si32(starts, _mm_add_epi16(_mm_cvtsi32_si128(halves[0]), _mm_cvtsi32_si128(halves[1])));
        }
    }
};

// Bytes become words once, the even ones and the odd ones: two operations for 16 products, where a product of signed
// bytes takes four for 32, three of them on the ports of multiplications.
template <int kSteps>
struct RunSigned {
    static constexpr int kVectors = 2, kBytes = 64;
    vi acc{};
    template <int kStep>
    void step(const vb* w, const std::int8_t* a) {
        acc = add_pairs(acc, vi(w[0]), vi(broadcast4(a + 4 * kStep)));
        acc = add_pairs(acc, vi(w[1]), vi(broadcast4(a + 32 + 4 * kStep)));
    }
    vi sum() const { return acc; }

    static void split(vb w, vb* to) {
        to[0] = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
        to[1] = _mm256_srai_epi16(w, 8);
    }
    static void split_token(const std::int8_t* a, std::byte* to) {
        vb words[2];
        split(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)), words);
        std::memcpy(to, words, sizeof words);
    }
};

template <int kMax, int kSteps>
using DotU = DotUnsigned<fitting(kMax * 127, kSteps), kSteps>;
template <int kMax, int kSteps>
using DotBiased = DotShifted<fitting(kMax * 255, kSteps), kSteps>;

#endif

// How far ahead weights are fetched, in bytes: into the first-level cache, and how much further into the second.
constexpr std::size_t kFetchNear = 2048, kFetchFar = 8192;
#ifdef __AVXVNNI__
constexpr bool kPairTiles = false;   // integer tiles of two groups
constexpr bool kCommonLast = false;  // a block's scales multiply as integers
#else
constexpr bool kPairTiles = true;
constexpr bool kCommonLast = true;
#endif
constexpr int kByteColumns = 2;     // vectors of a panel of bytes that a tile takes together
constexpr bool kSharedRuns = true;  // several integer tiles share what was taken apart
constexpr int kBytePanelTiles = 8;  // from which on weights are taken apart into panels of bytes
constexpr int kVectorRegisters = 16;
constexpr bool kSmallTokenTiles = true;  // what a tile leaves over has tiles of half its tokens
constexpr int kTokenTile = 4;            // tokens of a matmul tile: their accumulators fill the registers
constexpr int kFloatTile = 6;            // the same where a tile is two vectors of floats wide
constexpr bool kFixedPoint = true;       // sixteen-bit products are twice as many as those of floats
constexpr bool kFixedMatmul = true;      // of float weights, likewise

}  // namespace akunu::cpu::AKUNU_ISA
