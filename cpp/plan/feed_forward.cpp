// The feed-forward, gated: h += (act(norm(h)·Wgᵀ) * norm(h)·Wuᵀ)·Wdᵀ, or plain: h += act(norm(h)·Wuᵀ)·Wdᵀ.
// Of the gate's products those far above their mean alone may be kept. Norms may stand behind it instead, and each
// product may have a bias. A parallel one reads what the attention before it has read, or a norm of its own of that,
// which the attention makes ("beside").
#include "core/error.h"
#include "plan/block.h"

namespace akunu {

namespace {

class FeedForwardBlock final : public Block {
  public:
    FeedForwardBlock(Loader& loader, const BlockPlace& place, const FeedForwardConfig& feed_forward)
        : place_(place), config_(feed_forward), n_(feed_forward.dim), activation_(feed_forward.activation) {
        const u32 dim = place.config.dim;
        const bool split = config_.cards > 1;
        const Split rows = split ? Split::kRows : Split::kNone, columns = split ? Split::kColumns : Split::kNone;
        if (!config_.parallel) norm_ = loader.optional_norm(place.name("ffn_norm"), dim);
        input_ = config_.parallel && loader.has(place.name("ffn_norm")) ? "beside" : "input";
        if (config_.parallel && !loader.has(place.name("attn_norm"))) {
            throw InvalidArgumentError("tensor '" + place.name("attn_norm") +
                                       "' is missing, whose output a parallel feed-forward reads");
        }
        if (loader.has(place.name("ffn_gate"))) {
            weights_.gate = loader.matmul(place.name("ffn_gate"), n_, dim, false, rows);
        }
        if (config_.deviations && !weights_.gate) {
            throw InvalidArgumentError("tensor '" + place.name("ffn_gate") +
                                       "' is missing, of whose products some are kept");
        }
        weights_.gate_bias = loader.optional_vector(place.name("ffn_gate_bias"), n_, split);
        weights_.up = loader.matmul(place.name("ffn_up"), n_, dim, false, rows);
        weights_.up_bias = loader.optional_vector(place.name("ffn_up_bias"), n_, split);
        down_ = loader.matmul(place.name("ffn_down"), dim, n_, false, columns);
        down_bias_ = loader.added_once(place.name("ffn_down_bias"), dim, split);
        norms_ = place.output_norms(loader, "post_ffn_norm", "ffn_output_norm");
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve(input_, place_.config.dim, input_formats(device));
        a.reserve("ffn", n_, Emitter::input_format(device, down_));
        if (!fuses() || a.wide()) {
            if (weights_.gate) a.reserve("gate", n_);
            if (!activates_up(device, Phase::kDecode) || a.wide()) a.reserve("up", n_);
        }
        Emitter::reserve_bounded(device, a, {&weights_.gate, &weights_.up, &down_});
        if (norms_.branch) a.reserve("branch", place_.config.dim);
        if (config_.cards > 1) a.reserve("partial_sums", place_.config.dim);
    }

    void emit(Emitter& e, Phase phase) const override {
        weights_.gate ? gate_up(e, phase) : up(e, phase);
        e.add_to_residual("ffn_down", place_.layer, e.activations.act("ffn"), down_, down_bias_, norms_,
                          config_.cards > 1);
    }

  private:
    bool fuses() const { return weights_.gate && weights_.fuses() && !config_.deviations; }
    bool activates_up(const Device& device, Phase phase) const {
        const ActivatedMatmuls known = device.traits().activated_matmuls;
        const bool prompt = phase == Phase::kPrefill || phase == Phase::kEncoded;
        return !weights_.gate && !weights_.up.bounded() &&
               (known == ActivatedMatmuls::kAll || (known == ActivatedMatmuls::kOfPrompts && prompt));
    }
    u32 input_formats(const Device& device) const {
        const Weight& gate = weights_.gate;
        return Emitter::input_format(device, weights_.up) | (gate ? Emitter::input_format(device, gate) : 0);
    }

    u32 added_formats(const Emitter& e) const {
        const Weight weights[] = {weights_.gate, weights_.up};
        return e.adapter_formats(weights);
    }

    Act input(Emitter& e) const {
        if (config_.parallel) return e.activations.act(input_);
        return e.block_input("ffn_norm", place_.layer, norm_, input_formats(e.device) | added_formats(e));
    }

    // ffn = act(up(norm(h)))
    void up(Emitter& e, Phase phase) const {
        const Act& out = e.activations.act("ffn");
        const Act input = this->input(e);
        if (activates_up(e.device, phase) && !e.adapts(weights_.up) && !e.adapts(down_)) {
            const u32 format = e.input_format(down_);
            e.matmul("ffn_up", place_.layer, input, weights_.up, format == kActF32 ? out.f32 : out.compact,
                     {.bias = weights_.up_bias, .activation = activation_, .format = format});
            return;
        }
        const Binding& raw = e.activations.f32("up");
        e.matmul("ffn_up", place_.layer, input, weights_.up, raw, {.bias = weights_.up_bias});
        e.activate("ffn_act", place_.layer, activation_, rows_in(raw, n_), {}, out, e.input_formats(down_));
    }

    // ffn = act(gate(norm(h))) * up(norm(h))
    void gate_up(Emitter& e, Phase phase) const {
        const Act& out = e.activations.act("ffn");
        const u32 formats = e.input_formats(down_);
        if (phase == Phase::kDecode && e.fuses_norms() && norm_ && fuses() && !added_formats(e)) {
            e.norm_gated("ffn", place_.layer, activation_, norm_, weights_, out, formats);
            return;
        }
        const Act input = this->input(e);
        e.gated("ffn", place_.layer, activation_, input, weights_, out, formats, config_.deviations);
    }

    const BlockPlace place_;
    const FeedForwardConfig config_;
    const u32 n_;
    const Activation activation_;
    const char* input_ = "input";
    Norm norm_;
    Emitter::Gated weights_;
    Weight down_;
    Vector down_bias_;
    Emitter::OutputNorms norms_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const FeedForwardConfig& feed_forward) {
    return std::make_unique<FeedForwardBlock>(loader, place, feed_forward);
}

}  // namespace akunu
