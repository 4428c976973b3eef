// Kernels for AVX-512, with or without VNNI.
#define AKUNU_ISA family_avx512

// clang-format off
#include "cpu/simd/avx512.h"
#include "cpu/kernels/family.inl"
// clang-format on
