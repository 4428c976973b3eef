// The gated feed-forward: h += (act(norm(h)·Wgᵀ) * norm(h)·Wuᵀ)·Wdᵀ
#include "plan/block.h"

namespace akunu {

namespace {

class FeedForwardBlock final : public Block {
  public:
    FeedForwardBlock(Loader& loader, const ModelConfig& config, const LayerConfig& layer, const LayerPlace& place)
        : config_(config), n_(layer.ffn_dim), index_(place.index) {
        const auto name = [&](const char* tensor) { return place.prefix + tensor; };
        norm_ = loader.vector(name("ffn_norm"), config.dim);
        gate_ = loader.matmul(name("ffn_gate"), n_, config.dim);
        up_ = loader.matmul(name("ffn_up"), n_, config.dim);
        down_ = loader.matmul(name("ffn_down"), config.dim, n_);
        post_norm_ = loader.optional_vector(name("post_ffn_norm"), config.dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", config_.dim, device.matmul_input(gate_.dtype) | device.matmul_input(up_.dtype));
        a.reserve("ffn", n_, device.matmul_input(down_.dtype));
        if (!fuses_gate_up()) {
            a.reserve("gate", n_);
            a.reserve("up", n_);
        }
        if (post_norm_) a.reserve("branch", config_.dim);
    }

    void emit(Emitter& e, Phase phase) const override {
        gate_up(e, phase);
        e.add_to_residual("ffn_down", index_, e.activations.act("ffn"), down_, {}, post_norm_);
    }

  private:
    bool fuses_gate_up() const {
        return gate_.dtype == up_.dtype && gate_.packed == up_.packed && !gate_.scales && !up_.scales;
    }

    // ffn = act(gate(norm(h))) * up(norm(h))
    void gate_up(Emitter& e, Phase phase) const {
        const Binding& hidden = e.activations.f32("hidden");
        const Act &input = e.activations.act("input"), &out = e.activations.act("ffn");
        const u32 formats = e.input_format(down_), format = e.input_format(gate_);
        if (phase == Phase::kDecode && e.device.traits().fused_norms && fuses_gate_up()) {
            e.emit(Op::kNormGateUp, "ffn_gate_up", index_)
                .buffer(hidden)
                .buffer(norm_)
                .weight(gate_)
                .weight(up_)
                .act(out)
                .shape(shape_of(2ull * n_, config_.dim))
                .params(NormGateUpParams{.n = n_,
                                         .k = config_.dim,
                                         .activation = config_.activation,
                                         .formats = formats,
                                         .eps = config_.norm_eps});
            return;
        }
        e.norm("ffn_norm", index_, hidden, norm_, input, format | e.input_format(up_));
        if (fuses_gate_up()) {
            e.emit(Op::kGateUp, "ffn_gate_up", index_)
                .input(input, format)
                .weight(gate_)
                .weight(up_)
                .act(out)
                .shape(shape_of(2ull * n_, config_.dim))
                .params(GateUpParams{
                    .rows = 0, .n = n_, .k = config_.dim, .activation = config_.activation, .formats = formats});
            return;
        }
        const Binding &gate = e.activations.f32("gate"), &up = e.activations.f32("up");
        e.matmul("ffn_gate", index_, input, gate_, gate);
        e.matmul("ffn_up", index_, input, up_, up);
        e.emit(Op::kGateAct, "ffn_act", index_)
            .buffer(gate)
            .buffer(up)
            .act(out)
            .shape(std::to_string(n_))
            .params(GateActParams{.rows = 0, .n = n_, .activation = config_.activation, .formats = formats});
    }

    const ModelConfig& config_;
    const u32 n_;
    const int index_;
    Vector norm_, post_norm_;
    Weight gate_, up_, down_;
};

}  // namespace

std::unique_ptr<Block> load_feed_forward(Loader& loader, const ModelConfig& config, const LayerConfig& layer,
                                         const LayerPlace& place) {
    return std::make_unique<FeedForwardBlock>(loader, config, layer, place);
}

}  // namespace akunu
