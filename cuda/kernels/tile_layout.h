// How the weights lie that a row is multiplied with on the tensor cores, for the host and for kernels.
//
// Sixteen rows are a tile, in units of 128 or 256 inputs:
//
//   [tile][unit], each the codes, [quad of pieces][row][4 pieces of 16 bytes], then [row] what else the row's blocks
//   have
//
// A row's codes, and its extras, are in the order that they have row by row. A tile lies in one piece, and so do those
// that a block takes: they come to shared memory by copies of whole units, and a warp reads 512 bytes of it side by
// side.
//
// Floats lie as F16: of BF16 these are the numbers times a power of two, so that the largest are from 2^14 to 2^15, and
// what they are to be multiplied by, an F32, stands behind the matrix' tiles. A row's pieces lie side by side eight at
// a time, piece p at place p ^ row % 8: so eight rows' pieces lie in different banks of shared memory, and products of
// warpgroups take a tile as it lies.
//
// K-quants' bits are in another order than in a file, so that a row's step takes fewer instructions. Q4_K and Q5_K
// (which has no tiles): a word of extras has two groups' scales of six bits, from bit 0 and 6 on, their minima, from 12
// and 18 on, and one of the four bytes of d and dmin. Q6_K: of a step's 128 codes 64 bytes of nibbles have the first
// 64's lower four bits below the last 64's upper four. The other two bits are in 32 bytes, words of which serve two
// words of nibbles each: of the even one's codes, from bit 6 on for the first 64 and from 2 on for the last, of the odd
// one's from 4 and 0.
#pragma once

#include "command.h"

namespace akunu::cuda {

constexpr u32 kTileRows = 16, kStepInputs = 128, kPiece = 16;

// Of one row: inputs of a unit, and its bytes.
struct TileLayout {
    u32 inputs, code_bytes, extra_bytes;
    constexpr u32 unit_bytes() const { return kTileRows * (code_bytes + extra_bytes); }
    constexpr u32 steps() const { return inputs / kStepInputs; }
    // Units that a slot of the ring holds: a power of two, so that its steps are dealt to the warps evenly.
    constexpr u32 slot_units(u32 slot_bytes) const {
        u32 n = 1;
        while (2 * n * unit_bytes() <= slot_bytes) n *= 2;
        return n;
    }
};

// Of types without one there are no inputs.
constexpr TileLayout tile_layout(u32 reader) {
    switch (reader) {
        case kReadF16:
        case kReadBf16:
            return {128, 256, 0};
        case kReadQ4_0:
            return {128, 64, 8};
        case kReadMxfp4:
            return {128, 64, 4};
        case kReadQ8_0:
            return {128, 128, 8};
        case kReadQ4_K:
            return {256, 128, 16};
        case kReadQ6_K:
            return {256, 192, 18};
        default:
            return {0, 0, 0};
    }
}
// Numbers that an input of a row becomes: whole ones for codes, two F16 ones for floats. Either takes two bytes.
constexpr u32 input_parts(u32 reader) { return reader == kReadF16 || reader == kReadBf16 ? 2 : 1; }
// Rows of codes whose blocks are of 32 may end within a unit: zeros follow.
constexpr bool in_tiles(u32 reader, u64 cols) {
    const u32 inputs = tile_layout(reader).inputs;
    if (inputs == 0) return false;
    return cols % inputs == 0 || (inputs == kStepInputs && input_parts(reader) == 1 && cols % 32 == 0 && cols > inputs);
}
// Units of a row, and the inputs that they have.
constexpr u64 units_of(u32 reader, u64 cols) {
    const u32 inputs = tile_layout(reader).inputs;
    return (cols + inputs - 1) / inputs;
}
constexpr u32 padded_inputs(u64 cols) { return u32((cols + kStepInputs - 1) / kStepInputs) * kStepInputs; }

// Tiles whose sums are added up at once: a thread for each row.
constexpr u32 kTilesAtOnce = kThreads / kTileRows;
// Half of the memory of their sums, which take turns.
constexpr u32 kPartialsBytes = kTilesAtOnce * kWarps * kTileRows * 4;
// The memory of a row's codes and of sums (row_tiles.cuh); of `k` padded inputs.
constexpr u64 row_codes_bytes(u64 k) {
    return k * 2 + k / 4 + (k / kStepInputs + 3) / 4 * 16 + kWarps * 4 + u64{2} * kPartialsBytes;
}
// Whether experts' weights are codes in tiles that one row takes on the tensor cores; and of rows of `cols` whether so
// many rows' inputs have room beside the sums, with those of a shared expert's row behind them.
constexpr bool has_expert_rows(u32 reader) { return tile_layout(reader).inputs != 0 && input_parts(reader) == 1; }
constexpr bool takes_expert_rows(u32 reader, u64 cols, u64 rows, u64 shared = 0) {
    return has_expert_rows(reader) && in_tiles(reader, cols) &&
           row_codes_bytes(rows * padded_inputs(cols) + padded_inputs(shared)) <= kOpBytes;
}
// What a warp needs to choose a row's experts in: gates, scores, and sums of groups; and the memory of a command that
// does so between the codes and the sums.
constexpr u32 kStagedRouterRows = 2;  // that a block multiplies at once
constexpr u32 choice_bytes(u32 experts, u32 groups) { return (2 * experts + groups) * 4; }
constexpr bool takes_norm_experts(u32 reader, u64 cols, u32 experts, u32 groups) {
    return has_expert_rows(reader) && in_tiles(reader, cols) &&
           row_codes_bytes(padded_inputs(cols)) + kWarps * (kStagedRouterRows * 4 + choice_bytes(experts, groups)) <=
               kOpBytes;
}
// Where the unit of a row begins that has its input `col`.
constexpr u64 unit_at(u32 reader, u64 cols, u64 row, u64 col) {
    const TileLayout l = tile_layout(reader);
    return (row / kTileRows * units_of(reader, cols) + col / l.inputs) * l.unit_bytes();
}
// From a unit's start to a piece of a row's codes, and to the row's extras.
constexpr u32 piece_at(u32 row, u32 piece) {
    return (piece / 4 * kTileRows * 4 + row % kTileRows * 4 + piece % 4) * kPiece;
}
// The same of floats.
constexpr u32 float_piece_at(u32 row, u32 piece) {
    return ((piece / 8 * kTileRows + row % kTileRows) * 8 + (piece ^ row) % 8) * kPiece;
}
constexpr u32 extras_at(const TileLayout& l, u32 row) {
    return kTileRows * l.code_bytes + row % kTileRows * l.extra_bytes;
}
constexpr u64 tile_bytes(u32 reader, u64 cols) { return units_of(reader, cols) * tile_layout(reader).unit_bytes(); }

}  // namespace akunu::cuda
