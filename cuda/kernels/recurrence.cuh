// What advances a sequence's state row by row.
#pragma once

#include "tokens.cuh"

namespace akunu::cuda {

// s += sigmoid(gate)·(x - s). A thread has a channel of all rows and applies them one after the other, whatever the
// step: so are the bits. Warps are dealt to the blocks first.
AKUNU_DEVICE_CALL void recur(Block b) {
    constexpr u32 kAtOnce = 8;  // rows whose inputs are on their way together
    const auto& p = b.params<RecurParams>();
    const float *x = b.buffer<float>(0), *gate = b.buffer<float>(1);
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const Row* rows = b.buffer<Row>(5);
    const auto advance = [](float s, float input, float g) { return s + (input - s) / (1.0f + expf(-g)); };
    for (u32 u = warp_id() * b.blocks() + b.first(); u * 32 < p.dim; u += kWarps * b.blocks()) {
        const u32 i = u * 32 + lane_id();
        if (i >= p.dim) continue;
        float s = 0.0f;
        float* state = nullptr;  // of the sequence at hand; null where it has stopped
        u32 slot = ~0u, to = 0;
        for (u32 first = 0; first < p.rows; first += kAtOnce) {
            float inputs[kAtOnce], gates[kAtOnce];
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const u64 at = u64(smaller(first + j, p.rows - 1)) * p.dim + i;
                inputs[j] = x[at];
                gates[j] = gate[at];
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                if (first + j >= p.rows) continue;
                const Row row = rows[first + j];
                const u32 position = row.position + p.step;
                if (row.slot != slot) {
                    slot = row.slot;
                    const StateSpan span = b.buffer<StateSpan>(6)[slot];
                    const bool stopped =
                        b.buffer<SlotState>(7)[slot].stopped != 0;  // the rest of a chain is of other sequences
                    state = stopped ? nullptr : b.buffer<float>(2) + u64(slot) * p.state_words + i;
                    to = span.to + p.step;
                    u32 at = p.step ? position : span.from;
                    s = stopped || at == 0 ? 0.0f : *state;
                    for (; state && at < position; ++at) {
                        const float* stashed = state + u64(1 + at % kStashRows * 2) * p.dim;
                        s = advance(s, stashed[0], stashed[p.dim]);
                    }
                }
                if (!state) continue;
                s = advance(s, inputs[j], gates[j]);
                if (position + 1 == to) *state = s;
                if (position >= to) {
                    float* stashed = state + u64(1 + position % kStashRows * 2) * p.dim;
                    stashed[0] = inputs[j];
                    stashed[p.dim] = gates[j];
                }
                out.store(u64(first + j) * p.dim + i, s);
            }
        }
    }
}

}  // namespace akunu::cuda
