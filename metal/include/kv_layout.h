// How the KV cache and the partial results of decode attention lie in memory, for the host and for kernels.
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

#include "core/params.h"

#ifndef __METAL_VERSION__
#include "core/dtype.h"

namespace akunu::metal {
using u64 = std::uint64_t;
#else
using u64 = ulong;
#endif

enum AttentionSizes : u32 {
    kAttentionThreads = 128,  // of every threadgroup, that of prepare_heads too
    kAttentionSimdgroups = kAttentionThreads / 32,
    kMaxHeadDim = 512,
    kMaxLatentKey = 1024,  // elements of a key of latent attention
    // Decode attention: keys of a split at least, counted from position 0, and keys up to which there is one split, whose
    // threadgroups then write the result themselves.
    kSplitKeys = 32,
    kUnsplitKeys = 128,
    // So many splits suffice until each has kLongSplit blocks of kSplitKeys keys: more would read and write more results.
    kShortSplits = 16,
    kLongSplit = 4,
    kLatentSplitKeys = 128,  // of latent attention, whose heads are threadgroups of their own
    // A few rows taken together: keys of a split at least, and splits at most.
    kBatchSplitKeys = 128,
    kMaxBatchSplits = 32,
    kMaxBatchRows = 16,
    kKvBlock = 32,
};

// Types of keys, or of values, as function constants name them.
enum KvType : u32 { kKvF16, kKvF32, kKvQ8, kKvQ4 };

static_assert(u32(kSplitKeys) % u32(kPagePositions) == 0, "a context rounded up to pages has as many splits");
static_assert(u32(kLatentSplitKeys) >= u32(kSplitKeys) * u32(kLongSplit), "room for the splits of latent attention");

constexpr u64 round_up_16(u64 n) { return (n + 15) / 16 * 16; }
constexpr u32 kv_row_blocks(u32 head_dim) { return (head_dim + kKvBlock - 1) / kKvBlock; }
// Bytes from a unit's start to its scales, and of a unit.
constexpr u64 q8_scales_offset(u64 positions, u32 head_dim) { return round_up_16(positions * head_dim); }
constexpr u64 q8_unit_bytes(u64 positions, u32 head_dim) {
    return q8_scales_offset(positions, head_dim) + round_up_16(positions * kv_row_blocks(head_dim) * 2);
}
constexpr u32 q4_row_bytes(u32 head_dim) { return kv_row_blocks(head_dim) * (kKvBlock / 2); }
constexpr u64 q4_scales_offset(u64 positions, u32 head_dim) { return positions * q4_row_bytes(head_dim); }
constexpr u64 q4_unit_bytes(u64 positions, u32 head_dim) {
    return q4_scales_offset(positions, head_dim) + round_up_16(positions * kv_row_blocks(head_dim) * 2);
}

// Splits of so many blocks of kSplitKeys keys, `most` at most: beyond that a split takes several blocks, so that what is
// written and read again does not grow with the context.
constexpr u32 split_count(u32 blocks, u32 most) {
    const u32 long_ones = (blocks + kLongSplit - 1) / kLongSplit, enough = long_ones > kShortSplits ? long_ones : u32(kShortSplits);
    const u32 wanted = blocks < enough ? blocks : enough;
    return wanted < most ? wanted : most;
}
// Partial results: [row][head][split][head_dim] unnormalised outputs, then [row][head][split] (maximum, sum of exp). There
// is room for as many splits as there are of the whole context.
constexpr u32 split_room(u32 context, u32 most) { return split_count((context + kSplitKeys - 1) / kSplitKeys, most); }
// The first of `blocks` blocks that split `i` of `splits` has; the next split's is where it ends.
constexpr u32 split_begin(u32 i, u32 blocks, u32 splits) { return i * blocks / splits; }
// The same where a few rows are taken together: keys of a split, and splits at most.
constexpr u32 batch_split_keys(u32 context) {
    return (context + kMaxBatchSplits * kBatchSplitKeys - 1) / (kMaxBatchSplits * kBatchSplitKeys) * kBatchSplitKeys;
}
constexpr u32 batch_split_count(u32 context) {
    return (context + batch_split_keys(context) - 1) / batch_split_keys(context);
}

#ifndef __METAL_VERSION__
// Bytes of one layer's keys, or values, of a page.
constexpr u64 kv_bytes(DType dtype, u32 n_kv_heads, u32 head_dim) {
    if (dtype == DType::Q8_0) return u64{n_kv_heads} * q8_unit_bytes(kPagePositions, head_dim);
    if (dtype == DType::Q4_0) return u64{n_kv_heads} * q4_unit_bytes(kPagePositions, head_dim);
    return u64{n_kv_heads} * kPagePositions * head_dim * (dtype == DType::F32 ? 4 : 2);
}

// Splits of decode attention at most. With two KV heads or more they fill every core; more of them would cost small models
// more than 3 % of their bytes (Qwen2.5 0.5B Q4_0: 64 splits 3.2 %).
constexpr u32 most_splits(int gpu_cores) {
    const u32 half = (static_cast<u32>(gpu_cores) + 1) / 2;
    return half < 32 ? 32 : half;
}
constexpr u64 attention_partial_bytes(u32 n_heads, u32 head_dim, u32 context, int gpu_cores) {
    return u64{n_heads} * split_room(context, most_splits(gpu_cores)) * (head_dim + u64{2}) * sizeof(float);
}
constexpr u64 batch_partial_bytes(u32 rows, u32 n_heads, u32 head_dim, u32 context) {
    return u64{rows} * n_heads * batch_split_count(context) * (head_dim + u64{2}) * sizeof(float);
}

}  // namespace akunu::metal
#endif
