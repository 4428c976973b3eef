// By which a GPU copies boxes of matmuls' inputs and weights to shared memory by itself.
#pragma once

#include "cuda/host/driver.h"
#include "cuda/host/program.h"

namespace akunu::cuda {

// Maps of the F16 inputs of a table's matmuls, and of their weights that are F16 in tiles; the commands then name them.
// Inputs whose rows do not begin at multiples of 16 bytes have none, nor has a gate that lies behind its up.
DeviceBuffer map_boxes(const Driver& driver, Device& device, const DispatchTable& table, Schedules& schedules);

}  // namespace akunu::cuda
