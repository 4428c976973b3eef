// Attention of an encoder to all rows of a sequence, which are in one step, by how far keys are from a query:
//   q, k, v = norm(h)·Wᵀ (+ bias)
//   s = scale·(q·k + q·K[d] + k·Q[d]) + b[d], with d the distance of the key, or what is near it
//   h += (softmax(s)·v)·Woᵀ
// b is a table of numbers for each head (MPNet's, T5's). K and Q are keys and queries that a block's own matrices, or
// others, make of embeddings of distances (DeBERTa), once, when the model is loaded. No cache is needed.
#include "plan/block.h"

namespace akunu {

namespace {

class RelativeAttentionBlock final : public Block {
  public:
    RelativeAttentionBlock(Loader& loader, const BlockPlace& place, const RelativeAttentionConfig& config)
        : place_(place), c_(config) {
        const std::uint64_t dim = place.config.dim, q = c_.q_dim();
        const std::uint64_t table = std::uint64_t{c_.distances} * q;
        norm_ = loader.optional_norm(place.name("attn_norm"), dim);
        q_ = projection(loader, "attn_q");
        k_ = projection(loader, "attn_k");
        v_ = projection(loader, "attn_v");
        output_ = {loader.matmul(place.name("attn_output"), dim, q),
                   loader.optional_vector(place.name("attn_output_bias"), dim)};
        norms_ = place.output_norms(loader, "post_attn_norm", "attn_output_norm");
        columns_ = loader.computed(std::span(c_.columns));
        bias_ = loader.optional_vector(place.name("distance_bias"), std::uint64_t{c_.distances} * c_.n_heads);
        const std::vector<float> room(c_.by_query || c_.by_key ? table : 0);
        if (c_.by_query) {
            distance_k_ = loader.has(place.name("distance_k")) ? projection(loader, "distance_k") : k_;
            distance_keys_ = loader.computed(room);
        }
        if (c_.by_key) {
            distance_q_ = loader.has(place.name("distance_q")) ? projection(loader, "distance_q") : q_;
            distance_queries_ = loader.computed(room);
        }
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        a.reserve("qkv", 3ull * c_.q_dim());
        a.reserve("attn", c_.q_dim(), kActF32 | device.matmul_input(output_.weight.dtype));
        if (norms_.branch) a.reserve("branch", place_.config.dim);
    }
    std::uint32_t attention_formats(const Device&) const override { return kActF32; }

    std::uint32_t distance_formats(const Device& device) const override {
        return (c_.by_query ? device.matmul_input(distance_k_.weight.dtype) : 0) |
               (c_.by_key ? device.matmul_input(distance_q_.weight.dtype) : 0);
    }
    void emit_distances(Emitter& e, const Act& distances) const override {
        if (c_.by_query) project(e, "distance_keys", distances, distance_k_, distance_keys_);
        if (c_.by_key) project(e, "distance_queries", distances, distance_q_, distance_queries_);
    }

    void emit(Emitter& e, Phase) const override {
        const Act input = e.block_input("attn_norm", place_.layer, norm_, input_formats(e.device));
        const std::uint64_t n = e.activations.rows() * c_.q_dim();
        const auto part = [&](std::uint64_t i) { return part_of(e.activations.f32("qkv"), i * n, n); };
        project(e, "attn_q", input, q_, part(0));
        project(e, "attn_k", input, k_, part(1));
        project(e, "attn_v", input, v_, part(2));
        const Act& out = e.activations.act("attn");
        e.emit(Op::kRelativeAttention, "attention", place_.layer)
            .buffer(part(0))
            .buffer(part(1))
            .buffer(part(2))
            .buffer(columns_)
            .buffer(bias_)
            .buffer(distance_keys_)
            .buffer(distance_queries_)
            .buffer(out.f32)
            .buffer(e.step.rows)
            .shape(shape_of(c_.n_heads, c_.head_dim))
            .params(RelativeAttentionParams{.rows = 0,
                                            .n_heads = c_.n_heads,
                                            .head_dim = c_.head_dim,
                                            .reach = static_cast<u32>(c_.columns.size() / 2),
                                            .scale = c_.scale,
                                            .has_bias = bool(bias_),
                                            .has_keys = c_.by_query,
                                            .has_queries = c_.by_key});
        if (const u32 format = e.input_format(output_.weight); format != kActF32) {
            e.quantize("attention_out", place_.layer, out, c_.q_dim(), format);
        }
        e.add_to_residual("attn_output", place_.layer, out, output_.weight, output_.bias, norms_);
    }

  private:
    struct Projection {
        Weight weight;
        Vector bias;
    };
    Projection projection(Loader& loader, const char* name) const {
        return {loader.matmul(place_.name(name), c_.q_dim(), place_.config.dim),
                loader.optional_vector(place_.name(name) + "_bias", c_.q_dim())};
    }
    void project(Emitter& e, const char* name, const Act& x, const Projection& to, const Binding& y) const {
        e.matmul(name, place_.layer, x, to.weight, y, {.bias = to.bias});
    }
    std::uint32_t input_formats(const Device& device) const {
        return device.matmul_input(q_.weight.dtype) | device.matmul_input(k_.weight.dtype) |
               device.matmul_input(v_.weight.dtype);
    }

    const BlockPlace place_;
    const RelativeAttentionConfig c_;
    Norm norm_;
    Projection q_, k_, v_, output_, distance_k_, distance_q_;
    Vector columns_, bias_, distance_keys_, distance_queries_;
    Emitter::OutputNorms norms_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const RelativeAttentionConfig& attention) {
    return std::make_unique<RelativeAttentionBlock>(loader, place, attention);
}

}  // namespace akunu
