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

// Bytes from a matrix' codes to its other plane.
std::uint64_t plane_offset(DType dtype, std::uint64_t rows, std::uint64_t cols);
std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols);

// Whether a matrix lies in tiles.
bool packed_in_tiles(DType dtype, std::uint64_t cols);
// `rows` rows of the file, a multiple of kTileRows or the matrix' last, to whole tiles.
void pack_tiles(DType dtype, std::uint64_t cols, const std::byte* from, std::uint64_t rows, std::byte* tiles);

// `blocks` blocks of the file to both planes.
void pack_blocks(const BlockSplit& split, const std::byte* from, std::uint64_t blocks, std::byte* codes,
                 std::byte* rest);

}  // namespace akunu::cuda
