// Kernels for AVX2 with AVX-VNNI (Alder Lake and later, most of which have no AVX-512).
#define AKUNU_ISA isa_avx2_vnni
#define AKUNU_FAMILY family_avx2

#include <cpuid.h>

// clang-format off
#include "cpu/simd/avx2.h"
#include "cpu/kernels/products.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_avx2_vnni;
const KernelSet kKernels_avx2_vnni{
    "avx2_vnni",
    isa_avx2_vnni::L,
    [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        constexpr unsigned kAvxVnni = 1u << 4;
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
               __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvxVnni);
    },
    isa_avx2_vnni::find_kernel,
    family_avx2::find_quantizer,
    isa_avx2_vnni::probe_f32,
    isa_avx2_vnni::probe_int8,
    isa_avx2_vnni::probe_read,
    &kFixedFormat,
    &kFixedFormat,
};

}  // namespace akunu::cpu
