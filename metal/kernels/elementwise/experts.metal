// What stands before and behind the products of a prompt's experts: its choices sorted by expert, and sums of results.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "expert_tiles.h"

constant uint TILE_CHOICES [[function_constant(0)]];  // of a tile, at most
constant uint TILE_GROUPS [[function_constant(1)]];   // threadgroups that share a tile

// One threadgroup. The order of an expert's own choices is as it comes: no result depends on it.
template <typename P>
static inline void sort_by_expert(device const uint* ids, constant P& p, device uint* sorted,
                                  threadgroup atomic_uint* next, ushort thread_id, ushort threads) {
    const uint choices = p.rows * p.chosen;
    for (uint e = thread_id; e < p.experts; e += threads) atomic_store_explicit(&next[e], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = thread_id; c < choices; c += threads) {
        atomic_fetch_add_explicit(&next[min(ids[c], p.experts - 1)], 1, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id < 32) {
        // A lane has experts that follow one another.
        const uint each = (p.experts + 31) / 32, first = thread_id * each, end = min(first + each, p.experts);
        uint mine = 0, tiles = 0;
        for (uint e = first; e < end; ++e) {
            const uint n = atomic_load_explicit(&next[e], memory_order_relaxed);
            mine += n;
            tiles += (n + TILE_CHOICES - 1) / TILE_CHOICES;
        }
        uint at = simd_prefix_exclusive_sum(mine);
        device uint* tile = sorted + tiles_word(choices) + 2 * simd_prefix_exclusive_sum(tiles);
        for (uint e = first; e < end; ++e) {
            const uint n = atomic_load_explicit(&next[e], memory_order_relaxed);
            atomic_store_explicit(&next[e], at, memory_order_relaxed);
            for (uint done = 0; done < n; done += TILE_CHOICES, tile += 2) {
                tile[0] = at + done;
                tile[1] = e | min(uint(TILE_CHOICES), n - done) << kTileCountShift;
            }
            at += n;
        }
        const uint all = simd_sum(tiles);
        if (thread_id == 0) {
            sorted[0] = TILE_GROUPS;
            sorted[1] = all;
            sorted[2] = 1;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = thread_id; c < choices; c += threads) {
        const uint place = atomic_fetch_add_explicit(&next[min(ids[c], p.experts - 1)], 1, memory_order_relaxed);
        sorted[kOrderWord + place] = c;
    }
}

kernel void experts_gate_up_sort(device const uint* ids [[buffer(5)]],
                                 constant ExpertsGateUpParams& p [[buffer(kParamsIndex)]],
                                 device uint* sorted [[buffer(kScratchIndex)]],
                                 ushort thread_id [[thread_index_in_threadgroup]],
                                 ushort threads [[threads_per_threadgroup]]) {
    threadgroup atomic_uint next[kMostExperts];
    sort_by_expert(ids, p, sorted, next, thread_id, threads);
}

kernel void experts_down_sort(device const uint* ids [[buffer(4)]],
                              constant ExpertsDownParams& p [[buffer(kParamsIndex)]],
                              device uint* sorted [[buffer(kScratchIndex)]],
                              ushort thread_id [[thread_index_in_threadgroup]],
                              ushort threads [[threads_per_threadgroup]]) {
    threadgroup atomic_uint next[kMostExperts];
    sort_by_expert(ids, p, sorted, next, thread_id, threads);
}

// y (+)= Σ weight·(result + bias) over a row's choices; grid: results of a row, rows.
kernel void experts_down_sum(device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                             device const uint* ids [[buffer(4)]], device const float* weights [[buffer(5)]],
                             constant ExpertsDownParams& p [[buffer(kParamsIndex)]],
                             device const uint* sorted [[buffer(kScratchIndex)]],
                             uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.n) return;
    device const float* results = (device const float*)(sorted + results_word(p.rows * p.chosen));
    const ulong first = ulong(at.y) * p.chosen;
    float sum = 0.0f;
    uint least = 0;
    for (uint n = 0; n < p.chosen; ++n) {
        uint id;
        const uint choice = next_choice(ids + first, p.chosen, least, id);
        float v = results[(first + choice) * p.n + at.x];
        if (p.has_bias) v += bias[ulong(min(id, p.experts - 1)) * p.n + at.x];
        sum += weights[first + choice] * v;
    }
    device float& to = y[ulong(at.y) * p.n + at.x];
    to = p.accumulate ? to + sum : sum;
}
