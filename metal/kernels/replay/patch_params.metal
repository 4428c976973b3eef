// What changes from one replay to the next, for commands that are encoded once: see metal/host/indirect.h.
#include <metal_stdlib>
using namespace metal;

#include "replay_patch.h"

kernel void patch_params(device uint* params [[buffer(0)]], constant ReplayPatch* patches [[buffer(1)]],
                         constant ReplayPatchArgs& args [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= args.patches) return;
    params[patches[i].word] = args.values[patches[i].value] * patches[i].times;
}
