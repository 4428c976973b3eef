// Masks of tokens, and the random numbers; settings are in core/step_state.h. docs/sampling.md defines what they mean.
#pragma once

#include <array>
#include <cstdint>

#include "core/step_state.h"

namespace akunu {

// 32-bit words of a mask. Token t is bit t % 32 of word t / 32.
constexpr std::uint32_t mask_words(std::uint32_t vocab) { return (vocab + 31) / 32; }

// 32-bit words of a slot's sequence breakers.
constexpr std::uint32_t breaker_words(std::uint32_t vocab) { return kBreakerBytesAt + (vocab + 3) / 4; }

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// Always inlined, so that the kernels of one instruction set leave no copy that the linker could give to all.
[[gnu::always_inline]] constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                                                         std::uint32_t k0, std::uint32_t k1) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = 0xD2511F53ull * c[0];
        const std::uint64_t p1 = 0xCD9E8D57ull * c[2];
        c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
             static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

}  // namespace akunu
