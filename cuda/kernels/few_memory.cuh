// Where a few rows' inputs are in shared memory, and what a lane reads of weights in tiles to multiply them with.
#pragma once

#include "few_layout.h"
#include "fragments.cuh"
#include "ring.cuh"

namespace akunu::cuda {

// Inputs in shared memory, in pieces of 16 bytes. A piece has what a lane multiplies of a group of 32: piece t of a
// group eight inputs side by side, or four of each half.
struct FewMemory {
    u32 inputs, sums, tiles;
};
constexpr FewMemory kFewMemory = {kSharedHead, kSharedHead + few_group_sums(kSizes),
                                  kSharedHead + few_tile_sums(kSizes)};

// Word t of a lane's piece in row g + 8·upper.
AKUNU_DEVICE u32 lane_word(u32 unit, u32 piece, u32 lane, u32 upper) {
    return shared_at<const u32>(unit + piece_at(lane / 4 + 8 * upper, piece) + lane % 4 * 4);
}
// Words 2t and 2t + 1 of the 32 bytes that begin with a piece.
AKUNU_DEVICE uint2 lane_words(u32 unit, u32 piece, u32 lane, u32 upper) {
    return shared_at<const uint2>(unit + piece_at(lane / 4 + 8 * upper, piece) + lane % 4 * 8);
}

// The inputs that are in shared memory: so many of each row, from a multiple of that number on.
struct FewInputs {
    const u16* x;
    u32 rows, k, columns, log2_inputs, stride;  // columns: see few_columns; bytes of a row
    AKUNU_DEVICE FewInputs(const u16* x, u32 rows, u32 k, u32 pad)
        : x(x),
          rows(rows),
          k(k),
          columns(few_columns(rows)),
          log2_inputs(31 - leading_zeros(few_chunk(kSizes, rows, k))) {
        stride = (2 << log2_inputs) + pad;
    }
    AKUNU_DEVICE u32 chunk() const { return 1u << log2_inputs; }
    AKUNU_DEVICE u32 row(u32 m) const { return kFewMemory.inputs + m * stride; }
    AKUNU_DEVICE u32 sums(u32 group) const { return kFewMemory.sums + group * columns * 4; }
};

}  // namespace akunu::cuda
