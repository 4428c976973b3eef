#include "plan/emitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace akunu {

Emitter::Emitter(const PlanContext& context, std::string phase, std::uint32_t max_rows, PatchSource rows)
    : PlanContext(context), rows_(rows), max_rows_(max_rows) {
    table_.phase = std::move(phase);
    table_.max_rows = max_rows;
    table_.rows = rows;
}

Emitter::Command Emitter::emit(Op op, std::string name, int layer) {
    if (op != Op::kMatmul && op != Op::kLoraA) emit_additions();
    table_.commands.emplace_back().op = op;
    table_.labels.push_back({std::move(name), {}, layer, {}});
    return {*this, table_.commands.size() - 1};
}

Emitter::Command& Emitter::Command::buffer(const Binding& b) {
    cmd().buffers.at(cmd().n_buffers++) = b;
    return *this;
}

Emitter::Command& Emitter::Command::weight(const Weight& w) {
    cmd().add_weight(w.dtype, w.packed, w.whole);
    return buffer(w.data);
}

Emitter::Command& Emitter::Command::planes(const Weight& w) {
    if (w.scales) return buffer(w.scales).buffer(w.biases);
    left_out_ = 2;
    return *this;
}

Emitter::Command& Emitter::Command::input(const Act& x, std::uint32_t format) {
    cmd().input_format = format;
    return buffer(x.in(format));
}

Emitter::Command& Emitter::Command::kv(const KvTypes& types) {
    cmd().kv = types;
    return *this;
}

Emitter::Command& Emitter::Command::shape(std::string text) {
    label().shape = std::move(text);
    return *this;
}

Emitter::Command& Emitter::Command::partials(std::uint32_t n_heads, std::uint32_t head_dim) {
    partial_heads_ = n_heads;
    partial_head_dim_ = head_dim;
    return *this;
}

Emitter::Command& Emitter::Command::fixed_rows(std::uint32_t n) {
    fixed_rows_ = n;
    return *this;
}

Emitter::Command& Emitter::Command::times(std::uint32_t n) {
    if (n == 0 || n > UINT16_MAX) {
        throw InvalidArgumentError("'" + label().name + "' has " + std::to_string(n) +
                                   " rows for each of a step's, expected 1.." + std::to_string(UINT16_MAX));
    }
    times_ = static_cast<std::uint16_t>(n);
    return *this;
}

void Emitter::Command::finish() {
    DispatchCmd& c = cmd();
    const OpInfo& op = op_info(c.op);
    if (c.n_buffers + left_out_ != op.buffers.size() || c.param_bytes != op.param_bytes) {
        const std::string name(op.name);
        throw Error("[" + name + "] was given " + std::to_string(c.n_buffers) + " buffers and " +
                    std::to_string(c.param_bytes) + " bytes of parameters, its row has " +
                    std::to_string(op.buffers.size()) + " and " + std::to_string(op.param_bytes));
    }
    // A buffer of a format that it does not write is none of its own.
    if (const FieldInfo* f = find_field(op, "formats")) {
        std::uint32_t formats = 0;
        std::memcpy(&formats, c.params.data() + f->offset, sizeof formats);
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            if (op.buffers[i].name == "out_f32" && !(formats & kActF32)) c.buffers[i] = {};
            if (op.buffers[i].name == "out_compact" && !(formats & ~kActF32)) c.buffers[i] = {};
        }
    }
    const auto patch = [&](const char* name, PatchSource source, std::uint16_t times = 1) {
        if (const FieldInfo* f = find_field(op, name)) c.patches.at(c.n_patches++) = {f->offset, source, times};
    };
    if (!fixed_rows_) patch("rows", emitter_.rows_, times_);
    if (!emitter_.stands_still_) patch("step", PatchSource::kStep);
    patch("keys", PatchSource::kKeys);
    // Until a replay says how many rows it has: the most that it may have, for the device to choose a kernel by.
    if (const FieldInfo* f = find_field(op, "rows")) {
        const std::uint32_t rows = fixed_rows_ ? fixed_rows_ : emitter_.max_rows_ * times_;
        std::memcpy(c.params.data() + f->offset, &rows, sizeof rows);
    }
    Cost& cost = label().cost;
    cost = op.cost(c);
    cost.bytes_per_row *= times_;
    cost.flops_per_row *= times_;
    if (fixed_rows_) {
        cost.bytes += cost.bytes_per_row * fixed_rows_;
        cost.flops += cost.flops_per_row * fixed_rows_;
        cost.bytes_per_row = cost.flops_per_row = 0;
    }
    if (partial_heads_) {
        // A key's share, which is written once and read once: of few keys, which no device limits, of more, and of
        // many.
        constexpr std::uint32_t kFewKeys = 256, kMoreKeys = 1024, kManyKeys = 4096;
        const auto bytes = [&](std::uint32_t keys) {
            return static_cast<double>(
                emitter_.device.attention_partial_bytes(partial_heads_, partial_head_dim_, keys));
        };
        cost.partials_per_key = bytes(kFewKeys) / kFewKeys;
        if (emitter_.device.traits().unsplit_keys != 0) {
            cost.partials_enough = bytes(kMoreKeys);
            cost.partials_per_key_of_many = bytes(kManyKeys) / kManyKeys;
        }
        cost.partials_most = bytes(emitter_.step.max_pages * kPagePositions);
        cost.unsplit_keys = emitter_.device.traits().unsplit_keys;
    }
}

void Emitter::norm(std::string name, int layer, const Binding& x, const Norm& norm, const Act& out,
                   std::uint32_t formats, bool gathered) {
    if (config.layer_norm) return layer_norm(std::move(name), layer, x, norm, out, config.dim, formats, gathered);
    rms_norm(std::move(name), layer, rows_in(x, config.dim), norm.weight, out,
             {.eps = config.norm_eps, .formats = formats, .gathered = gathered});
}

void Emitter::layer_norm(std::string name, int layer, const Binding& x, const Norm& norm, const Act& out,
                         std::uint32_t dim, std::uint32_t formats, bool gathered, std::optional<float> eps) {
    emit(Op::kLayerNorm, std::move(name), layer)
        .buffer(x)
        .buffer(norm.weight)
        .buffer(norm.bias)
        .act(out)
        .buffer(gathered ? step.logit_rows : Binding{})
        .shape(std::to_string(dim))
        .params(LayerNormParams{.rows = 0,
                                .dim = dim,
                                .eps = eps.value_or(config.norm_eps),
                                .formats = formats,
                                .has_bias = bool(norm.bias),
                                .gather = gathered});
}

void Emitter::rms_norm(std::string name, int layer, const Act& x, const Vector& weight, const Act& out,
                       const RmsNormOptions& o) {
    emit(Op::kNorm, std::move(name), layer)
        .buffer(x.f32)
        .buffer(weight)
        .act(out)
        .buffer(o.gathered ? step.logit_rows : Binding{})
        .shape(x.times == 1 ? std::to_string(x.dim) : shape_of(x.times, x.dim))
        .times(x.times)
        .params(NormParams{
            .rows = 0, .dim = x.dim, .eps = o.eps, .formats = o.formats, .gather = o.gathered, .sum_scale = 1});
}

void Emitter::norm_matmuls(std::string name, int layer, const NormedMatmuls& of, const Binding& y) {
    auto c = emit(Op::kNormQkv, std::move(name), layer);
    c.buffer(of.x).buffer(of.norm).weight(*of.first);
    for (const Weight* w : {of.key, of.value}) w ? c.weight(*w) : c.buffer({});
    const std::uint64_t rows = of.first->rows + (of.key ? of.key->rows : 0) + (of.value ? of.value->rows : 0);
    c.buffer(y).buffer(of.bias).shape(shape_of(rows, of.first->cols));
    c.params(NormQkvParams{.n_q = static_cast<u32>(of.first->rows),
                           .n_kv = of.key ? static_cast<u32>(of.key->rows) : 0,
                           .k = static_cast<u32>(of.first->cols),
                           .k_offset = of.key_offset,
                           .v_offset = of.value_offset,
                           .has_bias = bool(of.bias),
                           .eps = of.eps});
}

Act Emitter::block_input(std::string name, int layer, const Norm& norm, std::uint32_t formats) {
    const Binding& hidden = this->hidden();
    const Act& input = activations.act("input");
    if (norm) {
        this->norm(std::move(name), layer, hidden, norm, input, formats);
        return input;
    }
    if (const std::uint32_t compact = formats & ~kActF32) {
        emit(Op::kQuantize, std::move(name), layer)
            .buffer(hidden)
            .act({{}, input.compact})
            .shape(std::to_string(config.dim))
            .params(QuantizeParams{.rows = 0, .dim = config.dim, .formats = compact});
    }
    return {hidden, input.compact};
}

void Emitter::route(std::string name, int layer, const Binding& logits, std::uint64_t experts, std::uint32_t used,
                    const RouterConfig& router, const Routed& routed) {
    emit(Op::kRoute, std::move(name), layer)
        .buffer(logits)
        .buffer(routed.choice_bias)
        .buffer(routed.expert_scale)
        .buffer(routed.ids)
        .buffer(routed.weights)
        .shape(shape_of(used, experts))
        .params(RouteParams{.rows = 0,
                            .experts = static_cast<u32>(experts),
                            .chosen = used,
                            .gating = router.gating,
                            .groups = router.groups,
                            .groups_used = router.groups_used,
                            .group_top = router.group_top,
                            .renormalise = router.renormalise,
                            .sum_eps = router.sum_eps,
                            .sum_min = router.sum_min,
                            .scale = router.scale,
                            .has_choice_bias = bool(routed.choice_bias),
                            .has_expert_scale = bool(routed.expert_scale)});
}

void Emitter::activate(std::string name, int layer, Activation activation, const Act& x, const Act& up, const Act& out,
                       std::uint32_t formats, std::uint32_t fixed_rows) {
    emit(Op::kGateAct, std::move(name), layer)
        .buffer(x.f32)
        .buffer(up.f32)
        .act(out)
        .shape(std::to_string(x.dim))
        .fixed_rows(fixed_rows)
        .params(GateActParams{.rows = 0,
                              .n = x.dim,
                              .activation = activation,
                              .formats = formats,
                              .gated = bool(up.f32),
                              .up_stride = up.f32 ? up.stride : x.dim});
}

void Emitter::attention(const std::string& name, int layer, Phase phase, const AttentionInputs& in,
                        const AttentionParams& params) {
    const bool split = phase == Phase::kDecode && device.traits().split_attention;
    const std::string heads = shape_of(params.n_heads, params.head_dim);
    const Act& out = activations.act("attn");
    const Binding& raw = split ? activations.f32("partials") : out.f32;
    auto c = emit(split ? Op::kAttentionSplit : Op::kAttention, name, layer);
    c.buffer(in.q).buffer(in.kv).buffer(raw).buffer(in.rows).buffer(in.pages);
    c.kv(step.kv_types).shape(heads);
    const u32 values = value_dim(params.head_dim, params.latent);
    if (split) {
        AttentionParams merged = params;
        merged.formats |= in.formats;
        const bool writes = device.traits().unsplit_keys != 0;
        c.buffer(writes ? in.sinks : Binding{}).act(writes ? out : Act{});
        c.partials(params.n_heads, values).params(writes ? merged : params);
        emit(Op::kAttentionMerge, name + "_merge", layer)
            .buffer(raw)
            .act(out)
            .buffer(in.rows)
            .buffer(in.sinks)
            .shape(heads)
            .partials(params.n_heads, values)
            .params(merged);
        return;
    }
    c.buffer(in.sinks).buffer(in.ends).params(params);
    if (params.formats == kActF32) return;
    quantize(name + "_out", layer, out, params.n_heads * values, params.formats);
}

bool Emitter::Gated::fuses() const {
    const bool same = gate.dtype == up.dtype && gate.packed == up.packed;
    return same && !gate.bounded() && !up.bounded() && !gate.scales && !up.scales && !gate_bias && !up_bias;
}

void Emitter::norm_gated(const std::string& name, int layer, Activation activation, const Norm& norm,
                         const Gated& weights, const Act& out, std::uint32_t formats) {
    const u32 n = static_cast<u32>(weights.gate.rows);
    emit(Op::kNormGateUp, name + "_gate_up", layer)
        .buffer(hidden())
        .buffer(norm.weight)
        .weight(weights.gate)
        .weight(weights.up)
        .act(out)
        .shape(shape_of(2ull * n, config.dim))
        .params(NormGateUpParams{
            .n = n, .k = config.dim, .activation = activation, .formats = formats, .eps = config.norm_eps});
}

void Emitter::gated(const std::string& name, int layer, Activation activation, const Act& x, const Gated& weights,
                    const Act& out, std::uint32_t formats, std::optional<float> deviations) {
    const Weight &gate = weights.gate, &up = weights.up;
    const u32 n = static_cast<u32>(gate.rows), k = static_cast<u32>(gate.cols);
    if (weights.fuses() && !deviations && !adapts(gate) && !adapts(up)) {
        emit(Op::kGateUp, name + "_gate_up", layer)
            .input(x, input_format(gate))
            .weight(gate)
            .weight(up)
            .act(out)
            .shape(shape_of(2ull * n, k))
            .params(GateUpParams{.rows = 0, .n = n, .k = k, .activation = activation, .formats = formats});
        return;
    }
    const Binding &g = activations.f32("gate"), &u = activations.f32("up");
    matmul(name + "_gate", layer, x, gate, g, {.bias = weights.gate_bias});
    if (deviations) {
        emit(Op::kSparsify, name + "_sparsify", layer)
            .buffer(g)
            .shape(std::to_string(n))
            .params(SparsifyParams{.rows = 0, .n = n, .deviations = *deviations});
    }
    matmul(name + "_up", layer, x, up, u, {.bias = weights.up_bias});
    activate(name + "_act", layer, activation, rows_in(g, n), rows_in(u, n), out, formats);
}

void Emitter::embed(std::string name, const Binding& ids, const Weight& table, const Binding& out,
                    const std::string& shape, const EmbedOptions& o) {
    emit(Op::kEmbed, std::move(name))
        .buffer(ids)
        .weight(table)
        .buffer(out)
        .buffer(o.rows ? o.rows : step.rows)
        .planes(table)
        .shape(shape)
        .params(EmbedParams{.rows = 0,
                            .step = 0,
                            .dim = o.dim,
                            .vocab = o.vocab,
                            .history_stride = step.history_stride,
                            .scale = o.scale,
                            .accumulate = o.accumulate});
}

void Emitter::quantize(std::string name, int layer, const Act& x, u32 dim, std::uint32_t format) {
    emit(Op::kQuantize, std::move(name), layer)
        .buffer(x.f32)
        .buffer({})
        .buffer(x.compact)
        .shape(std::to_string(dim))
        .params(QuantizeParams{.rows = 0, .dim = dim, .formats = format});
}

void Emitter::matmul(std::string name, int layer, const Act& x, const Weight& w, const Binding& y,
                     const MatmulOptions& o) {
    if (w.bounded()) return bounded_matmul(name, layer, x, w, y, o);
    const u32 n = static_cast<u32>(w.rows), k = static_cast<u32>(w.cols);
    if (adapters) begin_addition(name, layer, x, w, y, o);
    emit(Op::kMatmul, std::move(name), layer)
        .input(x, input_format(w))
        .weight(w)
        .buffer(y)
        .buffer(o.bias)
        .planes(w)
        .shape(shape_of(n, k))
        .fixed_rows(o.fixed_rows)
        .params(MatmulParams{.rows = 0,
                             .n = n,
                             .k = k,
                             .y_stride = o.y_stride ? o.y_stride : n,
                             .accumulate = o.accumulate,
                             .has_bias = bool(o.bias),
                             .softcap = o.softcap,
                             .activation = o.activation ? 1 + u32{*o.activation} : 0,
                             .format = o.format});
    if (joins_addition(w, max_rows_)) emit_additions();
}

void Emitter::affine(std::string name, int layer, const Binding& x, const Vector& scale, const Vector& bias,
                     const Binding& y, u32 dim, const Bounds& bounds) {
    emit(Op::kAffine, std::move(name), layer)
        .buffer(x)
        .buffer(scale)
        .buffer(bias)
        .buffer(y)
        .shape(std::to_string(dim))
        .params(AffineParams{.rows = 0,
                             .dim = dim,
                             .has_scale = bool(scale),
                             .has_bias = bool(bias),
                             .low = bounds.low,
                             .high = bounds.high});
}

void Emitter::reserve_bounded(const Device& device, Activations& activations,
                              std::initializer_list<const Weight*> weights) {
    for (const Weight* w : weights) {
        if (w->bounded()) activations.reserve("bounded", w->cols, kActF32 | device.matmul_input(w->dtype));
    }
}

void Emitter::bounded_matmul(const std::string& name, int layer, const Act& x, const Weight& w, const Binding& y,
                             const MatmulOptions& o) {
    if (o.accumulate || o.activation || o.format != kActF32 || o.y_stride || o.softcap != 0) {
        throw InvalidArgumentError("the " + name + " of layer " + std::to_string(layer) +
                                   " has bounds, which is supported where a norm or an activation follows alone");
    }
    const Act& input = activations.act("bounded");
    const u32 n = static_cast<u32>(w.rows), k = static_cast<u32>(w.cols);
    affine(name + "_input", layer, x.f32, {}, {}, input.f32, k, w.input_bounds);
    Weight free = w;
    free.input_bounds = free.output_bounds = {};
    const std::uint32_t format = input_format(free);
    if (format != kActF32) quantize(name + "_input", layer, input, k, format);
    matmul(name, layer, input, free, y, o);
    if (w.output_bounds) affine(name + "_output", layer, y, {}, {}, y, n, w.output_bounds);
}

void Emitter::begin_addition(const std::string& name, int layer, const Act& x, const Weight& w, const Binding& y,
                             const MatmulOptions& o) {
    const auto reads = [&](const Addition& a) {
        const auto is = [&](const Binding& b) { return b && b.buffer.handle == a.y.buffer.handle; };
        return is(x.f32) || is(x.compact);
    };
    if (additions_.size() == adapters->scratch.size() || std::ranges::any_of(additions_, reads)) emit_additions();
    if (!adapts(w)) return;
    if (o.softcap != 0 || o.activation || o.format != kActF32 || o.fixed_rows) {
        throw InvalidArgumentError("the products of " + name + " go through a function, to which nothing is added");
    }
    const AdapterPlan::Layer& part = adapters->parts.at(w.linear - 1);
    const LoraParams params{.rows = 0,
                            .n = static_cast<u32>(w.rows),
                            .k = static_cast<u32>(w.cols),
                            .max_rank = part.max_rank,
                            .slot_words = adapters->slot_words,
                            .y_stride = o.y_stride ? o.y_stride : static_cast<u32>(w.rows),
                            .gather = o.gathered,
                            .format = adapter_format(w)};
    const Binding& t = adapters->scratch.at(scratch_++ % adapters->scratch.size());
    emit_addition(Op::kLoraA, name + "_lora_a", layer, x.in(params.format), t, params, part);
    additions_.push_back({name + "_lora_b", layer, t, y, params, part});
}

void Emitter::emit_addition(Op op, const std::string& name, int layer, const Binding& from, const Binding& to,
                            const LoraParams& params, const AdapterPlan::Layer& part) {
    const Binding& slots = adapters->slots;
    emit(op, name, layer)
        .buffer(from)
        .buffer({slots.buffer, slots.offset + part.offset})
        .buffer(to)
        .buffer(step.rows)
        .buffer(adapters->choices)
        .buffer(params.gather ? step.logit_rows : Binding{})
        .shape(op == Op::kLoraA ? shape_of(params.max_rank, params.k) : shape_of(params.n, params.max_rank))
        .params(params);
}

void Emitter::emit_additions() {
    for (const Addition& a : std::exchange(additions_, {})) {
        emit_addition(Op::kLoraB, a.name, a.layer, a.t, a.y, a.params, a.part);
    }
}

void Emitter::add_to_residual(const std::string& name, int layer, const Act& x, const Weight& w, const Vector& bias,
                              const OutputNorms& norms, bool reduces) {
    const Binding& hidden = this->hidden();
    const auto add = [&](const Binding& y, bool accumulate) {
        if (!reduces) return matmul(name, layer, x, w, y, {.bias = bias, .accumulate = accumulate});
        const Binding& partial = activations.f32("partial_sums");
        matmul(name, layer, x, w, partial, {.bias = bias});
        all_reduce(name + "_sum", layer, partial, y, config.dim, accumulate);
    };
    if (!norms.branch) {
        if (norms.scale != 1) {
            throw InvalidArgumentError("the " + name + " of layer " + std::to_string(layer) +
                                       " has no norm behind it, which a layer's factor needs");
        }
        add(hidden, true);
        if (norms.sum) norm(name + "_norm", layer, hidden, norms.sum, {hidden, {}}, kActF32);
        return;
    }
    const Binding& branch = activations.f32("branch");
    add(branch, false);
    add_normed(name + "_post_norm", layer, branch, norms.branch, hidden, norms.scale);
}

void Emitter::all_reduce(std::string name, int layer, const Binding& x, const Binding& y, u32 dim, bool accumulate) {
    emit(Op::kAllReduce, std::move(name), layer)
        .buffer(x)
        .buffer(y)
        .shape(std::to_string(dim))
        .params(AllReduceParams{
            .rows = 0, .dim = dim, .accumulate = accumulate, .gather = 0, .x_stride = dim, .y_stride = dim});
}

void Emitter::add_normed(std::string name, int layer, const Binding& x, const Vector& weight, const Binding& y,
                         float scale) {
    emit(Op::kNormAdd, std::move(name), layer)
        .buffer(x)
        .buffer(weight)
        .buffer(y)
        .shape(std::to_string(config.dim))
        .params(NormParams{.rows = 0,
                           .dim = config.dim,
                           .eps = config.branch_norm_eps.value_or(config.norm_eps),
                           .formats = kActF32,
                           .gather = 0,
                           .sum_scale = scale});
}

void Emitter::add_rows(std::string name, int layer, const Binding& x, const Binding& y, const AddRowsOptions& o) {
    emit(Op::kAddRows, std::move(name), layer)
        .buffer(x)
        .buffer(o.like)
        .buffer(y)
        .shape(std::to_string(config.dim))
        .params(AddRowsParams{.rows = 0,
                              .dim = config.dim,
                              .accumulate = o.accumulate,
                              .matched = bool(o.like),
                              .scale = o.scale,
                              .floor = o.floor});
}

DispatchTable Emitter::take() {
    emit_additions();
    set_barriers(table_.commands);
    activations.bind(table_);
    return std::move(table_);
}

std::string rope_table_name(std::size_t set) { return "rope." + std::to_string(set); }

std::string shape_of(std::uint64_t rows, std::uint64_t cols) {
    return std::to_string(rows) + "x" + std::to_string(cols);
}

}  // namespace akunu
