// Kernels for AVX2 with FMA and F16C.
#define AKUNU_ISA family_avx2

// clang-format off
#include "cpu/simd/avx2.h"
#include "cpu/kernels/family.inl"
// clang-format on
