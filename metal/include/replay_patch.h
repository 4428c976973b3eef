// Patches of the parameters of many commands, as data: shared by the host and the kernel patch_params.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu::metal {
using uint = std::uint32_t;
#endif

// params[word] = values[source] * times, source a PatchSource
struct ReplayPatch {
    uint word;
    uint source;
    uint times;
};

struct ReplayPatchArgs {
    uint patches;
    uint values[4];  // by PatchSource
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
