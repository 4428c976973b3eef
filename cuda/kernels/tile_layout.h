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
// Bits are in another order than in a file, so that a row's step takes fewer instructions.
//   - Fifth bits of 32 codes, whose other four are the nibbles of 16 bytes: bit 8b + i is that of byte b of their i-th
//     word, of the low nibble, and bit 8b + 4 + i of the high one. Of blocks of 32 a unit's are in front of its scales.
//   - Q4_K and Q5_K: a word of extras has two groups' scales of six bits, from bit 0 and 6 on, their minima, from 12
//     and 18 on, and one of the four bytes of d and dmin. Behind them are the fifth bits of Q5_K: of two groups, whose
//     codes are the nibbles of two pieces, a word of each piece.
//   - Q6_K: of a step's 128 codes 64 bytes of nibbles have the first 64's lower four bits below the last 64's upper
//     four. The other two bits are in 32 bytes, words of which serve two words of nibbles each: of the even one's
//     codes, from bit 6 on for the first 64 and from 2 on for the last, of the odd one's from 4 and 0.
//   - IQ4_XS: a word for each step has four groups' scales of six bits, and above them one of the two bytes of d.
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

// What a block of 32 has besides its codes: bytes of its scale, with a minimum behind it where it has one; and whether
// codes have a fifth bit, which is four bytes more.
struct BlockExtras {
    u32 scale;
    bool fifth;
    constexpr u32 bytes() const { return scale + (fifth ? 4 : 0); }
    // From the extras of a tile's row on: the scale of one of its four blocks.
    constexpr u32 scale_at(u32 block) const { return (fifth ? 16 : 0) + block * scale; }
};
// Of types without such blocks there is no scale.
constexpr BlockExtras block_extras(u32 reader) {
    switch (reader) {
        case kReadMxfp4:
            return {1, false};
        case kReadQ4_0:
        case kReadIq4Nl:
        case kReadQ8_0:
            return {2, false};
        case kReadQ5_0:
            return {2, true};
        case kReadQ4_1:
            return {4, false};
        case kReadQ5_1:
            return {4, true};
        default:
            return {0, false};
    }
}

// Of types without one there are no inputs.
constexpr TileLayout tile_layout(u32 reader) {
    switch (reader) {
        case kReadF16:
        case kReadBf16:
            return {128, 256, 0};
        case kReadQ8_0:
            return {128, 128, 4 * block_extras(reader).bytes()};
        case kReadQ4_K:
            return {256, 128, 16};
        case kReadQ5_K:
            return {256, 128, 48};
        case kReadQ6_K:
            return {256, 192, 18};
        case kReadIq4Xs:
            return {256, 128, 8};
        default:  // nibbles in blocks of 32
            return block_extras(reader).scale != 0 ? TileLayout{128, 64, 4 * block_extras(reader).bytes()}
                                                   : TileLayout{0, 0, 0};
    }
}
// Numbers that an input of a row becomes: whole ones for codes, two F16 ones for floats. Either takes two bytes.
constexpr u32 input_parts(u32 reader) { return reader == kReadF16 || reader == kReadBf16 ? 2 : 1; }
// Whether codes count from a minimum on, with which the sums of a row's inputs are multiplied; and whether a row that
// is staged for weights of one type serves those of another, which stand beside them in a command: sums are staged for
// nibbles without minima, too, where a type that is loaded has some.
constexpr bool has_minima(u32 reader) {
    return reader == kReadQ4_1 || reader == kReadQ5_1 || reader == kReadQ4_K || reader == kReadQ5_K;
}
constexpr bool stages_sums(u32 reader, u32 other) {
    return has_minima(reader) ||
           (has_minima(other) && tile_layout(reader).code_bytes * 2 == tile_layout(reader).inputs);
}
constexpr bool serves(u32 reader, u32 other) {
    return input_parts(reader) == input_parts(other) && (!has_minima(other) || stages_sums(reader, other));
}
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
