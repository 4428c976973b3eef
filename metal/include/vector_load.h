// Four elements of a row of any length.
#pragma once

#include <metal_stdlib>

using namespace metal;

// Rows have a multiple of 4 elements, so that they may be read as vectors.
constant bool ROWS_ARE_VECTORS [[function_constant(0)]];

// A ushort is the bits of a bfloat, a type that only Metal 3.1 has.
inline float4 to_float(float4 v) { return v; }
inline float4 to_float(half4 v) { return float4(v); }
inline float4 to_float(ushort4 v) { return as_type<float4>(uint4(v) << 16); }
inline float to_float(float v) { return v; }
inline float to_float(half v) { return float(v); }
inline float to_float(ushort v) { return as_type<float>(uint(v) << 16); }

// p[0..3] as far as they are within `left` elements, else 0. Not guarded: all are, and aligned.
template <bool kGuarded, typename T>
inline float4 load_quad(device const T* p, uint left) {
    if (!kGuarded) return to_float(*(device const vec<T, 4>*)p);
    if (ROWS_ARE_VECTORS) return left != 0 ? to_float(*(device const vec<T, 4>*)p) : float4(0);
    float4 v = float4(0);
    for (ushort i = 0; i < 4; ++i) {
        if (i < left) v[i] = to_float(p[i]);
    }
    return v;
}
