// How the kernels of adapters divide the work, for them and for the host that starts them.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

enum LoraSizes : u32 {
    kLoraRanks = 4,  // of a row that a SIMD-group of lora_a takes
    kLoraSimdgroups = 4,
    kLoraColumns = 4,  // of a row that a thread of lora_b takes
    kLoraThreads = 64,
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
