// Several residual streams (AltUp), a thread an element; sums of rows, and gates of which most become 0, a threadgroup a row.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "core/params.h"
#include "reduce.h"

// y (+)= scale·x, or scale·x·rms(like) / rms(x)
kernel void add_rows(device const float* x [[buffer(0)]],
                     device const float* like [[buffer(1)]],
                     device float* y [[buffer(2)]],
                     constant AddRowsParams& p [[buffer(kParamsIndex)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint tid [[thread_position_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float of_x[32], of_like[32];
    x += ulong(row) * p.dim;
    y += ulong(row) * p.dim;
    float scale = p.scale;
    if (p.matched) {
        like += ulong(row) * p.dim;
        float found = 0.0f, wanted = 0.0f;
        for (uint i = tid; i < p.dim; i += threads) {
            found += x[i] * x[i];
            wanted += like[i] * like[i];
        }
        found = threadgroup_sum(found, of_x, lane, simdgroup, n_simdgroups) / float(p.dim);
        wanted = threadgroup_sum(wanted, of_like, lane, simdgroup, n_simdgroups) / float(p.dim);
        scale *= precise::sqrt(wanted / max(found, p.floor));
    }
    for (uint i = tid; i < p.dim; i += threads) y[i] = p.accumulate ? y[i] + x[i] * scale : x[i] * scale;
}

// A model has one GPU: what its weights make is the whole.
kernel void all_reduce(device const float* x [[buffer(0)]],
                       device float* y [[buffer(1)]],
                       constant AllReduceParams& p [[buffer(kParamsIndex)]],
                       uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim) return;
    device float& out = y[ulong(at.y) * p.y_stride + at.x];
    const float in = x[ulong(at.y) * p.x_stride + at.x];
    out = p.accumulate ? out + in : in;
}

kernel void mix_streams(device float* streams [[buffer(0)]],
                        device float* hidden [[buffer(1)]],
                        device const float* gates [[buffer(2)]],
                        device const float* weights [[buffer(3)]],
                        device const float* scales [[buffer(4)]],
                        constant MixStreamsParams& p [[buffer(kParamsIndex)]],
                        uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.dim) return;
    const uint n = min(p.streams, uint(kMostStreams));
    streams += ulong(at.y) * p.dim + at.x;
    device float& h = hidden[ulong(at.y) * p.dim + at.x];
    float gate[kMostStreams], was[kMostStreams];
    for (uint k = 0; k < n; ++k) {
        gate[k] = activate(kActTanh, gates[ulong(at.y) * n + k]);
        was[k] = streams[ulong(k) * p.stride];
    }
    const float made = h - was[p.active];
    for (uint j = 0; j < n; ++j) {
        float sum = was[j];
        if (p.correct) {
            float factor = 1.0f;
            for (uint k = 0; k < n; ++k) factor += weights[j * n + k] * gate[k];
            sum += made * factor;
        } else {
            for (uint i = 0; i < n; ++i) {
                float factor = 0.0f;
                for (uint k = 0; k < n; ++k) factor += weights[(j * n + i) * n + k] * gate[k];
                sum += was[i] * factor;
            }
        }
        streams[ulong(j) * p.stride] = sum;
        if (j == p.active) h = p.scaled ? sum * scales[at.x] : sum;
    }
}

// x = max(0, x - (mean + deviations·standard deviation))
kernel void sparsify(device float* x [[buffer(0)]],
                     constant SparsifyParams& p [[buffer(kParamsIndex)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint tid [[thread_position_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float sums[32], squares[32];
    x += ulong(row) * p.n;
    float sum = 0.0f, square = 0.0f;
    for (uint i = tid; i < p.n; i += threads) sum += x[i];
    const float mean = threadgroup_sum(sum, sums, lane, simdgroup, n_simdgroups) / float(p.n);
    for (uint i = tid; i < p.n; i += threads) square += (x[i] - mean) * (x[i] - mean);
    square = threadgroup_sum(square, squares, lane, simdgroup, n_simdgroups) / float(p.n);
    const float cut = p.deviations * precise::sqrt(square);
    for (uint i = tid; i < p.n; i += threads) x[i] = max(x[i] - mean - cut, 0.0f);
}
