#include <cstdlib>
#include <string>

#include "core/error.h"
#include "cpu/kernel.h"

namespace akunu::cpu {

// AKUNU_ISA_LIST is X(isa) for each set of this build, best first.
#define X(isa) extern const KernelSet kKernels_##isa;
AKUNU_ISA_LIST
#undef X

std::span<const KernelSet* const> kernel_sets() {
#define X(isa) &kKernels_##isa,
    static constexpr const KernelSet* kSets[] = {AKUNU_ISA_LIST};
#undef X
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
