// Address spaces, qualifiers and vector constructors.  Macros: included last.
#pragma once

#define kernel
#define thread
#ifdef MSL_LINT  // real address-space types: a wrong or missing qualifier is a compile error
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2))) const
#define threadgroup __attribute__((address_space(3)))
#else
#define device
#define constant const
#define threadgroup
#endif
#define METAL_FUNC inline __attribute__((always_inline))

#define MSL_CONSTRUCT(V, ...) metal::detail::make<metal::V>(__VA_ARGS__)
#define float2(...) MSL_CONSTRUCT(float2, __VA_ARGS__)
#define float3(...) MSL_CONSTRUCT(float3, __VA_ARGS__)
#define float4(...) MSL_CONSTRUCT(float4, __VA_ARGS__)
#define half2(...) MSL_CONSTRUCT(half2, __VA_ARGS__)
#define half3(...) MSL_CONSTRUCT(half3, __VA_ARGS__)
#define half4(...) MSL_CONSTRUCT(half4, __VA_ARGS__)
#define bfloat2(...) MSL_CONSTRUCT(bfloat2, __VA_ARGS__)
#define bfloat3(...) MSL_CONSTRUCT(bfloat3, __VA_ARGS__)
#define bfloat4(...) MSL_CONSTRUCT(bfloat4, __VA_ARGS__)
#define char2(...) MSL_CONSTRUCT(char2, __VA_ARGS__)
#define char3(...) MSL_CONSTRUCT(char3, __VA_ARGS__)
#define char4(...) MSL_CONSTRUCT(char4, __VA_ARGS__)
#define uchar2(...) MSL_CONSTRUCT(uchar2, __VA_ARGS__)
#define uchar3(...) MSL_CONSTRUCT(uchar3, __VA_ARGS__)
#define uchar4(...) MSL_CONSTRUCT(uchar4, __VA_ARGS__)
#define short2(...) MSL_CONSTRUCT(short2, __VA_ARGS__)
#define short3(...) MSL_CONSTRUCT(short3, __VA_ARGS__)
#define short4(...) MSL_CONSTRUCT(short4, __VA_ARGS__)
#define ushort2(...) MSL_CONSTRUCT(ushort2, __VA_ARGS__)
#define ushort3(...) MSL_CONSTRUCT(ushort3, __VA_ARGS__)
#define ushort4(...) MSL_CONSTRUCT(ushort4, __VA_ARGS__)
#define int2(...) MSL_CONSTRUCT(int2, __VA_ARGS__)
#define int3(...) MSL_CONSTRUCT(int3, __VA_ARGS__)
#define int4(...) MSL_CONSTRUCT(int4, __VA_ARGS__)
#define uint2(...) MSL_CONSTRUCT(uint2, __VA_ARGS__)
#define uint3(...) MSL_CONSTRUCT(uint3, __VA_ARGS__)
#define uint4(...) MSL_CONSTRUCT(uint4, __VA_ARGS__)
#define long2(...) MSL_CONSTRUCT(long2, __VA_ARGS__)
#define long3(...) MSL_CONSTRUCT(long3, __VA_ARGS__)
#define long4(...) MSL_CONSTRUCT(long4, __VA_ARGS__)
#define ulong2(...) MSL_CONSTRUCT(ulong2, __VA_ARGS__)
#define ulong3(...) MSL_CONSTRUCT(ulong3, __VA_ARGS__)
#define ulong4(...) MSL_CONSTRUCT(ulong4, __VA_ARGS__)
#define bool2(...) MSL_CONSTRUCT(bool2, __VA_ARGS__)
#define bool3(...) MSL_CONSTRUCT(bool3, __VA_ARGS__)
#define bool4(...) MSL_CONSTRUCT(bool4, __VA_ARGS__)

#undef INFINITY
#undef NAN
#undef HUGE_VALF
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VALH static_cast<half>(__builtin_inff())
#define MAXFLOAT 0x1.fffffep127f
#define MAXHALF static_cast<half>(65504.0f)
#undef FLT_MAX
#undef FLT_MIN
#undef FLT_EPSILON
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define HALF_MAX static_cast<half>(65504.0f)
#define HALF_MIN static_cast<half>(0x1p-14f)
#define HALF_EPSILON static_cast<half>(0x1p-10f)
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_PI_H static_cast<half>(3.14159265f)
#define M_E_H static_cast<half>(2.71828183f)
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
