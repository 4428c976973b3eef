// Gated delta nets: the convolution along a sequence's rows, and the gated delta rule in chunks of kChunkRows rows that are
// counted from a sequence's position 0 (docs/architecture.md).
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "chunked_states.h"
#include "core/params.h"
#include "core/step_state.h"
#include "delta_sizes.h"
#include "reduce.h"

// A thread has a channel of all rows, one after the other: what it reads of a record it reads before it writes there.
kernel void short_conv(
    device const float* x [[buffer(0)]],        // [rows][channels], or where gated b, c and v [rows][3][channels]
    device const float* weights [[buffer(1)]],  // [taps][channels], then the bias
    device float* records [[buffer(2)]],
    device float* y [[buffer(3)]],
    device const Row* rows [[buffer(4)]],
    device const SlotState* slots [[buffer(5)]],
    constant ShortConvParams& p [[buffer(kParamsIndex)]],
    uint channel [[thread_position_in_grid]]) {
    if (channel >= p.channels) return;
    const uint kept = p.taps - 1 + kStashRows;
    float past[kMostTaps];  // the newest last
    uint slot = ~0u;
    bool stopped = false;
    device float* record = records;
    for (uint r = 0; r < p.rows; ++r) {
        const uint position = rows[r].position + p.step;
        if (rows[r].slot != slot) {
            slot = rows[r].slot;
            stopped = slots[slot].stopped != 0;
            record = records + ulong(slot) * p.state_words + channel;
            for (uint back = 1; back < kMostTaps; ++back) {
                const bool there = back < p.taps && back <= position;
                past[kMostTaps - back] = there ? record[ulong((position - back) % kept) * p.channels] : 0.0f;
            }
        }
        if (stopped) continue;  // the rest of a chain is of other sequences
        device const float* row = x + ulong(r) * (p.gated != 0 ? 3 : 1) * p.channels + channel;
        const float input = p.gated != 0 ? row[0] * row[2 * p.channels] : row[0];
        for (uint i = 0; i + 1 < kMostTaps; ++i) past[i] = past[i + 1];
        past[kMostTaps - 1] = input;
        float sum = p.has_bias != 0 ? weights[ulong(p.taps) * p.channels + channel] : 0.0f;
        for (uint t = 0; t < p.taps; ++t) {
            sum = fma(weights[ulong(t) * p.channels + channel], past[kMostTaps - p.taps + t], sum);
        }
        const float out = p.activation != 0 ? activate(p.activation - 1, sum) : sum;
        y[ulong(r) * p.channels + channel] = p.gated != 0 ? row[p.channels] * out : out;
        // Of the input that is overwritten here, the rows from now on need no more.
        record[ulong(position % kept) * p.channels] = input;
    }
}

// What the threads of a key head share.
struct DeltaShared {
    float key[kMostKeys], query[kMostKeys], out[kMostValues];
    float for_u[kChunkRows], for_o[kChunkRows], between[kChunkRows];
    float dots[2][kChunkRows];
    float all, partials[kDeltaThreads / 32];
};

// A threadgroup takes a key head with its value heads, of the sequence whose first row is the grid's; rows one after the
// other, so that a sequence's bits are the same whatever the step. A thread has some of a head's values.
//
// Of rows that may be refused the state behind a chunk is kept nowhere: those of the next chunk work out its elements
// where they need them.
kernel void delta_rule(
    device const float* qkv [[buffer(0)]],
    device const float* gates [[buffer(1)]],
    device const float* z [[buffer(2)]],
    device const float* constants [[buffer(3)]],
    device float* records [[buffer(4)]],
    device float* out_f32 [[buffer(5)]],
    device half* out_f16 [[buffer(6)]],
    device const Row* rows [[buffer(7)]],
    device const StateSpan* spans [[buffer(8)]],
    device const SlotState* slots [[buffer(9)]],
    constant DeltaRuleParams& p [[buffer(kParamsIndex)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup DeltaShared shared;
    const uint key_head = group.x, first_row = group.y, slot = rows[first_row].slot;
    if (first_row != 0 && rows[first_row - 1].slot == slot) return;
    if (slots[slot].stopped != 0) return;  // the rest of a chain is of other sequences
    const uint heads = p.value_heads / p.key_heads, dim = p.key_dim, keys_all = p.key_heads * dim;
    const uint channels = 2 * keys_all + p.value_heads * p.value_dim;
    const uint position = rows[first_row].position + p.step;
    const uint from = p.step != 0 ? position : spans[slot].from, to = spans[slot].to + p.step;
    const ChunkedState s = {records + ulong(slot) * p.state_words,
                          delta_record(p.key_heads, p.value_heads, dim, p.value_dim), dim};
    const uint width = s.at.width;

    for (uint done = from / kChunkRows, r = first_row;;) {
        // The chunk of the next row; there is none behind the last one, whose chunk may have ended.
        const bool more = r < p.rows && rows[r].slot == slot;
        const uint row_at = position + (r - first_row), chunk = row_at / kChunkRows, row = row_at % kChunkRows;
        for (; done < chunk && (done + 1) * kChunkRows <= to; ++done) {
            for (uint h = 0; h < heads; ++h) {
                const uint head = p.grouped != 0 ? key_head * heads + h : h * p.key_heads + key_head;
                end_chunk(s, head, key_head, done, shared.between, shared.all, tid, kDeltaThreads);
            }
        }
        if (!more) return;
        // Its key and query, each of length 1 (times `scale`), and their products with the chunk's keys.
        device const float* query = qkv + ulong(r) * channels + key_head * dim;
        device const float* key = query + keys_all;
        device float* kept_keys = s.keys(key_head, chunk);
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        if (simdgroup < 2) {
            device const float* v = simdgroup == 0 ? key : query;
            float squares = 0.0f;
            for (uint d = lane; d < dim; d += 32) squares = fma(v[d], v[d], squares);
            const float factor =
                (simdgroup == 0 ? 1.0f : p.scale) / precise::sqrt(simd_sum(squares) + p.l2_eps);
            for (uint d = lane; d < dim; d += 32) {
                if (simdgroup == 0) {
                    shared.key[d] = v[d] * factor;
                    kept_keys[d * kChunkRows + row] = v[d] * factor;
                } else {
                    shared.query[d] = v[d] * factor;
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        if (tid < 2 * kChunkRows) {
            const uint j = tid % kChunkRows, which = tid / kChunkRows;
            float sum = 0.0f;
            for (uint d = 0; d < dim && j <= row; ++d) {
                sum = fma(which == 0 ? shared.key[d] : shared.query[d], kept_keys[d * kChunkRows + j], sum);
            }
            shared.dots[which][j] = sum;
        }
        for (uint h = 0; h < heads; ++h) {
            const uint head = p.grouped != 0 ? key_head * heads + h : h * p.key_heads + key_head;
            device const float* gate = gates + ulong(r) * 2 * p.value_heads + head;
            device float* decays = s.decays(head, chunk);
            if (tid == 0) {
                const float x = gate[p.value_heads] + constants[p.value_heads + head];
                const float softplus = max(x, 0.0f) + precise::log(1.0f + precise::exp(-fabs(x)));
                decays[row] = precise::exp(constants[head] * softplus);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
            const bool pending = done < chunk;  // the state behind the chunk before is kept nowhere
            if (tid < kChunkRows) {
                float all;
                const float between = decays_between(decays, row, tid, all);
                shared.for_u[tid] = tid < row ? -(shared.dots[0][tid] * between) : 0.0f;
                shared.for_o[tid] = tid <= row ? shared.dots[1][tid] * between : 0.0f;
                if (tid == 0) shared.all = all;
                float unused;
                if (pending) {
                    shared.between[tid] = decays_between(s.decays(head, done), kChunkRows - 1, tid, unused);
                    if (tid == 0) shared.partials[0] = unused;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            const float all = shared.all, all_before = shared.partials[0], beta = sigmoid(gate[0]);
            threadgroup_barrier(mem_flags::mem_threadgroup);  // `partials` is used again
            device const float* state = s.state(head);
            device const float* keys_before = s.keys(key_head, done);
            device const float* written_before = s.written(head, done);
            device float* written = s.written(head, chunk);
            float squares = 0.0f;
            for (uint c = tid; c < width; c += kDeltaThreads) {
                float u = 0.0f, o = 0.0f;
                for (uint d = 0; d < dim && chunk != 0; ++d) {
                    float at = done != 0 ? state[d * width + c] : 0.0f;
                    if (pending) {
                        at = state_behind(at, keys_before + d * kChunkRows, written_before + c, width, shared.between,
                                          all_before);
                    }
                    u = fma(shared.key[d], at, u);
                    o = fma(shared.query[d], at, o);
                }
                const ulong value_at = ulong(r) * channels + 2 * keys_all + head * p.value_dim + c;
                const float v = c < p.value_dim ? qkv[value_at] : 0.0f;
                u = fma(-all, u, v);
                o = all * o;
                for (uint j = 0; j < row; ++j) {
                    const float w = written[ulong(j) * width + c];
                    u = fma(shared.for_u[j], w, u);
                    o = fma(shared.for_o[j], w, o);
                }
                const float w = beta * u;
                written[ulong(row) * width + c] = w;
                o = fma(shared.for_o[row], w, o);
                if (c >= p.value_dim) continue;
                shared.out[c] = o;
                squares = fma(o, o, squares);
            }
            squares = threadgroup_sum(squares, shared.partials, lane, simdgroup, kDeltaThreads / 32);
            const float factor = precise::rsqrt(squares / float(p.value_dim) + p.norm_eps);
            for (uint c = tid; c < p.value_dim; c += kDeltaThreads) {
                const ulong at = (ulong(r) * p.value_heads + head) * p.value_dim + c;
                const float v = shared.out[c] * factor * constants[2 * p.value_heads + c] * silu(z[at]);
                store_activation(v, p.formats, out_f32, out_f16, at);
            }
        }
        ++r;
    }
}
