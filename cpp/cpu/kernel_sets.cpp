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

namespace {

std::string known_sets() {
    std::string names;
    for (const KernelSet* set : kernel_sets()) names += (names.empty() ? "" : ", ") + std::string(set->isa);
    return names;
}

}  // namespace

const KernelSet& kernel_set(std::string_view isa, std::string_view option) {
    const std::string found = std::string(option) + "=" + std::string(isa);
    for (const KernelSet* set : kernel_sets()) {
        if (set->isa != isa) continue;
        if (set->supported()) return *set;
        throw InvalidArgumentError(found + ": this processor does not support it");
    }
    throw InvalidArgumentError(found + " is unknown; this build has " + known_sets());
}

const KernelSet& select_kernels() {
    const char* forced = std::getenv("AKUNU_CPU_ISA");
    if (forced && *forced) return kernel_set(forced, "AKUNU_CPU_ISA");
    for (const KernelSet* set : kernel_sets()) {
        if (set->supported()) return *set;
    }
    throw DeviceError("this processor supports none of this build's instruction sets: " + known_sets());
}

}  // namespace akunu::cpu
