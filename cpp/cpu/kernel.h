// What a CPU kernel is, and the sets of them: one per instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/dispatch.h"

namespace akunu::cpu {

// The thread that runs a kernel.
struct Worker {
    int index = 0;
    int count = 1;
    std::byte* scratch = nullptr;  // kWorkerScratch bytes, private to the thread

    // This worker's share of `n` items, as [begin, end).
    struct Range {
        std::uint64_t begin, end;
    };
    Range share(std::uint64_t n) const {
        const auto i = static_cast<std::uint64_t>(index), c = static_cast<std::uint64_t>(count);
        return {n * i / c, n * (i + 1) / c};
    }
};

constexpr std::size_t kWorkerScratch = std::size_t{4} << 20;
// Most f32 of a row, and of a head, that kernels may keep there: attention keeps 64 queries, their outputs and a panel
// of 32 keys, and its merge as many heads as make whole blocks of 32.
constexpr std::size_t kMaxRow = kWorkerScratch / sizeof(float);
constexpr std::size_t kMaxHead = kMaxRow / 256;

// `params` are the command's parameters with this step's patches applied. Every worker calls the kernel; it does its
// share.
using Kernel = void (*)(const DispatchCmd& cmd, const std::byte* params, const Worker& worker);

template <typename P>
const P& params_as(const std::byte* p) {
    return *reinterpret_cast<const P*>(p);
}

// All kernels compiled for one instruction set.
struct KernelSet {
    std::string_view isa;
    int lanes;                               // floats in a vector, and rows in a packed group
    bool (*supported)();                     // does this processor have it?
    Kernel (*find)(const DispatchCmd& cmd);  // null when there is none
    // Peak probes: operations done, for `measure_peaks`.
    double (*probe_f32)(std::uint64_t iterations);
    double (*probe_int8)(std::uint64_t iterations);
    double (*probe_read)(const std::byte* data, std::uint64_t bytes);
};

// Best first. Only those compiled into this build.
std::span<const KernelSet* const> kernel_sets();
// The set of that name. Throws InvalidArgumentError, which names `option`, when it is unknown or cannot run here.
const KernelSet& kernel_set(std::string_view isa, std::string_view option);
// The best set that this processor supports, or the one that AKUNU_CPU_ISA names.
const KernelSet& select_kernels();

}  // namespace akunu::cpu
