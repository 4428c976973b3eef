#include "engine/measure.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace akunu {

std::uint32_t negative_log_likelihoods(Engine& engine, std::span<const std::uint32_t> ids, std::size_t first,
                                       const Poll& poll, std::vector<float>& out) {
    engine.check_ids(ids);
    if (first < 1 || first > ids.size()) {
        throw InvalidArgumentError("first is " + std::to_string(first) + ", expected 1.." + std::to_string(ids.size()));
    }
    out.resize(ids.size() - first);
    return engine.for_each_logits(ids, poll, [&](std::size_t i, std::span<const float> row) {
        if (i + 1 < first || i + 1 >= ids.size()) return;
        double sum = 0;
        const float max = *std::ranges::max_element(row);
        for (const float v : row) sum += std::exp(v - max);
        out[i + 1 - first] = static_cast<float>(max + std::log(sum) - row[ids[i + 1]]);
    });
}

CommandInfo command_info(const Device& device, const DispatchTable& table, std::size_t index, const ReplayArgs& args) {
    const DispatchCmd& c = table.commands[index];
    const CommandLabel& l = table.labels[index];
    CommandInfo info;
    info.label = l.full_name();
    info.op = op_name(c.op);
    const bool cached = c.op == Op::kRopeKv || c.op == Op::kAttention || c.op == Op::kAttentionSplit;
    if (c.n_weights) info.dtype = dtype_info(c.weight).name;
    if (cached) info.dtype = dtype_info(c.kv).name;
    std::vector<std::string> kernels = device.kernel_names(c);
    if (kernels.empty()) kernels.push_back(info.op + (info.dtype.empty() ? "" : "_" + info.dtype));
    info.kernel = kernels.back();
    info.dispatches = c.merged ? 0 : kernels.size();
    info.layer = l.layer;
    info.shape = l.shape;
    info.bytes = cost_bytes(l.cost, args);
    info.minimum = cost_minimum_bytes(l.cost, args);
    info.flops = cost_flops(l.cost, args);
    info.barrier = c.barrier && !c.merged;
    return info;
}

}  // namespace akunu
