// What a model is, as plain data: its sizes and the choices that make its architecture.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/device.h"
#include "core/params.h"

namespace akunu {

// One set of rotary frequencies, and how heads that use it are turned. A model has as many sets as it needs, each of
// its own size.
struct RopeSet {
    std::vector<float> inv_freq;  // [rotated elements of a head / 2], all scalings applied
    float scale = 1.0f;           // multiplies cos and sin (YaRN, longrope)
    RopeStyle style = kRopeInterleaved;
    // For each frequency, which of a row's kPositionAxes positions it turns by; empty: by its place in the sequence.
    std::vector<std::uint32_t> axes;
    float temperature = 0;                 // see RopeTableParams
    std::uint32_t temperature_length = 0;  // 0: there is none

    std::uint32_t dim() const { return 2 * static_cast<std::uint32_t>(inv_freq.size()); }
};

// Self-attention over the paged KV cache. Which norms and biases it has is said by the tensors that are there, and so
// is whether its values are its keys as they come from their matrix.
struct AttentionConfig {
    std::uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
    std::uint32_t window = 0;             // 0: full attention
    std::optional<std::uint32_t> rope;    // index into rope_sets; none: heads are not rotated
    std::optional<std::uint32_t> q_rope;  // that of q, where it is another than k's
    float scale = 0, softcap = 0;
    bool bidirectional = false;     // a row sees what comes after it, too
    bool whole_images = false;      // a row of an image sees all rows of it
    bool image_windows = false;     // a row sees those of its window of the image alone, see ImagePatches
    bool norms_whole_rows = false;  // the norms of q and of k are over a whole row, not over each head
    bool norms_by_head = false;     // they are LayerNorms of each head, with weights of its own
    bool norms_after_rope = false;  // they are of rotated heads
    bool norm_values = false;       // heads of v are normed, too, without a weight
    float q_gain = 0;               // heads of q and of k are normed without weights, and q is so many times as large
    float norm_eps = 1e-5f;         // of these norms
    // Index of the block whose keys and values it reads; it has none of its own then, and its sizes are that block's.
    std::optional<std::uint32_t> kv_owner;
    std::uint32_t cards = 1;  // GPUs whose heads these are a part of: see plan/spread.h

    std::uint32_t q_dim() const { return n_heads * head_dim; }
    std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

// Attention of a decoder to an encoder's output, whose keys and values are computed once for each sound.
struct CrossAttentionConfig {
    std::uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
    float scale = 0;
    std::uint32_t positions = 0;         // of that output
    std::vector<std::uint32_t> aligned;  // heads whose weights may be asked for

    std::uint32_t q_dim() const { return n_heads * head_dim; }
    std::uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

// Multi-head latent attention over the paged KV cache: see plan/latent_attention.cpp.
struct LatentAttentionConfig {
    std::uint32_t n_heads = 0;
    std::uint32_t q_rank = 0;  // of queries; 0: they are projected at once
    std::uint32_t latent = 0;  // elements that are kept of a row, besides those of its rotated key
    std::uint32_t nope_dim = 0, rope_dim = 0, value_dim = 0;  // of a head
    std::uint32_t rope = 0;                                   // index into rope_sets
    float scale = 0;
    float norm_eps = 1e-6f;                // of the norms of the latent and of queries
    float temperature = 0;                 // of queries, see RopeTableParams
    std::uint32_t temperature_length = 0;  // 0: there is none

    std::uint32_t query_dim() const { return nope_dim + rope_dim; }  // of a head
    std::uint32_t key_dim() const { return latent + rope_dim; }      // of what is kept
};

// Attention of an encoder that looks at how far keys are: see plan/relative_attention.cpp.
struct RelativeAttentionConfig {
    std::uint32_t n_heads = 0, head_dim = 0;
    float scale = 0;
    std::uint32_t distances = 0;  // rows of its tables
    std::vector<std::uint32_t>
        columns;            // the row of each distance, from -reach to reach; what is farther has the ends'
    bool by_query = false;  // to a score comes the product of the query and the distance's key
    bool by_key = false;    // ... of the key and the distance's query

    std::uint32_t q_dim() const { return n_heads * head_dim; }
};

// A feed-forward, gated where it has a gate's weight.
struct FeedForwardConfig {
    std::uint32_t dim = 0;
    Activation activation = kActSilu;
    // It reads what the attention block before it has read, instead of what that has made of the residual stream.
    bool parallel = false;
    // Which of the gate's products are kept, before their activation: see SparsifyParams. None: all are.
    std::optional<float> deviations = {};
    std::uint32_t cards = 1;  // GPUs whose elements these are a part of
};

// What a learned augmented residual (Laurel) adds to the stream, see plan/laurel.cpp.
struct LaurelConfig {
    std::uint32_t rank = 0;
};

// A layer predicts the residual streams of a model that has several, or corrects them by what it has made of the active
// one: see plan/mix_streams.cpp.
struct MixStreamsConfig {
    bool correct = false;
};

// What a router makes of its logits, see RouteParams.
struct RouterConfig {
    Gating gating = kGateSoftmax;
    std::uint32_t groups = 0, groups_used = 0, group_top = 0;
    bool renormalise = false;
    float sum_eps = 0, sum_min = 0, scale = 1;
    float input_scale = 1;  // of what a norm of its own makes, where it has one
};

// A feed-forward of experts, of which a router chooses some for each row, gated where they have a gate's weight. Beside
// them there may be one that all rows share, times a gate of its own.
struct ExpertsConfig {
    std::uint32_t count = 0, used = 0;  // experts, and those of a row
    std::uint32_t dim = 0;              // inner elements of an expert
    std::uint32_t shared_dim = 0;       // of the shared one; 0: there is none
    std::uint32_t latent_dim = 0;       // experts read and write a projection of so many elements; 0: there is none
    RouterConfig router;
    Activation activation = kActSilu;
    float limit = 0, sharpness = 1, up_offset = 0;  // see ExpertsGateUpParams
};

// What a layer makes of its part of the layer inputs, see plan/layer_input.cpp.
struct LayerInputConfig {
    std::uint32_t index = 0;  // of the part
    Activation activation = kActGeluTanh;
};

// A gated recurrence, see plan/recurrence.cpp.
struct RecurrenceConfig {
    std::uint32_t dim = 0;  // channels
};

// A gated delta net, see plan/delta_net.cpp.
struct DeltaNetConfig {
    std::uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
    std::uint32_t taps = 0;  // of the convolution
    bool grouped = true;     // neighbouring value heads share a key head, else those that are key_heads apart
    float l2_eps = 1e-6f;
    float norm_eps = 1e-6f;  // of the gated norm

    std::uint32_t values() const { return value_heads * value_dim; }
    std::uint32_t channels() const { return 2 * key_heads * key_dim + values(); }
};

// A gated short convolution over as many channels as the residual stream has, see plan/short_convolution.cpp.
struct ShortConvolutionConfig {
    std::uint32_t taps = 0;
};

// Mamba-2, see plan/mamba2.cpp.
struct Mamba2Config {
    std::uint32_t groups = 0, heads = 0, state_dim = 0, head_dim = 0;
    std::uint32_t taps = 0;  // of the convolution
    float norm_eps = 1e-5f;  // of the gated norm

    std::uint32_t values() const { return heads * head_dim; }
    std::uint32_t channels() const { return values() + 2 * groups * state_dim; }
    // Blocks of heads of a group, each as large as is worth a B of its own (see SsmScanParams).
    std::uint32_t blocks() const {
        const std::uint32_t most = 8, of_group = heads / groups;
        std::uint32_t size = std::min(most, of_group);
        while (of_group % size != 0) --size;
        return heads / size;
    }
};

// How an encoder of images makes a row of neighbouring patches, see plan/merge.cpp. It leaves the stream as it is.
struct MergeConfig {
    std::uint32_t patches = 1;  // of a row
    bool mean = false;          // of the patches, else they are side by side
    std::uint32_t dim = 0;      // between two products; 0: there is one
    Activation activation = kActGelu;
    std::uint32_t part = 0;   // of the row: which of ImageConfig::parts it makes
    bool normed = false;      // what is multiplied is normed (RMS) before, without a weight
    float norm_eps = 1e-6f;   // of that norm
    float patch_eps = 1e-6f;  // of a norm (RMS) of patches before they are merged
    float gain = 1;           // of the mean, before that norm
};

using MixerConfig =
    std::variant<AttentionConfig, CrossAttentionConfig, FeedForwardConfig, ExpertsConfig, LayerInputConfig,
                 LaurelConfig, MixStreamsConfig, RecurrenceConfig, DeltaNetConfig, LatentAttentionConfig,
                 ShortConvolutionConfig, Mamba2Config, MergeConfig, RelativeAttentionConfig>;

// One block of a model: what it computes between two states of the residual stream, and where its tensors are. Any
// number of blocks may stand in any order.
struct BlockConfig {
    std::string prefix;  // of its tensors' names: "layers.3."
    int layer = -1;      // on labels
    MixerConfig mixer;
};

// Embeddings of a token besides the one that the residual stream begins with: `count` parts of `dim` elements, each for
// a layer. With h the scaled embedding of the stream, part i is
//   (√dim·table[token][i] + norm(W_i·h / √(elements of h))) / √2
struct LayerInputsConfig {
    std::uint32_t dim = 0, count = 0;
    std::uint32_t vocab_size = 0;  // tokens that the table has; others have the first one's
};

// Several residual streams, one of which layers read and write, see plan/streams.h.
struct StreamsConfig {
    std::uint32_t count = 0, active = 0;
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

// A head that drafts, see plan/drafter.h: blocks that go on from the model's last states, and have a cache of their
// own.
struct DrafterConfig {
    std::string prefix;  // of the names of its tensors that are no block's
    std::vector<BlockConfig> blocks;
    bool normed_state = true;  // what it goes on from when it drafts once more is behind its last norm
    // Elements of the residual stream of a drafter whose blocks keep nothing and read the model's keys and values
    // (Gemma 4's assistant). 0: it is of the model's size, and has a cache of its own.
    std::uint32_t dim = 0;
    float norm_eps = 1e-5f;  // of such a one
    // Its tokens' clusters, of which a draft looks at the most likely ones; 0: it looks at all tokens.
    std::uint32_t clusters = 0, clusters_used = 0;
};

// What a model that sees has instead of a token embedding: a product with each patch's values. It makes rows that stand
// in a decoder's sequence.
struct ImageConfig {
    std::uint32_t values = 0;  // of a patch
    std::uint32_t frames = 1;  // of a film that the product is with; all of a picture's are equal
    std::uint32_t channels = 3;
    std::uint32_t patches = 1;  // of a row
    std::uint32_t dim = 0;      // of the decoder
    std::uint32_t parts = 1;    // of a row, each so wide: the embedding, and what is added behind the first layers
};

struct ModelConfig {
    std::uint32_t dim = 0, vocab_size = 0, context_length = 0;
    float norm_eps = 1e-5f;
    std::optional<float> branch_norm_eps;  // of norms of what a block adds to the residual stream, where it is another
    bool layer_norm = false;               // norms are LayerNorm, else RMS
    bool norm_embedding = false;           // a token's embedding is normed, without a weight
    float final_softcap = 0, embedding_scale = 1;
    float logit_scale = 1;  // before that cap
    std::vector<RopeSet> rope_sets;
    std::vector<BlockConfig> blocks;
    std::uint32_t positions = 0, kinds = 0;  // learned vectors of positions, and of kinds of rows (BERT's token types)
    std::optional<LayerInputsConfig> layer_inputs;
    std::optional<StreamsConfig> streams;
    std::optional<EncoderConfig> encoder;  // it makes vectors of texts
    std::optional<AudioConfig> audio;      // it hears
    std::optional<ImageConfig> image;      // it sees; with none of these, it samples tokens
    // Parts of the rows that an encoder may put in the place of tokens of one that samples: see ImageConfig. 0: none.
    std::uint32_t encoded_parts = 0;
    // Most rows of an image, where some block's see all of it: such an image is not split over steps. 0: any.
    std::uint32_t whole_image_rows = 0;
    std::optional<DrafterConfig> drafter;  // of models that sample tokens
    std::uint32_t cards = 1;               // GPUs that share it, of one of which this is the part

    // Positions of the encoder's output that its blocks attend to; 0 where none does.
    std::uint32_t sound_positions() const {
        for (const BlockConfig& block : blocks) {
            if (const auto* cross = std::get_if<CrossAttentionConfig>(&block.mixer)) return cross->positions;
        }
        return 0;
    }
    // Whether some rotary set turns by other positions than the places in a sequence.
    bool has_axes() const {
        return std::ranges::any_of(rope_sets, [](const RopeSet& set) { return !set.axes.empty(); });
    }
    // Heads of all blocks whose weights may be asked for.
    std::size_t aligned_heads() const {
        std::size_t n = 0;
        for (const BlockConfig& block : blocks) {
            if (const auto* cross = std::get_if<CrossAttentionConfig>(&block.mixer)) n += cross->aligned.size();
        }
        return n;
    }
};

// A small f32 vector on the device (a norm's weight, a bias); empty when the model has none.
using Vector = Binding;

struct Norm {
    Vector weight, bias;
    explicit operator bool() const { return bool(weight); }
};

}  // namespace akunu
