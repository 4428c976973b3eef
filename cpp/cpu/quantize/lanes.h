// Sixteen groups of weights side by side, one in each lane: a search looks at all of them with the same instructions,
// and no sum runs across lanes. Every operation rounds by itself, so that all instruction sets give the same bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/half.h"

namespace akunu::cpu::AKUNU_ISA {
namespace {

constexpr int kLanes = 16;
constexpr float kFar = 3e38f;  // beyond any error

// They lie in vectors of the processor's width: the compiler would take wider ones apart, element by element.
#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
constexpr int kParts = kLanes / kWidth;
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));
using Ints = std::int32_t __attribute__((vector_size(kWidth * sizeof(std::int32_t))));

// Integers, or what a comparison found: all bits of a lane or none.
struct Codes {
    Ints part[kParts]{};
};

struct Lanes {
    Floats part[kParts]{};

    Lanes() = default;
    [[gnu::always_inline]] Lanes(float value) {
        for (Floats& p : part) p += value;
    }
    [[gnu::always_inline]] float operator[](int lane) const { return part[lane / kWidth][lane % kWidth]; }
};

[[gnu::always_inline]] inline Lanes from(const float* values) {
    Lanes out;
    for (int k = 0; k < kParts; ++k) std::memcpy(&out.part[k], values + k * kWidth, sizeof(Floats));
    return out;
}

// `f` of the parts of each argument.
template <class Out, class F, class... In>
[[gnu::always_inline]] inline Out each(F f, const In&... in) {
    Out out;
    for (int k = 0; k < kParts; ++k) out.part[k] = f(in.part[k]...);
    return out;
}

[[gnu::always_inline]] inline Lanes operator+(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x + y; }, a, b);
}
[[gnu::always_inline]] inline Lanes operator-(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x - y; }, a, b);
}
[[gnu::always_inline]] inline Lanes operator*(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x * y; }, a, b);
}
[[gnu::always_inline]] inline Lanes operator/(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x / y; }, a, b);
}
[[gnu::always_inline]] inline Lanes operator-(Lanes a) {
    return each<Lanes>([](Floats x) { return -x; }, a);
}
[[gnu::always_inline]] inline Lanes& operator+=(Lanes& a, Lanes b) { return a = a + b; }
[[gnu::always_inline]] inline Codes operator<(Lanes a, Lanes b) {
    return each<Codes>([](Floats x, Floats y) { return x < y; }, a, b);
}
[[gnu::always_inline]] inline Codes operator>(Lanes a, Lanes b) { return b < a; }
[[gnu::always_inline]] inline Codes operator>=(Lanes a, Lanes b) {
    return each<Codes>([](Floats x, Floats y) { return x >= y; }, a, b);
}
[[gnu::always_inline]] inline Codes operator==(Lanes a, Lanes b) {
    return each<Codes>([](Floats x, Floats y) { return x == y; }, a, b);
}
[[gnu::always_inline]] inline Codes operator&(Codes a, Codes b) {
    return each<Codes>([](Ints x, Ints y) { return x & y; }, a, b);
}
[[gnu::always_inline]] inline Codes operator-(Codes a, Codes b) {
    return each<Codes>([](Ints x, Ints y) { return x - y; }, a, b);
}
[[gnu::always_inline]] inline Lanes choose(Codes which, Lanes yes, Lanes no) {
    return each<Lanes>([](Ints m, Floats x, Floats y) { return m ? x : y; }, which, yes, no);
}

[[gnu::always_inline]] inline Lanes lower(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x < y ? x : y; }, a, b);
}
[[gnu::always_inline]] inline Lanes higher(Lanes a, Lanes b) {
    return each<Lanes>([](Floats x, Floats y) { return x > y ? x : y; }, a, b);
}
[[gnu::always_inline]] inline Lanes clamp(Lanes v, float low, float high) { return lower(higher(v, low), high); }
[[gnu::always_inline]] inline Lanes magnitude(Lanes v) {
    return each<Lanes>([](Floats x) { return std::bit_cast<Floats>(std::bit_cast<Ints>(x) & INT32_MAX); }, v);
}
// To the nearest integer, ties to even; for magnitudes below 2^22.
[[gnu::always_inline]] inline Lanes nearest(Lanes v) { return (v + 0x1.8p23f) - 0x1.8p23f; }
[[gnu::always_inline]] inline Codes truncated(Lanes v) {
    return each<Codes>([](Floats x) { return __builtin_convertvector(x, Ints); }, v);
}
// a / b, and 0 where b is 0.
[[gnu::always_inline]] inline Lanes ratio(Lanes a, Lanes b) {
    const Codes zero = b == 0.0f;
    return choose(zero, 0.0f, a / choose(zero, 1.0f, b));
}
[[gnu::always_inline]] inline Lanes inverse(Lanes v) { return ratio(1.0f, v); }
// The float that a binary16 scale stands for: as half_to_float(float_to_half(v)), for what is no NaN.
[[gnu::always_inline]] inline Lanes as_half(Lanes v) {
    const auto part = [](Floats x) {
        const Ints bits = std::bit_cast<Ints>(x), sign = bits & INT32_MIN, magnitude = bits & INT32_MAX;
        const Ints rounded = (magnitude + 0xFFF + (magnitude >> 13 & 1)) & ~0x1FFF;
        // Below 2^-14: a multiple of 2^-24, to which adding 0.5 rounds.
        const Ints small = std::bit_cast<Ints>((std::bit_cast<Floats>(magnitude) + 0.5f) - 0.5f);
        const Ints normal = magnitude >= 0x477FF000 ? Ints{} + 0x7F800000 : rounded;
        return std::bit_cast<Floats>(sign | (magnitude < 0x38800000 ? small : normal));
    };
    return each<Lanes>(part, v);
}

// Sum over the `Group` lanes that make a super-block, in each of them.
template <int Group>
[[gnu::always_inline]] inline Lanes sum_group(Lanes v) {
    float out[kLanes];
    for (int first = 0; first < kLanes; first += Group) {
        float sum = 0;
        for (int i = first; i < first + Group; ++i) sum += v[i];
        std::fill_n(out + first, Group, sum);
    }
    return from(out);
}

// The value of the largest magnitude among those lanes, in each of them.
template <int Group>
[[gnu::always_inline]] inline Lanes extreme_group(Lanes v) {
    float out[kLanes];
    for (int first = 0; first < kLanes; first += Group) {
        float most = 0;
        for (int i = first; i < first + Group; ++i) {
            const float a = v[i] < 0 ? -v[i] : v[i], b = most < 0 ? -most : most;
            most = a > b ? v[i] : most;
        }
        std::fill_n(out + first, Group, most);
    }
    return from(out);
}

// The elements `first` … `first` + 3 of sixteen rows: each element of all rows is one vector. In tiles of four by four,
// whose vectors every processor has.
[[gnu::always_inline]] inline void load_columns(const float* const* rows, int first, Lanes* to) {
    using Four = float __attribute__((vector_size(4 * sizeof(float))));
    for (int r = 0; r < kLanes; r += 4) {
        Four in[4];
        for (int k = 0; k < 4; ++k) std::memcpy(&in[k], rows[r + k] + first, sizeof(Four));
        const Four a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
        const Four b = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
        const Four c = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
        const Four d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
        const Four out[] = {__builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
                            __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
        for (int k = 0; k < 4; ++k) std::memcpy(reinterpret_cast<float*>(to[k].part) + r, &out[k], sizeof(Four));
    }
}

// What errors in the weights of a group count, or that all count the same.
template <int N, bool Weighted>
struct Importances {
    Lanes w[N];
    [[gnu::always_inline]] Lanes times(int i, Lanes v) const { return w[i] * v; }
};
template <int N>
struct Importances<N, false> {
    [[gnu::always_inline]] Lanes times(int, Lanes v) const { return v; }
};

// One group of N weights in each lane.
template <int N, bool Weighted = true>
struct Groups : Importances<N, Weighted> {
    Lanes x[N];

    Lanes extreme() const {
        Lanes most{};
        for (int i = 0; i < N; ++i) most = choose(magnitude(x[i]) > magnitude(most), x[i], most);
        return most;
    }
    Lanes low() const {
        Lanes least = x[0];
        for (int i = 1; i < N; ++i) least = lower(least, x[i]);
        return least;
    }
    Lanes high() const {
        Lanes most = x[0];
        for (int i = 1; i < N; ++i) most = higher(most, x[i]);
        return most;
    }
};

// Levels low, …, high.
template <int Low, int High>
struct Uniform {
    static constexpr float low = Low, high = High;
    [[gnu::always_inline]] static Lanes level(Lanes y) { return nearest(clamp(y, low, high)); }
    [[gnu::always_inline]] static Codes code(Lanes level) { return truncated(level - low); }
};

// Levels of a table, in ascending order.
template <const auto& Table>
struct Listed {
    static constexpr int n = sizeof(Table) / sizeof(Table[0]);
    static constexpr float low = Table[0], high = Table[n - 1];
    [[gnu::always_inline]] static Lanes level(Lanes y) {
        Lanes out = Table[0];
        for (int i = 1; i < n; ++i) out = choose(y > (Table[i - 1] + Table[i]) / 2, Table[i], out);
        return out;
    }
    [[gnu::always_inline]] static Codes code(Lanes level) {
        Codes out{};
        for (int i = 1; i < n; ++i) out = out - (level >= Table[i]);
        return out;
    }
};

}  // namespace
}  // namespace akunu::cpu::AKUNU_ISA
