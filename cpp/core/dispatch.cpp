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
    KeyCount k;
    for (std::uint32_t r = 0; r < a.rows; ++r) {
        const double all = static_cast<double>(a.position) + r + 1;
        k.sum += c.window ? std::min<double>(all, c.window) : all;
    }
    const double all = static_cast<double>(a.position) + a.rows;
    k.distinct = c.window ? std::min<double>(all, static_cast<double>(c.window) + a.rows - 1) : all;
    return k;
}

}  // namespace

std::string CommandLabel::full_name() const {
    return layer >= 0 ? "layers." + std::to_string(layer) + "." + name : name;
}

double cost_bytes(const Cost& c, const ReplayArgs& a) {
    const KeyCount k = visible_keys(c, a);
    return c.bytes + c.bytes_per_row * a.rows + c.bytes_per_key * k.distinct;
}

double cost_minimum_bytes(const Cost& c, const ReplayArgs& a) {
    return c.weights + c.kv_per_key * visible_keys(c, a).distinct;
}

double cost_flops(const Cost& c, const ReplayArgs& a) {
    return c.flops + c.flops_per_row * a.rows + c.flops_per_row_key * visible_keys(c, a).sum;
}

}  // namespace akunu
