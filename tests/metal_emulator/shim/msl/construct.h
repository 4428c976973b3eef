// float4(a, b, c, d) and its like: clang does not construct extended vectors this way, so
// keywords.h turns the call into make<float4>(a, b, c, d).
#pragma once
#include "types.h"

namespace metal::detail {
template <class V, class A>
[[gnu::always_inline]] inline void put(V& v, int& i, A a) {
    if constexpr (size_v<A> == 0)
        v[i++] = static_cast<elem_t<V>>(a);
    else
        for (int k = 0; k < size_v<A>; ++k) v[i++] = static_cast<elem_t<V>>(a[k]);
}
template <class T, int N>
vec<T, N> unpack(packed_vec<T, N> p) {
    return p;
}
template <class A>
A unpack(A a) {
    return a;
}

template <class V, class... A>
[[gnu::always_inline]] inline V make_unpacked(A... a) {
    constexpr int given = ((size_v<A> ? size_v<A> : 1) + ... + 0);
    V v{};
    if constexpr (sizeof...(A) == 1 && given == 1) {
        for (int i = 0; i < size_v<V>; ++i) v[i] = (static_cast<elem_t<V>>(a), ...);
    } else if constexpr (sizeof...(A) > 0) {
        static_assert(given == size_v<V>, "wrong number of components for this vector");
        int i = 0;
        (put(v, i, a), ...);
    }
    return v;
}
/// A splat, a conversion, or a concatenation.  Scalars and typedefs of scalars pass too, so that
/// generic code may write T(x) through an alias.
template <class V, class... A>
[[gnu::always_inline]] inline V make(A... a) {
    if constexpr (size_v<V> == 0)
        return V(a...);
    else
        return make_unpacked<V>(unpack(a)...);
}
}  // namespace metal::detail
