// Attention to a sound, whose keys and values were computed once for all texts that are decoded from it:
//   of a sound, once: k, v = states·Wᵀ (+ bias); pages[position] = k, v
//   q = norm(h)·Wᵀ + bias
//   h += (softmax(scale·q·Kᵀ)·V)·Woᵀ + bias
#include "plan/block.h"

namespace akunu {

namespace {

class CrossAttentionBlock final : public Block {
  public:
    CrossAttentionBlock(Loader& loader, const ModelConfig& config, const LayerConfig& layer, const LayerPlace& place)
        : config_(config), layer_(layer), index_(place.index) {
        const auto name = [&](const char* tensor) { return place.prefix + tensor; };
        const std::uint64_t dim = config.dim, q = layer.q_dim(), kv = layer.kv_dim();
        norm_ = loader.norm(name("cross_norm"), dim);
        q_ = loader.matmul(name("cross_q"), q, dim);
        q_bias_ = loader.optional_vector(name("cross_q_bias"), q);
        k_ = loader.matmul(name("cross_k"), kv, dim, true);
        k_bias_ = loader.optional_vector(name("cross_k_bias"), kv);
        v_ = loader.matmul(name("cross_v"), kv, dim, true);
        v_bias_ = loader.optional_vector(name("cross_v_bias"), kv);
        output_ = loader.matmul(name("cross_output"), dim, q);
        output_bias_ = loader.optional_vector(name("cross_output_bias"), dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", config_.dim, device.matmul_input(q_.dtype));
        a.reserve("cross_q", layer_.q_dim());
        a.reserve("attn", layer_.q_dim(), kActF32 | device.matmul_input(output_.dtype));
        if (device.traits().split_attention) {
            a.reserve_bytes("partials", device.attention_partial_bytes(layer_.n_heads, layer_.head_dim, positions()));
        }
    }

    void emit(Emitter& e, Phase phase) const override {
        const Binding& q = e.activations.f32("cross_q");
        const Act input = e.block_input("cross_norm", index_, norm_, e.input_format(q_));
        e.matmul("cross_q", index_, input, q_, q, {.bias = q_bias_});
        attend(e, phase);
        if (phase == Phase::kAligned && e.step.heads.at(at())) weights(e);
        e.add_to_residual("cross_output", index_, e.activations.act("attn"), output_, output_bias_, {});
    }

    void reserve_sound(const Device& device, Activations& a) const override {
        a.reserve("input", config_.dim, sound_formats(device));
        a.reserve("cross_k", layer_.kv_dim());
        a.reserve("cross_v", layer_.kv_dim());
    }
    std::uint32_t sound_formats(const Device& device) const override {
        return device.matmul_input(k_.dtype) | device.matmul_input(v_.dtype);
    }
    std::uint64_t sound_page_bytes(const Device& device, DType dtype) const override {
        return device.kv_page_bytes(dtype, layer_.n_kv_heads, layer_.head_dim);
    }

    void emit_sound(Emitter& e, const Act& states) const override {
        const Binding &k = e.activations.f32("cross_k"), &v = e.activations.f32("cross_v");
        e.matmul("cross_k", index_, states, k_, k, {.bias = k_bias_});
        e.matmul("cross_v", index_, states, v_, v, {.bias = v_bias_});
        e.emit(Op::kRopeKv, "cross_kv", index_)
            .buffer({})
            .buffer(k)
            .buffer(v)
            .buffer({})
            .buffer(e.step.sound_kv.at(at()))
            .buffer({})
            .buffer(e.step.sound_rows)
            .buffer(e.step.sound_pages)
            .kv(e.step.kv_dtype)
            .shape(shape_of(layer_.n_kv_heads, layer_.head_dim))
            .params(RopeKvParams{.rows = 0,
                                 .step = 0,
                                 .n_heads = 0,
                                 .n_kv_heads = layer_.n_kv_heads,
                                 .head_dim = layer_.head_dim,
                                 .rope_dim = 0,
                                 .style = kRopeHalf,
                                 .qk_norm = 0,
                                 .eps = config_.norm_eps,
                                 .max_pages = e.step.sound_max_pages,
                                 .page_words = e.step.sound_page_words});
    }

  private:
    std::size_t at() const { return static_cast<std::size_t>(index_); }
    std::uint32_t positions() const { return config_.cross->positions; }

    void attend(Emitter& e, Phase phase) const {
        e.attention("cross_attention", index_, phase,
                    {.q = e.activations.f32("cross_q"),
                     .kv = e.step.sound_kv.at(at()),
                     .rows = e.step.sound_rows,
                     .pages = e.step.sound_pages},
                    {.rows = 0,
                     .step = 0,
                     .keys = 1,
                     .n_heads = layer_.n_heads,
                     .n_kv_heads = layer_.n_kv_heads,
                     .head_dim = layer_.head_dim,
                     .window = 0,
                     .max_pages = e.step.sound_max_pages,
                     .page_words = e.step.sound_page_words,
                     .scale = config_.attn_scale,
                     .softcap = 0,
                     .formats = e.input_format(output_),
                     .bidirectional = 0,
                     .fixed_keys = positions()});
    }

    // The weights of the layer's aligned heads.
    void weights(Emitter& e) const {
        std::size_t before = 0;
        for (std::size_t i = 0; i < at(); ++i) before += config_.cross->aligned[i].size();
        const std::uint64_t head = std::uint64_t{e.step.aligned_rows} * positions() * sizeof(float);
        const std::size_t chosen = config_.cross->aligned[at()].size();
        e.emit(Op::kAttentionWeights, "cross_weights", index_)
            .buffer(e.activations.f32("cross_q"))
            .buffer(e.step.sound_kv.at(at()))
            .buffer(e.step.heads.at(at()))
            .buffer({e.step.aligned.buffer, e.step.aligned.offset + before * head, chosen * head})
            .buffer(e.step.sound_rows)
            .buffer(e.step.sound_pages)
            .kv(e.step.kv_dtype)
            .shape(shape_of(chosen, positions()))
            .params(AttentionWeightsParams{.rows = 0,
                                           .n_heads = layer_.n_heads,
                                           .n_kv_heads = layer_.n_kv_heads,
                                           .head_dim = layer_.head_dim,
                                           .max_pages = e.step.sound_max_pages,
                                           .page_words = e.step.sound_page_words,
                                           .scale = config_.attn_scale,
                                           .fixed_keys = positions(),
                                           .chosen = static_cast<u32>(chosen),
                                           .out_rows = e.step.aligned_rows});
    }

    const ModelConfig& config_;
    const LayerConfig layer_;
    const int index_;
    Norm norm_;
    Vector q_bias_, k_bias_, v_bias_, output_bias_;
    Weight q_, k_, v_, output_;
};

}  // namespace

std::unique_ptr<Block> load_cross_attention(Loader& loader, const ModelConfig& config, const LayerConfig& layer,
                                            const LayerPlace& place) {
    return std::make_unique<CrossAttentionBlock>(loader, config, layer, place);
}

}  // namespace akunu
