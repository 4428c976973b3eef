// A small decoder with random weights, for the drivers.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "core/model.h"
#include "engine/weight_source.h"

namespace akunu::test {

struct SyntheticModel {
    ModelConfig config;
    std::map<std::string, SyntheticSource::Shape> shapes;

    std::shared_ptr<SyntheticSource> source() const { return std::make_shared<SyntheticSource>(shapes); }
};

// Rows are multiples of 256, as the K-quants need; the vocabulary is odd. Layers alternate full and windowed attention.
inline SyntheticModel synthetic_model(DType weights, std::uint32_t vocab = 301) {
    SyntheticModel m;
    ModelConfig& c = m.config;
    c.dim = 256;
    AttentionConfig attention;
    attention.n_heads = 4;
    attention.n_kv_heads = 2;
    attention.head_dim = 64;
    attention.rope = 0;
    attention.scale = 0.125f;
    FeedForwardConfig feed_forward;
    feed_forward.dim = 256;
    constexpr std::uint32_t kLayers = 2;
    for (std::uint32_t i = 0; i < kLayers; ++i) {
        const std::string prefix = "layers." + std::to_string(i) + ".";
        AttentionConfig mixer = attention;
        mixer.window = i == 1 ? 12 : 0;
        c.blocks.push_back({prefix, static_cast<int>(i), mixer});
        c.blocks.push_back({prefix, static_cast<int>(i), feed_forward});
    }
    c.vocab_size = vocab;
    c.context_length = 128;
    c.rope_sets.resize(1);
    for (int i = 0; i < 32; ++i) c.rope_sets[0].inv_freq.push_back(std::pow(10000.0f, -static_cast<float>(i) / 32));
    const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
        m.shapes[name] = {weights, rows, cols};
    };
    const auto vector = [&](const std::string& name, std::uint64_t n) { m.shapes[name] = {DType::F32, 1, n}; };
    matrix("token_embedding", vocab, c.dim);
    matrix("output", vocab, c.dim);
    vector("output_norm", c.dim);
    for (std::uint32_t i = 0; i < kLayers; ++i) {
        const std::string p = "layers." + std::to_string(i) + ".";
        vector(p + "attn_norm", c.dim);
        vector(p + "ffn_norm", c.dim);
        matrix(p + "attn_q", attention.q_dim(), c.dim);
        matrix(p + "attn_k", attention.kv_dim(), c.dim);
        matrix(p + "attn_v", attention.kv_dim(), c.dim);
        matrix(p + "attn_output", c.dim, attention.q_dim());
        matrix(p + "ffn_gate", feed_forward.dim, c.dim);
        matrix(p + "ffn_up", feed_forward.dim, c.dim);
        matrix(p + "ffn_down", c.dim, feed_forward.dim);
    }
    return m;
}

// With a recurrence in the first layer in attention's place.
inline SyntheticModel synthetic_hybrid(DType weights) {
    SyntheticModel m = synthetic_model(weights);
    constexpr std::uint32_t kChannels = 256;
    const std::uint32_t dim = m.config.dim;
    m.config.blocks[0].mixer = RecurrenceConfig{kChannels};
    m.shapes["layers.0.recur_norm"] = {DType::F32, 1, dim};
    m.shapes["layers.0.recur_x"] = m.shapes["layers.0.recur_gate"] = {weights, kChannels, dim};
    m.shapes["layers.0.recur_output"] = {weights, dim, kChannels};
    return m;
}

// What stands beside experts: a shared one that has a router, a plain one, or one where all have norms of their own.
enum class Beside { kRouted, kPlain, kNormed };
// With experts in the last layer.
inline SyntheticModel synthetic_experts(DType weights, Beside beside) {
    SyntheticModel m = synthetic_model(weights);
    constexpr std::uint32_t kCount = 8, kDim = 256;
    const std::uint32_t dim = m.config.dim;
    ExpertsConfig experts;
    experts.count = kCount;
    experts.used = 2;
    experts.dim = kDim;
    experts.shared_dim = 2 * kDim;
    m.config.blocks.back().mixer = experts;
    const std::string p = "layers.1.";
    m.shapes[p + "router"] = {DType::F32, kCount, dim};
    if (beside == Beside::kRouted) m.shapes[p + "shared_router"] = {DType::F32, 1, dim};
    m.shapes[p + "experts_gate"] = m.shapes[p + "experts_up"] = {weights, kCount * kDim, dim};
    m.shapes[p + "experts_down"] = {weights, kCount * dim, kDim};
    m.shapes[p + "shared_gate"] = m.shapes[p + "shared_up"] = {weights, 2 * kDim, dim};
    m.shapes[p + "shared_down"] = {weights, dim, 2 * kDim};
    if (beside != Beside::kNormed) return m;
    for (const char* of : {"router", "experts", "post_experts", "post_shared", "post_ffn"}) {
        m.shapes[p + of + "_norm"] = {DType::F32, 1, dim};
    }
    return m;
}

// With latent attention in the first layer.
inline SyntheticModel synthetic_latents(DType weights) {
    SyntheticModel m = synthetic_model(weights);
    LatentAttentionConfig c;
    c.n_heads = 4;
    c.q_rank = 256;
    c.latent = 256;
    c.nope_dim = 256;
    c.rope_dim = 64;
    c.value_dim = 256;
    c.rope = 0;
    c.scale = 0.1f;
    c.norm_eps = 1e-6f;
    m.config.blocks[0].mixer = c;
    const std::string p = "layers.0.";
    const std::uint64_t dim = m.config.dim, heads = c.n_heads;
    const auto matrix = [&](const char* name, std::uint64_t rows, std::uint64_t cols) {
        m.shapes[p + name] = {weights, rows, cols};
    };
    matrix("latent_q_a", c.q_rank, dim);
    matrix("latent_q", heads * c.query_dim(), c.q_rank);
    matrix("latent_kv_a", c.key_dim(), dim);
    matrix("latent_k", heads * c.latent, c.nope_dim);
    matrix("latent_v", heads * c.value_dim, c.latent);
    matrix("attn_output", dim, heads * c.value_dim);
    m.shapes[p + "latent_q_norm"] = {DType::F32, 1, c.q_rank};
    m.shapes[p + "latent_kv_norm"] = {DType::F32, 1, c.latent};
    return m;
}

}  // namespace akunu::test
