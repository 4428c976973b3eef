// How the CPU lays out the KV cache, and how it splits attention over it.
//
// K: [kv_head][position / 16][head_dim][16]; V: [kv_head][position][head_dim]. Q8_0 keeps int8 there and, behind each
// head's elements, an f32 scale for every 32 of head_dim (the last run may be shorter): K [position / 16][run][16],
// V [position][run]. Attention works in blocks of
// kAttentionBlock positions, counted from position 0 whatever the window or the batch, and merges the blocks in order:
// so a row's result is the same in every phase and for every number of threads.
#pragma once

#include <cstddef>

namespace akunu::cpu {

constexpr std::size_t kKeyGroup = 16;
constexpr std::size_t kAttentionBlock = 256;

constexpr std::size_t cache_positions(std::size_t context) { return (context + kKeyGroup - 1) / kKeyGroup * kKeyGroup; }

constexpr std::size_t kScaleRun = 32;
constexpr std::size_t scale_runs(std::size_t head_dim) { return (head_dim + kScaleRun - 1) / kScaleRun; }
// Bytes of one head's keys, or values; elements of one byte have scales.
constexpr std::size_t cache_head_bytes(std::size_t elem_bytes, std::size_t context, std::size_t head_dim) {
    const std::size_t scales = elem_bytes == 1 ? scale_runs(head_dim) * sizeof(float) : 0;
    return cache_positions(context) * (head_dim * elem_bytes + scales);
}

// A block's partial result for one head: max, sum of exp, and head_dim unnormalised outputs.
constexpr std::size_t partial_floats(std::size_t head_dim) { return (head_dim + 2 + 15) / 16 * 16; }
constexpr std::size_t attention_blocks(std::size_t context) {
    return (context + kAttentionBlock - 1) / kAttentionBlock;
}

}  // namespace akunu::cpu
