// How the KV cache lies in memory, for the host and for kernels.
//
// A layer's part of a page has a unit of rows of head_dim elements for each KV head's keys, and then for its values:
// kPagePositions positions each. Page tables say which page has a sequence's positions.
//
//   f16, f32  [unit][position][head_dim]
//   q8_0      [unit], each int8 [position][head_dim], then half scales [position][ceil(head_dim / 32)]; both planes are
//             rounded up to 16 bytes. A row's blocks are of 32 elements, its last one of what remains.
//   q4_0      [unit], each [position][block][16], a byte of codes i and i + 16 of a block, the lower bits first, then
//             half scales as for q8_0. A row's blocks are whole; behind its end codes are 8, which is 0.
//
// Keys and values may have different types.
#pragma once

#include "command.h"

namespace akunu::cuda {

enum AttentionSizes : u32 {
    kMaxHeadDim = 512,
    kMaxFusedDim = 256,    // of heads that RoPE, cache write and attention are one command for
    kMaxLatentKey = 1024,  // elements of a key of latent attention
    kMaxGroup = 16,        // query heads of a KV head that are taken together
    kTileKeys = 128,       // keys taken at once
    kLatentKeys = 32,      // of a split of latent attention at least
    kJoinedHeads = 4,      // heads whose sums are joined at a time
    kMaxSplits = 32,       // of decode attention: a lane each when they are joined
};

constexpr u64 round_up_16(u64 n) { return (n + 15) / 16 * 16; }
constexpr u32 kv_row_blocks(u32 head_dim) { return (head_dim + 31) / 32; }
constexpr u32 q4_row_bytes(u32 head_dim) { return kv_row_blocks(head_dim) * 16; }
// Bytes from a unit's start to its scales, and of a unit.
constexpr u64 q8_scales_offset(u32 head_dim) { return round_up_16(u64(kPagePositions) * head_dim); }
constexpr u64 q4_scales_offset(u32 head_dim) { return u64(kPagePositions) * q4_row_bytes(head_dim); }
constexpr u64 kv_unit_bytes(u32 type, u32 head_dim) {
    if (type == kKvF32 || type == kKvF16) return u64(kPagePositions) * head_dim * (type == kKvF32 ? 4 : 2);
    const u64 scales = round_up_16(u64(kPagePositions) * kv_row_blocks(head_dim) * 2);
    return (type == kKvQ4 ? q4_scales_offset(head_dim) : q8_scales_offset(head_dim)) + scales;
}
// Bytes of a layer's part of a page, and from its start to the keys, or values, of a KV head.
constexpr u64 kv_page_bytes(u32 types, u32 n_kv_heads, u32 head_dim) {
    return n_kv_heads * (kv_unit_bytes(key_type(types), head_dim) + kv_unit_bytes(value_type(types), head_dim));
}
constexpr u64 keys_at(u32 types, u32 kv, u32 head_dim) { return kv * kv_unit_bytes(key_type(types), head_dim); }
constexpr u64 values_at(u32 types, u32 n_kv_heads, u32 kv, u32 head_dim) {
    return keys_at(types, n_kv_heads, head_dim) + kv * kv_unit_bytes(value_type(types), head_dim);
}

// Query heads of a group that are taken together: all, or those of a part, where parts are equal. Head h of all heads
// is in part h / group_part, and that in KV head part / (parts of a group).
constexpr u32 group_part(u32 group) {
    u32 parts = 1;
    while (group % parts != 0 || group / parts > kMaxGroup) ++parts;
    return group / parts;
}

// Rows of a sequence that a step of kOpDecodeAttention may have where as many query heads are taken together: their
// keys and values have room beside the queries (decode_team.cuh), and the scores with their keys where a block has one
// row.
constexpr u32 kMostRun = 8;
constexpr u32 decode_run(u32 group) {
    const u32 room = (kMaxGroup + 2 - group) / 2, scores = kWarps / 2 * kMaxGroup / group;
    const u32 run = room < scores ? room : scores;
    return run < kMostRun ? run : kMostRun;
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
constexpr u32 decode_kind(u32 types, u32 head_dim) {
    if (types == kv_pair(kKvF16, kKvF16) && (head_dim == 64 || head_dim == 128)) return head_dim;
    return head_dim <= 64 ? 8 : head_dim <= 128 ? 16 : 32;
}
// The size of heads whose tiles of prompts those of so many elements are taken by; 0 where they go row by row. Latent
// attention has sizes of its own, of keys whose first four fifths may be values.
constexpr bool is_latent_dim(u32 prompt_dim) { return prompt_dim % 5 == 0; }
constexpr u32 prompt_dim(u32 head_dim, u32 latent) {
    if (latent) {
        if (head_dim % 16 != 0 || latent % 8 != 0) return 0;
        return head_dim <= 320 && latent <= 256 ? 320 : head_dim <= 640 && latent <= 512 ? 640 : 0;
    }
    if (head_dim % (head_dim <= 128 ? 8 : 16) != 0) return 0;
    return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : head_dim <= 256 ? 256 : 512;
}
// Partial results: [head][kMaxSplits][head_dim] outputs, then [head][kMaxSplits] (maximum, sum).
constexpr u64 partial_floats(u32 n_heads, u32 head_dim) { return u64(n_heads) * kMaxSplits * (head_dim + 2); }

}  // namespace akunu::cuda
