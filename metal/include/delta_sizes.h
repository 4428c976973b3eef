// Sizes of the kernels of gated delta nets, for kernels and for the host that chooses among them.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

enum DeltaSizes : u32 {
    kMostTaps = 8,
    kMostKeys = 256,     // elements of a key
    kMostValues = 1024,  // of a value
    kDeltaThreads = 128,
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
