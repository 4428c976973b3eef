// Kernels for AVX2 with FMA and F16C (Haswell, Zen and later).
#define AKUNU_ISA isa_avx2
#define AKUNU_FAMILY family_avx2

// clang-format off
#include "cpu/simd/avx2.h"
#include "cpu/kernels/products.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_avx2;
const KernelSet kKernels_avx2{
    "avx2",
    isa_avx2::L,
    [] {
        return static_cast<bool>(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                 __builtin_cpu_supports("f16c"));
    },
    isa_avx2::find_kernel,
    family_avx2::find_quantizer,
    isa_avx2::probe_f32,
    isa_avx2::probe_int8,
    isa_avx2::probe_read,
    &kFixedFormat,
    &kFixedFormat,
};

}  // namespace akunu::cpu
