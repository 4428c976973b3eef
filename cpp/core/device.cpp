#include "core/device.h"

#include "core/error.h"

namespace akunu {

Weight Device::prepare_experts(std::span<const HostTensor>) {
    throw UnsupportedError("device '" + name() + "' has no kernels for models with experts; they run on the CPU");
}

Weight Device::page_experts(std::span<const HostTensor>) {
    throw UnsupportedError("device '" + name() + "' cannot leave experts in their file; the CPU can");
}

}  // namespace akunu
