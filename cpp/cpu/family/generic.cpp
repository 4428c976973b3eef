// Kernels for any processor.
#define AKUNU_ISA family_generic

// clang-format off
#include "cpu/simd/generic.h"
#include "cpu/kernels/family.inl"
// clang-format on
