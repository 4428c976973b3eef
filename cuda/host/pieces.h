// A prompt's step in several launches: a GPU that a display waits for is given back in between, and one under Windows
// is not taken for hung.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/kernels/command.h"

namespace akunu::cuda {

// How long a row of a command takes, by the launches so far.
class Pace {
  public:
    // Commands that a launch of so many rows may have to take `longest` seconds at most.
    u32 commands(double longest, u32 rows) const;
    void learn(u32 commands, u32 rows, double seconds);

  private:
    // Before the first launch: as if a layer of 8 billion parameters took a tenth of a second for 2,048 rows.
    double seconds_of_row_ = 6e-6;
};

// The segments' commands from `begin` on, `most` of them or a few more: none begins a launch that takes what the one
// before it left in a block's memory or as words. `lists`: the same commands, for the host to read.
struct Piece {
    LaunchParams launch;
    u32 commands;
};
Piece piece_of(const LaunchParams& whole, std::span<const std::span<const Command>> lists, u32 begin, u32 most);

}  // namespace akunu::cuda
