// By which a GPU copies boxes of matmuls' inputs to shared memory by itself.
#pragma once

#include "cuda/host/driver.h"
#include "cuda/host/program.h"

namespace akunu::cuda {

// Maps of the F16 inputs of a table's matmuls, whose commands then name them. Those whose rows do not begin at
// multiples of 16 bytes have none.
DeviceBuffer map_inputs(const Driver& driver, Device& device, const DispatchTable& table, Schedules& schedules);

}  // namespace akunu::cuda
