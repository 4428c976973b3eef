#include "cpu/program.h"

#include <algorithm>
#include <utility>

namespace akunu::cpu {

namespace {

constexpr double kBytesPerNs = 16, kRowsAtOnce = 4;

double tiles(double rows) { return std::max(1.0, rows / kRowsAtOnce); }

std::vector<DispatchCmd> behind_a_barrier(std::vector<DispatchCmd> commands) {
    if (!commands.empty()) commands.front().barrier = true;
    return commands;
}

}  // namespace

Load::Load(std::span<const DispatchCmd> commands) {
    for (const DispatchCmd& c : commands) {
        const Cost cost = op_info(c.op).cost(c);
        Bytes& bytes = c.n_patches > 0 && c.patches[0].source == PatchSource::kLogits ? logits_ : rows_;
        bytes.weights += cost.weights;
        bytes.per_key += cost.kv_per_key;
        stages_ += c.barrier;
        if (cost.bytes_per_expert == 0) continue;
        const auto alike = std::ranges::find_if(
            bytes.experts, [&](const Experts& e) { return e.n == cost.experts && e.chosen == cost.chosen; });
        if (alike == bytes.experts.end()) {
            bytes.experts.push_back({double(cost.experts), double(cost.chosen), cost.bytes_per_expert});
        } else {
            alike->bytes += cost.bytes_per_expert;
        }
    }
}

double Load::Bytes::of(double rows, double keys) const {
    double all = (weights + per_key * keys) * tiles(rows);
    for (const Experts& e : experts) {
        const double chosen = chosen_experts(e.n, e.chosen, rows);
        if (chosen > 0) all += e.bytes * chosen * tiles(rows * e.chosen / chosen);
    }
    return all;
}

double Load::nanoseconds(const ReplayArgs& args) const {
    return (rows_.of(args.rows, args.keys) + logits_.of(args.logits, args.keys)) / kBytesPerNs;
}

CpuProgram::CpuProgram(DispatchTable t, std::vector<PagedCommand> paged)
    : Program(std::move(t)),
      commands_(std::make_shared<const std::vector<DispatchCmd>>(behind_a_barrier(table.commands))),
      load_(*commands_),
      paged_(std::make_shared<const std::vector<PagedCommand>>(std::move(paged))) {}

}  // namespace akunu::cpu
