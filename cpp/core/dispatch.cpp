#include "core/dispatch.h"

#include <algorithm>
#include <cmath>

namespace akunu {

namespace {

// Keys visible to each row of a replay: their sum over the rows, and how many there are, each sequence's its own.
struct KeyCount {
    double sum = 0, distinct = 0;
};

KeyCount visible_keys(const Cost& c, const ReplayArgs& a) {
    const double sequences = a.sequences, all = a.keys, rows = a.rows / sequences, first = all - rows + 1;
    if (c.bidirectional) {
        // All of a sequence is in the step; pairs less than a window apart.
        const double window = c.window ? std::min<double>(c.window, rows) : rows;
        return {sequences * (rows * (2 * window - 1) - window * (window - 1)), sequences * rows};
    }
    if (!c.window) return {sequences * (rows * first + rows * (rows - 1) / 2), sequences * all};
    // Rows that see all keys before them come first, and see fewer than the window's.
    const double window = c.window, growing = std::clamp(window - first + 1, 0.0, rows);
    return {sequences * (growing * first + growing * (growing - 1) / 2 + (rows - growing) * window),
            sequences * std::min(all, window + rows - 1)};
}

// A part of a buffer that a command since the last barrier reads or writes.
struct Use {
    const void* buffer;
    std::uint64_t begin, end;
    Access access;
};

bool conflict(const Use& a, const Use& b) {
    const bool writes = a.access != Access::kRead || b.access != Access::kRead;
    return writes && a.buffer == b.buffer && a.begin < b.end && b.begin < a.end;
}

std::uint32_t word_of(const DispatchCmd& c, const FieldInfo& field) {
    std::uint32_t word = 0;
    std::memcpy(&word, c.params.data() + field.offset, sizeof word);
    return word;
}

std::vector<Use> uses_of(const DispatchCmd& c) {
    std::vector<Use> uses;
    const auto buffers = op_info(c.op).buffers;
    for (std::size_t i = 0; i < c.n_buffers; ++i) {
        const Binding& b = c.buffers[i];
        if (b) uses.push_back({b.buffer.handle, b.offset, b.end(), buffers[i].access});
    }
    return uses;
}

}  // namespace

Access access_of(const DispatchCmd& c, std::size_t buffer) {
    const OpInfo& op = op_info(c.op);
    const BufferInfo& info = op.buffers[buffer];
    return info.adds.empty() || word_of(c, *find_field(op, info.adds)) != 0 ? info.access : Access::kWrite;
}

void set_barriers(std::span<DispatchCmd> commands) {
    std::vector<Use> since;
    for (DispatchCmd& c : commands) {
        const std::vector<Use> uses = uses_of(c);
        c.barrier = std::ranges::any_of(uses, [&](const Use& u) {
            return std::ranges::any_of(since, [&](const Use& s) { return conflict(u, s); });
        });
        if (c.barrier) since.clear();
        since.insert(since.end(), uses.begin(), uses.end());
    }
}

std::string CommandLabel::full_name() const {
    return layer >= 0 ? "layers." + std::to_string(layer) + "." + name : name;
}

std::vector<WeightPlace> weight_places(const OpInfo& op) {
    std::vector<WeightPlace> out;
    for (std::size_t i = 0; i < op.buffers.size(); ++i) {
        const BufferKind kind = op.buffers[i].kind;
        if (kind == BufferKind::kWeight) out.push_back({.buffer = i, .weight = out.size(), .rows = 0, .cols = 0});
        if (kind == BufferKind::kScales) out.back().scales = i;
        if (kind == BufferKind::kBiases) out.back().biases = i;
    }
    return out;
}

std::vector<WeightPlace> weights_in(const DispatchCmd& c) {
    const OpInfo& op = op_info(c.op);
    const auto value = [&](std::string_view name) { return word_of(c, *find_field(op, name)); };
    std::vector<WeightPlace> out;
    for (WeightPlace place : weight_places(op)) {
        if (!c.buffers[place.buffer]) continue;
        place.rows = value(op.buffers[place.buffer].rows);
        place.cols = value(op.buffers[place.buffer].cols);
        out.push_back(place);
    }
    return out;
}

double chosen_experts(double n, double k, double rows) {
    return n > 0 ? n * (1 - std::pow(1 - std::min(k / n, 1.0), rows)) : 0;
}

namespace {

double expert_bytes(const Cost& c, const ReplayArgs& a) {
    return c.bytes_per_expert * chosen_experts(c.experts, c.chosen, a.rows);
}

double partial_bytes(const Cost& c, double keys) {
    if (keys <= c.unsplit_keys) return 0;
    const double enough = std::max(c.partials_enough, c.partials_per_key_of_many * keys);
    return std::min({c.partials_per_key * keys, enough, c.partials_most});
}

}  // namespace

double cost_bytes(const Cost& c, const ReplayArgs& a) {
    const KeyCount k = visible_keys(c, a);
    return c.bytes + c.bytes_per_row * a.rows + c.bytes_per_sequence * a.sequences + c.bytes_per_key * k.distinct +
           partial_bytes(c, k.distinct) + expert_bytes(c, a);
}

double cost_minimum_bytes(const Cost& c, const ReplayArgs& a) {
    return c.weights + c.kv_per_key * visible_keys(c, a).distinct + expert_bytes(c, a);
}

double cost_flops(const Cost& c, const ReplayArgs& a) {
    return c.flops + c.flops_per_row * a.rows + c.flops_per_row_key * visible_keys(c, a).sum;
}

}  // namespace akunu
