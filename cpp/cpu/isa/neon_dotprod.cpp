// Kernels for Arm with the dot-product extension (Armv8.2 and later, every Apple M).
#define AKUNU_ISA isa_neon_dotprod
#define AKUNU_FAMILY family_neon_dotprod

// clang-format off
#include "cpu/simd/generic.h"
#include "cpu/kernels/products.inl"
// clang-format on

#ifdef __linux__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace akunu::cpu {

static bool has_dotprod() {
#ifdef __linux__
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return true;
#endif
}

extern const KernelSet kKernels_neon_dotprod;
const KernelSet kKernels_neon_dotprod{
    "neon_dotprod",
    isa_neon_dotprod::L,
    has_dotprod,
    isa_neon_dotprod::find_kernel,
    family_neon_dotprod::find_quantizer,
    isa_neon_dotprod::probe_f32,
    isa_neon_dotprod::probe_int8,
    isa_neon_dotprod::probe_read,
};

}  // namespace akunu::cpu
