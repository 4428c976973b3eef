// log softmax of the chosen token and of the n most likely: per slice of the vocabulary its maximum, sum and best
// tokens, then all slices together.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "sampling.h"
#include "tokens.h"

// Sum over a threadgroup, in an order that depends on nothing.
static inline float group_sum(float x, threadgroup float* shared, ushort lane, ushort simd, ushort n_simds) {
    x = simd_sum(x);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) shared[simd] = x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return simd_sum(lane < n_simds ? shared[lane] : 0.0f);
}

static constant constexpr ushort kSimds = kSliceThreads / 32;

kernel void logprob_slices_f32(
    device const uint* logits [[buffer(0)]],
    device const SamplerState* states [[buffer(2)]],
    device const Row* rows [[buffer(4)]],
    device const uint* logit_rows [[buffer(5)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device LogprobSlice* out [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSimds];
    threadgroup float sums[kSimds];
    constexpr ushort kEach = kSliceTokens / kSliceThreads;
    const uint slice = at.x, row = at.y;
    device const SamplerState& settings = states[rows[logit_rows[row]].slot];
    if (settings.want_logprobs == 0) return;  // all threads
    logits += ulong(row) * p.vocab;
    out += ulong(row) * slice_count(p.vocab);
    const uint first = slice * kSliceTokens + thread_id;
    uint bits[kEach];
    Ranked best = nothing();
    for (ushort i = 0; i < kEach; ++i) {
        const uint id = first + i * kSliceThreads;
        bits[i] = id < p.vocab ? finite_bits(logits[id]) : kMinusInfinity;
        if (id < p.vocab) best = better(best, ranked(rank_of(bits[i]), id));
    }
    best = group_best(best, shared, lane, simd, kSimds);
    const float top = as_type<float>(bits_of_rank(best.key));
    float sum = 0.0f;
    for (ushort i = 0; i < kEach; ++i) sum += relative_exp(bits[i], top);
    sum = group_sum(sum, sums, lane, simd, kSimds);
    if (thread_id == 0) {
        out[slice].max = top;
        out[slice].sum = sum;
    }
    uint taken = 0;  // bits
    for (uint r = 0; r < min(settings.n_logprobs, uint(kMaxLogprobs)); ++r) {
        Ranked mine = nothing();
        for (ushort i = 0; i < kEach; ++i) {
            const uint id = first + i * kSliceThreads;
            if (id < p.vocab && (taken >> i & 1) == 0) mine = better(mine, ranked(rank_of(bits[i]), id));
        }
        const Ranked next = group_best(mine, shared, lane, simd, kSimds);
        if (next.id == mine.id && next.id != nothing().id) taken |= 1u << ((next.id - first) / kSliceThreads);
        if (thread_id == 0) {
            out[slice].top[r].key = next.key;
            out[slice].top[r].id = next.id;
        }
    }
}

kernel void logprobs_f32(
    device const uint* logits [[buffer(0)]],
    device const uint* sampled [[buffer(1)]],
    device const SamplerState* states [[buffer(2)]],
    device LogprobRecord* records [[buffer(3)]],
    device const Row* rows [[buffer(4)]],
    device const uint* logit_rows [[buffer(5)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device const LogprobSlice* slices [[buffer(kScratchIndex)]],
    uint row [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSimds];
    threadgroup float sums[kSimds];
    const uint n_slices = slice_count(p.vocab);
    device const SamplerState& settings = states[rows[logit_rows[row]].slot];
    if (settings.want_logprobs == 0) return;  // all threads
    logits += ulong(row) * p.vocab;
    slices += ulong(row) * n_slices;
    const bool own = thread_id < n_slices;
    // Of slices without any token above -inf the sum is 0.
    const uint my_max = own ? as_type<uint>(slices[thread_id].max) : kMinusInfinity;
    const Ranked best = group_best(ranked(rank_of(my_max), thread_id), shared, lane, simd, kSimds);
    const float top = as_type<float>(bits_of_rank(best.key));
    const float my_sum = own ? slices[thread_id].sum * relative_exp(my_max, top) : 0.0f;
    const float log_sum = precise::log(group_sum(my_sum, sums, lane, simd, kSimds));
    device LogprobRecord& out = records[ulong(p.step) * p.rows + row];
    if (thread_id == 0) {
        const uint bits = finite_bits(logits[min(sampled[row], p.vocab - 1)]);
        out.chosen = bits == kMinusInfinity ? as_type<float>(bits) : as_type<float>(bits) - top - log_sum;
    }
    uint head = 0;
    for (uint r = 0; r < min(min(settings.n_logprobs, uint(kMaxLogprobs)), p.vocab); ++r) {
        Ranked mine = nothing();
        if (own && head < kMaxLogprobs) mine = ranked(slices[thread_id].top[head].key, slices[thread_id].top[head].id);
        const Ranked next = group_best(mine, shared, lane, simd, kSimds);
        if (mine.id == next.id) head += 1;
        if (thread_id == 0) {
            const uint bits = bits_of_rank(next.key);
            out.ids[r] = next.id;
            out.values[r] = bits == kMinusInfinity ? as_type<float>(bits) : as_type<float>(bits) - top - log_sum;
        }
    }
}
