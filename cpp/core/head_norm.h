// The norms of heads of q and k, which PrepareHeadsParams::qk_norm names.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu {
#endif

enum HeadNorm : u32 {
    kHeadNormNone = 0,
    kHeadNormRms = 1,    // x / rms(x)·weight; heads of q share a weight, and so do those of k
    kHeadNormLayer = 2,  // (x - mean(x)) / deviation(x)·weight, whose weight is each head's own
};

#ifndef __METAL_VERSION__
}  // namespace akunu
#endif
