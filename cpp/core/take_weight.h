// A device takes a weight, whatever type a file has it in.
#pragma once

#include <functional>

#include "core/device.h"

namespace akunu {

// What `prepare` makes of the tensor, or, where the device does not take its type, of what that is recoded as
// (core/recode.h). Throws UnsupportedError where the device has no kernels for that either.
Weight take_weight(Device& device, const HostTensor& tensor, const std::function<Weight(const HostTensor&)>& prepare);

}  // namespace akunu
