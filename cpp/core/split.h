// A matrix in parts, one for each of the GPUs that share a model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"

namespace akunu {

// Part `part` of `parts` of a tensor, by its `split`: all of it where there is none. Parts are as long as each other.
// Where columns are split within a block, the part is F16.
class TensorPart {
  public:
    TensorPart(const HostTensor& whole, std::uint32_t part, std::uint32_t parts);
    TensorPart(const TensorPart&) = delete;
    TensorPart& operator=(const TensorPart&) = delete;
    const HostTensor& tensor() const { return tensor_; }

  private:
    HostTensor tensor_;
    std::vector<std::byte> memory_[3];
};

}  // namespace akunu
