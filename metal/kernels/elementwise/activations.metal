// What is computed element by element: act(gate)·up, act(gate), and an activation in another format. A row's elements are dealt out
// four to a thread.
#include <metal_stdlib>
using namespace metal;

#include "activation.h"
#include "buffer_index.h"
#include "core/params.h"

kernel void gate_act(device const float* gate [[buffer(0)]],
                     device const float* up [[buffer(1)]],
                     device float* out_f32 [[buffer(2)]],
                     device half* out_f16 [[buffer(3)]],
                     constant GateActParams& p [[buffer(kParamsIndex)]],
                     uint2 at [[thread_position_in_grid]]) {
    const uint first = at.x * 4;
    const ulong row = ulong(at.y) * p.n;
    up += ulong(at.y) * p.up_stride;
    if (p.n % 4 == 0 && p.up_stride % 4 == 0) {
        if (first >= p.n) return;
        const float4 g = *(device const float4*)(gate + row + first);
        float4 x = p.gated ? *(device const float4*)(up + first) : float4(1.0f);
        for (uint i = 0; i < 4; ++i) x[i] *= activate(p.activation, g[i]);
        store_activation(x, p.formats, out_f32, out_f16, row + first);
        return;
    }
    for (uint i = first; i < min(first + 4, p.n); ++i) {
        const float x = activate(p.activation, gate[row + i]) * (p.gated ? up[i] : 1.0f);
        store_activation(x, p.formats, out_f32, out_f16, row + i);
    }
}

kernel void quantize(device const float* x [[buffer(0)]],
                     device float* out_f32 [[buffer(1)]],
                     device half* out_f16 [[buffer(2)]],
                     constant QuantizeParams& p [[buffer(kParamsIndex)]],
                     uint2 at [[thread_position_in_grid]]) {
    const uint first = at.x * 4;
    const ulong row = ulong(at.y) * p.dim;
    if (p.dim % 4 == 0) {
        if (first >= p.dim) return;
        store_activation(*(device const float4*)(x + row + first), p.formats, out_f32, out_f16, row + first);
        return;
    }
    for (uint i = first; i < min(first + 4, p.dim); ++i) {
        store_activation(x[row + i], p.formats, out_f32, out_f16, row + i);
    }
}
