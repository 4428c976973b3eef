// Model: a list of blocks between an embedding and a head, on a device. It makes the tables of every phase from them.
//
// A step runs two segments: the body, which is the forward pass of all rows up to the last block, and a tail, which
// makes logits of the rows that want them, samples tokens, and writes them into the sequences. An encoder's other
// segment makes a vector of each text. That of an encoder of sound is its decoder's: it computes what the decoder's
// cross-attention reads of the sound.
#pragma once

#include <memory>
#include <vector>

#include "plan/audio_stem.h"
#include "plan/block.h"
#include "plan/drafter.h"
#include "plan/image_stem.h"
#include "plan/pooling.h"
#include "plan/streams.h"

namespace akunu {

enum class Sampling : std::uint8_t { kNone, kGreedy, kSampled };

// Which tail: everything that decides its commands.
struct TailKey {
    Sampling sampling = Sampling::kGreedy;
    bool logprobs = false;
    bool one_row = true;
    bool rules = false;  // SpeechRules
    auto operator<=>(const TailKey&) const = default;
};

class Model {
  public:
    // `config` must outlive it.
    Model(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& activations, std::uint32_t context) const;
    // For each block, and each of a head that drafts, if that keeps something, where keys and values are of this type.
    // The window of one whose keys and values others read is the widest of theirs.
    std::vector<Kept> keeps(const Device& device, const KvTypes& types) const;
    // The type of keys and values that no step but their own reads: F16 where all that attention makes of them is
    // rounded to F16, too.
    KvTypes kv_of_one_step(const Device& device) const;

    // The frequencies of each rope set, uploaded once.
    void upload_frequencies(Device& device);

    DispatchTable body(const PlanContext& context, Phase phase) const;
    DispatchTable tail(const PlanContext& context, const TailKey& key) const;
    // What a head that drafts keeps of a step's rows, once it is known what was sampled after them. This is the step's
    // last segment.
    DispatchTable keep_for_drafts(const PlanContext& context, Phase phase) const;
    // A row for each sequence, from the model's state before the token that was sampled last (`first`), or from its
    // own; and the draft that follows. DraftHead (engine/draft_head.h) says what these contexts are.
    DispatchTable draft(const PlanContext& context, Phase phase, bool first) const;
    DispatchTable draft_tail(const PlanContext& context, const TailKey& key, bool common) const;
    // The last segment of a step that verifies drafts, in a chain: the rows become those of the next step.
    DispatchTable advance(const PlanContext& context, const DraftedRows& drafted) const;
    // What adapters may change, in the order of their weights' `linear`; one without a name they may not.
    const std::vector<Linear>& linears() const { return linears_; }
    // The output matrix's, + 1; 0 where it is none of them.
    std::uint32_t output_linear() const { return output_.linear; }
    std::uint32_t common_tokens() const { return drafter_ ? drafter_->common_tokens() : 0; }
    // Null where it has none.
    const Drafter* drafter() const { return drafter_.get(); }
    // Encoders make a vector of each text, of up to `sequences`.
    DispatchTable vectors(const PlanContext& context, std::uint32_t sequences) const;
    // Elements of such a vector.
    std::uint32_t width() const { return pooling_->width(); }
    // How many embeddings of distances there are, from which blocks of an encoder make something when the model is
    // loaded: the rows of this table. 0 where there are none.
    std::uint32_t distances() const;
    DispatchTable prepare_distances(const PlanContext& context) const;
    // What a decoder with cross-attention reads of a sound. The activations are those of the encoder, in whose
    // `hidden` the states are, with room for what reserve_sound names.
    void reserve_sound(const Device& device, Activations& activations) const;
    DispatchTable sound(const PlanContext& context) const;
    // Copies one of the records of so many words, pages or sequences' states, to another.
    DispatchTable copies(const PlanContext& context, const Binding& records, std::uint32_t words) const;

  private:
    // Whether several GPUs each make a part of the logits.
    bool splits_output() const;
    Weight load_output(Loader& loader, const std::string& name) const;
    void embed(Emitter& e) const;
    void layer_inputs(Emitter& e) const;
    // Emits the tables of positions that are so many ahead of the rows'.
    void rope_tables(Emitter& e, u32 ahead = 0) const;
    Emitter emitter(const PlanContext& context, const std::string& name, Phase phase) const;
    // The commands that sample tokens by logits, and accept them.
    void sample(Emitter& e, const TailKey& key) const;
    // A part of the rows that an encoder made: the embedding, or what is added to the stream.
    void insert_rows(Emitter& e, std::uint32_t part) const;

    const ModelConfig& config_;
    Weight embedding_, output_;
    Weight input_table_, input_projection_;  // of layer inputs
    Vector input_norm_;
    Norm embedding_norm_, output_norm_;
    Vector output_bias_;
    Vector positions_, kinds_, distances_;
    Norm distance_norm_;
    std::unique_ptr<PoolingHead> pooling_;  // of encoders of text
    std::unique_ptr<Streams> streams_;      // where there are several
    std::unique_ptr<AudioStem> stem_;       // of encoders of sound
    std::unique_ptr<Drafter> drafter_;
    std::unique_ptr<ImageStem> patches_;  // of encoders of images
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<Linear> linears_;
    std::vector<DeviceBuffer> inv_freq_;
    std::vector<DeviceBuffer> axes_;  // of those sets that have some
};

}  // namespace akunu
