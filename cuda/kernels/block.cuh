// The interface of every op: the command, its share of the work, shared memory, and sums over a block.
#pragma once

#include "walk.cuh"

namespace akunu::cuda {

// Whether some command has this op.
#define X(op) || kOp == (op)
template <u32 kOp>
constexpr bool kUses = false AKUNU_OPS;
#undef X

// The handle of an op. It is one word, by value, and all else in shared memory: the stack is dropped from the cache at
// every barrier of the grid.
struct Block {
    u32 slot;  // of the two commands in shared memory

    AKUNU_DEVICE const Command& command() const { return command_in(slot); }
    AKUNU_DEVICE const TileJob& job(u32 stream) const { return block_state().job[slot][stream]; }
    AKUNU_DEVICE u32 first() const { return block_state().walk[slot].first; }
    AKUNU_DEVICE u32 blocks() const { return grid_blocks(); }
    AKUNU_DEVICE Barrier* grid() const { return block_state().launch.barrier; }
    // Every command calls it once, or the two that it consists of, before it touches what others write.
    AKUNU_DEVICE void wait() const {
        if (block_state().walk[slot].waits) grid_barrier().wait();
    }
    // The producer's words, each with that command's number; null where this one waits at a
    // barrier instead.
    AKUNU_DEVICE const u64* taken() const { return in_global(block_state().walk[slot].taken); }
    AKUNU_DEVICE u32 taken_number() const { return block_state().walk[slot].number - 1; }
    template <typename T>
    AKUNU_DEVICE T* buffer(u32 i) const {
        return in_global(reinterpret_cast<T*>(command().buffers[i]));
    }
    template <typename P>
    AKUNU_DEVICE const P& params() const {
        return *reinterpret_cast<const P*>(command().params);
    }
    AKUNU_DEVICE u8* shared() const { return shared_memory() + kSharedHead; }
    AKUNU_DEVICE u64* partials() const { return reinterpret_cast<u64*>(shared_memory() + 2 * sizeof(Command)); }
};

// By a warp: until `look`, which asks for the words of a lane, says of all lanes that they have the number that is
// waited for.
template <typename Look>
AKUNU_DEVICE void wait_for_words(Look&& look) {
    for (u32 looks = 1; !all_of_warp(look()); ++looks) {
        spin_pause();
        if (!any_of_warp(gives_up(looks))) continue;
        publish(block_state().failure, kTimedOut);
        return;
    }
}
AKUNU_DEVICE u32 value_of(u64 word) { return u32(word); }
AKUNU_DEVICE u32 number_of(u64 word) { return u32(word >> 32); }
AKUNU_DEVICE void leave_word(u64* at, u32 value, u32 number) { store_word(in_global(at), u64(number) << 32 | value); }

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
AKUNU_DEVICE T reduce_block(Block b, T v, Op op) {
    T* partials = reinterpret_cast<T*>(b.partials());
    v = reduce_warp(v, op);
    sync_block();
    if (lane_id() == 0) partials[warp_id()] = v;
    sync_block();
    T all = partials[0];
    for (u32 i = 1; i < kWarps; ++i) all = op(all, partials[i]);
    return all;
}

// Of `blocks` blocks that share a result, by all threads: whether this one comes last, and sees what the others left.
AKUNU_DEVICE bool comes_last(u32& ticket, u32 blocks) {
    sync_block();
    if (thread_id() == 0) {
        block_state().ticket = atomic_next_ordered(&ticket, blocks - 1);
    }
    sync_block();
    return any_of_warp(block_state().ticket + 1 == blocks);
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
    // Two neighbours, from an even place on.
    AKUNU_DEVICE void store2(u64 i, float2 v) const {
        if (formats & kActF32) *reinterpret_cast<float2*>(f32 + i) = v;
        if (formats & kActF16) *reinterpret_cast<u32*>(half + i) = pack_halves(v.x, v.y);
    }
    // Four neighbours, from a multiple of four on.
    AKUNU_DEVICE void store4(u64 i, const float4& v) const {
        if (formats & kActF32) *reinterpret_cast<float4*>(f32 + i) = v;
        if (formats & kActF16) *reinterpret_cast<uint2*>(half + i) = {pack_halves(v.x, v.y), pack_halves(v.z, v.w)};
    }
};

AKUNU_DEVICE constexpr u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
AKUNU_DEVICE constexpr u32 larger(u32 a, u32 b) { return a < b ? b : a; }
AKUNU_DEVICE u32 rounded_up(u32 n, u32 to) { return (n + to - 1) / to * to; }

}  // namespace akunu::cuda
