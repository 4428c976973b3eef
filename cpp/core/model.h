// What a model is, as plain data: its sizes, the choices that make its architecture, and its weights on a device.
#pragma once

#include <vector>

#include "core/device.h"
#include "core/params.h"

namespace akunu {

// One set of rotary frequencies. Models with two thetas have two sets.
struct RopeSet {
    std::vector<float> inv_freq;  // [rope_dim / 2], all scalings applied
    float scale = 1.0f;           // multiplies cos and sin (YaRN, longrope)
};

struct ModelConfig {
    std::uint32_t n_layers = 0, dim = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn_dim = 0;
    std::uint32_t vocab_size = 0, context_length = 0;
    float norm_eps = 1e-5f;
    RopeStyle rope_style = kRopeInterleaved;
    std::uint32_t rope_dim = 0;
    std::vector<RopeSet> rope_sets;
    Activation activation = kActSilu;
    float attn_scale = 0, attn_softcap = 0, final_softcap = 0, embedding_scale = 1;
    std::vector<std::uint32_t> layer_window;  // 0: full attention
    std::vector<std::uint32_t> layer_rope;    // index into rope_sets

    std::uint32_t q_dim() const { return n_heads * head_dim; }
    std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

// A small f32 vector on the device (a norm's weight, a bias); empty when the model has none.
using Vector = Binding;

struct LayerWeights {
    Vector attn_norm, ffn_norm, post_attn_norm, post_ffn_norm, attn_q_norm, attn_k_norm;
    Vector attn_q_bias, attn_k_bias, attn_v_bias, attn_output_bias;
    Weight attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down;
};

struct ModelWeights {
    Weight token_embedding, output;  // `output` is `token_embedding` when tied
    Vector output_norm;
    std::vector<LayerWeights> layers;
};

}  // namespace akunu
