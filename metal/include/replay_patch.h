// Patches of the parameters of many commands, as data: shared by the host and the kernel patch_params.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu::metal {
using uint = std::uint32_t;
#endif

// params[word] = values[value] * times
struct ReplayPatch {
    uint word;
    uint value;
    uint times;
};

enum ReplayPatchSizes : uint { kPatchSources = 4, kPatchValues = 80 };
struct ReplayPatchArgs {
    uint patches;
    uint values[kPatchValues];  // of each segment, those of every PatchSource
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
