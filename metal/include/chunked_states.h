// States that advance in chunks of kChunkRows rows: where their records are, and what is behind a chunk
// (docs/architecture.md).
#pragma once

#include <metal_stdlib>

#include "core/params.h"

// Decays below this count as none: their products would be subnormal.
static constant constexpr float kNoDecay = 1e-30f;

// A sequence's record, and where its parts are.
struct ChunkedState {
    device float* record;
    DeltaRecord at;
    uint key_dim;
    device float* state(uint head) const { return record + ulong(head) * key_dim * at.width; }
    device float* written(uint head, uint chunk) const {
        return record + at.written + ulong(2 * head + chunk % 2) * kChunkRows * at.width;
    }
    device float* decays(uint head, uint chunk) const {
        return record + at.decays + (2 * head + chunk % 2) * kChunkRows;
    }
    device float* keys(uint key_head, uint chunk) const {
        return record + at.keys + ulong(2 * key_head + chunk % 2) * key_dim * kChunkRows;
    }
};

// The product of decays since row j of a chunk up to row `row`, and in `all` that of all up to it.
static inline float decays_between(device const float* decay, uint row, uint j, thread float& all) {
    float between = 0.0f;
    all = 1.0f;
    for (uint i = 0; i <= row; ++i) {
        between *= decay[i];
        if (between < kNoDecay) between = 0.0f;
        if (i == j) between = 1.0f;
        all *= decay[i];
        if (all < kNoDecay) all = 0.0f;
    }
    return between;
}

// An element of a state behind a chunk, from that before it; `between` are the decays since each of its rows.
static inline float state_behind(float before, device const float* keys, device const float* written, uint width,
                                 threadgroup const float* between, float all) {
    float sum = all * before;
    for (uint j = 0; j < kChunkRows; ++j) sum = metal::fma(keys[j] * between[j], written[ulong(j) * width], sum);
    return sum;
}

// By a threadgroup: the state of a head behind a chunk, from that before it.
static inline void end_chunk(thread const ChunkedState& s, uint head, uint key_head, uint chunk,
                             threadgroup float* between, threadgroup float& all_decays, uint tid, uint threads) {
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup | metal::mem_flags::mem_device);
    if (tid < kChunkRows) {
        float all;
        between[tid] = decays_between(s.decays(head, chunk), kChunkRows - 1, tid, all);
        if (tid == 0) all_decays = all;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    const uint width = s.at.width;
    device float* state = s.state(head);
    device const float* keys = s.keys(key_head, chunk);
    device const float* written = s.written(head, chunk);
    for (uint i = tid; i < s.key_dim * width; i += threads) {
        const float before = chunk != 0 ? state[i] : 0.0f;
        state[i] = state_behind(before, keys + i / width * kChunkRows, written + i % width, width, between, all_decays);
    }
}
