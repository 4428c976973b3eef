// Kernels for AVX-512 without VNNI (Skylake-SP).
#define AKUNU_ISA isa_avx512
#define AKUNU_FAMILY family_avx512

// clang-format off
#include "cpu/simd/avx512.h"
#include "cpu/kernels/products.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_avx512;
const KernelSet kKernels_avx512{
    "avx512",
    isa_avx512::L,
    [] {
        return static_cast<bool>(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
    },
    isa_avx512::find_kernel,
    family_avx512::find_quantizer,
    isa_avx512::probe_f32,
    isa_avx512::probe_int8,
    isa_avx512::probe_read,
};

}  // namespace akunu::cpu
