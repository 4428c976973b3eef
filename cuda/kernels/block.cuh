// What every op has: the command, its share of the work, shared memory, and sums over a block.
#pragma once

#include "command.h"
#include "platform.cuh"

namespace akunu::cuda {

// Shared memory begins with this command, the next one, and room for reductions; the rest is the op's own.
constexpr u32 kSharedHead = 1024;
static_assert(2 * sizeof(Command) + kWarps * 8 + 64 <= kSharedHead, "the head holds them");

struct Block {
    const Command& command;
    u32 first, blocks;  // of this command's units a block takes first, first + blocks, ...

    template <typename T>
    AKUNU_DEVICE T* buffer(u32 i) const {
        return reinterpret_cast<T*>(command.buffers[i]);
    }
    template <typename P>
    AKUNU_DEVICE const P& params() const {
        return *reinterpret_cast<const P*>(command.params);
    }
    AKUNU_DEVICE u8* shared() const { return shared_memory() + kSharedHead; }
    AKUNU_DEVICE u64* partials() const { return reinterpret_cast<u64*>(shared_memory() + 2 * sizeof(Command)); }
};

struct Add {
    template <typename T>
    AKUNU_DEVICE T operator()(T a, T b) const {
        return a + b;
    }
};
struct Larger {
    template <typename T>
    AKUNU_DEVICE T operator()(T a, T b) const {
        return b > a ? b : a;
    }
};

template <typename T, typename Op>
AKUNU_DEVICE T reduce_warp(T v, Op op) {
    AKUNU_UNROLL
    for (u32 mask = 16; mask > 0; mask /= 2) v = op(v, shuffle_xor(v, mask));
    return v;
}

// In every thread; `partials` is free again behind the next barrier of the block. T: 4 or 8 bytes.
template <typename T, typename Op>
AKUNU_DEVICE T reduce_block(const Block& b, T v, Op op) {
    T* partials = reinterpret_cast<T*>(b.partials());
    v = reduce_warp(v, op);
    sync_block();
    if (lane_id() == 0) partials[warp_id()] = v;
    sync_block();
    T all = partials[0];
    for (u32 i = 1; i < kWarps; ++i) all = op(all, partials[i]);
    return all;
}

// Activations as F16 saturate.
AKUNU_DEVICE u16 to_half(float v) { return float_to_half(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v); }

// An activation in the formats that are asked for.
struct Output {
    float* f32;
    u16* half;
    u32 formats;
    AKUNU_DEVICE void store(u64 i, float v) const {
        if (formats & kActF32) f32[i] = v;
        if (formats & kActF16) half[i] = to_half(v);
    }
};

AKUNU_DEVICE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
AKUNU_DEVICE u32 larger(u32 a, u32 b) { return a < b ? b : a; }

}  // namespace akunu::cuda
