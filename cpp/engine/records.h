// Sizes of buffers, and where layers' parts of their records lie.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"

namespace akunu {

inline std::uint64_t checked_product(std::initializer_list<std::uint64_t> factors) {
    std::uint64_t p = 1;
    for (const std::uint64_t f : factors) {
        if (__builtin_mul_overflow(p, f, &p)) throw InvalidArgumentError("sizes of this model overflow 64 bits");
    }
    return p;
}

inline std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Where each layer's part of a record begins, a page or a sequence's state, and where the record ends.
struct RecordLayout {
    std::vector<std::uint64_t> begins;
    std::uint64_t end = 0;
    explicit RecordLayout(std::span<const std::uint64_t> layer_bytes) {
        for (const std::uint64_t n : layer_bytes) {
            begins.push_back(end);
            end += aligned(n);
        }
    }
    // Where each layer's parts begin, from that of the first record on.
    std::vector<Binding> in(const Binding& records) const {
        std::vector<Binding> parts;
        for (const std::uint64_t offset : begins) parts.push_back({records.buffer, offset});
        return parts;
    }
};

}  // namespace akunu
