// The quantisers of one instruction set: rows of floats to blocks. The layouts are those that core/dequantize.cpp
// reads.
#include <array>
#include <cstddef>
#include <cstring>

#include "core/dtype.h"
#include "cpu/kernel.h"
#include "cpu/quantize/search.h"

namespace akunu::cpu::AKUNU_ISA {
namespace {

constexpr float kIq4Levels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
using Iq4 = Listed<kIq4Levels>;

using Out = std::byte*;

void put(Out out, int value) { *out = static_cast<std::byte>(value); }
void put_half(Out out, float value) {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(out, &half, sizeof half);
}

// Sixteen groups of N consecutive weights; the last ones are zeros where there are fewer.
template <int N, bool Weighted = true>
Groups<N, Weighted> load(const Batch& in) {
    static constexpr float zeros[N]{};
    Groups<N, Weighted> g;
    const float* rows[kLanes];
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) rows[lane] = lane * N < in.n ? in.values + lane * N : zeros;
    for (int i = 0; i < N; i += 4) load_columns(rows, i, g.x + i);
    if constexpr (Weighted) {
        if (in.importance == nullptr) {
            for (Lanes& w : g.w) w = 1.0f;
            return g;
        }
        for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
            rows[lane] = in.importance + (in.column + lane * N) % in.columns;
        }
        for (int i = 0; i < N; i += 4) load_columns(rows, i, g.w + i);
    }
    return g;
}

// For Q4_0, whose levels are so few that the search would rather cut off the largest weights: where nobody says what
// matters, errors count by the squares of the weights. Perplexities of real models are better for it (docs/convert.md).
template <int N>
Groups<N> load_by_squares(const Batch& in) {
    Groups<N> g = load<N>(in);
    for (int i = 0; i < N; ++i) g.w[i] = g.x[i] * g.x[i];
    return g;
}

// Codes of one batch, in the order of the weights: `code` gives those of sixteen weights of one lane's group.
template <int N, class Code>
std::array<std::uint8_t, kLanes * N> codes_of(const Batch& in, Code code) {
    std::int32_t wide[kLanes * N];
    const int n = static_cast<int>(in.n);
    for (int i = 0; i < n; i += kLanes) {
        const Codes codes = code(from(in.values + i), i / N);
        for (int k = 0; k < kParts; ++k) std::memcpy(wide + i + k * kWidth, &codes.part[k], sizeof(Ints));
    }
    std::array<std::uint8_t, kLanes * N> out;
    for (int i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(wide[i]);
    return out;
}

template <class Levels, int N>
auto scaled_codes(const Batch& in, Lanes scale) {
    const Lanes units = inverse(scale);
    return codes_of<N>(in, [&](Lanes x, int lane) { return Levels::code(Levels::level(x * units[lane])); });
}

template <int Most, int N>
auto affine_codes(const Batch& in, Lanes scale, Lanes offset) {
    const Lanes units = inverse(scale);
    return codes_of<N>(
        in, [&](Lanes x, int lane) { return truncated(nearest(clamp((x - offset[lane]) * units[lane], 0, Most))); });
}

// ---- parts of blocks -------------------------------------------------------------------------------------------

// Puts 2 n codes into n bytes: the low nibble of byte j holds code j, the high one code j + n.
void put_nibbles(Out out, const std::uint8_t* codes, int n) {
    for (int j = 0; j < n; ++j) put(out + j, (codes[j] & 15) | (codes[j + n] & 15) << 4);
}

// The fifth bits of 32 codes.
void put_fifth_bits(Out out, const std::uint8_t* codes) {
    std::uint64_t high = 0;
    for (int j = 3; j >= 0; --j) {
        std::uint64_t eight;
        std::memcpy(&eight, codes + 8 * j, sizeof eight);
        // Byte k's bit times 2^(56 - 7 k) is bit 56 + k.
        high = high << 8 | (eight >> 4 & 0x0101010101010101) * 0x0102040810204080 >> 56;
    }
    std::memcpy(out, &high, 4);
}

// Bits `shift` and `shift + 1` of 256 codes: per half of 128, byte l holds those of l, l + 32, l + 64 and l + 96.
void put_pairs(Out out, const std::uint8_t* codes, int shift) {
    for (int half = 0; half < 2; ++half) {
        for (int l = 0; l < 32; ++l) {
            int byte = 0;
            for (int j = 0; j < 4; ++j) byte |= (codes[128 * half + 32 * j + l] >> shift & 3) << (2 * j);
            put(out + 32 * half + l, byte);
        }
    }
}

// Six-bit scales and minima of eight sub-blocks, in 12 bytes.
void put_scales_and_minima(Out out, const int* s, const int* m) {
    for (int j = 0; j < 4; ++j) {
        put(out + j, s[j] | (s[j + 4] >> 4) << 6);
        put(out + j + 4, m[j] | (m[j + 4] >> 4) << 6);
        put(out + j + 8, (s[j + 4] & 15) | (m[j + 4] & 15) << 4);
    }
}

int integer(const Lanes& v, int lane) { return static_cast<int>(v[lane]); }

// ---- one scale a block of 32 -----------------------------------------------------------------------------------

template <class Levels, bool Both, int BlockBytes, bool BySquares = false, class Pack>
void one_scale(const Batch& in, Out out, const Starts& starts, Pack pack) {
    const Lanes scale = in.importance ? best_half_scale<Levels, Both>(load<32>(in), starts)
                        : BySquares   ? best_half_scale<Levels, Both>(load_by_squares<32>(in), starts)
                                      : best_half_scale<Levels, Both>(load<32, false>(in), starts);
    const auto codes = scaled_codes<Levels, 32>(in, scale);
    const int blocks = static_cast<int>(in.n / 32);
    for (int lane = 0; lane < blocks; ++lane, out += BlockBytes) {
        put_half(out, scale[lane]);
        pack(out + 2, codes.data() + 32 * lane);
    }
}

void q4_0(const Batch& in, Out out) {
    one_scale<Uniform<-8, 7>, true, 18, true>(in, out, {7.0f, 1.5f, 2},
                                              [](Out at, const std::uint8_t* codes) { put_nibbles(at, codes, 16); });
}

void q5_0(const Batch& in, Out out) {
    one_scale<Uniform<-16, 15>, true, 22>(in, out, {15.0f, 0.75f, 3}, [](Out at, const std::uint8_t* codes) {
        put_fifth_bits(at, codes);
        put_nibbles(at + 4, codes, 16);
    });
}

void q8_0(const Batch& in, Out out) {
    one_scale<Uniform<-127, 127>, false, 34>(in, out, {126.0f, 0.5f, 4}, [](Out at, const std::uint8_t* codes) {
        for (int j = 0; j < 32; ++j) put(at + j, codes[j] - 127);
    });
}

void iq4_nl(const Batch& in, Out out) {
    one_scale<Iq4, true, 18>(in, out, {104.0f, 4.0f, 10},
                             [](Out at, const std::uint8_t* codes) { put_nibbles(at, codes, 16); });
}

// ---- scale and offset a block of 32 ----------------------------------------------------------------------------

template <int Most, int BlockBytes, class Pack>
void one_affine(const Batch& in, Out out, Pack pack) {
    // The third one is for importances: where the ends count little, they may lie outside the outer levels.
    constexpr std::array starts{Ends{-0.2f, 0.4f}, Ends{0.4f, -0.2f}, Ends{0.8f, 0.8f}, kMiddleLevel};
    const Affine best = in.importance ? best_half_affine<Most>(load<32>(in), starts)
                                      : best_half_affine<Most>(load<32, false>(in), starts);
    const auto codes = affine_codes<Most, 32>(in, best.scale, best.offset);
    const int blocks = static_cast<int>(in.n / 32);
    for (int lane = 0; lane < blocks; ++lane, out += BlockBytes) {
        put_half(out, best.scale[lane]);
        put_half(out + 2, best.offset[lane]);
        pack(out + 4, codes.data() + 32 * lane);
    }
}

void q4_1(const Batch& in, Out out) {
    one_affine<15, 20>(in, out, [](Out at, const std::uint8_t* codes) { put_nibbles(at, codes, 16); });
}

void q5_1(const Batch& in, Out out) {
    one_affine<31, 24>(in, out, [](Out at, const std::uint8_t* codes) {
        put_fifth_bits(at, codes);
        put_nibbles(at + 4, codes, 16);
    });
}

// ---- a power of two a block of 32 ------------------------------------------------------------------------------

// Twice the values of E2M1, whose scale is halved to match.
constexpr float kE2m1Levels[] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};

void mxfp4(const Batch& in, Out out) {
    using Levels = Listed<kE2m1Levels>;
    Groups<32> g = load<32>(in);
    const Lanes extreme = g.extreme();
    // The exponent at which the largest magnitude lies in [8, 16) levels, and each group in those units: squares of
    // what it holds neither overflow nor vanish.
    std::int32_t exponent[kLanes];
    float up[kLanes], down[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
        const float most = extreme[lane] < 0 ? -extreme[lane] : extreme[lane];
        const int e = most > 0 ? __builtin_ilogbf(most) - 2 : -127;
        exponent[lane] = e < -127 ? -127 : e > 126 ? 126 : e;
        const int left = 1 - exponent[lane];
        up[lane] = std::bit_cast<float>(static_cast<std::uint32_t>(127 + left / 2) << 23);
        down[lane] = std::bit_cast<float>(static_cast<std::uint32_t>(127 + left - left / 2) << 23);
    }
    for (Lanes& x : g.x) x = x * from(up) * from(down);
    Scaled best{1.0f, error_of<Levels>(g, 1.0f)};
    for (const float other : {0.5f, 2.0f}) best.keep(other, error_of<Levels>(g, other));
    const Lanes units = inverse(best.scale);
    const auto codes = codes_of<32>(
        in, [&](Lanes x, int lane) { return Levels::code(Levels::level(x * up[lane] * down[lane] * units[lane])); });
    const int blocks = static_cast<int>(in.n / 32);
    for (int lane = 0; lane < blocks; ++lane, out += 17) {
        int e = 127 + exponent[lane] + (best.scale[lane] > 1 ? 1 : best.scale[lane] < 1 ? -1 : 0);
        std::uint8_t signs[32];
        for (int j = 0; j < 32; ++j) {
            const int level = codes[32 * lane + j] - 7;
            signs[j] = static_cast<std::uint8_t>(level < 0 ? 8 - level : level);
        }
        if (e < 0) e = 0;
        put(out, e);
        put_nibbles(out + 1, signs, 16);
    }
}

// ---- one and two bits -------------------------------------------------------------------------------------------

// These types are quantised as published, without a search: weights that were trained to have so few values keep them.

// Blocks of Elems weights, Bytes bytes each: the greatest magnitude, and the nearest multiples of it plus one. `pack`
// gets that magnitude and the codes.
template <int Elems, int Bytes, class Pack>
void centred(const Batch& in, Out out, Pack pack) {
    for (std::uint64_t first = 0; first < in.n; first += Elems, out += Bytes) {
        const float* x = in.values + first;
        float d = 0;
        for (int i = 0; i < Elems; ++i) d = d < __builtin_fabsf(x[i]) ? __builtin_fabsf(x[i]) : d;
        const float inverse = d > 0 ? 1 / d : 0.0f;
        std::uint8_t codes[Elems];
        for (int i = 0; i < Elems; ++i) codes[i] = static_cast<std::uint8_t>(__builtin_roundf(x[i] * inverse) + 1);
        pack(out, d, codes);
    }
}

void tq1_0(const Batch& in, Out out) {
    centred<256, 54>(in, out, [](Out at, float d, const std::uint8_t* codes) {
        // Digits of base 3, so many in a byte that stands for a fraction of 243, those of neighbouring bytes together.
        const auto take = [&](int bytes, int digits) {
            for (int i = 0; i < bytes; ++i) {
                int value = 0;
                for (int n = 0; n < 5; ++n) value = 3 * value + (n < digits ? codes[n * bytes + i] : 0);
                put(at++, (value * 256 + 242) / 243);
            }
            codes += bytes * digits;
        };
        take(32, 5);
        take(16, 5);
        take(4, 4);
        put_half(at, d);
    });
}

void tq2_0(const Batch& in, Out out) {
    centred<256, 66>(in, out, [](Out at, float d, const std::uint8_t* codes) {
        put_pairs(at, codes, 0);
        put_half(at + 64, d);
    });
}

void q2_0(const Batch& in, Out out) {
    centred<64, 18>(in, out, [](Out at, float d, const std::uint8_t* codes) {
        put_half(at, d);
        for (int i = 0; i < 16; ++i, codes += 4) {
            put(at + 2 + i, codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6);
        }
    });
}

void q1_0(const Batch& in, Out out) {  // the mean magnitude, and signs
    for (std::uint64_t first = 0; first < in.n; first += 128, out += 18) {
        const float* x = in.values + first;
        float sum = 0;
        for (int i = 0; i < 128; ++i) sum += __builtin_fabsf(x[i]);
        put_half(out, sum / 128);
        for (int i = 0; i < 16; ++i) {
            int bits = 0;
            for (int k = 0; k < 8; ++k) bits |= (x[8 * i + k] >= 0 ? 1 : 0) << k;
            put(out + 2 + i, bits);
        }
    }
}

// ---- super-blocks of 256, scales of sub-blocks -----------------------------------------------------------------

// Where one value is so large that all others of its sub-block become zeros, it may have any level, and what is best
// hangs on rounding. But the smaller its scale, the finer are the others' of the super-block.
constexpr float kRounding = 1e-6f;

void q3_k(const Batch& in, Out out) {
    using Levels = Uniform<-4, 3>;
    const Groups<16> g = load<16>(in);
    TwoScales<Levels, 16, -32, 31> scales;
    scales.search(g, best_scale<Levels, true>(g, {2.5f, 0.5f, 5, kRounding}, 2), 2);
    const auto codes = scaled_codes<Levels, 16>(in, scales.d * scales.s);
    for (int l = 0; l < 32; ++l) {
        int byte = 0;
        for (int j = 0; j < 8; ++j) byte |= (codes[32 * j + l] >> 2) << j;
        put(out + l, byte);
    }
    put_pairs(out + 32, codes.data(), 0);
    int s[16];
    for (int j = 0; j < 16; ++j) s[j] = integer(scales.s, j) + 32;
    for (int j = 0; j < 8; ++j) put(out + 96 + j, (s[j] & 15) | (s[j + 8] & 15) << 4);
    for (int j = 0; j < 4; ++j) {
        put(out + 104 + j, s[j] >> 4 | (s[j + 4] >> 4) << 2 | (s[j + 8] >> 4) << 4 | (s[j + 12] >> 4) << 6);
    }
    put_half(out + 108, scales.d[0]);
}

void q6_k(const Batch& in, Out out) {
    using Levels = Uniform<-32, 31>;
    const Groups<16> g = load<16>(in);
    TwoScales<Levels, 16, -128, 127> scales;
    scales.search(g, best_scale<Levels, true>(g, {30.0f, 0.25f, 14}, 2), 2);
    const auto codes = scaled_codes<Levels, 16>(in, scales.d * scales.s);
    for (int half = 0; half < 2; ++half) put_nibbles(out + 64 * half, codes.data() + 128 * half, 64);
    put_pairs(out + 128, codes.data(), 4);
    for (int j = 0; j < 16; ++j) put(out + 192 + j, integer(scales.s, j));
    put_half(out + 208, scales.d[0]);
}

void iq4_xs(const Batch& in, Out out) {
    const Groups<32> g = load<32>(in);
    TwoScales<Iq4, 8, -32, 31> scales;
    scales.search(g, best_scale<Iq4, true>(g, {104.0f, 4.0f, 10, kRounding}, 2), 2);
    const auto codes = scaled_codes<Iq4, 32>(in, scales.d * scales.s);
    const int blocks = static_cast<int>(in.n / 256);
    for (int block = 0; block < blocks; ++block, out += 136) {
        put_half(out, scales.d[8 * block]);
        int high = 0, low[8];
        for (int j = 0; j < 8; ++j) {
            const int s = integer(scales.s, 8 * block + j) + 32;
            high |= (s >> 4) << (2 * j);
            low[j] = s & 15;
        }
        put(out + 2, high);
        put(out + 3, high >> 8);
        for (int j = 0; j < 4; ++j) put(out + 4 + j, low[2 * j] | low[2 * j + 1] << 4);
        for (int j = 0; j < 8; ++j) put_nibbles(out + 8 + 16 * j, codes.data() + 256 * block + 32 * j, 16);
    }
}

// ---- super-blocks of 256, scales and minima of sub-blocks ------------------------------------------------------

void q2_k(const Batch& in, Out out) {
    const Groups<16> g = load<16>(in);
    TwoAffine<3, 16, 15> scales;
    scales.search(g, all_pairs<6>(-0.2f, 0.2f), 3);
    const auto codes = affine_codes<3, 16>(in, scales.d * scales.s, -(scales.dmin * scales.m));
    for (int j = 0; j < 16; ++j) put(out + j, integer(scales.s, j) | integer(scales.m, j) << 4);
    put_pairs(out + 16, codes.data(), 0);
    put_half(out + 80, scales.d[0]);
    put_half(out + 82, scales.dmin[0]);
}

// Q4_K and Q5_K; `pack` writes what follows the scales.
template <int Most, int BlockBytes, class Pack>
void two_affine(const Batch& in, Out out, Pack pack) {
    const Groups<32> g = load<32>(in);
    TwoAffine<Most, 8, 63> scales;
    scales.search(g, all_pairs<4>(-0.4f, 0.4f), 2);
    const auto codes = affine_codes<Most, 32>(in, scales.d * scales.s, -(scales.dmin * scales.m));
    const int blocks = static_cast<int>(in.n / 256);
    for (int block = 0; block < blocks; ++block, out += BlockBytes) {
        int s[8], m[8];
        for (int j = 0; j < 8; ++j) {
            s[j] = integer(scales.s, 8 * block + j);
            m[j] = integer(scales.m, 8 * block + j);
        }
        put_half(out, scales.d[8 * block]);
        put_half(out + 2, scales.dmin[8 * block]);
        put_scales_and_minima(out + 4, s, m);
        pack(out + 16, codes.data() + 256 * block);
    }
}

void q4_k(const Batch& in, Out out) {
    two_affine<15, 144>(in, out, [](Out at, const std::uint8_t* codes) {
        for (int j = 0; j < 4; ++j) put_nibbles(at + 32 * j, codes + 64 * j, 32);
    });
}

void q5_k(const Batch& in, Out out) {
    two_affine<31, 176>(in, out, [](Out at, const std::uint8_t* codes) {
        for (int l = 0; l < 32; ++l) {
            int byte = 0;
            for (int j = 0; j < 8; ++j) byte |= (codes[32 * j + l] >> 4) << j;
            put(at + l, byte);
        }
        for (int j = 0; j < 4; ++j) put_nibbles(at + 32 + 32 * j, codes + 64 * j, 32);
    });
}

}  // namespace

Quantizer find_quantizer(DType type);

Quantizer find_quantizer(DType type) {
    switch (type) {
        case DType::Q4_0:
            return {q4_0, 512};
        case DType::Q4_1:
            return {q4_1, 512};
        case DType::Q5_0:
            return {q5_0, 512};
        case DType::Q5_1:
            return {q5_1, 512};
        case DType::Q8_0:
            return {q8_0, 512};
        case DType::IQ4_NL:
            return {iq4_nl, 512};
        case DType::MXFP4:
            return {mxfp4, 512};
        case DType::Q2_K:
            return {q2_k, 256};
        case DType::Q3_K:
            return {q3_k, 256};
        case DType::Q6_K:
            return {q6_k, 256};
        case DType::Q4_K:
            return {q4_k, 512};
        case DType::Q5_K:
            return {q5_k, 512};
        case DType::IQ4_XS:
            return {iq4_xs, 512};
        case DType::TQ1_0:
            return {tq1_0, 512};
        case DType::TQ2_0:
            return {tq2_0, 512};
        case DType::Q1_0:
            return {q1_0, 512};
        case DType::Q2_0:
            return {q2_0, 512};
        default:
            return {};
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
