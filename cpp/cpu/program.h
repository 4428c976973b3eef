// A table as the CPU runs it, and what a step of it costs: found out once, since a small model's step is short.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/device.h"

namespace akunu::cpu {

// What commands have to read, by what their number of rows follows, and how many stages they are.
class Load {
  public:
    explicit Load(std::span<const DispatchCmd> commands);
    // Nanoseconds that one thread needs for the weights and keys, about: where the work of a model is.
    double nanoseconds(const ReplayArgs& args) const;
    std::size_t stages() const { return stages_; }

  private:
    struct Experts {
        double n, chosen, bytes;  // how many there are, chosen by a row, and read of one
    };
    struct Bytes {
        double weights = 0, per_key = 0;
        std::vector<Experts> experts;  // those of layers that are alike as one
        double of(double rows, double keys) const;
    };
    Bytes rows_, logits_;
    std::size_t stages_ = 0;
};

class ExpertPages;

// A command whose experts stay in their file.
struct PagedCommand {
    std::size_t at;  // in its program
    std::array<ExpertPages*, 2> pages;
    std::uint8_t ids;  // its buffer of the experts that rows use
    bool counted;      // that they were found held, or not
};

class CpuProgram final : public Program {
  public:
    // Commands that have their kernels.
    explicit CpuProgram(DispatchTable t, std::vector<PagedCommand> paged);
    // The first one waits for whatever runs before it. Kept by whoever still looks at them.
    const std::shared_ptr<const std::vector<DispatchCmd>>& commands() const { return commands_; }
    const Load& load() const { return load_; }
    const std::shared_ptr<const std::vector<PagedCommand>>& paged() const { return paged_; }

  private:
    std::shared_ptr<const std::vector<DispatchCmd>> commands_;
    Load load_;
    std::shared_ptr<const std::vector<PagedCommand>> paged_;
};

}  // namespace akunu::cpu
