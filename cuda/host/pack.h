// Weights as the GPU reads them: in tiles (cuda/kernels/tile_layout.h), or, of the other types whose blocks lie in one
// piece, codes and the rest of a block as two planes, so that codes begin at multiples of 16 bytes. Other floats, and
// the planar types, stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/dtype.h"
#include "cuda/kernels/command.h"
#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

// A type's reader; nothing for types that are no weights.
struct ReaderChoice {
    Reader reader;
    u32 spec;
};
std::optional<ReaderChoice> reader_of(DType dtype);

// Where the codes lie in a block of the file; everything is codes for floats and planar types.
struct BlockSplit {
    std::uint32_t begin, bytes, block_bytes;
    std::uint32_t rest() const { return block_bytes - bytes; }
};
BlockSplit split_of(DType dtype);

// Bytes from a matrix' codes to its other plane: scales and what else its blocks have, or the factor of its floats.
std::uint64_t plane_offset(DType dtype, std::uint64_t rows, std::uint64_t cols);
std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols);

// Of a layer's experts, one behind the other: where the scales and biases of a planar type are, from an expert's codes
// on, and the bytes from one expert to the next.
struct ExpertLayout {
    std::uint64_t extras, biases, bytes;
};
ExpertLayout expert_layout(DType dtype, std::uint64_t rows, std::uint64_t cols);

// Whether a matrix lies in tiles; then, the bytes of one.
bool packed_in_tiles(DType dtype, std::uint64_t cols);
std::uint64_t bytes_of_tile(DType dtype, std::uint64_t cols);
// `rows` rows of the file, a multiple of kTileRows or the matrix' last, to whole tiles. Numbers of BF16 are multiplied
// by 2^exponent.
void pack_tiles(DType dtype, std::uint64_t cols, const std::byte* from, std::uint64_t rows, std::byte* tiles,
                int exponent = 0);
// Whether floats of this type have a factor in tiles; the exponent that makes the largest of some one from 2^14 to
// 2^15, as far as both are no more than 2^126 and no less than 2^-126.
constexpr bool has_factor(DType dtype) { return dtype == DType::BF16; }
int exponent_of(std::span<const std::byte> bfloats);

// `blocks` blocks of the file, of a type of one piece, to both planes.
void pack_blocks(DType dtype, const std::byte* from, std::uint64_t blocks, std::byte* codes, std::byte* rest);

}  // namespace akunu::cuda
