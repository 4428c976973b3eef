// Reductions over a threadgroup.
#pragma once

#include <metal_stdlib>

// The sum over a threadgroup of whole SIMD-groups, in every thread. `partials` holds a float per SIMD-group, and is free
// again behind the next barrier. Every thread must take part.
static inline float threadgroup_sum(float x, threadgroup float* partials, uint lane, uint simdgroup, uint n_simdgroups) {
    x = metal::simd_sum(x);
    if (lane == 0) partials[simdgroup] = x;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return metal::simd_sum(lane < n_simdgroups ? partials[lane] : 0.0f);
}

// The same of the greatest one.
template <typename T>
static inline T threadgroup_max(T x, threadgroup T* partials, uint lane, uint simdgroup, uint n_simdgroups) {
    x = metal::simd_max(x);
    if (lane == 0) partials[simdgroup] = x;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return metal::simd_max(partials[lane < n_simdgroups ? lane : 0]);
}
