// Mamba-2: the scan in chunks of kChunkRows rows that are counted from a sequence's position 0 (docs/architecture.md), and
// the norm behind it.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "chunked_states.h"
#include "core/params.h"
#include "core/step_state.h"
#include "delta_sizes.h"
#include "reduce.h"

// What the threads of a block of heads share.
struct SsmShared {
    float c[kMostKeys];
    float dots[kChunkRows], factors[kChunkRows], between[kChunkRows];
    float all, all_before, step;
};

// A threadgroup takes a block of heads, which share B and C, of the sequence whose first row is the grid's; rows one after
// the other, so that a sequence's bits are the same whatever the step. A thread has some of a head's values.
//
// Of rows that may be refused the state behind a chunk is kept nowhere: those of the next chunk work out its elements
// where they need them.
kernel void ssm_scan(
    device const float* xbc [[buffer(0)]],
    device const float* dt [[buffer(1)]],
    device const float* constants [[buffer(2)]],
    device float* records [[buffer(3)]],
    device float* y [[buffer(4)]],
    device const Row* rows [[buffer(5)]],
    device const StateSpan* spans [[buffer(6)]],
    device const SlotState* slots [[buffer(7)]],
    constant SsmScanParams& p [[buffer(kParamsIndex)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
    threadgroup SsmShared shared;
    const uint block = group.x, first_row = group.y, slot = rows[first_row].slot;
    if (first_row != 0 && rows[first_row - 1].slot == slot) return;
    if (slots[slot].stopped != 0) return;  // the rest of a chain is of other sequences
    const uint heads = p.heads / p.blocks, dim = p.state_dim, values = p.heads * p.head_dim;
    const uint keys_all = p.groups * dim, channels = values + 2 * keys_all;
    const uint key_at = values + block / (p.blocks / p.groups) * dim;
    const uint position = rows[first_row].position + p.step;
    const uint from = p.step != 0 ? position : spans[slot].from, to = spans[slot].to + p.step;
    const ChunkedState s = {records + ulong(slot) * p.state_words,
                            delta_record(p.blocks, p.heads, dim, p.head_dim), dim};
    const uint width = s.at.width;

    for (uint done = from / kChunkRows, r = first_row;;) {
        // The chunk of the next row; there is none behind the last one, whose chunk may have ended.
        const bool more = r < p.rows && rows[r].slot == slot;
        const uint row_at = position + (r - first_row), chunk = row_at / kChunkRows, row = row_at % kChunkRows;
        for (; done < chunk && (done + 1) * kChunkRows <= to; ++done) {
            for (uint h = 0; h < heads; ++h) {
                end_chunk(s, block * heads + h, block, done, shared.between, shared.all, tid, kDeltaThreads);
            }
        }
        if (!more) return;
        // Its B, and the products of its C with the chunk's.
        device const float* key = xbc + ulong(r) * channels + key_at;
        device float* kept = s.keys(block, chunk);
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        for (uint d = tid; d < dim; d += kDeltaThreads) {
            shared.c[d] = key[keys_all + d];
            kept[d * kChunkRows + row] = key[d];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        if (tid < kChunkRows) {
            float sum = 0.0f;
            for (uint d = 0; d < dim && tid <= row; ++d) sum = fma(shared.c[d], kept[d * kChunkRows + tid], sum);
            shared.dots[tid] = sum;
        }
        const bool pending = done < chunk;  // the state behind the chunk before is kept nowhere
        for (uint h = 0; h < heads; ++h) {
            const uint head = block * heads + h;
            device float* decays = s.decays(head, chunk);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (tid == 0) {
                const float x = dt[ulong(r) * p.heads + head] + constants[p.heads + head];
                shared.step = max(x, 0.0f) + precise::log(1.0f + precise::exp(-fabs(x)));
                decays[row] = precise::exp(constants[head] * shared.step);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
            if (tid < kChunkRows) {
                float all;
                const float between = decays_between(decays, row, tid, all);
                shared.factors[tid] = tid <= row ? shared.dots[tid] * between : 0.0f;
                if (tid == 0) shared.all = all;
                if (pending) {
                    shared.between[tid] = decays_between(s.decays(head, done), kChunkRows - 1, tid, all);
                    if (tid == 0) shared.all_before = all;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            device const float* state = s.state(head);
            device const float* keys_before = s.keys(block, done);
            device const float* written_before = s.written(head, done);
            device float* written = s.written(head, chunk);
            for (uint v = tid; v < width; v += kDeltaThreads) {
                float o = 0.0f;
                for (uint d = 0; d < dim && chunk != 0; ++d) {
                    float at = done != 0 ? state[d * width + v] : 0.0f;
                    if (pending) {
                        at = state_behind(at, keys_before + d * kChunkRows, written_before + v, width, shared.between,
                                          shared.all_before);
                    }
                    o = fma(shared.c[d], at, o);
                }
                o = shared.all * o;
                for (uint j = 0; j < row; ++j) o = fma(shared.factors[j], written[ulong(j) * width + v], o);
                const float x = v < p.head_dim ? xbc[ulong(r) * channels + head * p.head_dim + v] : 0.0f;
                const float w = shared.step * x;
                written[ulong(row) * width + v] = w;
                o = fma(shared.factors[row], w, o);
                if (v >= p.head_dim) continue;
                y[ulong(r) * values + head * p.head_dim + v] = fma(constants[2 * p.heads + head], x, o);
            }
        }
        ++r;
    }
}

// rms_norm(x·silu(gate))·weight over groups; a threadgroup takes a group of a row.
kernel void gated_norm(
    device const float* x [[buffer(0)]],
    device const float* gate [[buffer(1)]],
    device const float* weight [[buffer(2)]],
    device float* out_f32 [[buffer(3)]],
    device half* out_f16 [[buffer(4)]],
    constant GatedNormParams& p [[buffer(kParamsIndex)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float partials[kDeltaThreads / 32];
    const ulong first = (ulong(group.y) * p.groups + group.x) * p.dim;
    float squares = 0.0f;
    for (uint i = tid; i < p.dim; i += kDeltaThreads) {
        const float v = x[first + i] * silu(gate[first + i]);
        squares = fma(v, v, squares);
    }
    squares = threadgroup_sum(squares, partials, lane, simdgroup, kDeltaThreads / 32);
    const float scale = precise::rsqrt(squares / float(p.dim) + p.eps);
    for (uint i = tid; i < p.dim; i += kDeltaThreads) {
        const float v = x[first + i] * silu(gate[first + i]);
        store_activation(v * scale * weight[group.x * p.dim + i], p.formats, out_f32, out_f16, first + i);
    }
}
