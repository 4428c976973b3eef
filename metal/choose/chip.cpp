#include "metal/choose/chip.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>

#include "core/error.h"

namespace akunu::metal {

namespace {

// A row for each variant that differs in bandwidth, with its most GPU cores; smaller ones are scaled.
// Bandwidth: Apple's specifications of the machines (68.25, 102.4, 120, ... are what Apple rounds to 100, 200, 400),
// for M5 Pro and Max its announcement of March 2026: 307 and 614 GB/s. FLOPs: cores · 128 ALUs · 2 · clock, the rate of
// half precision being that of single (github.com/philipturner/metal-benchmarks); clocks 1.278 (M1), 1.296 (M1 Pro to
// Ultra) and 1.398 GHz (M2, M3) as in github.com/philipturner/applegpuinfo; M4 as in huggingface.js's hardware table;
// M5 is M4 times its clock's rise, an estimate. M5's matrix units are not counted, since simdgroup_matrix may not use
// them. Of an M5 Ultra Apple has published nothing: its row is two M5 Max, as M1, M2 and M3 Ultra are two Max.
constexpr std::array kChips{
    Chip{"M1", 7, 8, 68.25e9, 2.6e12},         Chip{"M1 Pro", 7, 16, 204.8e9, 5.3e12},
    Chip{"M1 Max", 7, 32, 409.6e9, 10.6e12},   Chip{"M1 Ultra", 7, 64, 819.2e9, 21.2e12},
    Chip{"M2", 8, 10, 102.4e9, 3.6e12},        Chip{"M2 Pro", 8, 19, 204.8e9, 6.8e12},
    Chip{"M2 Max", 8, 38, 409.6e9, 13.6e12},   Chip{"M2 Ultra", 8, 76, 819.2e9, 27.2e12},
    Chip{"M3", 9, 10, 102.4e9, 3.6e12},        Chip{"M3 Pro", 9, 18, 153.6e9, 6.4e12},
    Chip{"M3 Max", 9, 30, 307.2e9, 10.7e12},   Chip{"M3 Max", 9, 40, 409.6e9, 14.2e12},
    Chip{"M3 Ultra", 9, 80, 819.2e9, 28.4e12}, Chip{"M4", 9, 10, 120e9, 4.6e12},
    Chip{"M4 Pro", 9, 20, 273e9, 9.2e12},      Chip{"M4 Max", 9, 32, 409.6e9, 14.7e12},
    Chip{"M4 Max", 9, 40, 546e9, 18.4e12},     Chip{"M5", 10, 10, 153.6e9, 5.7e12},
    Chip{"M5 Pro", 10, 20, 307e9, 11.4e12},    Chip{"M5 Max", 10, 32, 460e9, 18.2e12},
    Chip{"M5 Max", 10, 40, 614e9, 22.8e12},    Chip{"M5 Ultra", 10, 80, 1228e9, 45.6e12},
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

Chip find_chip(std::string_view name) {
    const auto lower = [](std::string_view text) {
        std::string s(text);
        std::transform(s.begin(), s.end(), s.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
        return s;
    };
    std::string wanted = lower(name);
    if (wanted.starts_with("apple ")) wanted.erase(0, 6);
    int cores = 0;
    if (const auto space = wanted.rfind(' '); space != std::string::npos) {
        const char* begin = wanted.data() + space + 1;
        const char* end = wanted.data() + wanted.size();
        if (const auto [at, error] = std::from_chars(begin, end, cores);
            error == std::errc() && at == end && cores != 0) {
            wanted.erase(space);
        } else {
            cores = 0;
        }
    }
    const Chip* found = nullptr;
    int largest = 0;
    for (const Chip& c : kChips) {
        if (lower(c.name) != wanted) continue;
        largest = std::max(largest, c.gpu_cores);
        // The smallest variant that has so many cores; without a number the largest.
        if (!found || found->gpu_cores < (cores ? cores : c.gpu_cores)) found = &c;
    }
    if (found && cores >= 0 && cores <= largest) return with_cores(*found, cores);
    std::string known;
    for (const Chip& c : kChips) {
        const std::string row = std::string(c.name) + " " + std::to_string(c.gpu_cores);
        known += (known.empty() ? "" : ", ") + row;
    }
    throw InvalidArgumentError("chip '" + std::string(name) + "' is not known; there is " + known +
                               " (the last number is the most GPU cores)");
}

}  // namespace akunu::metal
