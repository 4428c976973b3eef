// How the CPU lays out the KV cache, and how it splits attention over it.
//
// A page holds the keys of kPagePositions positions, a unit for each KV head, and then the values likewise. A unit of
// keys is [position / 16][head_dim][16]; of values [position][head_dim]. Q8_0 keeps int8 there and, behind the unit's
// elements, an f32 scale for every 32 of head_dim (the last run may be shorter): keys [position / 16][run][16], values
// [position][run]. Attention works in blocks of kAttentionBlock positions, counted from position 0 whatever the window
// or the batch, and merges the blocks in order: so a row's result is the same in every phase and for every number of
// threads.
#pragma once

#include <cstddef>

#include "core/params.h"

namespace akunu::cpu {

constexpr std::size_t kKeyGroup = 16;
constexpr std::size_t kAttentionBlock = 256;

static_assert(kPagePositions % kKeyGroup == 0 && kAttentionBlock % kPagePositions == 0);

constexpr std::size_t kScaleRun = 32;
constexpr std::size_t scale_runs(std::size_t head_dim) { return (head_dim + kScaleRun - 1) / kScaleRun; }
// Bytes of one head's keys, or values, in a page; elements of one byte have scales.
constexpr std::size_t kv_unit_bytes(std::size_t elem_bytes, std::size_t head_dim) {
    const std::size_t scales = elem_bytes == 1 ? scale_runs(head_dim) * sizeof(float) : 0;
    return kPagePositions * (head_dim * elem_bytes + scales);
}

// A block's partial result for one head: max, sum of exp, and head_dim unnormalised outputs.
constexpr std::size_t partial_floats(std::size_t head_dim) { return (head_dim + 2 + 15) / 16 * 16; }
constexpr std::size_t attention_blocks(std::size_t context) {
    return (context + kAttentionBlock - 1) / kAttentionBlock;
}

}  // namespace akunu::cpu
