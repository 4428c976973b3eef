// Attention over the paged cache, causal, or over all rows of a text, which then are in one step:
//   q, k, v = norm(h)·Wᵀ (+ bias)
//   q, k = rope(norm(q), norm(k)); pages[position] = k, v
//   h += (softmax(scale·q·Kᵀ)·V)·Woᵀ
#include <algorithm>

#include "core/error.h"
#include "plan/block.h"

namespace akunu {

namespace {

class AttentionBlock final : public Block {
  public:
    AttentionBlock(Loader& loader, const ModelConfig& config, const LayerConfig& layer, const LayerPlace& place)
        : config_(config), layer_(layer), index_(place.index) {
        const auto name = [&](const char* tensor) { return place.prefix + tensor; };
        const std::uint64_t dim = config.dim, q = layer.q_dim(), kv = layer.kv_dim();
        norm_ = loader.optional_norm(name("attn_norm"), dim);
        q_ = loader.matmul(name("attn_q"), q, dim);
        k_ = loader.matmul(name("attn_k"), kv, dim);
        v_ = loader.matmul(name("attn_v"), kv, dim);
        bias_ = loader.joined({{name("attn_q_bias"), q}, {name("attn_k_bias"), kv, true}, {name("attn_v_bias"), kv}});
        qk_norm_ = loader.joined({{name("attn_q_norm"), layer.head_dim}, {name("attn_k_norm"), layer.head_dim}});
        output_ = loader.matmul(name("attn_output"), dim, q);
        output_bias_ = loader.optional_vector(name("attn_output_bias"), dim);
        norms_ = {loader.optional_vector(name("post_attn_norm"), dim),
                  loader.optional_norm(name("attn_output_norm"), dim)};
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        a.reserve("input", config_.dim, formats_of(device, {&q_, &k_, &v_}));
        a.reserve("qkv", layer_.q_dim() + 2ull * layer_.kv_dim());
        a.reserve("attn", layer_.q_dim(), kActF32 | device.matmul_input(output_.dtype));
        if (norms_.branch) a.reserve("branch", config_.dim);
        if (device.traits().split_attention) {
            a.reserve_bytes("partials", device.attention_partial_bytes(layer_.n_heads, layer_.head_dim, context));
        }
    }

    std::uint64_t kv_page_bytes(const Device& device, DType dtype) const override {
        return device.kv_page_bytes(dtype, layer_.n_kv_heads, layer_.head_dim);
    }
    std::uint32_t attention_formats(const Device& device) const override { return device.matmul_input(output_.dtype); }

    void emit(Emitter& e, Phase phase) const override {
        project(e, phase);
        rope_kv(e);
        attend(e, phase);
        e.add_to_residual("attn_output", index_, e.activations.act("attn"), output_, output_bias_, norms_);
    }

  private:
    static std::uint32_t formats_of(const Device& device, std::initializer_list<const Weight*> weights) {
        std::uint32_t formats = 0;
        for (const Weight* w : weights) formats |= device.matmul_input(w->dtype);
        return formats;
    }

    // The rows of q, of k and of v, one behind the other in a buffer, whose end belongs to none.
    struct Parts {
        Binding q, k, v, all;
    };
    Parts parts(const Emitter& e) const {
        const Binding& all = e.activations.f32("qkv");
        const std::uint64_t rows = e.activations.rows(), q = rows * layer_.q_dim(), kv = rows * layer_.kv_dim();
        return {part_of(all, 0, q), part_of(all, q, kv), part_of(all, q + kv, kv), all};
    }
    Vector bias(std::uint64_t skip, std::uint64_t n) const { return part_of(bias_, skip, n); }

    void project(Emitter& e, Phase phase) const {
        const Parts p = parts(e);
        const bool same_k = q_.dtype == k_.dtype, planar = q_.scales || k_.scales || v_.scales;
        if (phase == Phase::kDecode && e.fuses_norms() && norm_ && same_k && !planar) {
            // Q4_K_M and its like keep some layers' v in a wider type.
            const auto mixed = e.device.traits().mixed_qkv;
            if (q_.dtype == v_.dtype || std::ranges::find(mixed, MixedQkv{q_.dtype, v_.dtype}) != mixed.end()) {
                fused(e, "attn_qkv", q_, &k_, &v_, p.all, bias_);
                return;
            }
            fused(e, "attn_qk", q_, &k_, nullptr, {p.all.buffer, p.all.offset, p.v.offset - p.all.offset}, bias_);
            fused(e, "attn_v", v_, nullptr, nullptr, p.v, bias(layer_.q_dim() + layer_.kv_dim(), layer_.kv_dim()));
            return;
        }
        const Act input = e.block_input("attn_norm", index_, norm_, formats_of(e.device, {&q_, &k_, &v_}));
        e.matmul("attn_q", index_, input, q_, p.q, {.bias = bias(0, layer_.q_dim())});
        e.matmul("attn_k", index_, input, k_, p.k, {.bias = bias(layer_.q_dim(), layer_.kv_dim())});
        e.matmul("attn_v", index_, input, v_, p.v, {.bias = bias(layer_.q_dim() + layer_.kv_dim(), layer_.kv_dim())});
    }

    // y, ... = norm(h)·Wᵀ (+ bias) for up to three weights.
    void fused(Emitter& e, const char* name, const Weight& first, const Weight* key, const Weight* value,
               const Binding& y, const Vector& bias) const {
        const Parts p = parts(e);
        const auto skip = [&](const Binding& b) { return static_cast<u32>((b.offset - y.offset) / sizeof(float)); };
        auto c = e.emit(Op::kNormQkv, name, index_);
        c.buffer(e.activations.f32("hidden")).buffer(norm_.weight).weight(first);
        for (const Weight* w : {key, value}) w ? c.weight(*w) : c.buffer({});
        c.buffer(y).buffer(bias);
        c.shape(shape_of(first.rows + (key ? key->rows : 0) + (value ? value->rows : 0), config_.dim));
        c.params(NormQkvParams{.n_q = static_cast<u32>(first.rows),
                               .n_kv = key ? static_cast<u32>(key->rows) : 0,
                               .k = config_.dim,
                               .k_offset = key ? skip(p.k) : 0,
                               .v_offset = value ? skip(p.v) : 0,
                               .has_bias = bool(bias),
                               .eps = config_.norm_eps});
    }

    const Binding& kv(const Emitter& e) const { return e.step.kv.at(static_cast<std::size_t>(index_)); }

    void rope_kv(Emitter& e) const {
        const Parts p = parts(e);
        e.emit(Op::kRopeKv, "rope_kv", index_)
            .buffer(p.q)
            .buffer(p.k)
            .buffer(p.v)
            .buffer(e.activations.f32("rope." + std::to_string(layer_.rope)))
            .buffer(kv(e))
            .buffer(qk_norm_)
            .buffer(e.step.rows)
            .buffer(e.step.pages)
            .kv(e.step.kv_dtype)
            .shape(std::to_string(layer_.n_heads) + "+" + shape_of(layer_.n_kv_heads, layer_.head_dim))
            .params(RopeKvParams{.rows = 0,
                                 .step = 0,
                                 .n_heads = layer_.n_heads,
                                 .n_kv_heads = layer_.n_kv_heads,
                                 .head_dim = layer_.head_dim,
                                 .rope_dim = config_.rope_dim,
                                 .style = config_.rope_style,
                                 .qk_norm = bool(qk_norm_),
                                 .eps = config_.norm_eps,
                                 .max_pages = e.step.max_pages,
                                 .page_words = e.step.page_words});
    }

    void attend(Emitter& e, Phase phase) const {
        e.attention("attention", index_, phase,
                    {.q = parts(e).q, .kv = kv(e), .rows = e.step.rows, .pages = e.step.pages},
                    {.rows = 0,
                     .step = 0,
                     .keys = 1,
                     .n_heads = layer_.n_heads,
                     .n_kv_heads = layer_.n_kv_heads,
                     .head_dim = layer_.head_dim,
                     .window = layer_.window,
                     .max_pages = e.step.max_pages,
                     .page_words = e.step.page_words,
                     .scale = config_.attn_scale,
                     .softcap = config_.attn_softcap,
                     .formats = e.input_format(output_),
                     .bidirectional = config_.bidirectional,
                     .fixed_keys = 0});
    }

    const ModelConfig& config_;
    const LayerConfig layer_;
    const int index_;
    Norm norm_;
    Vector bias_, qk_norm_, output_bias_;
    Emitter::OutputNorms norms_;
    Weight q_, k_, v_, output_;
};

}  // namespace

std::unique_ptr<Block> load_attention(Loader& loader, const ModelConfig& config, const LayerConfig& layer,
                                      const LayerPlace& place) {
    return std::make_unique<AttentionBlock>(loader, config, layer, place);
}

}  // namespace akunu
