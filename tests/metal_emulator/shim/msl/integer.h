// Integer functions.
#pragma once
#include "math.h"

namespace metal {
namespace detail {
template <class V>
using int_only = std::enable_if_t<is_int_v<V>, int>;
template <class T>
using unsigned_t = std::make_unsigned_t<T>;
template <class T>
constexpr int bits_v = 8 * static_cast<int>(sizeof(T));
template <class T>
using wide_t = std::conditional_t<(sizeof(T) < 8), std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                  std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>;
template <class T>
inline T saturated(wide_t<T> x) {
    constexpr wide_t<T> lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
    return static_cast<T>(x < lo ? lo : x > hi ? hi : x);
}
}  // namespace detail

#define MSL_INT1(name, expression)                                \
    template <class V, detail::int_only<V> = 0>                   \
    inline V name(V v) {                                          \
        return detail::map<V>(                                    \
            [](auto x) {                                          \
                using T = decltype(x);                            \
                using U [[maybe_unused]] = detail::unsigned_t<T>; \
                return static_cast<T>(expression);                \
            },                                                    \
            v);                                                   \
    }
MSL_INT1(popcount, __builtin_popcountll(static_cast<U>(x)))
MSL_INT1(clz, x ? __builtin_clzll(static_cast<unsigned long long>(static_cast<U>(x))) - (64 - detail::bits_v<T>)
                : detail::bits_v<T>)
MSL_INT1(ctz, x ? __builtin_ctzll(static_cast<unsigned long long>(static_cast<U>(x))) : detail::bits_v<T>)
#undef MSL_INT1
template <class V, detail::int_only<V> = 0>
inline V reverse_bits(V v) {
    return detail::map<V>(
        [](auto x) {
            using T = decltype(x);
            detail::unsigned_t<T> r = 0;
            for (int i = 0; i < detail::bits_v<T>; ++i)
                if (static_cast<detail::unsigned_t<T>>(x) >> i & 1)
                    r |= static_cast<detail::unsigned_t<T>>(detail::unsigned_t<T>{1} << (detail::bits_v<T> - 1 - i));
            return static_cast<T>(r);
        },
        v);
}

#define MSL_INT2(name, expression)                            \
    template <class V, detail::int_only<V> = 0>               \
    inline V name(V a, V b) {                                 \
        return detail::map<V>(                                \
            [](auto x, auto y) {                              \
                using T = decltype(x);                        \
                using W [[maybe_unused]] = detail::wide_t<T>; \
                return static_cast<T>(expression);            \
            },                                                \
            a, b);                                            \
    }
MSL_INT2(absdiff, x > y ? x - y : y - x)
MSL_INT2(addsat, detail::saturated<T>(W(x) + W(y)))
MSL_INT2(subsat, std::is_signed_v<T> ? detail::saturated<T>(W(x) - W(y)) : (x > y ? x - y : 0))
MSL_INT2(hadd, (W(x) + W(y)) >> 1)
MSL_INT2(rhadd, (W(x) + W(y) + 1) >> 1)
MSL_INT2(mulhi, (W(x) * W(y)) >> detail::bits_v<T>)
MSL_INT2(rotate,
         detail::unsigned_t<T>(x) << (unsigned(y) % detail::bits_v<T>) |
             detail::unsigned_t<T>(x) >> ((detail::bits_v<T> - unsigned(y) % detail::bits_v<T>) % detail::bits_v<T>))
#undef MSL_INT2
template <class V>
inline V madhi(V a, V b, V c) {
    return metal::mulhi(a, b) + c;
}
template <class V>
inline V mad24(V a, V b, V c) {
    return a * b + c;
}
template <class V>
inline V mul24(V a, V b) {
    return a * b;
}
/// Bits [offset, offset + n), sign-extended for signed types.
template <class V, detail::int_only<V> = 0>
inline V extract_bits(V v, uint offset, uint n) {
    return detail::map<V>(
        [=](auto x) {
            using T = decltype(x);
            constexpr uint w = detail::bits_v<T>;
            return n == 0 ? T(0)
                          : static_cast<T>(static_cast<T>(static_cast<detail::unsigned_t<T>>(x) << (w - offset - n)) >>
                                           (w - n));
        },
        v);
}
template <class V, detail::int_only<V> = 0>
inline V insert_bits(V base, V insert, uint offset, uint n) {
    return detail::map<V>(
        [=](auto b, auto i) {
            using T = decltype(b);
            using U = detail::unsigned_t<T>;
            const U m = static_cast<U>((n >= detail::bits_v<T> ? ~U{0} : static_cast<U>((U{1} << n) - 1)) << offset);
            return static_cast<T>((static_cast<U>(b) & ~m) | (static_cast<U>(static_cast<U>(i) << offset) & m));
        },
        base, insert);
}

// <metal_pack>
inline uint pack_float_to_snorm4x8(float4 v) {
    uint r = 0;
    for (int i = 0; i < 4; ++i)
        r |= (static_cast<uint>(static_cast<int>(::rintf(::fminf(::fmaxf(v[i], -1.f), 1.f) * 127.f))) & 255u)
             << (8 * i);
    return r;
}
inline uint pack_float_to_unorm4x8(float4 v) {
    uint r = 0;
    for (int i = 0; i < 4; ++i) r |= static_cast<uint>(::rintf(::fminf(::fmaxf(v[i], 0.f), 1.f) * 255.f)) << (8 * i);
    return r;
}
inline float4 unpack_unorm4x8_to_float(uint x) {
    float4 r;
    for (int i = 0; i < 4; ++i) r[i] = static_cast<float>(x >> (8 * i) & 255u) / 255.f;
    return r;
}
inline float4 unpack_snorm4x8_to_float(uint x) {
    float4 r;
    for (int i = 0; i < 4; ++i) r[i] = ::fmaxf(static_cast<float>(static_cast<int8_t>(x >> (8 * i))) / 127.f, -1.f);
    return r;
}
}  // namespace metal
