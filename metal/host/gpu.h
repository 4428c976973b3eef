// Which GPU this is.
#pragma once

#include "metal/host/metal_device.h"
#import "metal/host/objc.h"

namespace akunu::metal {

// The system's GPU; nil where there is none that runs the kernels.
id<MTLDevice> find_device();
Gpu describe(id<MTLDevice> device);
// The table's row, with this machine's core count; for an unknown chip a guess from its family and cores.
Chip chip_of(id<MTLDevice> device, const Gpu& gpu);

}  // namespace akunu::metal
