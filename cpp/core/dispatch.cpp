#include "core/dispatch.h"

#include <algorithm>
#include <cmath>

namespace akunu {

namespace {

// Keys visible to each row of a replay: their sum over the rows, and how many there are, each text's its own.
struct KeyCount {
    double sum = 0, distinct = 0;
};

KeyCount visible_keys(const Cost& c, const ReplayArgs& a) {
    const double texts = a.texts, all = a.keys, rows = a.rows / texts, first = all - rows + 1;
    if (c.bidirectional) {
        // All of a text is in the step; pairs less than a window apart.
        const double window = c.window ? std::min<double>(c.window, rows) : rows;
        return {texts * (rows * (2 * window - 1) - window * (window - 1)), texts * rows};
    }
    if (!c.window) return {texts * (rows * first + rows * (rows - 1) / 2), texts * all};
    // Rows that see all keys before them come first, and see fewer than the window's.
    const double window = c.window, growing = std::clamp(window - first + 1, 0.0, rows);
    return {texts * (growing * first + growing * (growing - 1) / 2 + (rows - growing) * window),
            texts * std::min(all, window + rows - 1)};
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

double expert_bytes(const Cost& c, double rows) {
    if (c.experts == 0) return 0;
    return c.bytes_per_expert * c.experts * (1 - std::pow(1 - static_cast<double>(c.chosen) / c.experts, rows));
}

double cost_bytes(const Cost& c, const ReplayArgs& a) {
    const KeyCount k = visible_keys(c, a);
    return c.bytes + expert_bytes(c, a.rows) + c.bytes_per_row * a.rows + c.bytes_per_key * k.distinct +
           std::min(c.partials_per_key * k.distinct, c.partials_most);
}

double cost_minimum_bytes(const Cost& c, const ReplayArgs& a) {
    return c.weights + expert_bytes(c, a.rows) + c.kv_per_key * visible_keys(c, a).distinct;
}

double cost_flops(const Cost& c, const ReplayArgs& a) {
    return c.flops + c.flops_per_row * a.rows + c.flops_per_row_key * visible_keys(c, a).sum;
}

}  // namespace akunu
