// Weights on their way to the GPU: packed as it reads them (cuda/host/pack.h), some at a time.
#pragma once

#include "core/device.h"
#include "cuda/host/memory.h"

namespace akunu::cuda {

// Packs a matrix of a type without planes of its own, on a few threads, and uploads it to `to`.
void upload_packed(Memory& device, const Binding& to, const HostTensor& t);

}  // namespace akunu::cuda
