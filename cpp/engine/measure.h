// What is learned of a model by running it: likelihoods of a sequence.
#pragma once

#include <vector>

#include "engine/engine.h"

namespace akunu {

// -log p of ids[first], ids[first + 1], …, each given those before it, into `out`. Returns the positions run: less than
// there are ids when `poll` ended it. Throws InvalidArgumentError unless 1 <= first <= ids.size().
std::uint32_t negative_log_likelihoods(Engine& engine, std::span<const std::uint32_t> ids, std::size_t first,
                                       AdapterChoice adapter, const Poll& poll, std::vector<float>& out);

}  // namespace akunu
