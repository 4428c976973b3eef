// How a step's memory is dealt where a command has 2 to kFewRows rows, for the host and for kernels.
//
// As many inputs of all rows as there is room for, a chunk, are in shared memory at a time. A block's tiles are taken a
// pass at a time: the chunk's part of each tile of the pass, then those of the next chunk. Between chunks the sums of a
// pass stay in shared memory.
#pragma once

#include "tile_layout.h"

namespace akunu::cuda {

constexpr u32 kFewPad = 64;     // bytes behind each row's inputs, for other banks
constexpr u32 kColumnRows = 8;  // rows of inputs in a product
constexpr u32 kTeamRows = 16;   // that a warp multiplies
constexpr u32 kByteRows = 4;    // up to which inputs of K-quants are whole numbers (few_bytes.cuh)
constexpr u32 kWarpSumsBytes = kTeamRows * kTileRows * 4, kTileSumsBytes = kWarps * kWarpSumsBytes;

// From the head on: rows of inputs, sums of their groups of 32, what whole numbers of a step count (of kByteRows rows),
// and the tiles' sums.
constexpr u32 few_group_sums(const BlockSizes& of) { return of.few_inputs + kFewRows * kFewPad; }
constexpr u32 few_factors(const BlockSizes& of) { return few_group_sums(of) + of.few_inputs / 16; }
constexpr u32 few_tile_sums(const BlockSizes& of) { return few_factors(of) + of.few_inputs / 128; }
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
static_assert(block_sizes(0).few_inputs / (kFewRows * 2) >= 256, "a chunk has whole units of every type");
static_assert(kSharedHead + few_bytes(block_sizes(0), block_sizes(0).pass_tiles) + kRingHead +
                      kLeastSlots * block_sizes(0).slot_bytes <=
                  99 << 10,
              "the smallest GPUs have room for it and for the ring");

}  // namespace akunu::cuda
