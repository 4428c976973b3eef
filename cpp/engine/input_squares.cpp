#include "engine/input_squares.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"

namespace akunu {

namespace {

// What a command multiplies weights with, as it is: the buffer, and how many columns it has; none where it has no
// weights, or computes something else of its rows first.
struct MatmulInput {
    std::size_t buffer;
    std::uint32_t columns;
    std::uint32_t experts = 0, chosen = 1, apart = 0;  // as of ColumnSquaresParams
    std::size_t ids = 0;                               // the buffer with the choices
    std::uint64_t floats() const { return std::uint64_t{std::max(experts, 1u)} * columns + experts; }
};
std::size_t buffer_of(const DispatchCmd& c, std::string_view name) {
    const auto buffers = op_info(c.op).buffers;
    return static_cast<std::size_t>(std::ranges::find(buffers, name, &BufferInfo::name) - buffers.begin());
}
std::optional<MatmulInput> matmul_input(const DispatchCmd& c) {
    if (c.op == Op::kExpertsGateUp) {
        const auto p = c.params_as<ExpertsGateUpParams>();
        return MatmulInput{buffer_of(c, "x"), p.k, p.experts, p.chosen, 0, buffer_of(c, "ids")};
    }
    if (c.op == Op::kExpertsDown) {
        const auto p = c.params_as<ExpertsDownParams>();
        return MatmulInput{buffer_of(c, "x"), p.k, p.experts, p.chosen, 1, buffer_of(c, "ids")};
    }
    const auto buffers = op_info(c.op).buffers;
    for (const WeightPlace& w : weights_in(c)) {
        if (buffers[w.buffer].input.empty()) continue;
        return MatmulInput{buffer_of(c, buffers[w.buffer].input), static_cast<std::uint32_t>(w.cols)};
    }
    return std::nullopt;
}

}  // namespace

InputSquares::InputSquares(Device& device, DispatchTable body) : device_(device) {
    if (const std::uint32_t cards = device.traits().cards; cards > 1) {
        throw UnsupportedError("importance is not measured on " + std::to_string(cards) +
                               " GPUs, each of which has a part of the columns; name one, as in device='cuda:0'");
    }
    std::uint64_t floats = 0;
    for (const DispatchCmd& c : body.commands) {
        if (const auto x = matmul_input(c)) floats += x->floats();
    }
    memory_ = DeviceBuffer(device, std::max<std::uint64_t>(floats, 1) * sizeof(float), MemoryKind::kDevice);

    DispatchTable table{.phase = "input_squares", .commands = {}, .labels = {}, .max_rows = body.max_rows};
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < body.commands.size(); ++i) {
        const DispatchCmd& c = body.commands[i];
        if (const auto x = matmul_input(c)) {
            const std::uint32_t columns = x->columns;
            DispatchCmd sum;
            sum.op = Op::kColumnSquares;
            sum.n_buffers = 3;
            sum.buffers[0] = c.buffers[x->buffer];
            sum.buffers[1] = {memory_.at().buffer, offset, x->floats() * sizeof(float)};
            if (x->experts) sum.buffers[2] = c.buffers[x->ids];
            sum.set_params(ColumnSquaresParams{.rows = body.max_rows,
                                               .dim = columns,
                                               .format = c.input_format,
                                               .experts = x->experts,
                                               .chosen = x->chosen,
                                               .apart = x->apart});
            sum.n_patches = 1;
            sum.patches[0] = {offsetof(ColumnSquaresParams, rows), PatchSource::kRows};
            offset += x->floats() * sizeof(float);
            inputs_.push_back({body.labels[i].full_name(), std::vector<double>(x->floats() - x->experts),
                               std::vector<double>(x->experts)});
            table.labels.push_back({"column_squares", std::to_string(columns), body.labels[i].layer, {}});
            table.commands.push_back(sum);
        }
        table.labels.push_back(std::move(body.labels[i]));
        table.commands.push_back(c);
    }
    set_barriers(table.commands);
    program_ = device.compile(std::move(table));
}

void InputSquares::add() {
    std::vector<float> sums(memory_.size() / sizeof(float));
    device_.download(memory_.at(), std::as_writable_bytes(std::span(sums)));
    std::size_t at = 0;
    for (Input& input : inputs_) {
        for (double& total : input.sums) total += sums[at++];
        for (double& total : input.counts) total += sums[at++];
    }
}

}  // namespace akunu
