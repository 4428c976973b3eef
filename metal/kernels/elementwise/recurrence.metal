// What advances a sequence's state row by row.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "core/params.h"
#include "core/step_state.h"

// s += sigmoid(gate)·(x - s)
static inline float advance(float s, float x, float gate) { return fma(sigmoid(gate), x - s, s); }

// A thread has a channel of all rows and applies them one after the other, whatever the step: so are the bits.
kernel void recur(
    device const float* x [[buffer(0)]],
    device const float* gate [[buffer(1)]],
    device float* records [[buffer(2)]],  // of a slot: the state, and x and the gate of rows that may be refused
    device float* out_f32 [[buffer(3)]],
    device half* out_f16 [[buffer(4)]],
    device const Row* rows [[buffer(5)]],
    device const StateSpan* spans [[buffer(6)]],
    device const SlotState* slots [[buffer(7)]],
    constant RecurParams& p [[buffer(kParamsIndex)]],
    uint channel [[thread_position_in_grid]]) {
    if (channel >= p.dim) return;
    x += channel;
    gate += channel;
    float s = 0.0f;
    device float* state = records;  // of the sequence at hand
    uint slot = ~0u, to = 0;
    bool stopped = false;
    for (uint r = 0; r < p.rows; ++r) {
        const uint position = rows[r].position + p.step;
        const ulong at = ulong(r) * p.dim;
        if (rows[r].slot != slot) {
            slot = rows[r].slot;
            stopped = slots[slot].stopped != 0;
            state = records + ulong(slot) * p.state_words + channel;
            to = spans[slot].to + p.step;
            uint i = p.step != 0 ? position : spans[slot].from;
            s = i != 0 ? *state : 0.0f;
            for (; i < position; ++i) {
                device const float* stashed = state + (1 + i % kStashRows * 2) * p.dim;
                s = advance(s, stashed[0], stashed[p.dim]);
            }
        }
        if (stopped) continue;  // the rest of a chain is of other sequences
        s = advance(s, x[at], gate[at]);
        if (position + 1 == to) *state = s;
        if (position >= to) {
            device float* stashed = state + (1 + position % kStashRows * 2) * p.dim;
            stashed[0] = x[at];
            stashed[p.dim] = gate[at];
        }
        store_activation(s, p.formats, out_f32, out_f16, at + channel);
    }
}
