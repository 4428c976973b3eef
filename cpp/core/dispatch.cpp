#include "core/dispatch.h"

#include <algorithm>

namespace akunu {

std::string_view op_name(Op op) {
    static constexpr std::array<std::string_view, static_cast<std::size_t>(Op::kCount)> kNames = {
        "embed",           "rope_table",      "norm",         "norm_add",       "quantize",      "matmul",
        "gate_up",         "norm_qkv",        "norm_gate_up", "gate_act",       "rope_kv",       "attention",
        "attention_split", "attention_merge", "argmax",       "sample_prepare", "sample_select", "logprobs"};
    return kNames[static_cast<std::size_t>(op)];
}

namespace {

// Keys visible to each row of a replay: their sum over the rows, and their union.
struct KeyCount {
    double sum = 0, distinct = 0;
};

KeyCount visible_keys(const Cost& c, const ReplayArgs& a) {
    const double first = static_cast<double>(a.position) + 1, rows = a.rows, all = first + rows - 1;
    if (!c.window) return {rows * first + rows * (rows - 1) / 2, all};
    // Rows that see all keys before them come first, and see fewer than the window's.
    const double window = c.window, growing = std::clamp(window - a.position, 0.0, rows);
    return {growing * first + growing * (growing - 1) / 2 + (rows - growing) * window,
            std::min(all, window + rows - 1)};
}

}  // namespace

std::string CommandLabel::full_name() const {
    return layer >= 0 ? "layers." + std::to_string(layer) + "." + name : name;
}

double cost_bytes(const Cost& c, const ReplayArgs& a) {
    const KeyCount k = visible_keys(c, a);
    return c.bytes + c.bytes_per_row * a.rows + c.bytes_per_key * k.distinct +
           std::min(c.partials_per_key * k.distinct, c.partials_most);
}

double cost_minimum_bytes(const Cost& c, const ReplayArgs& a) {
    return c.weights + c.kv_per_key * visible_keys(c, a).distinct;
}

double cost_flops(const Cost& c, const ReplayArgs& a) {
    return c.flops + c.flops_per_row * a.rows + c.flops_per_row_key * visible_keys(c, a).sum;
}

}  // namespace akunu
