// scaled = penalised(logits + bias), -inf where the mask forbids: steps 1 and 2 of docs/sampling.md. A threadgroup owns a
// slice of a row, and reads all of the window and all biases for what falls into it, so no memory is shared between threadgroups.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "sampling.h"
#include "tokens.h"

// a / b, to the last bit but rarely: fast math's own division may be off by more.
static inline float quotient(float a, float b) {
    const float q = a / b;
    // Where the quotient overflows there is nothing to correct.
    return (as_type<uint>(q) & 0x7FFFFFFFu) < 0x7E800000u ? fma(fma(-q, b, a), 1.0f / b, q) : q;
}

kernel void sample_prepare_f32(
    device const uint* logits [[buffer(0)]],
    device const uint* history [[buffer(1)]],
    device const SamplerState* states [[buffer(2)]],
    device const uint2* biases [[buffer(3)]],  // id, bits of a float
    device const uint* masks [[buffer(4)]],
    device uint* scaled [[buffer(5)]],
    device const Row* rows [[buffer(6)]],
    device const uint* logit_rows [[buffer(7)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    uint2 slice_and_row [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]]) {
    threadgroup uint value[kPrepareTokens];
    threadgroup atomic_uint count[kPrepareTokens];
    const uint first = slice_and_row.x * kPrepareTokens, n = min(uint(kPrepareTokens), p.vocab - first);
    const LogitRow row = logit_row(rows, logit_rows, p, slice_and_row.y);
    device const SamplerState& settings = states[row.slot];
    logits += ulong(slice_and_row.y) * p.vocab;
    scaled += ulong(slice_and_row.y) * p.vocab * 2;
    history += ulong(row.slot) * p.history_stride;
    biases += ulong(row.slot) * kMaxLogitBias;
    masks += ulong(slice_and_row.y) * ((p.vocab + 31) / 32);
    const bool masked = settings.masked != 0;
    for (uint i = thread_id; i < n; i += kSliceThreads) {
        const uint id = first + i;
        const bool allowed = !masked || (masks[id / 32] >> (id % 32) & 1) != 0;  // the lowest bit first
        value[i] = allowed ? finite_bits(logits[id]) : kMinusInfinity;
        atomic_store_explicit(&count[i], 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Ids are unique in the list.
    for (uint i = thread_id; i < settings.n_bias; i += kSliceThreads) {
        const uint at = biases[i].x - first, bias = biases[i].y;
        if (at < n) {
            const bool forbidden = bias == kMinusInfinity || value[at] == kMinusInfinity;
            const float sum = as_type<float>(value[at]) + as_type<float>(bias);
            value[at] = forbidden ? kMinusInfinity : finite_bits(as_type<uint>(sum));
        }
    }
    const bool penalises =
        settings.repeat_penalty != 1.0f || settings.presence_penalty != 0.0f || settings.frequency_penalty != 0.0f;
    if (penalises) {
        const uint begin = row.position - min(row.position, settings.penalty_window);
        for (uint i = begin + thread_id; i < row.position; i += kSliceThreads) {
            const uint at = history[i] - first;
            if (at < n) atomic_fetch_add_explicit(&count[at], 1, memory_order_relaxed);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint i = thread_id; i < n; i += kSliceThreads) {
        uint bits = value[i];
        const uint times = atomic_load_explicit(&count[i], memory_order_relaxed);
        if (times != 0 && bits != kMinusInfinity) {
            const float x = as_type<float>(bits), r = settings.repeat_penalty;
            const float l = x > 0.0f ? quotient(x, r) : x * r;
            const float rest = l - settings.presence_penalty - settings.frequency_penalty * float(times);
            const bool overflows = (as_type<uint>(l) & 0x7FFFFFFFu) >= 0x7F800000u;
            bits = finite_bits(as_type<uint>(overflows ? l : rest));
        }
        scaled[first + i] = bits;
    }
}
