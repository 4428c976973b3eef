#include "engine/profile.h"

#include <algorithm>
#include <utility>

namespace akunu {

namespace {

CommandInfo command_info(const Device& device, const DispatchTable& table, std::size_t index, const ReplayArgs& args) {
    const DispatchCmd& c = table.commands[index];
    const CommandLabel& l = table.labels[index];
    CommandInfo info;
    info.label = l.full_name();
    info.op = op_name(c.op);
    if (c.n_weights) info.dtype = dtype_info(c.weight).name;
    if (has_buffer(op_info(c.op), BufferKind::kCache)) info.dtype = kv_name(c.kv);
    const auto kernels = device.kernel_names(c, args);
    info.kernel =
        kernels && !kernels->empty() ? kernels->back() : info.op + (info.dtype.empty() ? "" : "_" + info.dtype);
    info.dispatches = c.merged ? 0 : kernels ? kernels->size() : 1;
    info.layer = l.layer;
    info.shape = l.shape;
    info.bytes = cost_bytes(l.cost, args);
    info.minimum = cost_minimum_bytes(l.cost, args);
    info.flops = cost_flops(l.cost, args);
    info.whole = c.whole != Whole::kNone;
    info.barrier = index == 0 || (c.barrier && !c.merged);
    return info;
}

// For each place the median of what the runs have there; empty where there are no runs.
std::vector<double> medians(const std::vector<std::vector<double>>& runs) {
    std::vector<double> median(runs.empty() ? 0 : runs[0].size());
    for (std::size_t i = 0; i < median.size(); ++i) {
        std::vector<double> v;
        for (const auto& seconds : runs) v.push_back(seconds[i]);
        std::ranges::nth_element(v, v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2));
        median[i] = v[v.size() / 2];
    }
    return median;
}

}  // namespace

std::vector<CommandInfo> describe(const Device& device, Segments segments) {
    std::vector<CommandInfo> out;
    for (const Segment& segment : segments) {
        const DispatchTable& table = segment.program->table;
        ReplayArgs args = segment.args;
        if (table.rows == PatchSource::kLogits) args.rows = args.logits;
        for (std::size_t i = 0; i < table.commands.size(); ++i) out.push_back(command_info(device, table, i, args));
    }
    return out;
}

std::vector<CommandInfo> profile(Device& device, Segments segments, std::size_t repeats, const Poll& poll,
                                 const std::function<void()>& prepare) {
    std::vector<CommandInfo> out = describe(device, segments);
    std::vector<std::vector<double>> runs;
    for (std::size_t i = 0; i <= repeats && !(i != 0 && poll && poll()); ++i) {
        if (prepare) prepare();
        std::vector<double> seconds(out.size());
        device.profile(segments, seconds);
        if (i != 0) runs.push_back(std::move(seconds));
    }
    const std::vector<double> median = medians(runs);
    for (std::size_t i = 0; i < median.size(); ++i) out[i].seconds = median[i];
    return out;
}

}  // namespace akunu
