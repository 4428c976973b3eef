#include "plan/table_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/sampling.h"

namespace akunu {

// The command that `emit` appended, while it is filled in. `build` has the device resolve all of them at its end.
struct TableBuilder::Emit {
    TableBuilder& builder;
    std::size_t index;

    DispatchCmd& cmd() const { return builder.table_.commands[index]; }
    CommandLabel& label() const { return builder.table_.labels[index]; }

    Emit& buffer(const Binding& b) {
        cmd().buffers.at(cmd().n_buffers++) = b;
        return *this;
    }
    Emit& weight(const Weight& w) {
        cmd().add_weight(w.dtype, w.packed);
        label().cost.weights += static_cast<double>(w.bytes());
        label().cost.bytes += static_cast<double>(w.bytes());
        return buffer(w.data);
    }
    template <typename P>
    Emit& params(const P& p) {
        cmd().set_params(p);
        return *this;
    }
    Emit& patch(std::size_t offset, PatchSource source, std::uint16_t add = 0) {
        cmd().patches.at(cmd().n_patches++) = {static_cast<std::uint8_t>(offset), source, add};
        // Until a replay says how many rows it has: the most that it may have, for the device to choose a kernel by.
        if (source == PatchSource::kRows) {
            std::memcpy(cmd().params.data() + offset, &builder.table_.max_rows, sizeof builder.table_.max_rows);
        }
        return *this;
    }
    Emit& cost(double bytes_per_row, double flops_per_row) {
        label().cost.bytes_per_row += bytes_per_row;
        label().cost.flops_per_row += flops_per_row;
        return *this;
    }
};

TableBuilder::Emit TableBuilder::emit(Op op, std::string name, int layer) {
    table_.commands.emplace_back().op = op;
    table_.labels.push_back({std::move(name), {}, layer, {}});
    return {*this, table_.commands.size() - 1};
}

bool TableBuilder::fuses_gate_up(const LayerWeights& layer) {
    return layer.ffn_gate.dtype == layer.ffn_up.dtype && layer.ffn_gate.packed == layer.ffn_up.packed;
}

namespace {

// Bytes per element that an activation of these formats takes (int8 blocks carry their scales and sums).
double act_bytes(std::uint32_t formats) {
    return (formats & kActF32 ? 4.0 : 0.0) + (formats & kActQ8 ? 1.5 : 0.0) + (formats & kActF16 ? 2.0 : 0.0);
}

std::string shape(std::uint64_t rows, std::uint64_t cols) { return std::to_string(rows) + "x" + std::to_string(cols); }

}  // namespace

DispatchTable TableBuilder::build(const TableKey& key) {
    table_ = {};
    phase_ = key.phase;
    switch (key.phase) {
        case Phase::kDecode:
            table_.phase = "decode";
            table_.max_rows = 1;
            break;
        case Phase::kBatch:
            table_.phase = "batch";
            table_.max_rows = device_.traits().max_batch_rows;
            break;
        case Phase::kPrefill:
            table_.phase = "prefill";
            table_.max_rows = ws_.chunk;
            break;
    }
    if (key.head == Head::kAllRows) table_.max_rows = ws_.all_rows;
    embed();
    rope_tables();
    for (std::uint32_t i = 0; i < config_.n_layers; ++i) layer(static_cast<int>(i));
    head(key.head);
    tail(key.tail, key.logprobs);
    for (DispatchCmd& cmd : table_.commands) device_.resolve(cmd);
    return std::move(table_);
}

void TableBuilder::embed() {
    const auto& c = config_;
    const EmbedParams p{.position = 0, .rows = 0, .dim = c.dim, .vocab = c.vocab_size, .scale = c.embedding_scale};
    auto e = emit(Op::kEmbed, "token_embedding", -1);
    e.buffer(ws_.history).weight(weights_.token_embedding).buffer(ws_.hidden).params(p);
    e.patch(offsetof(EmbedParams, position), PatchSource::kPosition);
    e.patch(offsetof(EmbedParams, rows), PatchSource::kRows);
    e.label().cost.bytes = e.label().cost.weights = 0;  // one row of the table, not all of it
    e.label().shape = std::to_string(c.dim);
    const double row = static_cast<double>(row_bytes(weights_.token_embedding.dtype, c.dim));
    e.cost(row + 4.0 * c.dim, c.dim);
}

void TableBuilder::rope_tables() {
    for (std::size_t set = 0; set < config_.rope_sets.size(); ++set) {
        const u32 half = config_.rope_dim / 2;
        const RopeTableParams p{.position = 0, .rows = 0, .half_dim = half, .scale = config_.rope_sets[set].scale};
        auto e = emit(Op::kRopeTable, set ? "rope_table_local" : "rope_table", -1);
        e.buffer(ws_.inv_freq[set]).buffer(ws_.rope[set]).params(p);
        e.patch(offsetof(RopeTableParams, position), PatchSource::kPosition);
        e.patch(offsetof(RopeTableParams, rows), PatchSource::kRows);
        e.cmd().barrier = false;  // the embedding does not touch it
        e.label().shape = std::to_string(half);
        e.cost(8.0 * half, 2.0 * half);
    }
}

void TableBuilder::norm(const char* name, int layer, const Binding& x, const Vector& weight, const Act& out,
                        std::uint32_t formats, bool last_row) {
    const u32 dim = config_.dim;
    const NormParams p{.rows = 1, .first_row = 0, .dim = dim, .eps = config_.norm_eps, .formats = formats};
    auto e = emit(Op::kNorm, name, layer);
    e.buffer(x).buffer(weight).buffer(out.f32).buffer(out.compact).params(p);
    if (last_row) {
        e.patch(offsetof(NormParams, first_row), PatchSource::kLastRow);
    } else {
        e.patch(offsetof(NormParams, rows), PatchSource::kRows);
    }
    e.label().shape = std::to_string(dim);
    const double bytes = dim * (4.0 + act_bytes(formats));
    if (last_row) {
        e.label().cost.bytes = bytes + 4.0 * dim;
        e.label().cost.flops = 4.0 * dim;
    } else {
        e.label().cost.bytes = 4.0 * dim;
        e.cost(bytes, 4.0 * dim);
    }
}

void TableBuilder::matmul(const char* name, int layer, const Act& x, const Weight& w, const Binding& y,
                          const Vector& bias, bool accumulate, bool barrier, float softcap, bool one_row) {
    const u32 n = static_cast<u32>(w.rows), k = static_cast<u32>(w.cols);
    const u32 format = input_format(w);
    const MatmulParams p{
        .rows = 1, .n = n, .k = k, .y_stride = n, .accumulate = accumulate, .has_bias = bool(bias), .softcap = softcap};
    auto e = emit(Op::kMatmul, name, layer);
    e.buffer(x.in(format)).weight(w).buffer(y).buffer(bias).params(p);
    e.cmd().input_format = format;
    e.cmd().barrier = barrier;
    e.label().shape = shape(n, k);
    const double bytes = act_bytes(format) * k + 4.0 * n * (accumulate ? 2 : 1), flops = 2.0 * n * k;
    if (one_row) {
        e.label().cost.bytes += bytes;
        e.label().cost.flops += flops;
    } else {
        e.patch(offsetof(MatmulParams, rows), PatchSource::kRows);
        e.cost(bytes, flops);
    }
}

void TableBuilder::add_to_residual(const char* name, int layer, const Act& x, const Weight& w, const Vector& bias,
                                   const Vector& post_norm) {
    if (!post_norm) {
        matmul(name, layer, x, w, ws_.hidden, bias, true, true, 0, false);
        return;
    }
    matmul(name, layer, x, w, ws_.branch, bias, false, true, 0, false);
    const NormParams p{.rows = 0, .first_row = 0, .dim = config_.dim, .eps = config_.norm_eps, .formats = kActF32};
    auto e = emit(Op::kNormAdd, std::string(name) + "_post_norm", layer);
    e.buffer(ws_.branch).buffer(post_norm).buffer(ws_.hidden).params(p);
    e.patch(offsetof(NormParams, rows), PatchSource::kRows);
    e.label().shape = std::to_string(config_.dim);
    e.cost(12.0 * config_.dim, 5.0 * config_.dim);
}

void TableBuilder::layer(int index) {
    const LayerWeights& w = weights_.layers[static_cast<std::size_t>(index)];
    qkv(index);
    attention(index);
    add_to_residual("attn_output", index, ws_.attn, w.attn_output, w.attn_output_bias, w.post_attn_norm);
    feed_forward(index);
    add_to_residual("ffn_down", index, ws_.ffn, w.ffn_down, {}, w.post_ffn_norm);
}

bool TableBuilder::fuses_norms() const { return phase_ == Phase::kDecode && device_.traits().fused_norms; }

// y, ... = norm(h)·Wᵀ (+ bias) for all three of q, k and v, where v's type may be another, or q and k, or one of them.
void TableBuilder::norm_qkv(const char* name, int index, const Weight& first, const Binding& y, const Vector& bias,
                            bool barrier, const Weight& key, const Weight& value) {
    const u32 n = static_cast<u32>(first.rows), n_key = static_cast<u32>(key.rows), k = config_.dim;
    const auto offset = [&](const Binding& b) { return static_cast<u32>((b.offset - y.offset) / sizeof(float)); };
    const NormQkvParams p{.n_q = n,
                          .n_kv = n_key,
                          .k = k,
                          .k_offset = key ? offset(ws_.k) : 0,
                          .v_offset = value ? offset(ws_.v) : 0,
                          .has_bias = bool(bias),
                          .eps = config_.norm_eps};
    const LayerWeights& w = weights_.layers[static_cast<std::size_t>(index)];
    auto e = emit(Op::kNormQkv, name, index);
    e.buffer(ws_.hidden).buffer(w.attn_norm).weight(first);
    for (const Weight* other : {&key, &value}) *other ? e.weight(*other) : e.buffer({});
    e.buffer(y).buffer(bias).params(p);
    e.cmd().barrier = barrier;
    const double rows = static_cast<double>(first.rows + key.rows + value.rows);
    e.label().shape = shape(first.rows + key.rows + value.rows, k);
    e.label().cost.bytes += 8.0 * k + 4.0 * rows;
    e.label().cost.flops = 2.0 * rows * k + 4.0 * k;
}

// q, k, v = norm(h)·Wᵀ (+ bias)
void TableBuilder::qkv(int index) {
    const LayerWeights& w = weights_.layers[static_cast<std::size_t>(index)];
    const bool same_k = w.attn_q.dtype == w.attn_k.dtype;
    // Q4_K_M and its like keep some layers' v in a wider type.
    const auto mixed = device_.traits().mixed_qkv;
    const bool v_fits = w.attn_q.dtype == w.attn_v.dtype ||
                        std::ranges::find(mixed, MixedQkv{w.attn_q.dtype, w.attn_v.dtype}) != mixed.end();
    if (fuses_norms() && same_k && v_fits) {
        norm_qkv("attn_qkv", index, w.attn_q, ws_.q, w.attn_q_bias, true, w.attn_k, w.attn_v);
        return;
    }
    if (fuses_norms() && same_k) {
        norm_qkv("attn_qk", index, w.attn_q, ws_.q, w.attn_q_bias, true, w.attn_k, {});
        norm_qkv("attn_v", index, w.attn_v, ws_.v, w.attn_v_bias, false, {}, {});
        return;
    }
    // Three independent commands, one barrier.
    const u32 formats = input_format(w.attn_q) | input_format(w.attn_k) | input_format(w.attn_v);
    norm("attn_norm", index, ws_.hidden, w.attn_norm, ws_.input, formats, false);
    matmul("attn_q", index, ws_.input, w.attn_q, ws_.q, w.attn_q_bias, false, true, 0, false);
    matmul("attn_k", index, ws_.input, w.attn_k, ws_.k, w.attn_k_bias, false, false, 0, false);
    matmul("attn_v", index, ws_.input, w.attn_v, ws_.v, w.attn_v_bias, false, false, 0, false);
}

// ffn = act(gate(norm(h))) * up(norm(h))
void TableBuilder::feed_forward(int index) {
    const auto& c = config_;
    const LayerWeights& w = weights_.layers[static_cast<std::size_t>(index)];
    const u32 n = c.ffn_dim, out_formats = input_format(w.ffn_down);
    const double bytes_out = act_bytes(out_formats) * n;
    if (fuses_norms() && fuses_gate_up(w)) {
        const NormGateUpParams p{
            .n = n, .k = c.dim, .activation = c.activation, .formats = out_formats, .eps = c.norm_eps};
        auto e = emit(Op::kNormGateUp, "ffn_gate_up", index);
        e.buffer(ws_.hidden).buffer(w.ffn_norm).weight(w.ffn_gate).weight(w.ffn_up);
        e.buffer(ws_.ffn.f32).buffer(ws_.ffn.compact).params(p);
        e.label().shape = shape(2ull * n, c.dim);
        e.label().cost.bytes += 8.0 * c.dim + bytes_out;
        e.label().cost.flops = 4.0 * n * c.dim + 4.0 * c.dim;
        return;
    }
    norm("ffn_norm", index, ws_.hidden, w.ffn_norm, ws_.input, input_format(w.ffn_gate) | input_format(w.ffn_up),
         false);
    if (fuses_gate_up(w)) {
        const u32 format = input_format(w.ffn_gate);
        const GateUpParams p{.rows = 0, .n = n, .k = c.dim, .activation = c.activation, .formats = out_formats};
        auto e = emit(Op::kGateUp, "ffn_gate_up", index);
        e.buffer(ws_.input.in(format)).weight(w.ffn_gate).weight(w.ffn_up);
        e.buffer(ws_.ffn.f32).buffer(ws_.ffn.compact).params(p);
        e.patch(offsetof(GateUpParams, rows), PatchSource::kRows);
        e.cmd().input_format = format;
        e.label().shape = shape(2ull * n, c.dim);
        e.cost(act_bytes(format) * c.dim + bytes_out, 4.0 * n * c.dim);
        return;
    }
    matmul("ffn_gate", index, ws_.input, w.ffn_gate, ws_.gate, {}, false, true, 0, false);
    matmul("ffn_up", index, ws_.input, w.ffn_up, ws_.up, {}, false, false, 0, false);
    const GateActParams p{.rows = 0, .n = n, .activation = c.activation, .formats = out_formats};
    auto e = emit(Op::kGateAct, "ffn_act", index);
    e.buffer(ws_.gate).buffer(ws_.up).buffer(ws_.ffn.f32).buffer(ws_.ffn.compact).params(p);
    e.patch(offsetof(GateActParams, rows), PatchSource::kRows);
    e.label().shape = std::to_string(n);
    e.cost(8.0 * n + bytes_out, 5.0 * n);
}

void TableBuilder::attention(int index) {
    const auto& c = config_;
    const auto l = static_cast<std::size_t>(index);
    const LayerWeights& w = weights_.layers[l];

    // q, k = rope(norm(q), norm(k)); caches[position + row] = k, v
    const RopeKvParams rp{.position = 0,
                          .rows = 0,
                          .n_heads = c.n_heads,
                          .n_kv_heads = c.n_kv_heads,
                          .head_dim = c.head_dim,
                          .rope_dim = c.rope_dim,
                          .style = c.rope_style,
                          .qk_norm = bool(w.attn_q_norm),
                          .eps = c.norm_eps,
                          .context = ws_.context};
    const double kv_elem = static_cast<double>(row_bytes(ws_.kv_dtype, 32)) / 32;
    auto r = emit(Op::kRopeKv, "rope_kv", index);
    r.buffer(ws_.q).buffer(ws_.k).buffer(ws_.v).buffer(ws_.rope[c.layer_rope[l]]);
    r.buffer(ws_.k_cache[l]).buffer(ws_.v_cache[l]).buffer(w.attn_q_norm).buffer(w.attn_k_norm).params(rp);
    r.patch(offsetof(RopeKvParams, position), PatchSource::kPosition);
    r.patch(offsetof(RopeKvParams, rows), PatchSource::kRows);
    r.cmd().kv = ws_.kv_dtype;
    r.label().shape = std::to_string(c.n_heads) + "+" + std::to_string(c.n_kv_heads) + "x" + std::to_string(c.head_dim);
    r.cost(8.0 * c.q_dim() + (8.0 + 2 * kv_elem) * c.kv_dim(), 6.0 * (c.q_dim() + c.kv_dim()));

    // o = softmax(scale·q·Kᵀ)·V
    const u32 out_formats = input_format(w.attn_output);
    const AttentionParams ap{.position = 0,
                             .rows = 0,
                             .n_heads = c.n_heads,
                             .n_kv_heads = c.n_kv_heads,
                             .head_dim = c.head_dim,
                             .window = c.layer_window[l],
                             .context = ws_.context,
                             .scale = c.attn_scale,
                             .softcap = c.attn_softcap,
                             .formats = out_formats};
    const bool split = phase_ == Phase::kDecode && device_.traits().split_attention;
    const std::string heads = shape(c.n_heads, c.head_dim);
    // A key's share in the partial results, which are written once and read once: of so few keys no device limits them.
    constexpr u32 kFewKeys = 1024;
    const auto partials = [&](u32 keys) {
        return split ? static_cast<double>(device_.attention_partial_bytes(c.n_heads, c.head_dim, keys)) : 0.0;
    };
    const double partials_per_key = partials(kFewKeys) / kFewKeys, partials_most = partials(ws_.context);
    auto e = emit(split ? Op::kAttentionSplit : Op::kAttention, "attention", index);
    e.buffer(ws_.q).buffer(ws_.k_cache[l]).buffer(ws_.v_cache[l]);
    e.buffer(split ? ws_.partials : ws_.attn_f32).params(ap);
    e.patch(offsetof(AttentionParams, position), PatchSource::kPosition);
    e.patch(offsetof(AttentionParams, rows), PatchSource::kRows);
    e.cmd().kv = ws_.kv_dtype;
    e.label().shape = heads;
    e.label().cost.window = ap.window;
    e.label().cost.kv_per_key = 2 * kv_elem * c.kv_dim();
    e.label().cost.bytes_per_key = e.label().cost.kv_per_key;
    e.label().cost.partials_per_key = partials_per_key;
    e.label().cost.partials_most = partials_most;
    e.label().cost.flops_per_row_key = 4.0 * c.q_dim();
    e.cost(split ? 4.0 * c.q_dim() : 8.0 * c.q_dim(), 0);

    if (split) {
        auto m = emit(Op::kAttentionMerge, "attention_merge", index);
        m.buffer(ws_.partials).buffer(ws_.attn.f32).buffer(ws_.attn.compact).params(ap);
        m.patch(offsetof(AttentionParams, position), PatchSource::kPosition);
        m.patch(offsetof(AttentionParams, rows), PatchSource::kRows);
        m.label().shape = heads;
        m.label().cost.window = ap.window;
        m.label().cost.partials_per_key = partials_per_key;
        m.label().cost.partials_most = partials_most;
        m.cost(act_bytes(out_formats) * c.q_dim(), 2.0 * c.q_dim());
    } else {
        const QuantizeParams qp{.rows = 0, .dim = c.q_dim(), .formats = out_formats};
        auto q = emit(Op::kQuantize, "attention_out", index);
        q.buffer(ws_.attn_f32).buffer(ws_.attn.f32).buffer(ws_.attn.compact).params(qp);
        q.patch(offsetof(QuantizeParams, rows), PatchSource::kRows);
        q.label().shape = std::to_string(c.q_dim());
        q.cost((4.0 + act_bytes(out_formats)) * c.q_dim(), 2.0 * c.q_dim());
    }
}

void TableBuilder::head(Head head) {
    if (head == Head::kNone) return;
    const bool last = head == Head::kLastRow;
    norm("output_norm", -1, ws_.hidden, weights_.output_norm, ws_.input, input_format(weights_.output), last);
    matmul("output", -1, ws_.input, weights_.output, ws_.logits, {}, false, true, config_.final_softcap, last);
}

void TableBuilder::tail(Tail tail, bool logprobs) {
    if (tail == Tail::kNone) return;
    const double v = config_.vocab_size;
    const SampleParams p{.position = 0, .step = 0, .vocab = config_.vocab_size};
    const auto sample = [&](Op op, const char* name, std::initializer_list<Binding> buffers, double bytes) {
        auto e = emit(op, name, -1);
        for (const Binding& b : buffers) e.buffer(b);
        e.params(p);
        e.patch(offsetof(SampleParams, position), PatchSource::kEnd);
        e.patch(offsetof(SampleParams, step), PatchSource::kStep);
        e.label().shape = std::to_string(config_.vocab_size);
        e.label().cost.bytes = bytes;
        e.label().cost.flops = v;
    };
    if (tail == Tail::kGreedy) {
        sample(Op::kArgmax, "argmax", {ws_.logits, ws_.history, ws_.sampler, ws_.control}, 4 * v);
    } else {
        sample(Op::kSamplePrepare, "sample_prepare", {ws_.logits, ws_.history, ws_.sampler, ws_.scaled}, 8 * v);
        sample(Op::kSampleSelect, "sample_select", {ws_.scaled, ws_.history, ws_.sampler, ws_.control}, 4 * v);
    }
    if (logprobs) sample(Op::kLogprobs, "logprobs", {ws_.logits, ws_.history, ws_.sampler, ws_.logprobs}, 4 * v);
}

}  // namespace akunu
