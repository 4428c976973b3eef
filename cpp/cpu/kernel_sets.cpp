#include <array>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "cpu/kernel.h"

namespace akunu::cpu {

extern const KernelSet kKernels_generic;
#if defined(__x86_64__)
extern const KernelSet kKernels_avx2, kKernels_avx512, kKernels_avx512_vnni;
#elif defined(__aarch64__)
extern const KernelSet kKernels_neon_dotprod;
#endif

std::span<const KernelSet* const> kernel_sets() {
#if defined(__x86_64__)
    static constexpr std::array<const KernelSet*, 4> kSets{&kKernels_avx512_vnni, &kKernels_avx512, &kKernels_avx2,
                                                           &kKernels_generic};
#elif defined(__aarch64__)
    static constexpr std::array<const KernelSet*, 2> kSets{&kKernels_neon_dotprod, &kKernels_generic};
#else
    static constexpr std::array<const KernelSet*, 1> kSets{&kKernels_generic};
#endif
    return kSets;
}

const KernelSet& select_kernels() {
    const char* forced = std::getenv("AKUNU_CPU_ISA");
    for (const KernelSet* set : kernel_sets()) {
        if (forced && *forced && set->isa != forced) continue;
        if (set->supported()) return *set;
        if (forced && *forced) {
            throw InvalidArgumentError("AKUNU_CPU_ISA=" + std::string(forced) + ": this processor does not support it");
        }
    }
    std::string known;
    for (const KernelSet* set : kernel_sets()) known += (known.empty() ? "" : ", ") + std::string(set->isa);
    throw InvalidArgumentError("AKUNU_CPU_ISA=" + std::string(forced ? forced : "") + " is unknown; this build has " +
                               known);
}

}  // namespace akunu::cpu
