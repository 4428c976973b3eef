// The packed weight layout: groups of `lanes` rows, interleaved so that one vector load serves all rows of the group.
//
// A block of the file format is a list of fields (scales, nibbles, high bits …). Each field becomes a plane of its
// group: unit by unit, the units of all rows side by side. The bytes are the file's own, only their order differs (and
// that of the high bits of Q5_0/Q5_1), so a packed weight has the size of the original. Planes start on 64-byte
// boundaries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace akunu::cpu {

struct PackField {
    std::uint16_t offset;      // in the file's block
    std::uint8_t unit;         // bytes that stay together
    std::uint8_t count;        // units in a block
    bool spread_bits = false;  // u32 whose bit 4j+i moves to bit j of byte i
};

struct PackFormat {
    DType dtype;
    std::uint8_t n_fields;
    std::array<PackField, 4> fields;
};

const PackFormat& pack_format(DType dtype);

constexpr std::size_t pack_align(std::size_t n) { return (n + 63) & ~std::size_t{63}; }

// Where a group's planes lie, for rows of `blocks` blocks.
struct GroupLayout {
    std::array<std::size_t, 4> plane{};
    std::size_t bytes = 0;
    GroupLayout(const PackFormat& format, std::size_t blocks, std::size_t lanes);
};

std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes);

// Packs groups [first, last) of a row-major weight. Rows past the end are zero bytes.
void pack_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes,
                 std::span<const std::byte> source, std::byte* packed, std::uint64_t first, std::uint64_t last);

// Restores one row's blocks in the file's format.
void unpack_row(DType dtype, std::uint64_t cols, std::size_t lanes, const std::byte* packed, std::uint64_t row,
                std::byte* out);

}  // namespace akunu::cpu
