// What is known about Apple's chips, as data: used to choose kernels, and to predict speed where there is no Mac.
#pragma once

#include <span>
#include <string_view>

namespace akunu::metal {

struct Chip {
    std::string_view name;       // "M4 Max"
    int family = 7;              // MTLGPUFamilyApple7..10
    int gpu_cores = 8;           // of the largest variant
    double bandwidth = 68.25e9;  // bytes/s of unified memory
    double f16_flops = 2.6e12;   // per second, whole GPU, `gpu_cores` cores
};

// Every chip known, oldest first.
std::span<const Chip> chips();

// The row that a device's name means ("Apple M4 Max"), FLOPs scaled to `gpu_cores` (0: as in the row). A chip that is
// not in the table gets the newest row that its family and cores allow.
Chip match_chip(std::string_view device_name, int family, int gpu_cores);

// A row by its name in any case, as "M4 Max", of which the largest variant is meant, or "M4 Max 32" with its GPU cores.
// InvalidArgumentError when there is none.
Chip find_chip(std::string_view name);

}  // namespace akunu::metal
