// Kernels for Arm with dot products and products of int8 matrices (Armv8.6 and later, Apple's from M2 on).
#define AKUNU_ISA isa_neon_i8mm
#define AKUNU_FAMILY family_neon_dotprod

// clang-format off
#include "cpu/simd/generic.h"
#include "cpu/kernels/products.inl"
// clang-format on

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace akunu::cpu {

static bool has_i8mm() {
#if defined(__linux__)
    constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM, which older headers lack
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 && (getauxval(AT_HWCAP2) & kI8mm) != 0;
#elif defined(__APPLE__)
    int value = 0;
    std::size_t size = sizeof value;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &value, &size, nullptr, 0) == 0 && value == 1;
#else
    return false;
#endif
}

extern const KernelSet kKernels_neon_i8mm;
const KernelSet kKernels_neon_i8mm{
    "neon_i8mm",
    isa_neon_i8mm::L,
    has_i8mm,
    isa_neon_i8mm::find_kernel,
    family_neon_dotprod::find_quantizer,
    isa_neon_i8mm::probe_f32,
    isa_neon_i8mm::probe_int8,
    isa_neon_i8mm::probe_read,
};

}  // namespace akunu::cpu
