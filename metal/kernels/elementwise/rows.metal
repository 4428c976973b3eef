// What models of whole sequences, of sounds and of images do with rows, a thread an element: vectors of positions and kinds, the
// inputs of convolutions, one row of all rows of a sequence, and rows that an encoder made.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "core/params.h"

// hidden += positions[position] + kinds[kind]
kernel void embed_position(device const float* positions [[buffer(0)]],
                           device const float* kinds [[buffer(1)]],
                           device float* hidden [[buffer(2)]],
                           device const Row* rows [[buffer(3)]],
                           device const uint* row_kinds [[buffer(4)]],
                           constant EmbedPositionParams& p [[buffer(kParamsIndex)]],
                           uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim) return;
    float x = hidden[ulong(at.y) * p.dim + at.x];
    if (p.positions) x += positions[ulong(min(rows[at.y].position + p.step, p.positions - 1)) * p.dim + at.x];
    if (p.kinds) x += kinds[ulong(min(row_kinds[at.y], p.kinds - 1)) * p.dim + at.x];
    hidden[ulong(at.y) * p.dim + at.x] = x;
}

// Rows that an encoder made, in the place of those of tokens, or added to them.
kernel void insert_rows(device float* hidden [[buffer(0)]],
                        device const float* encoded [[buffer(1)]],
                        device const uint* sources [[buffer(2)]],
                        constant InsertRowsParams& p [[buffer(kParamsIndex)]],
                        uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim || p.step != 0 || sources[at.y] == kNoSource) return;
    const float value = encoded[ulong(sources[at.y]) * p.width + p.offset + at.x];
    device float& h = hidden[ulong(at.y) * p.dim + at.x];
    h = p.accumulate ? h + value : value;
}

// y = min(max(x·scale + bias, low), high)
kernel void affine(device const float* x [[buffer(0)]],
                   device const float* scale [[buffer(1)]],
                   device const float* bias [[buffer(2)]],
                   device float* y [[buffer(3)]],
                   constant AffineParams& p [[buffer(kParamsIndex)]],
                   uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim) return;
    float value = x[ulong(at.y) * p.dim + at.x];
    if (p.has_scale) value *= scale[at.x];
    if (p.has_bias) value += bias[at.x];
    y[ulong(at.y) * p.dim + at.x] = min(max(value, p.low), p.high);
}

// out[row][tap] = x[row·stride + tap - (taps - 1) / 2], zeros where that is outside.
kernel void unfold(device const float* x [[buffer(0)]],
                   device float* out_f32 [[buffer(1)]],
                   device half* out_f16 [[buffer(2)]],
                   constant UnfoldParams& p [[buffer(kParamsIndex)]],
                   uint2 at [[thread_position_in_grid]]) {
    const uint columns = p.taps * p.channels;
    if (at.x >= columns) return;
    const uint from = at.y * p.stride + at.x / p.channels - (p.taps - 1) / 2;  // before the first it wraps, and is outside
    const float value = from < p.length ? x[ulong(from) * p.channels + at.x % p.channels] : 0.0f;
    store_activation(value, p.formats, out_f32, out_f16, ulong(at.y) * columns + at.x);
}

// The mean, the first or the last of a sequence's rows, whose last one `last_rows` names.
kernel void pool(device const float* x [[buffer(0)]],
                 device const Row* rows [[buffer(1)]],
                 device const uint* last_rows [[buffer(2)]],
                 device float* out [[buffer(3)]],
                 constant PoolParams& p [[buffer(kParamsIndex)]],
                 uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim) return;
    const uint last = last_rows[at.y], n = rows[last].position + 1, first = last + 1 - n;
    float y = 0.0f;
    if (p.pooling == kPoolMean) {
        for (uint r = first; r <= last; ++r) y += x[ulong(r) * p.dim + at.x];
        y /= float(n);
    } else {
        y = x[ulong(p.pooling == kPoolFirst ? first : last) * p.dim + at.x];
    }
    out[ulong(at.y) * p.dim + at.x] = y;
}
