// scaled = penalised(logits + bias), steps 1 and 2 of docs/sampling.md. A threadgroup owns a slice of the vocabulary, and
// reads all of the window and all biases for what falls into it, so no memory is shared between threadgroups.
#include <metal_stdlib>
using namespace metal;

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
    device const SamplerSettings& settings [[buffer(2)]],
    device uint* scaled [[buffer(3)]],
    constant SampleParams& p [[buffer(8)]],
    uint slice [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]]) {
    threadgroup uint value[kPrepareTokens];
    threadgroup atomic_uint count[kPrepareTokens];
    const uint first = slice * kPrepareTokens, n = min(uint(kPrepareTokens), p.vocab - first);
    for (uint i = thread_id; i < n; i += kSliceThreads) {
        value[i] = finite_bits(logits[first + i]);
        atomic_store_explicit(&count[i], 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Ids are unique in the list.
    for (uint i = thread_id; i < settings.n_bias; i += kSliceThreads) {
        const uint at = settings.bias[2 * i] - first, bias = settings.bias[2 * i + 1];
        if (at < n) {
            const bool forbidden = bias == kMinusInfinity || value[at] == kMinusInfinity;
            const float sum = as_type<float>(value[at]) + as_type<float>(bias);
            value[at] = forbidden ? kMinusInfinity : finite_bits(as_type<uint>(sum));
        }
    }
    const bool penalises =
        settings.repeat_penalty != 1.0f || settings.presence_penalty != 0.0f || settings.frequency_penalty != 0.0f;
    if (penalises) {
        for (uint i = p.position - min(p.position, settings.penalty_window) + thread_id; i < p.position;
             i += kSliceThreads) {
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
