// How a step's memory is dealt where a command has 2 to kFewRows rows, for the host and for kernels.
//
// As many inputs of all rows as there is room for, a chunk, are in shared memory at a time. A block's tiles are taken a
// pass at a time: the chunk's part of each tile of the pass, then those of the next chunk. Between chunks the sums of a
// pass stay in shared memory.
//
// Up to kByteRows rows times codes are products of bytes (byte_rows.cuh), whose inputs, sums and slots of the ring are
// laid out on their own; all others are products of halves (few_rows.cuh).
#pragma once

#include "tile_layout.h"

namespace akunu::cuda {

constexpr u32 kFewPad = 64;     // bytes behind each row's inputs, for other banks
constexpr u32 kColumnRows = 8;  // rows of inputs in a product
constexpr u32 kTeamRows = 16;   // that a warp multiplies
constexpr u32 kByteRows = 4;    // up to which inputs that meet codes are whole numbers (byte_columns.cuh)
constexpr u32 kWarpSumsBytes = kTeamRows * kTileRows * 4, kTileSumsBytes = kWarps * kWarpSumsBytes;

// From the head on: rows of inputs, sums of their groups of 32, and the tiles' sums.
constexpr u32 few_group_sums(const BlockSizes& of) { return of.few_inputs + kFewRows * kFewPad; }
constexpr u32 few_tile_sums(const BlockSizes& of) { return few_group_sums(of) + of.few_inputs / 16; }
constexpr u64 few_bytes(const BlockSizes& of, u32 tiles) { return few_tile_sums(of) + u64(tiles) * kTileSumsBytes; }

// Rows of inputs with those up to whole products, and to a power of two.
constexpr u32 few_columns(u32 rows) { return rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 32 ? 32 : 64; }
// Inputs of a chunk: a power of two.
constexpr u32 few_chunk(const BlockSizes& of, u32 rows, u32 k) {
    u32 inputs = of.few_inputs / (few_columns(rows) * 2);
    while (inputs > kStepInputs && inputs / 2 >= k) inputs /= 2;
    return inputs;
}
// Of a pass: tiles, or pairs of them.
constexpr u32 few_pass(const BlockSizes& of, u32 pairs) { return of.pass_tiles >> pairs; }

// Where a matrix has few tiles for so many blocks, its inputs are dealt to blocks, too: part p of so many begins there.
// One of a tile's blocks adds its parts up.
constexpr u32 kMostSplit = 4, kSplitInputs = 256;  // whole units of every type
constexpr u32 split_begin(u32 k, u32 parts, u32 p) {
    return p >= parts ? k : k / kSplitInputs * p / parts * kSplitInputs;
}
constexpr u32 longest_part(u32 k, u32 parts) {
    return parts <= 1 ? k : (k / kSplitInputs + parts - 1) / parts * kSplitInputs + k % kSplitInputs;
}
constexpr u32 split_words(u32 tiles, u32 parts) { return tiles * parts * kTileRows * kByteRows; }

// Of rows of bytes. The inputs of a chunk, which begins with a step that is the first warp's and of whole units.
constexpr u32 kByteChunkSteps = kWarps, kBytePad = 32;  // bytes behind each row's inputs, for other banks
constexpr u32 byte_chunk(const BlockSizes& of, u32 k) { return k < of.byte_inputs ? k : of.byte_inputs; }
constexpr u32 byte_pass(const BlockSizes& of, u32 pairs) { return of.byte_pass_tiles >> pairs; }
// Of a unit's slots: as few as hold a tile's part, and as equal ones.
constexpr u32 byte_slot_units(const BlockSizes& of, const TileLayout& layout, u32 k) {
    const u32 most = of.byte_slot_bytes / layout.unit_bytes(), units = (k + layout.inputs - 1) / layout.inputs;
    const u32 slots = (units + most - 1) / most;
    return (units + slots - 1) / slots;
}
// From the head on: sums of squares by row and part, what a whole number counts by step and row, rows of inputs, what
// adapters add, and the tiles' sums.
constexpr u32 kSquareParts = 4, kByteFactors = kByteRows * kSquareParts * 4;
constexpr u32 kByteTileSums = kWarps * kTileRows * kByteRows * 4;
constexpr u32 byte_inputs(u32 chunk) { return kByteFactors + chunk / kStepInputs * kByteRows * 4; }
constexpr u32 byte_row(u32 chunk) { return 2 * chunk + kBytePad; }
constexpr u64 byte_rows_bytes(u32 chunk, u32 rows, u32 tiles) {
    return byte_inputs(chunk) + u64(rows) * byte_row(chunk) + u64(tiles) * kByteTileSums;
}
constexpr bool bytes_fit(const BlockSizes& of) {
    return of.byte_inputs % (kByteChunkSteps * kStepInputs) == 0 &&
           byte_rows_bytes(of.byte_inputs, kByteRows, of.byte_pass_tiles) <= few_bytes(of, of.pass_tiles);
}
static_assert(bytes_fit(block_sizes(0)) && bytes_fit(block_sizes(128 << 10)) && bytes_fit(block_sizes(192 << 10)),
              "who makes room for products of halves makes it for those of bytes");

static_assert(block_sizes(0).few_inputs / (kFewRows * 2) >= 256, "a chunk has whole units of every type");
static_assert(kSharedHead + few_bytes(block_sizes(0), block_sizes(0).pass_tiles) + kRingHead +
                      kLeastSlots * block_sizes(0).slot_bytes <=
                  99 << 10,
              "the smallest GPUs have room for it and for the ring");

}  // namespace akunu::cuda
