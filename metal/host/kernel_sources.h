// The kernels' texts, as tools/flatten.py has put them into this build.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace akunu::metal {

// One .metal file, self-contained.
struct KernelSource {
    std::string_view name;  // the file's, without its ending
    std::string_view text;
    std::span<const std::string_view> functions;  // sorted
};

std::span<const KernelSource> kernel_sources();

}  // namespace akunu::metal
