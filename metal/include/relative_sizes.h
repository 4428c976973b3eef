// Sizes of attention by distance, for its kernel and for the host that chooses it.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

enum RelativeSizes : u32 {
    kMostRelativeHead = 512,  // elements of a head
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
