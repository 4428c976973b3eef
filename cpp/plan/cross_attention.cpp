// Attention to a sound, whose keys and values were computed once for all sequences that are decoded from it:
//   of a sound, once: k, v = states·Wᵀ (+ bias); pages[position] = k, v
//   q = norm(h)·Wᵀ + bias
//   h += (softmax(scale·q·Kᵀ)·V)·Woᵀ + bias
#include "plan/block.h"

namespace akunu {

namespace {

class CrossAttentionBlock final : public Block {
  public:
    CrossAttentionBlock(Loader& loader, const BlockPlace& place, const CrossAttentionConfig& attention)
        : place_(place), attention_(attention) {
        const std::uint64_t dim = place.config.dim, q = attention.q_dim(), kv = attention.kv_dim();
        norm_ = loader.norm(place.name("cross_norm"), dim);
        q_ = loader.matmul(place.name("cross_q"), q, dim);
        q_bias_ = loader.optional_vector(place.name("cross_q_bias"), q);
        k_ = loader.matmul(place.name("cross_k"), kv, dim, true);
        k_bias_ = loader.optional_vector(place.name("cross_k_bias"), kv);
        v_ = loader.matmul(place.name("cross_v"), kv, dim, true);
        v_bias_ = loader.optional_vector(place.name("cross_v_bias"), kv);
        output_ = loader.matmul(place.name("cross_output"), dim, q);
        output_bias_ = loader.optional_vector(place.name("cross_output_bias"), dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, device.matmul_input(q_.dtype));
        a.reserve("cross_q", attention_.q_dim());
        a.reserve("attn", attention_.q_dim(), kActF32 | device.matmul_input(output_.dtype));
        if (device.traits().split_attention) {
            a.reserve_bytes("partials",
                            device.attention_partial_bytes(attention_.n_heads, attention_.head_dim, positions()));
        }
    }

    void emit(Emitter& e, Phase phase) const override {
        const Binding& q = e.activations.f32("cross_q");
        const Act input = e.block_input("cross_norm", place_.layer, norm_, e.input_format(q_));
        e.matmul("cross_q", place_.layer, input, q_, q, {.bias = q_bias_});
        attend(e, phase);
        if (phase == Phase::kAligned && e.step.heads.at(at())) weights(e);
        e.add_to_residual("cross_output", place_.layer, e.activations.act("attn"), output_, output_bias_, {});
    }

    void reserve_sound(const Device& device, Activations& a) const override {
        a.reserve("input", place_.config.dim, sound_formats(device));
        a.reserve("cross_k", attention_.kv_dim());
        a.reserve("cross_v", attention_.kv_dim());
    }
    std::uint32_t sound_formats(const Device& device) const override {
        return device.matmul_input(k_.dtype) | device.matmul_input(v_.dtype);
    }
    Kept keeps(const Device& device, const KvTypes& types) const override {
        const std::uint32_t heads = attention_.n_kv_heads, dim = attention_.head_dim;
        return {.bytes = device.kv_bytes(types.k, heads, dim) + device.kv_bytes(types.v, heads, dim),
                .owner = Kept::Owner::kSoundPage};
    }

    void emit_sound(Emitter& e, const Act& states) const override {
        const Binding &k = e.activations.f32("cross_k"), &v = e.activations.f32("cross_v");
        e.matmul("cross_k", place_.layer, states, k_, k, {.bias = k_bias_});
        e.matmul("cross_v", place_.layer, states, v_, v, {.bias = v_bias_});
        e.emit(Op::kPrepareHeads, "cross_kv", place_.layer)
            .buffer({})
            .buffer(k)
            .buffer(v)
            .buffer({})
            .buffer(cache(e).kv)
            .buffer({})
            .buffer(e.step.sound_rows)
            .buffer(cache(e).tables)
            .kv(e.step.kv_types)
            .shape(shape_of(attention_.n_kv_heads, attention_.head_dim))
            .params(PrepareHeadsParams{.rows = 0,
                                       .step = 0,
                                       .n_heads = 0,
                                       .n_kv_heads = attention_.n_kv_heads,
                                       .head_dim = attention_.head_dim,
                                       .rope_dim = 0,
                                       .style = kRopeHalf,
                                       .qk_norm = 0,
                                       .eps = place_.config.norm_eps,
                                       .max_pages = cache(e).max_pages,
                                       .page_words = cache(e).page_words});
    }

  private:
    std::size_t at() const { return place_.index; }
    const PagedCache& cache(const Emitter& e) const { return e.step.kv.at(at()); }
    std::uint32_t positions() const { return attention_.positions; }

    void attend(Emitter& e, Phase phase) const {
        e.attention(
            "cross_attention", place_.layer, phase,
            {.q = e.activations.f32("cross_q"), .kv = cache(e).kv, .rows = e.step.sound_rows, .pages = cache(e).tables},
            {.rows = 0,
             .step = 0,
             .keys = 1,
             .n_heads = attention_.n_heads,
             .n_kv_heads = attention_.n_kv_heads,
             .head_dim = attention_.head_dim,
             .window = 0,
             .max_pages = cache(e).max_pages,
             .page_words = cache(e).page_words,
             .scale = attention_.scale,
             .softcap = 0,
             .formats = e.input_format(output_),
             .bidirectional = 0,
             .fixed_keys = positions(),
             .row_ends = 0,
             .latent = 0});
    }

    // Aligned heads of the blocks before this one.
    std::size_t heads_before() const {
        std::size_t n = 0;
        for (std::size_t i = 0; i < at(); ++i) {
            const auto* other = std::get_if<CrossAttentionConfig>(&place_.config.blocks[i].mixer);
            if (other) n += other->aligned.size();
        }
        return n;
    }

    // The weights of the block's aligned heads.
    void weights(Emitter& e) const {
        const std::uint64_t head = std::uint64_t{e.step.aligned_rows} * positions() * sizeof(float);
        const std::size_t chosen = attention_.aligned.size();
        e.emit(Op::kAttentionWeights, "cross_weights", place_.layer)
            .buffer(e.activations.f32("cross_q"))
            .buffer(cache(e).kv)
            .buffer(e.step.heads.at(at()))
            .buffer({e.step.aligned.buffer, e.step.aligned.offset + heads_before() * head, chosen * head})
            .buffer(e.step.sound_rows)
            .buffer(cache(e).tables)
            .kv(e.step.kv_types)
            .shape(shape_of(chosen, positions()))
            .params(AttentionWeightsParams{.rows = 0,
                                           .n_heads = attention_.n_heads,
                                           .n_kv_heads = attention_.n_kv_heads,
                                           .head_dim = attention_.head_dim,
                                           .max_pages = cache(e).max_pages,
                                           .page_words = cache(e).page_words,
                                           .scale = attention_.scale,
                                           .fixed_keys = positions(),
                                           .chosen = static_cast<u32>(chosen),
                                           .out_rows = e.step.aligned_rows});
    }

    const BlockPlace place_;
    const CrossAttentionConfig attention_;
    Norm norm_;
    Vector q_bias_, k_bias_, v_bias_, output_bias_;
    Weight q_, k_, v_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const CrossAttentionConfig& attention) {
    return std::make_unique<CrossAttentionBlock>(loader, place, attention);
}

}  // namespace akunu
