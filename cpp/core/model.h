// What a model is, as plain data: its sizes and the choices that make its architecture.
#pragma once

#include <optional>
#include <vector>

#include "core/device.h"
#include "core/params.h"

namespace akunu {

// One set of rotary frequencies. Models with two thetas have two sets.
struct RopeSet {
    std::vector<float> inv_freq;  // [rope_dim / 2], all scalings applied
    float scale = 1.0f;           // multiplies cos and sin (YaRN, longrope)
};

// One layer: attention, or a recurrence in its place, then a feed-forward.
struct LayerConfig {
    std::uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn_dim = 0;
    std::uint32_t window = 0;         // 0: full attention
    std::uint32_t rope = 0;           // index into rope_sets
    std::uint32_t recurrent_dim = 0;  // channels of the recurrence; 0: attention

    std::uint32_t q_dim() const { return n_heads * head_dim; }
    std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

// A layer that a text's vector goes through: y = act(W·x + b), then a norm where the model has one.
struct HeadLayer {
    std::uint32_t dim = 0;  // of y
    std::optional<Activation> activation;
};

// What a model that makes a vector of each text has besides its layers.
struct EncoderConfig {
    Pooling pooling = kPoolMean;
    std::vector<HeadLayer> head;
};

// What a model that hears has instead of a token embedding: two convolutions over log-mel frames, the second of which
// halves their number.
struct AudioConfig {
    std::uint32_t mels = 0;
    bool taps_last = true;  // the file's convolutions are [out, in, taps], else [out, taps, in]
};

// The second attention of each layer of a decoder, whose keys and values are those of an encoder's output.
struct CrossConfig {
    std::uint32_t positions = 0;            // of that output
    std::vector<std::vector<u32>> aligned;  // per layer, the heads whose weights may be asked for
};

struct ModelConfig {
    std::uint32_t dim = 0, vocab_size = 0, context_length = 0;
    float norm_eps = 1e-5f;
    RopeStyle rope_style = kRopeInterleaved;
    std::uint32_t rope_dim = 0;
    std::vector<RopeSet> rope_sets;
    Activation activation = kActSilu;
    float attn_scale = 0, attn_softcap = 0, final_softcap = 0, embedding_scale = 1;
    bool layer_norm = false;     // norms are LayerNorm, else RMS
    bool bidirectional = false;  // attention sees what comes after, too
    std::vector<LayerConfig> layers;
    std::uint32_t positions = 0, kinds = 0;  // learned vectors of positions, and of kinds of rows (BERT's token types)
    std::optional<EncoderConfig> encoder;    // it makes vectors of texts
    std::optional<AudioConfig> audio;        // it hears; with neither, it draws tokens
    std::optional<CrossConfig> cross;
};

// A small f32 vector on the device (a norm's weight, a bias); empty when the model has none.
using Vector = Binding;

struct Norm {
    Vector weight, bias;
    explicit operator bool() const { return bool(weight); }
};

}  // namespace akunu
