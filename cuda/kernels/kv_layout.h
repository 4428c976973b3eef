// How the KV cache lies in memory, for the host and for kernels.
//
// A layer's part of a page has a unit of rows of head_dim elements for each KV head's keys, and then for its values:
// kPagePositions positions each. Page tables say which page has a sequence's positions.
//
//   f16, f32  [unit][position][head_dim]
//   q8_0      [unit], each int8 [position][head_dim], then half scales [position][ceil(head_dim / 32)]; both planes are
//             rounded up to 16 bytes. A row's blocks are of 32 elements, its last one of what remains.
#pragma once

#include "command.h"

namespace akunu::cuda {

enum AttentionSizes : u32 {
    kMaxHeadDim = 512,
    kMaxFusedDim = 256,    // of heads that RoPE, cache write and attention are one command for
    kMaxLatentKey = 1024,  // elements of a key of latent attention
    kMaxGroup = 16,        // query heads of a KV head
    kTileKeys = 128,       // keys taken at once
    kJoinedHeads = 4,      // heads whose sums are joined at a time
    kMaxSplits = 32,       // of decode attention: a lane each when they are joined
};

constexpr u64 round_up_16(u64 n) { return (n + 15) / 16 * 16; }
constexpr u32 q8_row_blocks(u32 head_dim) { return (head_dim + 31) / 32; }
// Bytes from a unit's start to its scales, and of a unit.
constexpr u64 q8_scales_offset(u32 head_dim) { return round_up_16(u64(kPagePositions) * head_dim); }
constexpr u64 kv_unit_bytes(u32 type, u32 head_dim) {
    if (type == kKvQ8)
        return q8_scales_offset(head_dim) + round_up_16(u64(kPagePositions) * q8_row_blocks(head_dim) * 2);
    return u64(kPagePositions) * head_dim * (type == kKvF32 ? 4 : 2);
}

// Splits that a row which sees so many keys has, each of so many at least.
constexpr u32 splits_of(u32 keys, u32 least = kTileKeys) {
    const u32 tiles = (keys + least - 1) / least;
    return tiles < kMaxSplits ? tiles : u32(kMaxSplits);
}
// How keys are taken where RoPE, cache write and attention of rows of different sequences are one command. Heads of the
// usual sizes in an F16 cache go by the tensor cores, and the kind is their size, kTileKinds or more. Else it says how
// many lanes of a warp take a key, 8 elements each.
constexpr u32 kTileKinds = 64;
constexpr u32 decode_kind(u32 type, u32 head_dim) {
    if (type == kKvF16 && (head_dim == 64 || head_dim == 128)) return head_dim;
    return head_dim <= 64 ? 8 : head_dim <= 128 ? 16 : 32;
}
// Partial results: [head][kMaxSplits][head_dim] outputs, then [head][kMaxSplits] (maximum, sum).
constexpr u64 partial_floats(u32 n_heads, u32 head_dim) { return u64(n_heads) * kMaxSplits * (head_dim + 2); }

}  // namespace akunu::cuda
