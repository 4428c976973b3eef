// Grammar bit masks: a token whose bit is 0 cannot be drawn.
#include <metal_stdlib>
using namespace metal;

#include "core/params.h"
#include "sampling.h"
#include "tokens.h"

// The mask has a bit for each token, 32 in a word, lowest first.
kernel void mask_logits_f32(
    device uint* logits [[buffer(0)]],
    device const uint* mask [[buffer(1)]],
    constant SampleParams& p [[buffer(8)]],
    uint id [[thread_position_in_grid]]) {
    if (id < p.vocab && (mask[id / 32] >> (id % 32) & 1) == 0) logits[id] = kMinusInfinity;
}
