// The searches of the quantisers. Each looks for the scale, or the scale and offset, that make the weighted sum of
// squared errors least: it starts from many, fits each one by least squares to the levels that it leads to, and
// measures the error of the fit. No step assumes anything of how the weights are distributed.
#pragma once

#include "cpu/quantize/lanes.h"

namespace akunu::cpu::AKUNU_ISA {
namespace {

struct Scaled {
    Lanes scale{}, error{};

    [[gnu::always_inline]] void keep(Lanes other_scale, Lanes other_error) {
        const Codes better = other_error < error;
        scale = better ? other_scale : scale;
        error = better ? other_error : error;
    }
};

// Σ w (x - scale * level)² with the best levels.
template <class Levels, int N>
[[gnu::always_inline]] inline Lanes error_of(const Groups<N>& g, Lanes scale) {
    const Lanes inverse = ratio(all(1.0f), scale);
    Lanes error{};
    for (int i = 0; i < N; ++i) {
        const Lanes left = g.x[i] - scale * Levels::level(g.x[i] * inverse);
        error += g.w[i] * left * left;
    }
    return error;
}

// Sums over a group for the least-squares scale: Σ w x level and Σ w level².
struct ScaleSums {
    Lanes xl{}, ll{};
};

template <class Levels, int N>
[[gnu::always_inline]] inline ScaleSums scale_sums(const Groups<N>& g, Lanes scale) {
    const Lanes inverse = ratio(all(1.0f), scale);
    ScaleSums s;
    for (int i = 0; i < N; ++i) {
        const Lanes level = Levels::level(g.x[i] * inverse);
        const Lanes weighted = g.w[i] * level;
        s.xl += weighted * g.x[i];
        s.ll += weighted * level;
    }
    return s;
}

// Where a search for a scale starts: at those that take the group's extreme value to first, first + step, … .
struct Starts {
    float first, step;
    int count;
};

// The best scale of each group. `Both`: the extreme value is also tried with the other sign. By how much a start lowers
// the error follows from its sums; the best one is then fitted again.
template <class Levels, bool Both, int N>
inline Scaled best_scale(const Groups<N>& g, const Starts& starts) {
    const Lanes extreme = g.extreme();
    Lanes most{}, fit{};
    for (int k = 0; k < starts.count; ++k) {
        for (int sign = -1; sign <= (Both ? 1 : -1); sign += 2) {
            const float target = static_cast<float>(sign) * (starts.first + static_cast<float>(k) * starts.step);
            const ScaleSums s = scale_sums<Levels>(g, extreme * (1.0f / target));
            const Lanes scale = ratio(s.xl, s.ll);
            const Lanes gain = scale * s.xl;
            const Codes better = gain > most;
            most = better ? gain : most;
            fit = better ? scale : fit;
        }
    }
    Scaled best{fit, error_of<Levels>(g, fit)};
    for (int again = 0; again < 2; ++again) {
        const ScaleSums s = scale_sums<Levels>(g, best.scale);
        const Lanes scale = ratio(s.xl, s.ll);
        best.keep(scale, error_of<Levels>(g, scale));
    }
    return best;
}

// The best binary16 scale: the search's, its neighbours, and the one that takes the extreme value to the lowest level.
template <class Levels, int N>
inline Lanes best_half_scale(const Groups<N>& g, Lanes scale) {
    const Lanes plain = as_half(g.extreme() / Levels::low);
    Scaled best{plain, error_of<Levels>(g, plain)};
    for (const float nudge : {1.0f, 1.0f - 0x1p-10f, 1.0f + 0x1p-10f}) {
        const Lanes near = as_half(scale * nudge);
        best.keep(near, error_of<Levels>(g, near));
    }
    return best.scale;
}

// A super-block of `Group` lanes: scale = d * s, with d binary16 and s an integer from Low to High.
template <class Levels, int Group, int Low, int High>
struct TwoScales {
    Lanes d{}, s{};

    template <int N>
    void search(const Groups<N>& g, Lanes wanted, int rounds) {
        const Lanes extreme = extreme_group<Group>(wanted);
        Lanes least = all(kFar);
        for (const float target : {static_cast<float>(Low), static_cast<float>(High), Low - 0.5f, High + 0.5f}) {
            Lanes tried = as_half(extreme / target);
            for (int round = 0; round < rounds; ++round) {
                const Scaled found = integers(g, wanted, tried);
                const Lanes error = sum_group<Group>(found.error);
                const Codes better = error < least;
                d = better ? tried : d;
                s = better ? found.scale : s;
                least = better ? error : least;
                const ScaleSums sums = scale_sums<Levels>(g, tried * found.scale);
                const Lanes xl = sum_group<Group>(sums.xl * found.scale);
                const Lanes ll = sum_group<Group>(sums.ll * found.scale * found.scale);
                tried = as_half(ratio(xl, ll));
            }
        }
    }

  private:
    // The best integer of each lane, among those around wanted / d.
    template <int N>
    static Scaled integers(const Groups<N>& g, Lanes wanted, Lanes d) {
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
        scale = better ? other.scale : scale;
        offset = better ? other.offset : offset;
        error = better ? other.error : error;
    }
};

template <int Most, int N>
[[gnu::always_inline]] inline Lanes affine_error(const Groups<N>& g, Lanes scale, Lanes offset) {
    const Lanes inverse = ratio(all(1.0f), scale);
    Lanes error{};
    for (int i = 0; i < N; ++i) {
        const Lanes level = nearest(clamp((g.x[i] - offset) * inverse, 0, Most));
        const Lanes left = g.x[i] - (scale * level + offset);
        error += g.w[i] * left * left;
    }
    return error;
}

// Sums for a least-squares fit of scale and offset; w and x are the same whatever the levels.
struct AffineSums {
    Lanes w{}, l{}, ll{}, x{}, xl{};
};

template <int N>
[[gnu::always_inline]] inline AffineSums level_free_sums(const Groups<N>& g) {
    AffineSums s;
    for (int i = 0; i < N; ++i) {
        s.w += g.w[i];
        s.x += g.w[i] * g.x[i];
    }
    return s;
}

template <int Most, int N>
[[gnu::always_inline]] inline AffineSums affine_sums(const Groups<N>& g, AffineSums s, Lanes scale, Lanes offset) {
    const Lanes inverse = ratio(all(1.0f), scale);
    for (int i = 0; i < N; ++i) {
        const Lanes level = nearest(clamp((g.x[i] - offset) * inverse, 0, Most));
        const Lanes weighted = g.w[i] * level;
        s.l += weighted;
        s.ll += weighted * level;
        s.xl += weighted * g.x[i];
    }
    return s;
}

// The least-squares scale and offset; what is given where the levels say nothing.
template <bool Below>
[[gnu::always_inline]] inline Affine fitted(const AffineSums& s, Lanes scale, Lanes offset) {
    const Lanes det = s.w * s.ll - s.l * s.l;
    Affine fit{ratio(s.w * s.xl - s.l * s.x, det), ratio(s.ll * s.x - s.l * s.xl, det)};
    if (Below) {
        const Codes above = fit.offset > 0.0f;
        fit.scale = above ? ratio(s.xl, s.ll) : fit.scale;
        fit.offset = above ? Lanes{} : fit.offset;
    }
    const Codes usable = fit.scale > 0.0f;
    fit.scale = usable ? fit.scale : scale;
    fit.offset = usable ? fit.offset : offset;
    return fit;
}

// The best scale and offset of each group. The starts put the group's ends up to `reach` levels inside the outer
// levels, `Steps` ways each. `Below`: the offset may not be positive.
template <int Most, bool Below, int Steps, int N>
inline Affine best_affine(const Groups<N>& g, float outside, float reach) {
    Lanes low = g.x[0], high = g.x[0];
    for (int i = 1; i < N; ++i) {
        low = lower(low, g.x[i]);
        high = higher(high, g.x[i]);
    }
    if (Below) low = lower(low, Lanes{});
    const Lanes unit = (high - low) / static_cast<float>(Most);
    Affine best{unit, low, affine_error<Most>(g, unit, low)};
    const float step = (reach + outside) / static_cast<float>(Steps - 1);
    const AffineSums totals = level_free_sums(g);
    Lanes most = all(-kFar);
    Affine fit = best;
    for (int a = 0; a < Steps; ++a) {
        const Lanes from = low + unit * (static_cast<float>(a) * step - outside);
        for (int b = 0; b < Steps; ++b) {
            const Lanes to = high - unit * (static_cast<float>(b) * step - outside);
            const AffineSums s = affine_sums<Most>(g, totals, (to - from) * (1.0f / static_cast<float>(Most)), from);
            const Affine found = fitted<Below>(s, unit, low);
            const Lanes gain = found.scale * (2.0f * s.xl - found.scale * s.ll - 2.0f * found.offset * s.l) +
                               found.offset * (2.0f * s.x - found.offset * s.w);
            const Codes better = gain > most;
            most = better ? gain : most;
            fit.scale = better ? found.scale : fit.scale;
            fit.offset = better ? found.offset : fit.offset;
        }
    }
    fit.error = affine_error<Most>(g, fit.scale, fit.offset);
    best.keep(fit);
    for (int again = 0; again < 2; ++again) {
        Affine next = fitted<Below>(affine_sums<Most>(g, totals, best.scale, best.offset), best.scale, best.offset);
        next.error = affine_error<Most>(g, next.scale, next.offset);
        best.keep(next);
    }
    return best;
}

// A super-block of `Group` lanes: scale = d * s and offset = -dmin * m, with d and dmin binary16 and s and m integers
// from 0 to High.
template <int Most, int Group, int High>
struct TwoAffine {
    Lanes d{}, dmin{}, s{}, m{};

    template <int N>
    void search(const Groups<N>& g, const Affine& wanted, int rounds) {
        const AffineSums totals = level_free_sums(g);
        const Lanes top = extreme_group<Group>(wanted.scale), bottom = extreme_group<Group>(wanted.offset);
        Lanes least = all(kFar);
        for (const float target : {High + 0.0f, High + 0.45f, High * 0.93f}) {
            Lanes d1 = as_half(top / target), d2 = as_half(-bottom / target);
            for (int round = 0; round < rounds; ++round) {
                const Affine found = integers(g, wanted, d1, d2);
                const Lanes error = sum_group<Group>(found.error);
                const Codes better = error < least;
                d = better ? d1 : d;
                dmin = better ? d2 : dmin;
                s = better ? found.scale : s;
                m = better ? found.offset : m;
                least = better ? error : least;
                fit(affine_sums<Most>(g, totals, d1 * found.scale, -d2 * found.offset), found, d1, d2);
            }
        }
    }

  private:
    // The best integers of each lane, among those around what is wanted; in `scale` and `offset`.
    template <int N>
    static Affine integers(const Groups<N>& g, const Affine& wanted, Lanes d, Lanes dmin) {
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
        d = as_half(both ? d1 : (alone ? ratio(xa, aa) : d));
        dmin = as_half(both ? d2 : dmin);
    }
};

}  // namespace
}  // namespace akunu::cpu::AKUNU_ISA
