// The commands of a step: those of its segments, one behind the other.
#pragma once

#include <vector>

#include "core/device.h"

namespace akunu::metal {

struct StepCommand {
    const DispatchCmd* cmd;
    const CommandLabel* label;
    const DispatchTable* table;
    std::size_t segment;
    ReplayArgs args;  // the first time
    bool barrier;     // waits for those before it: the first of a segment always does
};

// The first `most` of them.
inline std::vector<StepCommand> commands_of(Segments segments, std::size_t most) {
    std::vector<StepCommand> out;
    for (std::size_t s = 0; s < segments.size(); ++s) {
        const DispatchTable& t = segments[s].program->table;
        for (std::size_t i = 0; i < t.commands.size() && out.size() < most; ++i) {
            out.push_back({&t.commands[i], &t.labels[i], &t, s, segments[s].args, i == 0 || t.commands[i].barrier});
        }
    }
    return out;
}

// What is bound as a command's buffer i: where it has none, and it would be written, another one that the command
// writes, so that commands of a stage have nothing in common by it; null: the dummy.
inline const Binding* bound_as(const DispatchCmd& c, std::size_t i) {
    if (c.buffers[i]) return &c.buffers[i];
    const auto buffers = op_info(c.op).buffers;
    if (buffers[i].access == Access::kRead) return nullptr;
    for (std::size_t other = 0; other < c.n_buffers; ++other) {
        if (c.buffers[other] && buffers[other].access != Access::kRead) return &c.buffers[other];
    }
    return nullptr;
}

}  // namespace akunu::metal
