#include "engine/measure.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace akunu {

std::uint32_t negative_log_likelihoods(Engine& engine, std::span<const std::uint32_t> ids, std::size_t first,
                                       AdapterChoice adapter, const Poll& poll, std::vector<float>& out) {
    engine.check_ids(ids);
    if (first < 1 || first > ids.size()) {
        throw InvalidArgumentError("first is " + std::to_string(first) + ", expected 1.." + std::to_string(ids.size()));
    }
    out.resize(ids.size() - first);
    return engine.for_each_logits(ids, adapter, poll, [&](std::size_t i, std::span<const float> row) {
        if (i + 1 < first || i + 1 >= ids.size()) return;
        double sum = 0;
        const float max = *std::ranges::max_element(row);
        for (const float v : row) sum += std::exp(v - max);
        out[i + 1 - first] = static_cast<float>(max + std::log(sum) - row[ids[i + 1]]);
    });
}

}  // namespace akunu
