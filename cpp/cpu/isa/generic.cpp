// Kernels for any processor.
#define AKUNU_ISA isa_generic
#define AKUNU_FAMILY family_generic

// clang-format off
#include "cpu/simd/generic.h"
#include "cpu/kernels/products.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_generic;
const KernelSet kKernels_generic{
    "generic",
    isa_generic::L,
    [] { return true; },
    isa_generic::find_kernel,
    family_generic::find_quantizer,
    isa_generic::probe_f32,
    isa_generic::probe_int8,
    isa_generic::probe_read,
};

}  // namespace akunu::cpu
