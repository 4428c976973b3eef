// How the CPU lays out the KV cache, and how it splits attention over it.
//
// A page holds the keys of kPagePositions positions, a unit for each KV head, and then the values likewise. A unit of
// keys is [position / 16][head_dim][16]; of values [position][head_dim]. Q8_0 keeps int8 there and, behind the unit's
// elements, an f32 scale for every 32 of head_dim (the last run may be shorter): keys [position / 16][run][16], values
// [position][run]. Q4_0 has a byte for two codes of 4 bits, the lower bits first, and scales of f16: a byte of keys has
// neighbours, [position / 16][head_dim / 2][16]; a run of values has 16 bytes, elements i and i + 16 in each. Attention
// works in blocks of kAttentionBlock positions, counted from position 0 whatever the window or the batch, and merges
// the blocks in order: so a row's result is the same in every phase and for every number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/params.h"

namespace akunu::cpu {

constexpr std::size_t kKeyGroup = 16;
constexpr std::size_t kAttentionBlock = 256;

static_assert(kPagePositions % kKeyGroup == 0 && kAttentionBlock % kPagePositions == 0);

constexpr std::size_t kScaleRun = 32;
constexpr std::size_t scale_runs(std::size_t head_dim) { return (head_dim + kScaleRun - 1) / kScaleRun; }
// Bytes of one head's keys, or values, in a page; 0: the cache has no such type.
constexpr std::size_t kv_unit_bytes(DType type, std::size_t head_dim) {
    switch (type) {
        case DType::F32:
            return kPagePositions * head_dim * sizeof(float);
        case DType::F16:
            return kPagePositions * head_dim * sizeof(std::uint16_t);
        case DType::Q8_0:
            return kPagePositions * (head_dim + scale_runs(head_dim) * sizeof(float));
        case DType::Q4_0:
            return kPagePositions * scale_runs(head_dim) * (kScaleRun / 2 + sizeof(std::uint16_t));
        default:
            return 0;
    }
}

// A block's partial result for one head: max, sum of exp, and head_dim unnormalised outputs.
constexpr std::size_t partial_floats(std::size_t head_dim) { return (head_dim + 2 + 15) / 16 * 16; }
constexpr std::size_t attention_blocks(std::size_t context) {
    return (context + kAttentionBlock - 1) / kAttentionBlock;
}

}  // namespace akunu::cpu
