// Kernels for Arm with the dot-product extension.
#define AKUNU_ISA family_neon_dotprod

// clang-format off
#include "cpu/simd/generic.h"
#include "cpu/kernels/family.inl"
// clang-format on
