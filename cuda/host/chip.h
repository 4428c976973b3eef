// What is known about NVIDIA's GPUs, as data: to plan for one that is not here, and to predict speed.
#pragma once

#include <cctype>
#include <cstdint>
#include <string_view>

namespace akunu::cuda {

struct Chip {
    std::string_view name, arch;
    std::string_view device;  // as the driver calls it
    unsigned multiprocessors;
    std::uint64_t shared_bytes;  // of a block, at most
    double bandwidth;            // bytes/s
    double f16_flops;            // per second, of the tensor cores, without sparsity
};

// By NVIDIA's data sheets and white papers: of the data centre's cards the SXM boards (A100 80GB, H100, H200), or the
// one board that there is; tensor cores' products of F16 that are added up as F32, which GeForce cards do at half the
// rate. A block's shared memory by the CUDA programming guide's table of compute capabilities.
inline constexpr Chip kChips[] = {
    {"L4", "sm_89", "NVIDIA L4", 58, 99 << 10, 0.300e12, 121e12},
    {"A10", "sm_86", "NVIDIA A10", 72, 99 << 10, 0.600e12, 125e12},
    {"L40S", "sm_89", "NVIDIA L40S", 142, 99 << 10, 0.864e12, 362e12},
    {"RTX 3090", "sm_86", "NVIDIA GeForce RTX 3090", 82, 99 << 10, 0.936e12, 71e12},
    {"RTX 4090", "sm_89", "NVIDIA GeForce RTX 4090", 128, 99 << 10, 1.008e12, 165e12},
    {"RTX 5090", "sm_120", "NVIDIA GeForce RTX 5090", 170, 99 << 10, 1.792e12, 209e12},
    {"A100", "sm_80", "NVIDIA A100-SXM4-80GB", 108, 163 << 10, 2.039e12, 312e12},
    {"H100", "sm_90", "NVIDIA H100 80GB HBM3", 132, 227 << 10, 3.35e12, 989e12},
    {"H200", "sm_90", "NVIDIA H200", 132, 227 << 10, 4.8e12, 989e12},
};

// The row of that name, in any case; null where there is none.
inline const Chip* find_chip(std::string_view name) {
    for (const Chip& c : kChips) {
        bool same = name.size() == c.name.size();
        for (std::size_t i = 0; same && i < name.size(); ++i) {
            same = std::toupper(static_cast<unsigned char>(name[i])) == c.name[i];
        }
        if (same) return &c;
    }
    return nullptr;
}

}  // namespace akunu::cuda
