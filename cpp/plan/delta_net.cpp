// A gated delta net in attention's place (Yang et al., 2024; Qwen3-Next, Qwen 3.5):
//   q, k, v = silu(conv(norm(h)·Wqkvᵀ)); z, b, a = norm(h)·Wzᵀ, norm(h)·Wbᵀ, norm(h)·Waᵀ
//   o = the gated delta rule of q, k, v, b and a, whose state is the sequence's (DeltaRuleParams)
//   h += (rms_norm(o)·w·silu(z))·Woᵀ
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "plan/block.h"

namespace akunu {

namespace {

class DeltaNetBlock final : public Block {
  public:
    DeltaNetBlock(Loader& loader, const BlockPlace& place, const DeltaNetConfig& net)
        : place_(place), net_(net), record_(delta_record(net.key_heads, net.value_heads, net.key_dim, net.value_dim)) {
        const std::uint64_t dim = place.config.dim, heads = net.value_heads;
        norm_ = loader.norm(place.name("attn_norm"), dim);
        // Where z is between them in the file, q, k and v are tensors of their own.
        if (loader.has(place.name("delta_qkv"))) {
            qkv_ = {loader.matmul(place.name("delta_qkv"), net.channels(), dim)};
        } else {
            const std::uint64_t keys = std::uint64_t{net.key_heads} * net.key_dim;
            qkv_ = {loader.matmul(place.name("delta_q"), keys, dim), loader.matmul(place.name("delta_k"), keys, dim),
                    loader.matmul(place.name("delta_v"), net.values(), dim)};
        }
        z_ = loader.matmul(place.name("delta_z"), net.values(), dim);
        b_ = loader.matmul(place.name("delta_b"), heads, dim);
        a_ = loader.matmul(place.name("delta_a"), heads, dim);
        conv_ = loader.depthwise(place.name("delta_conv"), net.channels(), net.taps);
        std::vector<float> constants;
        const auto add = [&](const char* tensor, std::uint64_t n) {
            const std::vector<float> values = loader.values(place.name(tensor), n);
            constants.insert(constants.end(), values.begin(), values.end());
        };
        // A file has the decay's factor, or A_log, the logarithm of its negative.
        const bool logarithm = loader.has(place.name("delta_a_log"));
        add(logarithm ? "delta_a_log" : "delta_decay", heads);
        if (logarithm) {
            for (float& v : constants) v = -std::exp(v);
        }
        add("delta_dt_bias", heads);
        add("delta_norm", net.value_dim);
        constants_ = loader.computed(constants);
        output_ = loader.matmul(place.name("delta_output"), dim, net.values());
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        a.reserve("delta_qkv", net_.channels());
        a.reserve("delta_conv", net_.channels());
        a.reserve("delta_z", net_.values());
        a.reserve("delta_gates", 2ull * net_.value_heads);
        a.reserve("delta", net_.values(), device.matmul_input(output_.dtype) | (whole_blocks() ? 0u : u32{kActF32}));
    }

    Kept keeps(const Device& /*device*/, const KvTypes& /*types*/) const override {
        const std::uint64_t inputs = (net_.taps - 1 + kStashRows) * std::uint64_t{net_.channels()};
        return {.bytes = (conv_at() + inputs) * sizeof(float), .owner = Kept::Owner::kSequence};
    }

    void emit(Emitter& e, Phase phase) const override {
        const Binding &qkv = e.activations.f32("delta_qkv"), &convolved = e.activations.f32("delta_conv");
        const Binding &z = e.activations.f32("delta_z"), &gates = e.activations.f32("delta_gates");
        const u32 heads = net_.value_heads;
        if (phase == Phase::kDecode && joins_norm(e)) {
            project_normed(e, qkv, z, gates);
        } else {
            const Act input =
                e.block_input("attn_norm", place_.layer, norm_, input_formats(e.device) | added_formats(e));
            project(e, input, qkv);
            e.matmul("delta_z", place_.layer, input, z_, z);
            e.matmul("delta_b", place_.layer, input, b_, gates, {.y_stride = 2 * heads});
            e.matmul("delta_a", place_.layer, input, a_, from(gates, heads), {.y_stride = 2 * heads});
        }
        const Binding& state = e.step.state.at(place_.index);
        e.emit(Op::kShortConv, "delta_conv", place_.layer)
            .buffer(qkv)
            .buffer(conv_)
            .buffer({state.buffer, state.offset + conv_at() * sizeof(float)})
            .buffer(convolved)
            .buffer(e.step.rows)
            .buffer(e.step.slots)
            .shape(shape_of(net_.channels(), net_.taps))
            .params(ShortConvParams{.rows = 0,
                                    .step = 0,
                                    .channels = net_.channels(),
                                    .taps = net_.taps,
                                    .has_bias = 0,
                                    .activation = 1 + u32{kActSilu},
                                    .state_words = e.step.state_words,
                                    .gated = 0});
        const Act& out = e.activations.act("delta");
        const u32 format = e.input_format(output_), formats = e.input_formats(output_);
        e.emit(Op::kDeltaRule, "delta_rule", place_.layer)
            .buffer(convolved)
            .buffer(gates)
            .buffer(z)
            .buffer(constants_)
            .buffer(state)
            .act(out)
            .buffer(e.step.rows)
            .buffer(e.step.state_spans)
            .buffer(e.step.slots)
            .shape(shape_of(heads, net_.key_dim) + "x" + std::to_string(net_.value_dim))
            .params(DeltaRuleParams{.rows = 0,
                                    .step = 0,
                                    .key_heads = net_.key_heads,
                                    .value_heads = heads,
                                    .key_dim = net_.key_dim,
                                    .value_dim = net_.value_dim,
                                    .grouped = net_.grouped,
                                    .formats = whole_blocks() ? formats : u32{kActF32},
                                    .state_words = e.step.state_words,
                                    .scale = 1.0f / std::sqrt(static_cast<float>(net_.key_dim)),
                                    .l2_eps = net_.l2_eps,
                                    .norm_eps = net_.norm_eps});
        if (!whole_blocks() && format != kActF32) e.quantize("delta_out", place_.layer, out, net_.values(), format);
        e.add_to_residual("delta_output", place_.layer, out, output_, {}, {});
    }

  private:
    u32 input_formats(const Device& device) const {
        u32 formats = device.matmul_input(z_.dtype) | device.matmul_input(b_.dtype) | device.matmul_input(a_.dtype);
        for (const Weight& w : qkv_) formats |= device.matmul_input(w.dtype);
        return formats;
    }
    u32 added_formats(const Emitter& e) const {
        std::vector<Weight> weights = qkv_;
        weights.insert(weights.end(), {z_, b_, a_});
        return e.adapter_formats(weights);
    }
    // A buffer from one of its floats on.
    static Binding from(const Binding& b, std::uint64_t first) {
        return part_of(b, first, (b.end() - b.offset) / sizeof(float) - first);
    }
    // The rows of q, k and v, side by side.
    void project(Emitter& e, const Act& input, const Binding& out) const {
        each_projection(out, [&](const char* name, const Weight& w, const Binding& y) {
            e.matmul(name, place_.layer, input, w, y, {.y_stride = qkv_.size() == 1 ? 0 : net_.channels()});
        });
    }
    // Whether each product of one row may norm its input itself.
    bool joins_norm(const Emitter& e) const {
        std::vector<Weight> weights = qkv_;
        weights.insert(weights.end(), {z_, b_, a_});
        const bool planar = std::ranges::any_of(weights, [](const Weight& w) { return bool(w.scales); });
        return e.fuses_norms() && !added_formats(e) && !planar && b_.dtype == a_.dtype;
    }
    void project_normed(Emitter& e, const Binding& qkv, const Binding& z, const Binding& gates) const {
        const auto multiply = [&](const char* name, const Weight& w, const Binding& y, const Weight* second = nullptr) {
            e.norm_matmuls(name, place_.layer,
                           {.x = e.hidden(),
                            .norm = norm_.weight,
                            .eps = place_.config.norm_eps,
                            .first = &w,
                            .key = second,
                            .key_offset = second ? net_.value_heads : 0},
                           y);
        };
        each_projection(qkv, multiply);
        multiply("delta_z", z_, z);
        multiply("delta_gates", b_, gates, &a_);
    }
    // The matrices of q, k and v, and where in a row their results go.
    template <typename F>
    void each_projection(const Binding& out, F&& f) const {
        constexpr const char* kNames[] = {"delta_q", "delta_k", "delta_v"};
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < qkv_.size(); ++i) {
            f(qkv_.size() == 1 ? "delta_qkv" : kNames[i], qkv_[i], from(out, first));
            first += qkv_[i].rows;
        }
    }
    // Whether a head's values are whole blocks of the compact formats.
    bool whole_blocks() const { return net_.value_dim % 32 == 0; }
    // Where the convolution's part of a record begins, in floats.
    std::uint64_t conv_at() const { return (record_.words + 15) / 16 * 16; }

    const BlockPlace place_;
    const DeltaNetConfig net_;
    const DeltaRecord record_;
    Norm norm_;
    Vector conv_, constants_;
    std::vector<Weight> qkv_;
    Weight z_, b_, a_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const DeltaNetConfig& net) {
    return std::make_unique<DeltaNetBlock>(loader, place, net);
}

}  // namespace akunu
