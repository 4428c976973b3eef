// Whether compiled commands, run as the interpreter runs them, do what their table says: checked before any is
// launched.
//
// A barrier that mailbox words replace (Command::reads_words) orders less. Of what was written since the last other
// barrier, a consumer reads what comes as words, from its producer, or what its own threads wrote; and since attention
// reads only some of these words, it writes nothing that its producer uses.
//
// Commands between two barriers run in any order, and side by side. So whatever writes memory has a barrier between it
// and every other command that uses that memory, and comes before or behind it as in the table; what is read was
// written before, if the table writes it at all; weights, which come ahead of all barriers, are written by none.
// Numbers that index something are in range, and addresses are those of the table's buffers.
#pragma once

#include "cuda/host/program.h"

namespace akunu::cuda {

// Throws DeviceError, which names the commands that are wrong. `sizes` say how large a slot of the ring is at most.
void check_schedule(const DispatchTable& table, std::span<const Command> commands, std::span<const Stream> streams,
                    const BlockSizes& sizes);

}  // namespace akunu::cuda
