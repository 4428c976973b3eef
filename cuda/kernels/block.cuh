// What every op has: the command, its share of the work, shared memory, and sums over a block.
#pragma once

#include "command.h"
#include "platform.cuh"

namespace akunu::cuda {

// Shared memory begins with this command, the next one, and room for reductions; the rest is the op's own.
constexpr u32 kSharedHead = 1024;

// A place in the chain: a command of a segment, in a step, of which so many commands ran before.
struct Place {
    u32 step, segment, command, begun;
};
// What a command is to a block.
struct Walk {
    Place at, next;
    u32 first;  // of the command's units a block takes first, first + blocks, ...
    u32 waits;  // 1: at a barrier of the grid
    u32 turn;   // where the next command's units begin, so that blocks of a stage follow one another
};

// What the threads of a block show one another, at the head's end.
struct Shown {
    u32 failure;  // LaunchError
    u32 ticket;
    Barrier* grid;
    u32 done;          // steps
    u32 slot[kWarps];  // of the command that a warp is at
    Walk walk[2];      // of the commands in shared memory
};
AKUNU_DEVICE Shown& shown() { return *reinterpret_cast<Shown*>(shared_memory() + kSharedHead - sizeof(Shown)); }

// A grid's barrier, kept in shared memory. `arrive` stands right behind a barrier of the block; what then follows `wait`
// sees all that blocks wrote before they arrived. It fails where some block does not come in time.
struct GridBarrier {
    u32* arrived;
    u32* error;
    u64 timeout_ns;
    u64* passed_at;  // null, or where the first block leaves the time
    u32 passed;

    AKUNU_DEVICE void arrive() {
        if (thread_id() != 0) return;
        ++passed;
        arrive_release(arrived);
    }
    AKUNU_DEVICE void wait() {
        if (thread_id() == 0) {
            const u32 all = passed * grid_blocks();
            u64 start = 0;
            u32 failure = kNoError;
            for (u32 spins = 1; load_acquire(arrived) < all; ++spins) {
                spin_pause();
                if (spins % 1024 != 0) continue;
                if (start == 0) start = nanoseconds();
                failure = load_acquire(error);
                if (failure == kNoError && nanoseconds() - start > timeout_ns) *error = failure = kTimedOut;
                if (failure != kNoError) break;
            }
            if (failure != kNoError) shown().failure = failure;
            if (passed_at && block_id() == 0) *passed_at++ = nanoseconds();
        }
        sync_block();
    }
};
static_assert(2 * sizeof(Command) + kWarps * 8 + sizeof(GridBarrier) + sizeof(Shown) <= kSharedHead, "all fit the head");
AKUNU_DEVICE GridBarrier& grid_barrier() {
    return *reinterpret_cast<GridBarrier*>(shared_memory() + 2 * sizeof(Command) + kWarps * 8);
}

// What an op has. It is one word, by value, and all else in shared memory: the stack is dropped from the cache at every
// barrier of the grid.
struct Block {
    u32 slot;  // of the two commands in shared memory

    AKUNU_DEVICE const Command& command() const { return reinterpret_cast<const Command*>(shared_memory())[slot]; }
    AKUNU_DEVICE u32 first() const { return shown().walk[slot].first; }
    AKUNU_DEVICE u32 blocks() const { return grid_blocks(); }
    AKUNU_DEVICE Barrier* grid() const { return shown().grid; }
    // Every command calls it once, before it touches what others write.
    AKUNU_DEVICE void ready() const {
        if (shown().walk[slot].waits) grid_barrier().wait();
    }
    template <typename T>
    AKUNU_DEVICE T* buffer(u32 i) const {
        return reinterpret_cast<T*>(command().buffers[i]);
    }
    template <typename P>
    AKUNU_DEVICE const P& params() const {
        return *reinterpret_cast<const P*>(command().params);
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
