// scaled = penalised(logits + bias), -inf where the mask forbids: steps 1 to 3 of docs/sampling.md. A threadgroup owns a
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

// x to the n-th, by squaring; what is too large counts as the largest float.
static inline float power(float x, uint n) {
    float y = 1.0f;
    for (; n != 0; n >>= 1) {
        if (n & 1) y *= x;
        x *= x;
    }
    return as_type<float>(finite_bits(as_type<uint>(y)));
}

static inline uint breaker_words(uint vocab) { return kBreakerBytesAt + (vocab + 3) / 4; }

// A token's set among sequence breakers; see BreakerLimits.
static inline uint breaker_set(device const uint* breakers, uint id) {
    return breakers[breakers[kBreakerBytesAt + id / 4] >> (8 * (id % 4)) & 0xFF];
}

// Tokens behind the last sequence breaker of the `window` tokens before `end`, or `window`. One that is far enough back
// for repeats of `longest` is not looked for.
static inline uint repeat_limit(device const uint* breakers, device const uint* end, uint window, uint longest,
                                threadgroup atomic_uint* nearest, ushort thread_id) {
    const uint look = longest < window ? min(window, longest + 1 + kBreakerTailIds) : window;
    for (uint start = 0; start < look; start += kSliceThreads) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_id == 0) atomic_store_explicit(nearest, 0xFFFFFFFFu, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint back = start + thread_id;
        if (back < look) {
            const uint set = breaker_set(breakers, *(end - 1 - back));
            bool found = (set & kIsBreaker) != 0;
            uint behind = 0;  // tokens of the breaker after this one
            device const uint* tail = breakers + kBreakerSets + (set & 0xFFFF) * kBreakerTailWords;
            for (uint i = 0; i < (set >> 16 & 0x7FFF); ++i, tail += kBreakerTailWords) {
                bool fits = tail[0] >= behind && tail[0] <= back;
                for (uint j = 0; fits && j < tail[0]; ++j) fits = tail[1 + j] == *(end - back + j);
                if (!fits) continue;
                found = true;
                behind = tail[0];
            }
            if (found) atomic_fetch_min_explicit(nearest, uint(thread_id) << 8 | behind, memory_order_relaxed);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint found = atomic_load_explicit(nearest, memory_order_relaxed);
        if (found != 0xFFFFFFFFu) return start + (found >> 8) - (found & 0xFF);
    }
    return window;
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
    device const uint* breakers [[buffer(8)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    uint2 slice_and_row [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]]) {
    threadgroup uint value[kPrepareTokens];
    threadgroup atomic_uint count[kPrepareTokens];
    threadgroup atomic_uint nearest[1];
    const uint first = slice_and_row.x * kPrepareTokens, n = min(uint(kPrepareTokens), p.vocab - first);
    const LogitRow row = logit_row(rows, logit_rows, p, slice_and_row.y);
    device const SamplerState& settings = states[row.slot];
    logits += ulong(slice_and_row.y) * p.vocab;
    scaled += ulong(slice_and_row.y) * p.vocab * 2;
    history += ulong(row.slot) * p.history_stride;
    biases += ulong(row.slot) * kMaxLogitBias;
    masks += ulong(slice_and_row.y) * ((p.vocab + 31) / 32);
    breakers += ulong(row.slot) * breaker_words(p.vocab);
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
        value[i] = bits;
    }

    // DRY: how long a repeat goes on with each token, + 1.
    const uint window = min(row.position, settings.dry_window), allowed = settings.dry_allowed;
    if (settings.dry_multiplier != 0.0f && window > allowed) {  // all threads
        device const uint* history_end = history + row.position;
        uint longest = settings.dry_longest;
        const bool has_breakers = settings.has_dry_breakers != 0;
        if (has_breakers) longest = min(longest, repeat_limit(breakers, history_end, window, longest, nearest, thread_id));
        for (uint i = thread_id; i < n; i += kSliceThreads) atomic_store_explicit(&count[i], 0, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint back = 1 + thread_id; back < window && longest >= allowed; back += kSliceThreads) {
            const uint at = *(history_end - back) - first, most = min(longest, window - back);
            if (at >= n || atomic_load_explicit(&count[at], memory_order_relaxed) > most) continue;
            uint same = 0;
            while (same < most && *(history_end - 1 - same) == *(history_end - 1 - same - back)) ++same;
            if (same >= allowed) atomic_fetch_max_explicit(&count[at], same + 1, memory_order_relaxed);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = thread_id; i < n; i += kSliceThreads) {
            const uint length = atomic_load_explicit(&count[i], memory_order_relaxed);
            const bool breaks = has_breakers && (breaker_set(breakers, first + i) & kIsBreaker) != 0;
            if (length == 0 || breaks || value[i] == kMinusInfinity) continue;
            const uint penalty = finite_bits(
                as_type<uint>(settings.dry_multiplier * power(settings.dry_base, length - 1 - allowed)));
            value[i] = finite_bits(as_type<uint>(as_type<float>(value[i]) - as_type<float>(penalty)));
        }
    }
    for (uint i = thread_id; i < n; i += kSliceThreads) scaled[first + i] = value[i];
}
