// InputSquares: a forward pass that also sums, for every matmul, the squares of each column of what it reads. They say
// how much an error in a column of the weights counts: an importance matrix.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace akunu {

class InputSquares {
  public:
    // `body` is the forward pass. Throws UnsupportedError when the device cannot sum.
    InputSquares(Device& device, DispatchTable body);

    // The forward pass with the sums in it.
    const Program& program() const { return *program_; }
    // Adds what the last replay has left.
    void add();

    // A matmul, by its label, and the sums of its columns; of experts [experts, columns], and how many rows chose each.
    struct Input {
        std::string name;
        std::vector<double> sums, counts;
    };
    const std::vector<Input>& inputs() const { return inputs_; }

  private:
    Device& device_;
    std::vector<Input> inputs_;
    DeviceBuffer memory_;
    std::unique_ptr<Program> program_;
};

}  // namespace akunu
