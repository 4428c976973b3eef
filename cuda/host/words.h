// Decides which commands wait for the mailbox words of the command before them (cuda/kernels/command.h), instead of for
// a barrier.
#pragma once

#include <span>

#include "cuda/kernels/command.h"

namespace akunu::cuda {

// Up to how many rows, `most` at most, a command finds all that it waits for in the words of the command before it; 0:
// it does not.
u32 rows_by_words(const Command& command, const Command& before, u32 most);
// So many sums, which the command's threads add to what they have left there before: 0 of a command that does not. Of
// as many sums each is the same thread's.
u64 own_sums(const Command& command);
// Marks producers and consumers in the commands of a table of one row, or of up to kByteRows rows.
void set_words(std::span<Command> commands, u32 most_rows);

}  // namespace akunu::cuda
