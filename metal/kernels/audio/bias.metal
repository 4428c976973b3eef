// What follows a matrix product of Whisper: bias, GELU, residual; and its position embeddings. One thread an element.
#include <metal_stdlib>
using namespace metal;

#include "audio.h"
#include "activation.h"

// y = x + bias
kernel void bias_f16(
    device const float* x [[buffer(0)]],
    device const float* bias [[buffer(1)]],
    device half* y [[buffer(2)]],
    constant BiasParams& p [[buffer(8)]],
    uint2 at [[thread_position_in_grid]]) {
    const ulong i = ulong(at.y) * p.n + at.x;
    if (at.x < p.n && at.y < p.rows) y[i] = to_half(x[i] + bias[at.x]);
}

// y = gelu(x + bias)
kernel void bias_gelu_f16(
    device const float* x [[buffer(0)]],
    device const float* bias [[buffer(1)]],
    device half* y [[buffer(2)]],
    constant BiasParams& p [[buffer(8)]],
    uint2 at [[thread_position_in_grid]]) {
    const ulong i = ulong(at.y) * p.n + at.x;
    if (at.x < p.n && at.y < p.rows) y[i] = to_half(gelu_erf(x[i] + bias[at.x]));
}

// h += x + bias
kernel void bias_residual_f32(
    device const float* x [[buffer(0)]],
    device const float* bias [[buffer(1)]],
    device float* h [[buffer(2)]],
    constant BiasParams& p [[buffer(8)]],
    uint2 at [[thread_position_in_grid]]) {
    const ulong i = ulong(at.y) * p.n + at.x;
    if (at.x < p.n && at.y < p.rows) h[i] += x[i] + bias[at.x];
}

// h = x + embedding[position + row]
template <typename T>
[[kernel]] void add_positions(
    device const T* x [[buffer(0)]],
    device const float* embedding [[buffer(1)]],
    device float* h [[buffer(2)]],
    constant BiasParams& p [[buffer(8)]],
    uint2 at [[thread_position_in_grid]]) {
    const ulong i = ulong(at.y) * p.n + at.x;
    if (at.x < p.n && at.y < p.rows) h[i] = float(x[i]) + embedding[ulong(p.position + at.y) * p.n + at.x];
}

template [[host_name("add_positions_f16")]] [[kernel]] void add_positions<half>(
    device const half*, device const float*, device float*, constant BiasParams&, uint2);
template [[host_name("add_positions_f32")]] [[kernel]] void add_positions<float>(
    device const float*, device const float*, device float*, constant BiasParams&, uint2);
