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

// With experts in the last layer: beside a shared one that has a router, or beside a plain one, where all have norms of
// their own.
inline SyntheticModel synthetic_experts(DType weights, bool norms) {
    SyntheticModel m = synthetic_model(weights);
    constexpr std::uint32_t kCount = 8, kDim = 256;
    const std::uint32_t dim = m.config.dim;
    m.config.blocks.back().mixer = ExpertsConfig{.count = kCount, .used = 2, .dim = kDim, .shared_dim = kDim};
    const std::string p = "layers.1.";
    const auto vector = [&](const char* name) { m.shapes[p + name] = {DType::F32, 1, dim}; };
    m.shapes[p + "router"] = {DType::F32, kCount, dim};
    if (!norms) m.shapes[p + "shared_router"] = {DType::F32, 1, dim};
    for (const auto& [of, count] : {std::pair{"experts", kCount}, std::pair{"shared", 1u}}) {
        m.shapes[p + of + "_gate"] = m.shapes[p + of + "_up"] = {weights, count * kDim, dim};
        m.shapes[p + of + "_down"] = {weights, count * dim, kDim};
    }
    if (!norms) return m;
    for (const char* of : {"router", "experts", "post_experts", "post_shared", "post_ffn"}) {
        vector((std::string(of) + "_norm").c_str());
    }
    return m;
}

}  // namespace akunu::test
