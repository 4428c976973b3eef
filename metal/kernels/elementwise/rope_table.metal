// cos and sin of position · inv_freq, once per replay for all layers.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"

// One pair per thread. The fast variants are far off outside of [-pi, pi], and positions reach 10^5.
kernel void rope_table(device const float* inv_freq [[buffer(0)]],
                       device float2* table [[buffer(1)]],
                       device const Row* rows [[buffer(2)]],
                       device const uint* axes [[buffer(3)]],
                       device const uint* positions [[buffer(4)]],
                       constant RopeTableParams& p [[buffer(kParamsIndex)]],
                       uint2 at [[thread_position_in_grid]]) {
    if (at.x >= p.half_dim) return;
    const uint first = p.axes ? positions[ulong(at.y) * kPositionAxes + axes[at.x]] : rows[at.y].position;
    const uint position = first + p.step;
    const float angle = float(position) * inv_freq[at.x];
    float scale = p.scale;
    if (p.temperature_length) scale *= 1.0f + p.temperature * precise::log(1.0f + float(position / p.temperature_length));
    table[ulong(at.y) * p.half_dim + at.x] = float2(precise::cos(angle), precise::sin(angle)) * scale;
}
