// Tests and selection.
#pragma once
#include "math.h"

namespace metal {
namespace detail {
// By the bits: fast math lets the compiler assume that `x != x` is false.
template <class T>
inline uint32_t magnitude(T x) {
    return __builtin_bit_cast(uint32_t, static_cast<float>(x)) & 0x7FFFFFFFu;
}
template <class V>
using test_t = std::conditional_t<size_v<V> == 0, bool, bool_vec<(size_v<V> == 0 ? 1 : size_v<V>)>>;
}  // namespace detail
// Under fast math these fold to what finite arithmetic implies, as Apple's compiler may do.
#ifdef MSL_FAST_MATH
#define MSL_TEST(name, expression, folded)                                     \
    template <class V, detail::float_only<V> = 0>                              \
    inline detail::test_t<V> name(V v) {                                       \
        return detail::map<detail::test_t<V>>([](auto) { return folded; }, v); \
    }
#else
#define MSL_TEST(name, expression, folded)                                           \
    template <class V, detail::float_only<V> = 0>                                    \
    inline detail::test_t<V> name(V v) {                                             \
        return detail::map<detail::test_t<V>>([](auto x) { return expression; }, v); \
    }
#endif
MSL_TEST(isnan, detail::magnitude(x) > 0x7F800000u, false)
MSL_TEST(isinf, detail::magnitude(x) == 0x7F800000u, false)
MSL_TEST(isfinite, detail::magnitude(x) < 0x7F800000u, true)
#undef MSL_TEST
template <class V, detail::float_only<V> = 0>
inline detail::test_t<V> signbit(V v) {
    return detail::map<detail::test_t<V>>([](auto x) { return __builtin_signbit(static_cast<float>(x)) != 0; }, v);
}

/// b where c, else a.
template <class T, class C>
inline T select(T a, T b, C c) {
    if constexpr (detail::size_v<T> && detail::size_v<C>) {
        T r;
        for (int i = 0; i < detail::size_v<T>; ++i) r[i] = c[i] ? b[i] : a[i];
        return r;
    } else
        return c ? b : a;
}
template <class V>
inline bool any(V v) {
    if constexpr (detail::size_v<V> == 0)
        return v;
    else {
        for (int i = 0; i < detail::size_v<V>; ++i)
            if (v[i]) return true;
        return false;
    }
}
template <class V>
inline bool all(V v) {
    if constexpr (detail::size_v<V> == 0)
        return v;
    else {
        for (int i = 0; i < detail::size_v<V>; ++i)
            if (!v[i]) return false;
        return true;
    }
}
}  // namespace metal
