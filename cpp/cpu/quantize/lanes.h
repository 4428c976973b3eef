// Sixteen groups of weights side by side, one in each lane: a search looks at all of them with the same instructions,
// and no sum runs across lanes. Every operation rounds by itself, so that all instruction sets give the same bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/half.h"

namespace akunu::cpu::AKUNU_ISA {
namespace {

constexpr int kLanes = 16;
constexpr float kFar = 3e38f;  // beyond any error
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Codes = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

[[gnu::always_inline]] inline Lanes all(float value) { return Lanes{} + value; }
[[gnu::always_inline]] inline Lanes lower(Lanes a, Lanes b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Lanes higher(Lanes a, Lanes b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Lanes clamp(Lanes v, float low, float high) {
    return lower(higher(v, all(low)), all(high));
}
[[gnu::always_inline]] inline Lanes magnitude(Lanes v) { return v < 0.0f ? -v : v; }
// To the nearest integer, ties to even; for magnitudes below 2^22.
[[gnu::always_inline]] inline Lanes nearest(Lanes v) { return (v + 0x1.8p23f) - 0x1.8p23f; }
// a / b, and 0 where b is 0.
[[gnu::always_inline]] inline Lanes ratio(Lanes a, Lanes b) {
    const Lanes safe = b == 0.0f ? all(1.0f) : b;
    return b == 0.0f ? Lanes{} : a / safe;
}
// The float that a binary16 scale stands for: as half_to_float(float_to_half(v)), for what is no NaN.
[[gnu::always_inline]] inline Lanes as_half(Lanes v) {
    const Codes bits = std::bit_cast<Codes>(v), sign = bits & INT32_MIN, magnitude = bits & INT32_MAX;
    const Codes rounded = (magnitude + 0xFFF + (magnitude >> 13 & 1)) & ~0x1FFF;
    // Below 2^-14: a multiple of 2^-24, to which adding 0.5 rounds.
    const Codes small = std::bit_cast<Codes>((std::bit_cast<Lanes>(magnitude) + 0.5f) - 0.5f);
    const Codes normal = magnitude >= 0x477FF000 ? Codes{} + 0x7F800000 : rounded;
    return std::bit_cast<Lanes>(sign | (magnitude < 0x38800000 ? small : normal));
}

[[gnu::always_inline]] inline Lanes inverse(Lanes v) { return ratio(all(1.0f), v); }

// Sum over the `Group` lanes that make a super-block, in each of them.
template <int Group>
[[gnu::always_inline]] inline Lanes sum_group(Lanes v) {
    Lanes out;
    for (int first = 0; first < kLanes; first += Group) {
        float sum = 0;
        for (int i = first; i < first + Group; ++i) sum += v[i];
        for (int i = first; i < first + Group; ++i) out[i] = sum;
    }
    return out;
}

// The value of the largest magnitude among those lanes, in each of them.
template <int Group>
[[gnu::always_inline]] inline Lanes extreme_group(Lanes v) {
    Lanes out;
    for (int first = 0; first < kLanes; first += Group) {
        float most = 0;
        for (int i = first; i < first + Group; ++i) {
            const float a = v[i] < 0 ? -v[i] : v[i], b = most < 0 ? -most : most;
            most = a > b ? v[i] : most;
        }
        for (int i = first; i < first + Group; ++i) out[i] = most;
    }
    return out;
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
        for (int k = 0; k < 4; ++k) std::memcpy(reinterpret_cast<float*>(to + k) + r, &out[k], sizeof(Four));
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
        for (int i = 0; i < N; ++i) most = magnitude(x[i]) > magnitude(most) ? x[i] : most;
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
    [[gnu::always_inline]] static Codes code(Lanes level) { return __builtin_convertvector(level - low, Codes); }
};

// Levels of a table, in ascending order.
template <const auto& Table>
struct Listed {
    static constexpr int n = sizeof(Table) / sizeof(Table[0]);
    static constexpr float low = Table[0], high = Table[n - 1];
    [[gnu::always_inline]] static Lanes level(Lanes y) {
        Lanes out = all(Table[0]);
        for (int i = 1; i < n; ++i) out = y > (Table[i - 1] + Table[i]) / 2 ? all(Table[i]) : out;
        return out;
    }
    [[gnu::always_inline]] static Codes code(Lanes level) {
        Codes out{};
        for (int i = 1; i < n; ++i) out -= level >= Table[i];
        return out;
    }
};

}  // namespace
}  // namespace akunu::cpu::AKUNU_ISA
