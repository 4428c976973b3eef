// What choices read of a command, and the arithmetic that they share.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/dispatch.h"

namespace akunu::metal {

constexpr std::uint32_t kSimdWidth = 32;  // threads of a SIMD-group, on every chip so far

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

// The command's parameters as the op's struct.
template <typename P>
P params_of(const DispatchCmd& cmd) {
    P p;
    std::memcpy(&p, cmd.params.data(), sizeof p);
    return p;
}

}  // namespace akunu::metal
