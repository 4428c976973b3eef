// RMS norm: x / sqrt(mean(x²) + eps) · weight, and layer norm: (x - mean) / sqrt(variance + eps) · weight + bias. One
// threadgroup per row.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "core/params.h"
#include "reduce.h"

// A thread of the threadgroup that has a row.
struct RowThread {
    uint tid, threads, lane, simdgroup, n_simdgroups;
};

static inline float element_sum(float x) { return x; }
static inline float element_sum(float4 x) { return dot(x, float4(1.0f)); }
static inline float square_sum(float x) { return x * x; }
static inline float square_sum(float4 x) { return dot(x, x); }

// 1 / sqrt(mean(x²) + eps) of a row of `n` elements V.
template <typename V>
static inline float rms_scale(device const V* x, uint n, uint dim, float eps, threadgroup float* partials, RowThread at) {
    float sum = 0.0f;
    for (uint i = at.tid; i < n; i += at.threads) sum += square_sum(x[i]);
    sum = threadgroup_sum(sum, partials, at.lane, at.simdgroup, at.n_simdgroups);
    return precise::rsqrt(sum / float(dim) + eps);
}

// Row `row` of the output, of row `from`, as elements V: float4, or float where a row's length is no multiple of four.
template <typename V>
static inline void norm_row(device const V* x, device const V* weight, device float* out_f32, device half* out_f16,
                            constant NormParams& p, uint from, uint row, threadgroup float* partials, RowThread at) {
    const uint width = sizeof(V) / sizeof(float), n = p.dim / width;
    x += ulong(from) * n;
    const float scale = rms_scale(x, n, p.dim, p.eps, partials, at);
    const ulong base = ulong(row) * p.dim;
    for (uint i = at.tid; i < n; i += at.threads) {
        store_activation(x[i] * scale * weight[i], p.formats, out_f32, out_f16, base + i * width);
    }
}

template <typename V>
static inline void norm_add_row(device const V* x, device const V* weight, device V* h, constant NormParams& p, uint row,
                                threadgroup float* partials, RowThread at) {
    const uint n = p.dim / (sizeof(V) / sizeof(float));
    x += ulong(row) * n;
    h += ulong(row) * n;
    const float scale = rms_scale(x, n, p.dim, p.eps, partials, at);
    for (uint i = at.tid; i < n; i += at.threads) h[i] = (h[i] + x[i] * scale * weight[i]) * p.sum_scale;
}

// The output may be x.
template <typename V>
static inline void layer_norm_row(device const V* x, device const V* weight, device const V* bias, device float* out_f32,
                                  device half* out_f16, constant LayerNormParams& p, uint from, uint row,
                                  threadgroup float* sums, threadgroup float* squares, RowThread at) {
    const uint width = sizeof(V) / sizeof(float), n = p.dim / width;
    x += ulong(from) * n;
    float sum = 0.0f;
    for (uint i = at.tid; i < n; i += at.threads) sum += element_sum(x[i]);
    const float mean = threadgroup_sum(sum, sums, at.lane, at.simdgroup, at.n_simdgroups) / float(p.dim);
    // From the mean: the sum of squares alone would cancel where the mean is large.
    float square = 0.0f;
    for (uint i = at.tid; i < n; i += at.threads) square += square_sum(x[i] - mean);
    square = threadgroup_sum(square, squares, at.lane, at.simdgroup, at.n_simdgroups);
    const float scale = precise::rsqrt(square / float(p.dim) + p.eps);
    const ulong base = ulong(row) * p.dim;
    for (uint i = at.tid; i < n; i += at.threads) {
        V y = (x[i] - mean) * scale * weight[i];
        if (p.has_bias) y += bias[i];
        store_activation(y, p.formats, out_f32, out_f16, base + i * width);
    }
}

kernel void norm(device const float* x [[buffer(0)]],
                 device const float* weight [[buffer(1)]],
                 device float* out_f32 [[buffer(2)]],
                 device half* out_f16 [[buffer(3)]],
                 device const uint* gathered [[buffer(4)]],
                 constant NormParams& p [[buffer(kParamsIndex)]],
                 uint row [[threadgroup_position_in_grid]],
                 uint tid [[thread_position_in_threadgroup]],
                 uint threads [[threads_per_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]],
                 uint simdgroup [[simdgroup_index_in_threadgroup]],
                 uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float partials[32];
    const RowThread at = {tid, threads, lane, simdgroup, n_simdgroups};
    const uint from = p.gather != 0 ? gathered[row] : row;
    if (p.dim % 4 == 0) {
        norm_row((device const float4*)x, (device const float4*)weight, out_f32, out_f16, p, from, row, partials, at);
    } else {
        norm_row(x, weight, out_f32, out_f16, p, from, row, partials, at);
    }
}

// h = (h + norm(x))·sum_scale
kernel void norm_add(device const float* x [[buffer(0)]],
                     device const float* weight [[buffer(1)]],
                     device float* h [[buffer(2)]],
                     constant NormParams& p [[buffer(kParamsIndex)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint tid [[thread_position_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float partials[32];
    const RowThread at = {tid, threads, lane, simdgroup, n_simdgroups};
    if (p.dim % 4 == 0) {
        norm_add_row((device const float4*)x, (device const float4*)weight, (device float4*)h, p, row, partials, at);
    } else {
        norm_add_row(x, weight, h, p, row, partials, at);
    }
}

kernel void layer_norm(device const float* x [[buffer(0)]],
                       device const float* weight [[buffer(1)]],
                       device const float* bias [[buffer(2)]],
                       device float* out_f32 [[buffer(3)]],
                       device half* out_f16 [[buffer(4)]],
                       device const uint* gathered [[buffer(5)]],
                       constant LayerNormParams& p [[buffer(kParamsIndex)]],
                       uint row [[threadgroup_position_in_grid]],
                       uint tid [[thread_position_in_threadgroup]],
                       uint threads [[threads_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    // Two, since a thread may still read the first while another writes the second sum.
    threadgroup float sums[32], squares[32];
    const RowThread at = {tid, threads, lane, simdgroup, n_simdgroups};
    const uint from = p.gather != 0 ? gathered[row] : row;
    if (p.dim % 4 == 0) {
        layer_norm_row((device const float4*)x, (device const float4*)weight, (device const float4*)bias, out_f32, out_f16, p,
                       from, row, sums, squares, at);
    } else {
        layer_norm_row(x, weight, bias, out_f32, out_f16, p, from, row, sums, squares, at);
    }
}
