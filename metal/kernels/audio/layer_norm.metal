// (x - mean) / sqrt(variance + eps) * weight + bias
#include <metal_stdlib>
using namespace metal;

#include "audio.h"
#include "activation.h"
#include "reduce.h"

kernel void layer_norm_f32(
    device const float* x [[buffer(0)]],
    device const float* weight [[buffer(1)]],
    device const float* bias [[buffer(2)]],
    device float* out_f32 [[buffer(3)]],
    device half* out_f16 [[buffer(4)]],
    constant LayerNormParams& p [[buffer(8)]],
    uint row [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    // Two, since a thread may still read the first while another writes the second sum.
    threadgroup float sums[kRowThreads / 32], squares[kRowThreads / 32];
    device const float* in = x + ulong(row) * p.dim;
    float sum = 0.0f;
    for (uint i = thread_id; i < p.dim; i += kRowThreads) sum += in[i];
    const float mean = threadgroup_sum(sum, sums, lane, simd, kRowThreads / 32) / float(p.dim);
    // From the mean: the sum of squares alone would cancel where the mean is large.
    float square = 0.0f;
    for (uint i = thread_id; i < p.dim; i += kRowThreads) square += (in[i] - mean) * (in[i] - mean);
    const float variance = threadgroup_sum(square, squares, lane, simd, kRowThreads / 32) / float(p.dim);
    const float scale = precise::rsqrt(variance + p.eps);
    for (uint i = thread_id; i < p.dim; i += kRowThreads) {
        const float y = (in[i] - mean) * scale * weight[i] + (p.has_bias ? bias[i] : 0.0f);
        store_activation(y, p.formats, out_f32, out_f16, ulong(row) * p.dim + i);
    }
}
