// The commands of a step: those of its segments, one behind the other.
#pragma once

#include <vector>

#include "core/device.h"

namespace akunu::metal {

struct StepCommand {
    const DispatchCmd* cmd;
    const CommandLabel* label;
    const DispatchTable* table;
    bool barrier;  // waits for those before it: the first of a segment always does
};

// The first `most` of them.
inline std::vector<StepCommand> commands_of(Segments segments, std::size_t most) {
    std::vector<StepCommand> out;
    for (const Program* segment : segments) {
        const DispatchTable& t = segment->table;
        for (std::size_t i = 0; i < t.commands.size() && out.size() < most; ++i) {
            out.push_back({&t.commands[i], &t.labels[i], &t, i == 0 || t.commands[i].barrier});
        }
    }
    return out;
}

}  // namespace akunu::metal
