// Floating-point functions.  Every function that Apple's compiler has in a precise and a fast
// variant is here in both: `precise::` (and the plain name with math mode "safe") is correctly
// rounded or nearly so; `fast::` (and the plain name with MSL_FAST_MATH, Metal's default) is as bad
// as the specification's table of fast-math accuracy allows, so that a kernel which needs
// more than it promises fails here.
#pragma once
#include "types.h"

namespace metal {
namespace detail {
/// y off by `ulps`, up or down by a hash of the argument.
inline float off(float y, float x, int ulps) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x), magnitude = __builtin_bit_cast(uint32_t, y) & 0x7FFFFFFFu;
    if (magnitude < 0x00800010u || magnitude > 0x7F7FFF00u) return y;  // zero, denormal, huge, Inf, NaN
    const int32_t s = (bits * 2654435761u) >> 31 ? ulps : -ulps;
    return __builtin_bit_cast(float, __builtin_bit_cast(int32_t, y) + s);
}
inline float off_absolute(float y, float x, float error) {
    return y + ((__builtin_bit_cast(uint32_t, x) * 2654435761u) >> 31 ? error : -error);
}
inline int exp_ulps(float x) { return 3 + static_cast<int>(::fminf(::floorf(::fabsf(2 * x)), 255.0f)); }

inline float fast_exp(float x) { return off(::expf(x), x, exp_ulps(x)); }
inline float fast_exp2(float x) { return off(::exp2f(x), x, exp_ulps(x)); }
inline float fast_log_like(float y, float x, float near_one) {
    return x >= 0.5f && x <= 2.0f ? off_absolute(y, x, near_one) : off(y, x, 3);
}
inline float fast_log(float x) { return fast_log_like(::logf(x), x, 0x1p-21f); }
inline float fast_log2(float x) { return fast_log_like(::log2f(x), x, 0x1p-21f); }
inline float fast_sin(float x) {  // 2^-13 within [-pi, pi], "larger" outside
    const float a = ::fabsf(x);
    return off_absolute(::sinf(x), x, a <= 3.14159274f ? 0x1p-13f : 0x1p-13f * a);
}
inline float fast_cos(float x) {
    const float a = ::fabsf(x);
    return off_absolute(::cosf(x), x, a <= 3.14159274f ? 0x1p-13f : 0x1p-13f * a);
}
inline float fast_rsqrt(float x) { return off(static_cast<float>(1.0 / ::sqrt(static_cast<double>(x))), x, 2); }
inline float fast_sqrt(float x) { return x == 0 || x > 3.4e38f ? x : x * fast_rsqrt(x); }
inline float fast_tanh(float x) {  // overflows to NaN for large x, as on Apple GPUs
    const float t = fast_exp(2.0f * x);
    return (t - 1.0f) / (t + 1.0f);
}
inline float fast_sinh(float x) { return 0.5f * (fast_exp(x) - fast_exp(-x)); }
inline float fast_cosh(float x) { return 0.5f * (fast_exp(x) + fast_exp(-x)); }
inline float fast_pow(float x, float y) { return fast_exp2(y * fast_log2(x)); }
inline float rsqrt(float x) { return static_cast<float>(1.0 / ::sqrt(static_cast<double>(x))); }
inline float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f; }
inline float fract(float x) { return ::fminf(x - ::floorf(x), 0x1.fffffep-1f); }

template <class V>
using float_only = std::enable_if_t<is_float_v<V>, int>;
}  // namespace detail

#ifdef MSL_FAST_MATH
#define MSL_DEFAULT_VARIANT fast
#else
#define MSL_DEFAULT_VARIANT precise
#endif

// half and bfloat go through float and are rounded once; only float has a fast variant.
#define MSL_MATH1(name, precise_expression, fast_expression)                   \
    namespace precise {                                                        \
    template <class V, detail::float_only<V> = 0>                              \
    inline V name(V v) {                                                       \
        return detail::map<V>(                                                 \
            [](auto e) {                                                       \
                const float x = static_cast<float>(e);                         \
                return precise_expression;                                     \
            },                                                                 \
            v);                                                                \
    }                                                                          \
    }                                                                          \
    namespace fast {                                                           \
    template <class V, detail::float_only<V> = 0>                              \
    inline V name(V v) {                                                       \
        if constexpr (!std::is_same_v<detail::elem_t<V>, float>)               \
            return precise::name(v);                                           \
        else                                                                   \
            return detail::map<V>([](float x) { return fast_expression; }, v); \
    }                                                                          \
    }                                                                          \
    using MSL_DEFAULT_VARIANT::name;
#define MSL_MATH1_SAME(name, expression) MSL_MATH1(name, expression, expression)
MSL_MATH1(exp, ::expf(x), detail::fast_exp(x))
MSL_MATH1(exp2, ::exp2f(x), detail::fast_exp2(x))
MSL_MATH1(exp10, ::exp10f(x), detail::fast_exp2(x * 3.32192809f))
MSL_MATH1(log, ::logf(x), detail::fast_log(x))
MSL_MATH1(log2, ::log2f(x), detail::fast_log2(x))
MSL_MATH1(log10, ::log10f(x), detail::fast_log2(x) * 0.301029996f)
MSL_MATH1(sin, ::sinf(x), detail::fast_sin(x))
MSL_MATH1(cos, ::cosf(x), detail::fast_cos(x))
MSL_MATH1(tan, ::tanf(x), detail::fast_sin(x) / detail::fast_cos(x))
MSL_MATH1(sinpi, static_cast<float>(::sin(M_PI* static_cast<double>(x))), detail::fast_sin(3.14159274f * x))
MSL_MATH1(cospi, static_cast<float>(::cos(M_PI* static_cast<double>(x))), detail::fast_cos(3.14159274f * x))
MSL_MATH1(tanh, ::tanhf(x), detail::fast_tanh(x))
MSL_MATH1(sinh, ::sinhf(x), detail::fast_sinh(x))
MSL_MATH1(cosh, ::coshf(x), detail::fast_cosh(x))
MSL_MATH1(asin, ::asinf(x), detail::off(::asinf(x), x, 5))
MSL_MATH1(acos, ::acosf(x), detail::off(::acosf(x), x, 5))
MSL_MATH1(atan, ::atanf(x), detail::off(::atanf(x), x, 5))
MSL_MATH1(sqrt, ::sqrtf(x), detail::fast_sqrt(x))
MSL_MATH1(rsqrt, detail::rsqrt(x), detail::fast_rsqrt(x))
MSL_MATH1_SAME(asinh, ::asinhf(x))
MSL_MATH1_SAME(acosh, ::acoshf(x))
MSL_MATH1_SAME(atanh, ::atanhf(x))
MSL_MATH1_SAME(floor, __builtin_floorf(x))
MSL_MATH1_SAME(ceil, __builtin_ceilf(x))
MSL_MATH1_SAME(trunc, __builtin_truncf(x))
MSL_MATH1_SAME(rint, __builtin_rintf(x))
MSL_MATH1_SAME(round, ::roundf(x))
MSL_MATH1_SAME(fract, detail::fract(x))
MSL_MATH1_SAME(fabs, __builtin_fabsf(x))
MSL_MATH1_SAME(saturate, ::fminf(::fmaxf(x, 0.0f), 1.0f))
MSL_MATH1_SAME(sign, detail::sign(x))
#undef MSL_MATH1_SAME
#undef MSL_MATH1

#define MSL_MATH2(name, precise_expression, fast_expression)                                     \
    namespace precise {                                                                          \
    template <class A, class B, detail::float_only<detail::common_t<A, B>> = 0>                  \
    inline auto name(A a, B b) {                                                                 \
        using R = detail::common_t<A, B>;                                                        \
        return detail::map<R>(                                                                   \
            [](auto p, auto q) {                                                                 \
                const float x = static_cast<float>(p), y = static_cast<float>(q);                \
                return precise_expression;                                                       \
            },                                                                                   \
            R(a), R(b));                                                                         \
    }                                                                                            \
    }                                                                                            \
    namespace fast {                                                                             \
    template <class A, class B, detail::float_only<detail::common_t<A, B>> = 0>                  \
    inline auto name(A a, B b) {                                                                 \
        using R = detail::common_t<A, B>;                                                        \
        if constexpr (!std::is_same_v<detail::elem_t<R>, float>)                                 \
            return precise::name(a, b);                                                          \
        else                                                                                     \
            return detail::map<R>([](float x, float y) { return fast_expression; }, R(a), R(b)); \
    }                                                                                            \
    }                                                                                            \
    using MSL_DEFAULT_VARIANT::name;
#define MSL_MATH2_SAME(name, expression) MSL_MATH2(name, expression, expression)
MSL_MATH2(pow, ::powf(x, y), detail::fast_pow(x, y))
MSL_MATH2(powr, ::powf(x, y), detail::fast_pow(x, y))
MSL_MATH2(atan2, ::atan2f(x, y), detail::off(::atan2f(x, y), x, 6))
MSL_MATH2_SAME(fmod, ::fmodf(x, y))
MSL_MATH2_SAME(fdim, ::fdimf(x, y))
MSL_MATH2_SAME(fmin, ::fminf(x, y))
MSL_MATH2_SAME(fmax, ::fmaxf(x, y))
MSL_MATH2_SAME(copysign, __builtin_copysignf(x, y))
MSL_MATH2_SAME(step, (y < x ? 0.0f : 1.0f))
MSL_MATH2_SAME(nextafter, ::nextafterf(x, y))
#undef MSL_MATH2_SAME
#undef MSL_MATH2

namespace precise {
/// Returns the sine, stores the cosine.
template <class V, class P, detail::float_only<V> = 0>
inline V sincos(V v, P& c) {
    c = precise::cos(v);
    return precise::sin(v);
}
template <class A, class E>
inline A ldexp(A a, E e) {
    return detail::map<A>([](auto x, int n) { return ::ldexpf(static_cast<float>(x), n); }, a, e);
}
template <class V, class P, detail::float_only<V> = 0>
inline V modf(V v, P& whole) {
    whole = precise::trunc(v);
    return v - V(whole);
}
template <class V, class P, detail::float_only<V> = 0>
inline V frexp(V v, P& e) {
    if constexpr (detail::size_v<V> == 0) {
        int n;
        const float m = ::frexpf(static_cast<float>(v), &n);
        e = n;
        return static_cast<V>(m);
    } else {
        V r;
        for (int i = 0; i < detail::size_v<V>; ++i) {
            int n;
            r[i] = static_cast<detail::elem_t<V>>(::frexpf(static_cast<float>(v[i]), &n));
            e[i] = n;
        }
        return r;
    }
}
}  // namespace precise
namespace fast {
template <class V, class P, detail::float_only<V> = 0>
inline V sincos(V v, P& c) {
    c = fast::cos(v);
    return fast::sin(v);
}
using precise::frexp;
using precise::ldexp;
using precise::modf;
}  // namespace fast
using MSL_DEFAULT_VARIANT::frexp;
using MSL_DEFAULT_VARIANT::ldexp;
using MSL_DEFAULT_VARIANT::modf;
using MSL_DEFAULT_VARIANT::sincos;

/// One rounding, also for half and bfloat (a product of two is exact in double).
template <class T, detail::float_only<T> = 0>
inline T fma(T a, T b, T c) {
    if constexpr (std::is_same_v<detail::elem_t<T>, float>) {
        if constexpr (detail::size_v<T>)
            return __builtin_elementwise_fma(a, b, c);
        else
            return __builtin_fmaf(a, b, c);
    } else
        return detail::map<T>(
            [](auto x, auto y, auto z) {
                return __builtin_fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
            },
            a, b, c);
}

// min, max, clamp: all arithmetic types.  NaN: the other argument, as fmin and fmax.
template <class A, class B>
inline auto max(A a, B b) {
    using R = detail::common_t<A, B>;
    return detail::map<R>(
        [](auto x, auto y) {
            if constexpr (std::is_integral_v<decltype(x)>)
                return x > y ? x : y;
            else
                return ::fmaxf(static_cast<float>(x), static_cast<float>(y));
        },
        R(a), R(b));
}
template <class A, class B>
inline auto min(A a, B b) {
    using R = detail::common_t<A, B>;
    return detail::map<R>(
        [](auto x, auto y) {
            if constexpr (std::is_integral_v<decltype(x)>)
                return x < y ? x : y;
            else
                return ::fminf(static_cast<float>(x), static_cast<float>(y));
        },
        R(a), R(b));
}
template <class T>
inline T max3(T a, T b, T c) {
    return metal::max(a, metal::max(b, c));
}
template <class T>
inline T min3(T a, T b, T c) {
    return metal::min(a, metal::min(b, c));
}
template <class T>
inline T median3(T a, T b, T c) {
    return metal::max(metal::min(a, b), metal::min(metal::max(a, b), c));
}
template <class T, class L, class H>
inline T clamp(T x, L lo, H hi) {
    return metal::min(metal::max(x, lo), hi);
}
namespace precise {
using metal::clamp;
using metal::fma;
using metal::max;
using metal::max3;
using metal::median3;
using metal::min;
using metal::min3;
}  // namespace precise
namespace fast {
using metal::clamp;
using metal::fma;
using metal::max;
using metal::max3;
using metal::median3;
using metal::min;
using metal::min3;
}  // namespace fast

template <class T>
inline T abs(T a) {
    if constexpr (detail::is_float_v<T>)
        return metal::fabs(a);
    else
        return detail::map<T>([](auto x) { return x < 0 ? -x : x; }, a);
}
/// Linear blend; `t` may be a scalar for vectors.
template <class T, class U>
inline T mix(T a, T b, U t) {
    return a + (b - a) * detail::common_t<T, U>(t);
}
template <class T>
inline T smoothstep(T lo, T hi, T x) {
    const T t = metal::saturate((x - lo) / (hi - lo));
    return t * t * (T(3) - T(2) * t);
}
template <class T>
inline detail::elem_t<T> dot(T a, T b) {
    static_assert(detail::size_v<T> != 0, "dot takes vectors");
    detail::elem_t<T> s = a[0] * b[0];
    for (int i = 1; i < detail::size_v<T>; ++i) s += a[i] * b[i];
    return s;
}
template <class T>
inline detail::elem_t<T> length_squared(T a) {
    return dot(a, a);
}
template <class T>
inline detail::elem_t<T> length(T a) {
    return metal::sqrt(dot(a, a));
}
template <class T>
inline detail::elem_t<T> distance(T a, T b) {
    return metal::length(a - b);
}
template <class T>
inline T normalize(T a) {
    return a * T(metal::rsqrt(dot(a, a)));
}
template <class T>
inline T cross(T a, T b) {
    static_assert(detail::size_v<T> == 3, "cross takes vectors of three");
    T r;
    r[0] = a[1] * b[2] - a[2] * b[1];
    r[1] = a[2] * b[0] - a[0] * b[2];
    r[2] = a[0] * b[1] - a[1] * b[0];
    return r;
}
}  // namespace metal
