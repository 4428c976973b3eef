// What is learned of a model by running it: likelihoods of a text, the time of each command, and commands as plain
// data.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace akunu {

// -log p of ids[first], ids[first + 1], …, each given those before it, into `out`. Returns the positions run: less than
// there are ids when `poll` ended it. Throws InvalidArgumentError unless 1 <= first <= ids.size().
std::uint32_t negative_log_likelihoods(Engine& engine, std::span<const std::uint32_t> ids, std::size_t first,
                                       const Poll& poll, std::vector<float>& out);

// A command of a table and what it costs.
struct CommandInfo {
    std::string label, op, dtype, kernel, shape;
    std::size_t dispatches = 1;
    int layer = -1;
    double bytes = 0, minimum = 0, flops = 0;
    bool barrier = false;
};
CommandInfo command_info(const Device& device, const DispatchTable& table, std::size_t index, const ReplayArgs& args);

}  // namespace akunu
