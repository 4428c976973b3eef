// Writes the sampled tokens into the histories. Where a sequence has several rows, those after the first are drafts: a row
// counts as long as what was sampled for the row before it is the token that it was run for.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "sampling.h"
#include "tokens.h"

static inline bool is_end(device const SamplerState& settings, uint id) {
    for (uint i = 0; i < settings.n_end_ids; ++i) {
        if (settings.end_ids[i] == id) return true;
    }
    return false;
}

// One threadgroup; a thread has every kAcceptThreads-th row, and takes the sequences that begin there.
kernel void accept(
    device const uint* sampled [[buffer(0)]],
    device uint* history [[buffer(1)]],
    device const SamplerState* states [[buffer(2)]],
    device SlotState* slots [[buffer(3)]],
    device Control& control [[buffer(4)]],
    device const Row* rows [[buffer(5)]],
    device const uint* logit_rows [[buffer(6)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    uint thread_id [[thread_index_in_threadgroup]]) {
    for (uint first = thread_id; first < p.rows; first += kAcceptThreads) {
        const uint slot = rows[logit_rows[first]].slot;
        if (first > 0 && rows[logit_rows[first - 1]].slot == slot) continue;
        device SlotState& state = slots[slot];
        uint stopped = state.stopped, produced = state.produced;
        if (stopped != 0) continue;
        bool drafts_hold = true;
        for (uint i = first; i < p.rows && drafts_hold && stopped == 0; ++i) {
            const LogitRow row = logit_row(rows, logit_rows, p, i);
            if (row.slot != slot) break;
            device uint& next = history[ulong(slot) * p.history_stride + row.position];
            drafts_hold = next == sampled[i];
            next = sampled[i];
            produced += 1;
            if (is_end(states[slot], sampled[i])) {
                stopped = kStoppedAtEnd;
            } else if (produced == state.limit) {
                stopped = kStoppedAtLimit;
            }
        }
        state.produced = produced;
        if (stopped == 0) continue;
        state.stopped = stopped;
        // Whoever stops last ends the chain.
        device atomic_uint* active = (device atomic_uint*)&control.active;
        if (atomic_fetch_sub_explicit(active, 1, memory_order_relaxed) == 1) control.stop = 1;
    }
}

static inline void move_axes(device uint* positions, constant AdvanceParams& p, uint row, uint by) {
    if (!p.has_axes) return;
    for (uint axis = 0; axis < kPositionAxes; ++axis) positions[row * kPositionAxes + axis] += by;
}

// Moves the rows on to what follows the tokens that the step gave; see ChainRecord. Those of a sequence that ended then
// stand behind its last token, and stay. One threadgroup; a thread has every kAcceptThreads-th sequence.
kernel void advance(
    device Row* rows [[buffer(0)]],
    device uint* positions [[buffer(1)]],
    device const SlotState* slots [[buffer(2)]],
    device ChainRecord* records [[buffer(3)]],
    device Row* draft_rows [[buffer(4)]],
    device uint* draft_positions [[buffer(5)]],
    device uint* draft_states [[buffer(6)]],
    device Row* sampled_rows [[buffer(7)]],
    device SlotState* draft_slots [[buffer(8)]],
    device StateSpan* spans [[buffer(9)]],
    constant AdvanceParams& p [[buffer(kParamsIndex)]],
    uint thread_id [[thread_index_in_threadgroup]]) {
    uint each = 1;
    while (each < p.rows && rows[each].slot == rows[0].slot) ++each;
    for (uint i = thread_id; i * each < p.rows; i += kAcceptThreads) {
        const uint slot = rows[i * each].slot;
        device ChainRecord& record = records[slot];
        const uint next = record.start + slots[slot].produced;
        const uint tokens = next - rows[i * each].position;
        draft_slots[slot].stopped = 0;
        draft_slots[slot].produced = 0;
        draft_slots[slot].limit = 0;
        if (tokens == 0) continue;  // it had ended before
        record.tokens[record.steps] = tokens;
        record.steps += 1;
        for (uint row = i * each; row < (i + 1) * each; ++row) {
            rows[row].position += tokens;
            move_axes(positions, p, row, tokens);
        }
        draft_rows[i].position += tokens;
        move_axes(draft_positions, p, i, tokens);
        draft_states[i] = i * each + tokens - 1;
        sampled_rows[i].position += tokens;
        if (!p.has_spans) continue;
        spans[slot].from = spans[slot].to;
        spans[slot].to = next + 1;
    }
}
