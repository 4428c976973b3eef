// What every instruction set gets from the compiler's vector types: arithmetic operators, exp, tanh, reductions.
// Included by simd/<isa>.h inside its namespace, after `L` (floats in a vector), `vf` and `vi` are defined.

template <int N, typename F>
static inline void unroll(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
        (f.template operator()<I>(), ...);
    }(std::make_integer_sequence<int, N>{});
}

static inline vf zero() { return vf{}; }
static inline vf to_float(vi a) { return __builtin_convertvector(a, vf); }

// Lanes from kFirst on, and those before them.
template <int kFirst>
static inline vf turned(vf a) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return __builtin_shufflevector(a, a, ((kFirst + I) % L)...);
    }(std::make_index_sequence<L>{});
}

// The first, and the second, of each pair in two vectors.
static inline vf firsts(vf a, vf b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (2 * I)...);
    }(std::make_index_sequence<L>{});
}
static inline vf seconds(vf a, vf b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (2 * I + 1)...);
    }(std::make_index_sequence<L>{});
}
// The pairs of lane I of a and of b: those of the lower half, or of the upper one.
template <bool kUpper>
static inline vf paired(vf a, vf b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (kUpper * L / 2 + I / 2 + I % 2 * L)...);
    }(std::make_index_sequence<L>{});
}

// v[i][j] becomes v[j][i]: the rows of the first half and of the second are paired as often as it takes.
template <int kTimes = std::countr_zero(unsigned{L})>
static inline void transpose(vf (&v)[L]) {
    if constexpr (kTimes > 0) {
        vf to[L];
        unroll<L / 2>([&]<int i>() {
            to[2 * i] = paired<false>(v[i], v[i + L / 2]);
            to[2 * i + 1] = paired<true>(v[i], v[i + L / 2]);
        });
        unroll<L>([&]<int i>() { v[i] = to[i]; });
        transpose<kTimes - 1>(v);
    }
}

// Folds a vector's upper half onto its lower one until a lane is left.
template <int kWidth = L, typename F>
static inline float fold(vf a, F&& f) {
    if constexpr (kWidth == 1)
        return a[0];
    else
        return fold<kWidth / 2>(f(a, turned<kWidth / 2>(a)), f);
}
static inline float reduce_add(vf a) {
    return fold(a, [](vf x, vf y) { return x + y; });
}
static inline float reduce_max(vf a) {
    return fold(a, [](vf x, vf y) { return max_(x, y); });
}

// First n < L lanes.
static inline vf load_first(const float* p, int n, float fill = 0) {
    float t[L];
    for (int i = 0; i < L; ++i) t[i] = i < n ? p[i] : fill;
    vf r;
    std::memcpy(&r, t, sizeof r);
    return r;
}
static inline void store_first(float* p, vf a, int n) { std::memcpy(p, &a, static_cast<std::size_t>(n) * 4); }

// exp(x) of x up to 88, relative error below 2^-22: Cody-Waite reduction and the Cephes polynomial. Below -87.3 the
// result is 0. A NaN stays one: of two numbers, max_ and min_ give the second where one is none.
static inline vf exp_below_88(vf x) {
    const vf lo = set1(-87.33654f);
    const vi tiny = x < lo;
    x = max_(lo, x);
    const vf magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    const vf t = fma(x, set1(1.44269504f), magic);
    const vf n = t - magic;
    vf r = fma(n, set1(-0.693359375f), x);
    r = fma(n, set1(2.12194440e-4f), r);
    vf p = set1(1.9875691500e-4f);
    p = fma(p, r, set1(1.3981999507e-3f));
    p = fma(p, r, set1(8.3334519073e-3f));
    p = fma(p, r, set1(4.1665795894e-2f));
    p = fma(p, r, set1(1.6666665459e-1f));
    p = fma(p, r, set1(5.0000001201e-1f));
    p = fma(p, r * r, r + set1(1.0f));
    vi bits;
    std::memcpy(&bits, &t, sizeof bits);
    vi scale = (bits << 23) + 0x3F800000;  // the magic's own bits leave the word
    vf s;
    std::memcpy(&s, &scale, sizeof s);
    vf e = p * s;
    vi ebits;
    std::memcpy(&ebits, &e, sizeof ebits);
    ebits &= ~tiny;
    std::memcpy(&e, &ebits, sizeof e);
    return e;
}

static inline vf exp_(vf x) { return exp_below_88(min_(set1(88.02f), x)); }
static inline vf sigmoid(vf x) { return set1(1.0f) / (set1(1.0f) + exp_(-x)); }
static inline vf tanh_(vf x) { return set1(1.0f) - set1(2.0f) / (exp_(x + x) + set1(1.0f)); }
static inline vf silu(vf x) { return x * sigmoid(x); }
// log(1 + exp(x)), relative error below 1e-7: with t = exp(-|x|), log(1 + t) = 2·atanh(t / (2 + t)), by its series.
static inline vf softplus(vf x) {
    const vf t = exp_(-max_(x, -x)), s = t / (set1(2.0f) + t), u = s * s;
    vf r = set1(1.0f / 15);
    r = fma(r, u, set1(1.0f / 13));
    r = fma(r, u, set1(1.0f / 11));
    r = fma(r, u, set1(1.0f / 9));
    r = fma(r, u, set1(1.0f / 7));
    r = fma(r, u, set1(1.0f / 5));
    r = fma(r, u, set1(1.0f / 3));
    r = fma(r, u, set1(1.0f));
    return fma(s + s, r, max_(x, zero()));
}
// The tanh form: x/2·(1 + tanh(√(2/π)·(x + 0.044715x³))).
static inline vf gelu_tanh(vf x) {
    const vf u = set1(0.7978845608f) * fma(x * x * x, set1(0.044715f), x);
    return x * sigmoid(u + u);
}

// x/2·(1 + erf(x/√2)), absolute error below 4e-8 before rounding: max(x, 0) - |x|·h, where h = erfc(|x|/√2)/2 = 2^-r,
// and r(|x|) and 2^x are polynomials (minimax). From 10 on h is nothing.
static inline vf gelu(vf x) {
    const vf a = min_(max_(x, -x), set1(10.0f));
    vf r = set1(1.21670144e-6f);
    r = fma(r, a, set1(-1.97074659e-5f));
    r = fma(r, a, set1(9.08673587e-5f));
    r = fma(r, a, set1(3.73323201e-4f));
    r = fma(r, a, set1(-7.38355529e-3f));
    r = fma(r, a, set1(5.27291175e-2f));
    r = fma(r, a, set1(4.59125744e-1f));
    r = fma(r, a, set1(1.15111580f));
    r = fma(r, a, set1(1.0f));
    const vf magic = set1(12582912.0f);  // as in exp_
    const vf t = magic - r, f = magic - t - r;
    vf h = set1(1.32647e-3f);
    h = fma(h, f, set1(9.67152e-3f));
    h = fma(h, f, set1(5.550734e-2f));
    h = fma(h, f, set1(2.4022242e-1f));
    h = fma(h, f, set1(6.9314698e-1f));
    h = fma(h, f, set1(1.0f));
    vi bits;
    std::memcpy(&bits, &t, sizeof bits);
    const vi scale = (bits << 23) + 0x3F800000;
    vf s;
    std::memcpy(&s, &scale, sizeof s);
    return max_(zero(), x) - a * (h * s);  // in this order a NaN stays one
}

// Dot products of M tokens with the rows of a group at once, which only some sets have.
template <int M>
struct DotPairs {
    static constexpr bool kAvailable = false;
};

// The sums of runs (matmul_runs.inl), of sets that have them: of kOffset less than unsigned weights, and of int8.
template <int kOffset, int kMost, int kSteps>
struct RunCentred;
template <int kSteps>
struct RunSigned;
