#include "core/device.h"

#include "core/error.h"

namespace akunu {

Weight Device::prepare_experts(std::span<const HostTensor>) {
    throw UnsupportedError("device '" + name() + "' has no kernels for models with experts; they run on the CPU");
}

}  // namespace akunu
