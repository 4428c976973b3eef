// What a model's programs cost: their commands as plain data, and the time of each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/device.h"

namespace akunu {

// A command of a table and what it costs.
struct CommandInfo {
    std::string label, op, dtype, kernel, shape;
    std::size_t dispatches = 1;
    int layer = -1;
    double bytes = 0, minimum = 0, flops = 0;
    bool whole = false;  // float weights are multiplied as 16-bit integers
    bool barrier = false;
    double seconds = 0;  // 0 where it was not run
};

// The commands of a step.
std::vector<CommandInfo> describe(const Device& device, Segments segments);

// And with the seconds of each: the median of `repeats` runs after one to warm up; of fewer when `poll` ends it.
// `prepare` is called before each run.
std::vector<CommandInfo> profile(Device& device, Segments segments, std::size_t repeats, const Poll& poll,
                                 const std::function<void()>& prepare = {});

}  // namespace akunu
