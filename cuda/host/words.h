// Which commands wait for the words that the one before them leaves (cuda/kernels/command.h), instead of for a barrier.
#pragma once

#include <span>

#include "cuda/kernels/command.h"

namespace akunu::cuda {

// Whether a command of one row finds all that it waits for in the words of the one before it.
bool may_take_words(const Command& command, const Command& before);
// Says so in the commands of a table of one row.
void set_words(std::span<Command> commands);

}  // namespace akunu::cuda
