// Patches of the parameters of many commands, as data: shared by the host and the kernel patch_params.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu::metal {
using uint = std::uint32_t;
#endif

// params[word] = add + position·(factor) + rows·(factor) + step·(factor), modulo 2^32
struct ReplayPatch {
    uint word;
    uint add;
    uint position;
    uint rows;
    uint step;
};

struct ReplayPatchArgs {
    uint patches;
    uint position;  // of the replay's first row, without the step
    uint rows;
    uint step;
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
