// Scalar, vector and packed types, as_type.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "msl_abi.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef __bf16 bfloat;
constexpr half operator""h(long double v) { return static_cast<half>(v); }
constexpr half operator""h(unsigned long long v) { return static_cast<half>(v); }
constexpr bfloat operator"" bf(long double v) { return static_cast<bfloat>(static_cast<float>(v)); }

namespace metal {
using ::bfloat;
using ::half;
using ::ptrdiff_t;
using ::size_t;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;
using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

using std::conditional;
using std::conditional_t;
using std::declval;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::integral_constant;
using std::is_const;
using std::is_const_v;
using std::is_pointer;
using std::is_reference;
using std::is_same;
using std::is_same_v;
using std::is_signed;
using std::is_unsigned;
using std::make_signed;
using std::make_signed_t;
using std::make_unsigned;
using std::make_unsigned_t;
using std::remove_const_t;
using std::remove_cv_t;
using std::remove_pointer_t;
using std::remove_reference;
using std::remove_reference_t;
using std::true_type;

namespace detail {
/// A boolN must convert from a comparison, which clang gives as an integer vector; its own bool
/// vectors are packed to bits, MSL's are not.
template <int N>
struct bool_vec {
    bool e[N];
    bool_vec() = default;
    bool_vec(bool v) {
        for (bool& b : e) b = v;
    }
    template <class V, class = decltype(std::declval<V>()[0]), class = std::enable_if_t<!std::is_pointer_v<V>>>
    bool_vec(V v) {
        for (int i = 0; i < N; ++i) e[i] = v[i] != 0;
    }
    bool& operator[](int i) { return e[i]; }
    bool operator[](int i) const { return e[i]; }
    bool_vec operator!() const {
        bool_vec r;
        for (int i = 0; i < N; ++i) r.e[i] = !e[i];
        return r;
    }
    bool_vec operator&&(bool_vec o) const {
        bool_vec r;
        for (int i = 0; i < N; ++i) r.e[i] = e[i] && o.e[i];
        return r;
    }
    bool_vec operator||(bool_vec o) const {
        bool_vec r;
        for (int i = 0; i < N; ++i) r.e[i] = e[i] || o.e[i];
        return r;
    }
};
template <class T, int N>
struct vec_type {
    typedef T type __attribute__((ext_vector_type(N)));
};
template <int N>
struct vec_type<bool, N> {
    typedef bool_vec<N> type;
};
}  // namespace detail

#define MSL_VECTORS(T)                                  \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4)));
// clang-format off
MSL_VECTORS(float) MSL_VECTORS(half) MSL_VECTORS(bfloat) MSL_VECTORS(char) MSL_VECTORS(uchar) MSL_VECTORS(short) MSL_VECTORS(ushort)
MSL_VECTORS(int) MSL_VECTORS(uint) MSL_VECTORS(long) MSL_VECTORS(ulong)
// clang-format on
#undef MSL_VECTORS
        typedef detail::bool_vec<2> bool2;
typedef detail::bool_vec<3> bool3;
typedef detail::bool_vec<4> bool4;
template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));

namespace detail {
/// size 0: a scalar.
template <class V>
struct traits {
    using elem = V;
    static constexpr int size = 0;
};
template <class T, int N>
struct traits<T __attribute__((ext_vector_type(N)))> {
    using elem = T;
    static constexpr int size = N;
};
template <int N>
struct traits<bool_vec<N>> {
    using elem = bool;
    static constexpr int size = N;
};
template <class V>
using elem_t = typename traits<V>::elem;
template <class V>
constexpr int size_v = traits<V>::size;
template <class T>
constexpr bool is_float_elem = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
template <class V>
constexpr bool is_float_v = is_float_elem<elem_t<V>>;
template <class V>
constexpr bool is_int_v = std::is_integral_v<elem_t<V>>;

/// The operand type of a function whose MSL overloads take two values of one type: equal types,
/// or a vector with a scalar of its element type.  Anything else is ambiguous to Apple's compiler.
template <class A, class B>
struct common {
    static constexpr bool ok = std::is_same_v<A, B> || (size_v<A> && std::is_same_v<elem_t<A>, B>) ||
                               (size_v<B> && std::is_same_v<elem_t<B>, A>);
    static_assert(ok, "ambiguous in MSL: give both arguments the same type");
    using type = std::conditional_t<(size_v<A> != 0), A, std::conditional_t<(size_v<B> != 0), B, A>>;
};
template <class A, class B>
using common_t = typename common<std::decay_t<A>, std::decay_t<B>>::type;

/// Element-wise application.
template <class R, class F, class... A>
[[gnu::always_inline]] inline R map(F f, A... a) {
    if constexpr (size_v<R> == 0)
        return static_cast<R>(f(a...));
    else {
        R r;
        for (int i = 0; i < size_v<R>; ++i) r[i] = static_cast<elem_t<R>>(f(a[i]...));
        return r;
    }
}
}  // namespace detail

/// packed_float3 and its like: no padding, scalar alignment.
namespace detail {
template <class T, int N>
struct packed;
template <class T>
struct packed<T, 2> {
    T x, y;
};
template <class T>
struct packed<T, 3> {
    T x, y, z;
};
template <class T>
struct packed<T, 4> {
    T x, y, z, w;
};
}  // namespace detail
template <class T, int N>
struct packed_vec : detail::packed<T, N> {
    packed_vec() = default;
    packed_vec(vec<T, N> v) {
        for (int i = 0; i < N; ++i) (*this)[i] = v[i];
    }
    template <class... A, class = std::enable_if_t<sizeof...(A) == N && (N > 1)>>
    packed_vec(A... a) {
        const T v[] = {static_cast<T>(a)...};
        for (int i = 0; i < N; ++i) (*this)[i] = v[i];
    }
    operator vec<T, N>() const {
        vec<T, N> v;
        for (int i = 0; i < N; ++i) v[i] = (*this)[i];
        return v;
    }
    T& operator[](int i) { return reinterpret_cast<T*>(this)[i]; }
    T operator[](int i) const { return reinterpret_cast<const T*>(this)[i]; }
};
#define MSL_PACKED(T)                       \
    typedef packed_vec<T, 2> packed_##T##2; \
    typedef packed_vec<T, 3> packed_##T##3; \
    typedef packed_vec<T, 4> packed_##T##4;
// clang-format off
MSL_PACKED(float) MSL_PACKED(half) MSL_PACKED(bfloat) MSL_PACKED(char) MSL_PACKED(uchar) MSL_PACKED(short) MSL_PACKED(ushort)
MSL_PACKED(int) MSL_PACKED(uint) MSL_PACKED(long) MSL_PACKED(ulong)
// clang-format on
#undef MSL_PACKED

        template <class T, size_t N>
        struct array {
    T e[N];
    constexpr T& operator[](size_t i) { return e[i]; }
    constexpr const T& operator[](size_t i) const { return e[i]; }
    static constexpr size_t size() { return N; }
};

/// std::numeric_limits lacks the two 16-bit floats.
template <class T>
struct numeric_limits : std::numeric_limits<T> {};
template <>
struct numeric_limits<half> {
    static constexpr bool is_specialized = true;
    static constexpr int digits = 11;
    static constexpr half max() { return static_cast<half>(65504.0f); }
    static constexpr half lowest() { return static_cast<half>(-65504.0f); }
    static constexpr half min() { return static_cast<half>(0x1p-14f); }
    static constexpr half epsilon() { return static_cast<half>(0x1p-10f); }
    static constexpr half infinity() { return static_cast<half>(__builtin_inff()); }
    static constexpr half quiet_NaN() { return static_cast<half>(__builtin_nanf("")); }
};
template <>
struct numeric_limits<bfloat> {
    static constexpr bool is_specialized = true;
    static constexpr int digits = 8;
    static constexpr bfloat max() { return static_cast<bfloat>(0x1.fep127f); }
    static constexpr bfloat lowest() { return static_cast<bfloat>(-0x1.fep127f); }
    static constexpr bfloat min() { return static_cast<bfloat>(0x1p-126f); }
    static constexpr bfloat epsilon() { return static_cast<bfloat>(0x1p-7f); }
    static constexpr bfloat infinity() { return static_cast<bfloat>(__builtin_inff()); }
    static constexpr bfloat quiet_NaN() { return static_cast<bfloat>(__builtin_nanf("")); }
};
}  // namespace metal

template <class To, class From>
[[gnu::always_inline]] inline To as_type(From f) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
    return __builtin_bit_cast(To, f);
}
