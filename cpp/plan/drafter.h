// Drafter: a head of the model's own that drafts (multi-token prediction, DeepSeek-V3 and Qwen 3.5). Its row at
// position p pairs the model's last state there with the token that follows:
//   x = E·norm(embedding(token at p + 1)) + S·norm(state at p)
// goes through blocks with a cache of their own, and the model's output matrix makes of it what may follow that token.
// What its blocks made of the row is the state for one draft more.
//
// Every step of the model ends with a segment that enters its rows into the cache (`keep`): keys and values alone, so a
// prompt costs little more. Drafts are rows of their own, one for each sequence, whose keys and values are overwritten
// by those of the tokens that were sampled in their places.
#pragma once

#include <memory>
#include <vector>

#include "plan/block.h"

namespace akunu {

// Of a large vocabulary, the tokens that a head may draft alone: byte-pair merges come by how frequent they are, so the
// first ids are those of most tokens of most sequences, and an output matrix of all of them would take longer than the
// head.
constexpr std::uint32_t kCommonTokens = 32768;

class Drafter {
  public:
    // What it shares with the model, which outlives it.
    struct Target {
        const Weight &embedding, &output;
        const Norm& output_norm;
    };
    Drafter(const ModelConfig& config, Loader& loader, const Target& target);

    std::span<const std::unique_ptr<Block>> blocks() const { return blocks_; }
    void reserve(const Device& device, Activations& a, std::uint32_t context) const;

    void keep(Emitter& e) const;
    // `first`: the state of row i is that of row `logit_rows[i]` of the model's step; else what `logits` left of its
    // own.
    void emit(Emitter& e, Phase phase, bool first) const;
    // How many ids the common tokens have; 0 where the vocabulary is not much larger.
    std::uint32_t common_tokens() const { return static_cast<std::uint32_t>(common_.rows); }
    // Of all rows; of the `common` tokens alone: what `logits` has of the others stays as it is.
    void logits(Emitter& e, bool common) const;

  private:
    // "draft_state" becomes S's input, of the model's last states: of all rows, or of those with logits.
    void read_model(Emitter& e, bool gathered) const;
    // The residual stream becomes x.
    void enter(Emitter& e) const;

    const ModelConfig& config_;
    const Target target_;
    Norm embedding_norm_, state_norm_, output_norm_;
    Weight embedding_part_, state_part_;  // E and S
    Weight common_;                       // the output matrix' first rows
    std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace akunu
