// The searches of the quantisers. Each looks for the scale, or the scale and offset, that make the weighted sum of
// squared errors least: it starts from many, fits each one by least squares to the levels that it leads to, and
// measures the error of the fit. No step assumes anything of how the weights are distributed.
#pragma once

#include <array>

#include "cpu/quantize/lanes.h"

namespace akunu::cpu::AKUNU_ISA {
namespace {

struct Scaled {
    Lanes scale{}, error{};

    [[gnu::always_inline]] void keep(Lanes other_scale, Lanes other_error) {
        const Codes better = other_error < error;
        scale = choose(better, other_scale, scale);
        error = choose(better, other_error, error);
    }
};

// Σ w (x - scale * level)² with the best levels.
template <class Levels, int N, bool Weighted>
[[gnu::always_inline]] inline Lanes error_of(const Groups<N, Weighted>& g, Lanes scale) {
    const Lanes units = inverse(scale);
    Lanes error{};
    for (int i = 0; i < N; ++i) {
        const Lanes left = g.x[i] - scale * Levels::level(g.x[i] * units);
        error += g.times(i, left) * left;
    }
    return error;
}

// Sums over a group for the least-squares scale: Σ w x level and Σ w level².
struct ScaleSums {
    Lanes xl{}, ll{};
};

// The sums of several scales at a time, given by their inverses: one after the other they would wait for each other.
template <class Levels, std::size_t Count, int N, bool Weighted>
[[gnu::always_inline]] inline std::array<ScaleSums, Count> scale_sums(const Groups<N, Weighted>& g,
                                                                      const std::array<Lanes, Count>& inverses) {
    std::array<ScaleSums, Count> sums;
    for (int i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < Count; ++k) {
            const Lanes level = Levels::level(g.x[i] * inverses[k]);
            const Lanes weighted = g.times(i, level);
            sums[k].xl += weighted * g.x[i];
            sums[k].ll += weighted * level;
        }
    }
    return sums;
}

template <class Levels, int N, bool Weighted>
[[gnu::always_inline]] inline ScaleSums scale_sums(const Groups<N, Weighted>& g, Lanes scale) {
    return scale_sums<Levels, 1>(g, {inverse(scale)})[0];
}

// Where a search for a scale starts: at those that take the group's extreme value to first, first + step, … . A scale
// that is larger than one found before must be better by a share of `margin`.
struct Starts {
    float first, step;
    int count;
    float margin = 0;
};

// What levels say of a scale: the least-squares one, and by how much that lowers the error from the weights' squares.
struct ScaleFit {
    Lanes scale{}, gain{};

    ScaleFit() = default;
    explicit ScaleFit(const ScaleSums& s) : scale(ratio(s.xl, s.ll)), gain(scale * s.xl) {}
    [[gnu::always_inline]] void keep(const ScaleFit& other, float margin) {
        const Codes better = other.gain > gain * (1 + margin);
        scale = choose(better, other.scale, scale);
        gain = choose(better, other.gain, gain);
    }
};

// The best scale of each group. `Both`: the extreme value is also tried with the other sign. The best fit is fitted
// again to the levels that it leads to, which lowers the error further. The smallest scales come first.
template <class Levels, bool Both, int N, bool Weighted>
inline Lanes best_scale(const Groups<N, Weighted>& g, const Starts& starts, int refits, ScaleFit best = {}) {
    constexpr std::size_t kSigns = Both ? 2 : 1;
    const Lanes units = inverse(g.extreme());
    for (int k = starts.count; k-- > 0;) {
        const float target = starts.first + static_cast<float>(k) * starts.step;
        std::array<Lanes, kSigns> inverses{units * -target};
        if constexpr (Both) inverses[1] = units * target;
        for (const ScaleSums& s : scale_sums<Levels, kSigns>(g, inverses)) best.keep(ScaleFit(s), starts.margin);
    }
    for (int again = 0; again < refits; ++again) best = ScaleFit(scale_sums<Levels>(g, best.scale));
    return best.scale;
}

// The best binary16 scale, where the scale that takes the extreme value to the lowest level, as published, is a start
// too. It is what remains where the search finds nothing better.
template <class Levels, bool Both, int N, bool Weighted>
inline Lanes best_half_scale(const Groups<N, Weighted>& g, const Starts& starts) {
    const Lanes plain = as_half(g.extreme() / Levels::low), units = inverse(plain);
    ScaleSums sums;
    Scaled best{plain, {}};
    for (int i = 0; i < N; ++i) {
        const Lanes level = Levels::level(g.x[i] * units), weighted = g.times(i, level), left = g.x[i] - plain * level;
        sums.xl += weighted * g.x[i];
        sums.ll += weighted * level;
        best.error += g.times(i, left) * left;
    }
    const Lanes found = as_half(best_scale<Levels, Both>(g, starts, 1, ScaleFit(sums)));
    best.keep(found, error_of<Levels>(g, found));
    return best.scale;
}

// A super-block of `Group` lanes: scale = d * s, with d binary16 and s an integer from Low to High.
template <class Levels, int Group, int Low, int High>
struct TwoScales {
    Lanes d{}, s{};

    template <int N, bool Weighted>
    void search(const Groups<N, Weighted>& g, Lanes wanted, int rounds) {
        const Lanes extreme = extreme_group<Group>(wanted);
        Lanes least = kFar;
        for (const float target : {static_cast<float>(Low), static_cast<float>(High), Low - 0.5f, High + 0.5f}) {
            Lanes tried = as_half(extreme / target);
            for (int round = 0; round < rounds; ++round) {
                const Scaled found = integers(g, wanted, tried);
                const Lanes error = sum_group<Group>(found.error);
                const Codes better = error < least;
                d = choose(better, tried, d);
                s = choose(better, found.scale, s);
                least = choose(better, error, least);
                const ScaleSums sums = scale_sums<Levels>(g, tried * found.scale);
                const Lanes xl = sum_group<Group>(sums.xl * found.scale);
                const Lanes ll = sum_group<Group>(sums.ll * found.scale * found.scale);
                tried = as_half(ratio(xl, ll));
            }
        }
    }

  private:
    // The best integer of each lane, among those around wanted / d.
    template <int N, bool Weighted>
    static Scaled integers(const Groups<N, Weighted>& g, Lanes wanted, Lanes d) {
        const Lanes middle = nearest(clamp(ratio(wanted, d), Low, High));
        Scaled best{middle, error_of<Levels>(g, d * middle)};
        for (const float step : {-1.0f, 1.0f}) {
            const Lanes s = clamp(middle + step, Low, High);
            best.keep(s, error_of<Levels>(g, d * s));
        }
        return best;
    }
};

// x ≈ scale * level + offset, with levels 0, …, Most.
struct Affine {
    Lanes scale{}, offset{}, error{};

    [[gnu::always_inline]] void keep(const Affine& other) {
        const Codes better = other.error < error;
        scale = choose(better, other.scale, scale);
        offset = choose(better, other.offset, offset);
        error = choose(better, other.error, error);
    }
};

template <int Most, int N, bool Weighted>
[[gnu::always_inline]] inline Lanes affine_error(const Groups<N, Weighted>& g, Lanes scale, Lanes offset) {
    const Lanes units = inverse(scale);
    Lanes error{};
    for (int i = 0; i < N; ++i) {
        const Lanes level = nearest(clamp((g.x[i] - offset) * units, 0, Most));
        const Lanes left = g.x[i] - (scale * level + offset);
        error += g.times(i, left) * left;
    }
    return error;
}

// Sums for a least-squares fit of scale and offset; w and x are the same whatever the levels.
struct AffineSums {
    Lanes w{}, l{}, ll{}, x{}, xl{};
};

template <int N, bool Weighted>
[[gnu::always_inline]] inline AffineSums level_free_sums(const Groups<N, Weighted>& g) {
    AffineSums s;
    for (int i = 0; i < N; ++i) {
        s.w += g.times(i, 1.0f);
        s.x += g.times(i, g.x[i]);
    }
    return s;
}

template <int Most, int N, bool Weighted>
[[gnu::always_inline]] inline AffineSums affine_sums(const Groups<N, Weighted>& g, AffineSums s, Lanes scale,
                                                     Lanes offset) {
    const Lanes units = inverse(scale);
    for (int i = 0; i < N; ++i) {
        const Lanes level = nearest(clamp((g.x[i] - offset) * units, 0, Most));
        const Lanes weighted = g.times(i, level);
        s.l += weighted;
        s.ll += weighted * level;
        s.xl += weighted * g.x[i];
    }
    return s;
}

// The least-squares scale and offset; what is given where the levels say nothing: all are equal, or so nearly that
// rounding may have made the difference.
template <bool Below>
[[gnu::always_inline]] inline Affine fitted(const AffineSums& s, Lanes scale, Lanes offset) {
    const Lanes squares = s.w * s.ll, spread = squares - s.l * s.l;
    const Lanes det = choose(spread > squares * 1e-5f, spread, Lanes{});
    Affine fit{ratio(s.w * s.xl - s.l * s.x, det), ratio(s.ll * s.x - s.l * s.xl, det)};
    if (Below) {
        const Codes above = fit.offset > 0.0f;
        fit.scale = choose(above, ratio(s.xl, s.ll), fit.scale);
        fit.offset = choose(above, Lanes{}, fit.offset);
    }
    const Codes usable = fit.scale > 0.0f;
    fit.scale = choose(usable, fit.scale, scale);
    fit.offset = choose(usable, fit.offset, offset);
    return fit;
}

// By how much scale and offset lower the error from the weights' squares.
[[gnu::always_inline]] inline Lanes gain_of(const Affine& fit, const AffineSums& s) {
    return fit.scale * (2.0f * s.xl - fit.scale * s.ll - 2.0f * fit.offset * s.l) +
           fit.offset * (2.0f * s.x - fit.offset * s.w);
}

// Where a search for scale and offset starts: how many levels inside the outer levels the group's ends are put.
struct Ends {
    float low, high;
};

// The last level but one for the upper end: then the middle of the ends is a level, as it must be where weights are
// -c, 0 and c.
constexpr Ends kMiddleLevel{0.0f, -1.0f};

template <std::size_t Steps>
constexpr std::array<Ends, Steps * Steps + 1> all_pairs(float first, float step) {
    std::array<Ends, Steps * Steps + 1> pairs;
    const auto at = [&](std::size_t i) { return first + static_cast<float>(i) * step; };
    for (std::size_t i = 0; i < Steps * Steps; ++i) pairs[i] = {at(i / Steps), at(i % Steps)};
    pairs.back() = kMiddleLevel;
    return pairs;
}

// The best scale and offset of each group with ends `low` and `high`. `Below`: the offset may not be positive. `best`
// is a fit that is known, with its gain as a negative error.
template <int Most, bool Below, int N, bool Weighted, std::size_t Count>
inline Affine best_affine(const Groups<N, Weighted>& g, Lanes low, Lanes high, const AffineSums& totals, Affine best,
                          const std::array<Ends, Count>& starts, int refits) {
    const Lanes unit = (high - low) / static_cast<float>(Most);
    for (const Ends& start : starts) {
        const Lanes from = low + unit * start.low, to = high - unit * start.high;
        const AffineSums s = affine_sums<Most>(g, totals, (to - from) * (1.0f / static_cast<float>(Most)), from);
        Affine found = fitted<Below>(s, unit, low);
        found.error = -gain_of(found, s);
        best.keep(found);
    }
    for (int again = 0; again < refits; ++again) {
        const AffineSums s = affine_sums<Most>(g, totals, best.scale, best.offset);
        best = fitted<Below>(s, best.scale, best.offset);
    }
    return best;
}

// The best binary16 scale and offset, where those that put the ends on the outer levels, as published, are a start too.
// They are what remains where the search finds nothing better.
template <int Most, int N, bool Weighted, std::size_t Count>
inline Affine best_half_affine(const Groups<N, Weighted>& g, const std::array<Ends, Count>& starts) {
    const Lanes low = g.low(), high = g.high();
    Affine best{as_half((high - low) / static_cast<float>(Most)), as_half(low), {}};
    AffineSums sums;
    const Lanes units = inverse(best.scale);
    for (int i = 0; i < N; ++i) {
        const Lanes level = nearest(clamp((g.x[i] - best.offset) * units, 0, Most)), weighted = g.times(i, level);
        const Lanes left = g.x[i] - (best.scale * level + best.offset);
        sums.w += g.times(i, 1.0f);
        sums.x += g.times(i, g.x[i]);
        sums.l += weighted;
        sums.ll += weighted * level;
        sums.xl += weighted * g.x[i];
        best.error += g.times(i, left) * left;
    }
    Affine first = fitted<false>(sums, best.scale, best.offset);
    first.error = -gain_of(first, sums);
    const AffineSums totals{.w = sums.w, .x = sums.x};
    const Affine found = best_affine<Most, false>(g, low, high, totals, first, starts, 1);
    const Lanes scale = as_half(found.scale), offset = as_half(found.offset);
    best.keep({scale, offset, affine_error<Most>(g, scale, offset)});
    return best;
}

// A super-block of `Group` lanes: scale = d * s and offset = -dmin * m, with d and dmin binary16 and s and m integers
// from 0 to High.
template <int Most, int Group, int High>
struct TwoAffine {
    Lanes d{}, dmin{}, s{}, m{};

    template <int N, bool Weighted, std::size_t Count>
    void search(const Groups<N, Weighted>& g, const std::array<Ends, Count>& starts, int rounds) {
        const AffineSums totals = level_free_sums(g);
        const Affine wanted =
            best_affine<Most, true>(g, lower(g.low(), Lanes{}), g.high(), totals, Affine{.error = kFar}, starts, 2);
        const Lanes top = extreme_group<Group>(wanted.scale), bottom = extreme_group<Group>(wanted.offset);
        Lanes least = kFar;
        for (const float target : {High + 0.0f, High + 0.45f, High * 0.93f}) {
            Lanes d1 = as_half(top / target), d2 = as_half(-bottom / target);
            for (int round = 0; round < rounds; ++round) {
                const Affine found = integers(g, wanted, d1, d2);
                const Lanes error = sum_group<Group>(found.error);
                const Codes better = error < least;
                d = choose(better, d1, d);
                dmin = choose(better, d2, dmin);
                s = choose(better, found.scale, s);
                m = choose(better, found.offset, m);
                least = choose(better, error, least);
                fit(affine_sums<Most>(g, totals, d1 * found.scale, -d2 * found.offset), found, d1, d2);
            }
        }
    }

  private:
    // The best integers of each lane, among those around what is wanted; in `scale` and `offset`.
    template <int N, bool Weighted>
    static Affine integers(const Groups<N, Weighted>& g, const Affine& wanted, Lanes d, Lanes dmin) {
        const Lanes s0 = nearest(clamp(ratio(wanted.scale, d), 0, High));
        const Lanes m0 = nearest(clamp(ratio(-wanted.offset, dmin), 0, High));
        Affine best{s0, m0, affine_error<Most>(g, d * s0, -dmin * m0)};
        for (const float a : {-1.0f, 0.0f, 1.0f}) {
            for (const float b : {-1.0f, 0.0f, 1.0f}) {
                if (a == 0 && b == 0) continue;
                const Lanes s = clamp(s0 + a, 0, High), m = clamp(m0 + b, 0, High);
                best.keep({s, m, affine_error<Most>(g, d * s, -dmin * m)});
            }
        }
        return best;
    }

    // The least-squares d and dmin of the super-block for these integers and levels.
    static void fit(const AffineSums& sums, const Affine& found, Lanes& d, Lanes& dmin) {
        const Lanes aa = sum_group<Group>(sums.ll * found.scale * found.scale);
        const Lanes ab = sum_group<Group>(sums.l * found.scale * found.offset);
        const Lanes bb = sum_group<Group>(sums.w * found.offset * found.offset);
        const Lanes xa = sum_group<Group>(sums.xl * found.scale);
        const Lanes xb = sum_group<Group>(sums.x * found.offset);
        const Lanes det = aa * bb - ab * ab;
        const Lanes d1 = ratio(bb * xa - ab * xb, det), d2 = ratio(ab * xa - aa * xb, det);
        const Codes both = (d1 > 0.0f) & (d2 >= 0.0f);
        const Codes alone = (bb == 0.0f) & (xa > 0.0f);
        d = as_half(choose(both, d1, choose(alone, ratio(xa, aa), d)));
        dmin = as_half(choose(both, d2, dmin));
    }
};

}  // namespace
}  // namespace akunu::cpu::AKUNU_ISA
