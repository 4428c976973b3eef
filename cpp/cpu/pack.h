// The packed weight layout: groups of `lanes` rows, interleaved so that one vector load serves all rows of the group.
//
// A block of the file format is a list of fields (scales, nibbles, high bits …), each of some units; the units of all
// rows lie side by side. The fields of a block follow each other in a record, and the records of a group are one stream
// that a processor can fetch ahead. A field that would leave the next record unaligned (one scale a row) has a plane of
// its own behind the records. The bytes are the file's own, only their order differs (and that of the high bits of
// Q5_0/Q5_1), so a packed weight has the size of the original. Planes start on 64-byte boundaries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace akunu::cpu {

struct PackField {
    std::uint16_t offset;        // in the file's block
    std::uint8_t unit;           // bytes that stay together
    std::uint8_t count;          // units in a block
    bool spread_bits = false;    // u32 whose bit 4j+i moves to bit j of byte i
    std::uint8_t code_bits = 0;  // u32s of a stream of codes: see code_stream.h
};

struct PackFormat {
    DType dtype;
    std::uint8_t n_fields;
    std::array<PackField, 4> fields;

    constexpr std::size_t field_bytes(std::size_t i, std::size_t lanes) const {
        return std::size_t{fields[i].unit} * fields[i].count * lanes;
    }
    constexpr bool in_record(std::size_t i) const { return field_bytes(i, 1) % 4 == 0; }
    // Where field i begins in a record; behind the last one, the bytes of a record.
    constexpr std::size_t record_offset(std::size_t i, std::size_t lanes) const {
        std::size_t at = 0;
        for (std::size_t j = 0; j < i; ++j) at += in_record(j) ? field_bytes(j, lanes) : 0;
        return at;
    }
    constexpr std::size_t record_bytes(std::size_t lanes) const { return record_offset(n_fields, lanes); }
};

// Fields in the order that kernels read them.
inline constexpr std::array<PackFormat, 26> kBlockFormats{{
    {DType::F32, 1, {{{0, 4, 1}}}},
    {DType::F16, 1, {{{0, 2, 1}}}},
    {DType::BF16, 1, {{{0, 2, 1}}}},
    {DType::Q4_0, 2, {{{2, 4, 4}, {0, 2, 1}}}},
    {DType::Q4_1, 2, {{{0, 2, 2}, {4, 4, 4}}}},
    {DType::Q5_0, 3, {{{2, 4, 1, true}, {6, 4, 4}, {0, 2, 1}}}},
    {DType::Q5_1, 3, {{{0, 2, 2}, {4, 4, 1, true}, {8, 4, 4}}}},
    {DType::Q8_0, 2, {{{2, 4, 8}, {0, 2, 1}}}},
    {DType::Q2_K, 3, {{{80, 2, 2}, {0, 1, 16}, {16, 4, 16}}}},
    {DType::Q3_K, 4, {{{96, 1, 12}, {0, 4, 8}, {32, 4, 16}, {108, 2, 1}}}},
    {DType::Q4_K, 3, {{{0, 2, 2}, {4, 1, 12}, {16, 4, 32}}}},
    {DType::Q5_K, 4, {{{0, 2, 2}, {4, 1, 12}, {16, 4, 8}, {48, 4, 32}}}},
    {DType::Q6_K, 4, {{{192, 1, 16}, {0, 4, 32}, {128, 4, 16}, {208, 2, 1}}}},
    {DType::IQ4_NL, 2, {{{2, 4, 4}, {0, 2, 1}}}},
    {DType::IQ4_XS, 3, {{{0, 2, 2}, {4, 1, 4}, {8, 4, 32}}}},
    {DType::MXFP4, 2, {{{1, 4, 4}, {0, 1, 1}}}},
    {DType::Q1_0, 2, {{{2, 4, 4, true}, {0, 2, 1}}}},
    {DType::Iq1Levels, 4, {{{96, 1, 8}, {64, 4, 8}, {0, 4, 16}, {104, 2, 1}}}},
    {DType::Iq2Levels, 4, {{{96, 1, 8}, {64, 4, 8}, {0, 4, 16}, {104, 2, 1}}}},
    {DType::Iq3XxsLevels, 3, {{{128, 1, 4}, {0, 4, 32}, {132, 2, 1}}}},
    {DType::Iq3SLevels, 3, {{{128, 1, 4}, {0, 4, 32}, {132, 2, 1}}}},
    {DType::MlxMxfp4, 2, {{{0, 4, 4, false, 4}, {16, 1, 1}}}},
    {DType::MlxNvfp4, 2, {{{0, 4, 4, false, 4}, {16, 1, 2}}}},
    {DType::MlxMxfp8, 2, {{{0, 1, 32}, {32, 1, 1}}}},
    {DType::F8Group32, 2, {{{0, 1, 32}, {32, 4, 1}}}},
    {DType::F8Group128, 2, {{{0, 1, 128}, {128, 4, 1}}}},
}};

// Affine types have scale and bias, then the codes of the group, 32 at a time.
inline constexpr auto kPackFormats = [] {
    std::array<PackFormat, kBlockFormats.size() + kAffineTypes> rows{};
    std::size_t n = 0;
    for (const PackFormat& f : kBlockFormats) rows[n++] = f;
    for (std::size_t i = 0; i < kAffineTypes; ++i) {
        const AffineType t = affine_at(i);
        const DTypeInfo info = affine_row(i);
        const auto scale = static_cast<std::uint8_t>(info.planes.scales), bits = static_cast<std::uint8_t>(t.bits);
        const auto words = static_cast<std::uint8_t>(info.planes.codes / 4);
        rows[n++] = {info.id, 2, {{{info.planes.codes, scale, 2}, {0, 4, words, false, bits}}}};
    }
    return rows;
}();

const PackFormat& pack_format(DType dtype);

constexpr std::size_t pack_align(std::size_t n) { return (n + 63) & ~std::size_t{63}; }

// Where the fields of a group lie, for rows of `blocks` blocks: the first block's, and how far the next one's is.
struct GroupLayout {
    std::array<std::size_t, 4> field{}, stride{};
    std::size_t bytes = 0;
    DType scale_type = DType::F32;  // of a planar type, and the runs of 32 in a block, as a power of two
    unsigned runs = 0;
    std::size_t factors = 0;              // of NVFP4: half of what each row is multiplied with, F32, behind all fields
    const std::int8_t* levels = nullptr;  // sixteen that codes stand for, where the type has levels
    GroupLayout(const PackFormat& format, std::size_t blocks, std::size_t lanes);
};

// Where a row-major weight lies: its blocks, those of a planar type joined; or its codes, scales and biases.
struct WeightPlanes {
    const std::byte *codes = nullptr, *scales = nullptr, *biases = nullptr;
    float factor = 1;  // of NVFP4
};

// The type that weights of the file's type are packed as.
DType packed_type(DType dtype);

// Bytes of a weight of the file's type.
std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes);

// Packs groups [first, last) of a row-major weight, as packed_type(dtype). Rows past the end are zero bytes.
void pack_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes, const WeightPlanes& source,
                 std::byte* packed, std::uint64_t first, std::uint64_t last);

// Restores one row's blocks in the file's format.
void unpack_row(DType dtype, std::uint64_t cols, std::size_t lanes, const std::byte* packed, std::uint64_t row,
                std::byte* out);

// Joins the planes of one row to blocks.
void join_row(DType dtype, std::uint64_t cols, const WeightPlanes& source, std::uint64_t row, std::byte* out);

}  // namespace akunu::cpu
