#include "metal/chip.h"

#include <array>
#include <cstdlib>

namespace akunu::metal {

namespace {

constexpr std::uint64_t operator""_MB(unsigned long long n) { return n << 20; }

// Bandwidths and cores as Apple states them (a row for each variant that differs in bandwidth). FLOPs: cores · 128 ALUs
// · 2 · clock; half precision has the rate of single. M5's matrix units in the GPU are not counted, since
// simdgroup_matrix does not use them for certain. System level caches of M4 and M5 are not published: as in M3's tier.
constexpr std::array kChips{
    Chip{"M1", 7, 8, 68.25e9, 2.6e12, 8_MB},          Chip{"M1 Pro", 7, 16, 204.8e9, 5.3e12, 24_MB},
    Chip{"M1 Max", 7, 32, 409.6e9, 10.6e12, 48_MB},   Chip{"M1 Ultra", 7, 64, 819.2e9, 21.2e12, 96_MB},
    Chip{"M2", 8, 10, 102.4e9, 3.6e12, 8_MB},         Chip{"M2 Pro", 8, 19, 204.8e9, 6.8e12, 24_MB},
    Chip{"M2 Max", 8, 38, 409.6e9, 13.6e12, 48_MB},   Chip{"M2 Ultra", 8, 76, 819.2e9, 27.2e12, 96_MB},
    Chip{"M3", 9, 10, 102.4e9, 3.6e12, 8_MB},         Chip{"M3 Pro", 9, 18, 153.6e9, 6.4e12, 12_MB},
    Chip{"M3 Max", 9, 30, 307.2e9, 10.7e12, 48_MB},   Chip{"M3 Max", 9, 40, 409.6e9, 14.2e12, 48_MB},
    Chip{"M3 Ultra", 9, 80, 819.2e9, 28.4e12, 96_MB}, Chip{"M4", 9, 10, 120e9, 4.6e12, 8_MB},
    Chip{"M4 Pro", 9, 20, 273e9, 9.2e12, 24_MB},      Chip{"M4 Max", 9, 32, 409.6e9, 14.7e12, 48_MB},
    Chip{"M4 Max", 9, 40, 546e9, 18.4e12, 48_MB},     Chip{"M5", 10, 10, 153.6e9, 5.7e12, 8_MB},
    Chip{"M5 Pro", 10, 20, 307e9, 11.4e12, 24_MB},    Chip{"M5 Max", 10, 32, 460e9, 18.2e12, 48_MB},
    Chip{"M5 Max", 10, 40, 614e9, 22.8e12, 48_MB},
};

// "Apple M4 Max (emulated)" holds "M4 Max", and is no "M4".
bool is_name_of(std::string_view device, std::string_view chip) {
    const auto at = device.find(chip);
    if (at == std::string_view::npos) return false;
    const std::string_view rest = device.substr(at + chip.size());
    if (!rest.empty() && rest.front() != ' ') return false;
    for (const std::string_view tier : {" Pro", " Max", " Ultra"}) {
        if (rest.starts_with(tier)) return false;
    }
    return true;
}

Chip with_cores(Chip chip, int gpu_cores) {
    if (gpu_cores <= 0) return chip;
    chip.f16_flops *= static_cast<double>(gpu_cores) / chip.gpu_cores;
    chip.gpu_cores = gpu_cores;
    return chip;
}

}  // namespace

std::span<const Chip> chips() { return kChips; }

Chip match_chip(std::string_view device_name, int family, int gpu_cores) {
    const Chip* named = nullptr;
    for (const Chip& c : kChips) {
        if (!is_name_of(device_name, c.name)) continue;
        if (!named || named->gpu_cores < gpu_cores) named = &c;  // the smallest variant that has so many cores
    }
    if (named) return with_cores(*named, gpu_cores);
    // Not in the table: the newest family up to its own, and there the row with the nearest number of cores.
    const Chip* near = &kChips.front();
    for (const Chip& c : kChips) {
        if (c.family > family) continue;
        const bool newer = c.family > near->family;
        const bool nearer =
            c.family == near->family && std::abs(c.gpu_cores - gpu_cores) <= std::abs(near->gpu_cores - gpu_cores);
        if (newer || nearer) near = &c;
    }
    return with_cores(*near, gpu_cores);
}

}  // namespace akunu::metal
