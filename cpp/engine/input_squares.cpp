#include "engine/input_squares.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace akunu {

namespace {

bool is_matmul(const DispatchCmd& c) { return c.op == Op::kMatmul || c.op == Op::kGateUp; }

std::uint32_t columns_of(const DispatchCmd& c) {
    std::uint32_t k = 0;
    std::memcpy(&k, c.params.data() + find_field(op_info(c.op), "k")->offset, sizeof k);
    return k;
}

}  // namespace

InputSquares::InputSquares(Device& device, DispatchTable body) : device_(device) {
    std::uint64_t floats = 0;
    for (const DispatchCmd& c : body.commands) {
        if (is_matmul(c)) floats += columns_of(c);
    }
    memory_ = DeviceBuffer(device, std::max<std::uint64_t>(floats, 1) * sizeof(float), MemoryKind::kDevice);

    DispatchTable table{.phase = "input_squares", .commands = {}, .labels = {}, .max_rows = body.max_rows};
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < body.commands.size(); ++i) {
        const DispatchCmd& c = body.commands[i];
        if (is_matmul(c)) {
            const std::uint32_t columns = columns_of(c);
            DispatchCmd sum;
            sum.op = Op::kColumnSquares;
            sum.n_buffers = 2;
            sum.buffers[0] = c.buffers[0];
            sum.buffers[1] = {memory_.at().buffer, offset, columns * sizeof(float)};
            sum.set_params(ColumnSquaresParams{.rows = body.max_rows, .dim = columns, .format = c.input_format});
            sum.n_patches = 1;
            sum.patches[0] = {offsetof(ColumnSquaresParams, rows), PatchSource::kRows};
            offset += columns * sizeof(float);
            inputs_.push_back({body.labels[i].full_name(), std::vector<double>(columns)});
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
    }
}

}  // namespace akunu
