// How the CPU lays out the KV cache, and how it splits attention over it.
//
// K: [kv_head][position / 16][head_dim][16]; V: [kv_head][position][head_dim]. Attention works in blocks of
// kAttentionBlock positions, counted from position 0 whatever the window or the batch, and merges the blocks in order:
// so a row's result is the same in every phase and for every number of threads.
#pragma once

#include <cstddef>

namespace akunu::cpu {

constexpr std::size_t kKeyGroup = 16;
constexpr std::size_t kAttentionBlock = 256;

constexpr std::size_t cache_positions(std::size_t context) { return (context + kKeyGroup - 1) / kKeyGroup * kKeyGroup; }

// A block's partial result for one head: max, sum of exp, and head_dim unnormalised outputs.
constexpr std::size_t partial_floats(std::size_t head_dim) { return (head_dim + 2 + 15) / 16 * 16; }
constexpr std::size_t attention_blocks(std::size_t context) {
    return (context + kAttentionBlock - 1) / kAttentionBlock;
}

}  // namespace akunu::cpu
