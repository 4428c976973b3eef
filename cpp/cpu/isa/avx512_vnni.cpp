// Kernels for AVX-512 with VNNI (Cascade Lake, Ice Lake, Zen 4 and later).
#define AKUNU_ISA isa_avx512_vnni
#define AKUNU_FAMILY family_avx512

// clang-format off
#include "cpu/simd/avx512.h"
#include "cpu/kernels/products.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_avx512_vnni;
const KernelSet kKernels_avx512_vnni{
    "avx512_vnni",
    isa_avx512_vnni::L,
    [] {
        return static_cast<bool>(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                                 __builtin_cpu_supports("avx512vnni"));
    },
    isa_avx512_vnni::find_kernel,
    family_avx512::find_quantizer,
    isa_avx512_vnni::probe_f32,
    isa_avx512_vnni::probe_int8,
    isa_avx512_vnni::probe_read,
    &kFixedFormat,
    &kFixedFormat,
};

}  // namespace akunu::cpu
