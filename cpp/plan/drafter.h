// Drafter: what comes with a model and drafts for it, of the model's own states. There are two kinds, each in a file of
// its name:
//
// A PredictionHead (multi-token prediction: DeepSeek-V3, GLM 4.5, Qwen 3.5) is a layer more, with a cache of its own.
// Its row at position p pairs the model's last state there with the token that follows:
//   x = E·norm(embedding(token at p + 1)) + S·norm(state at p)
// goes through its blocks, and the model's output matrix makes of it what may follow that token. What its blocks made
// of the row is the state for one draft more. Every step of the model ends with a segment that enters its rows into
// that cache (`keep`): keys and values alone, so a prompt costs little more. Drafts are rows of their own, one for each
// sequence, whose keys and values are overwritten by those of the tokens that were sampled in their places.
//
// An Assistant (Gemma 4) is a small model of a size of its own, whose blocks read the keys and values of the model's:
//   x = E·embedding(last token) + S·state before it
// Its tokens may be in clusters: it looks only at those of the clusters whose centroids the last state is nearest to.
// It keeps nothing. Whatever the draft, its query stays at the position of the sequence's last token, and sees what is
// before that.
#pragma once

#include <memory>
#include <vector>

#include "plan/block.h"

namespace akunu {

// How many tokens of a large vocabulary a head may draft alone: byte-pair merges come by how frequent they are, so the
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
    virtual ~Drafter() = default;

    // What its commands are planned for, of what the model's are.
    virtual PlanContext plan(const PlanContext& model) const = 0;
    virtual void reserve(const Device& device, Activations& a, std::uint32_t context) const = 0;

    // Whether its blocks keep something, and the keys and values of a step's rows.
    virtual bool keeps() const { return false; }
    virtual void keep(Emitter&) const {}
    // Whether the rows of all drafts of a chain are at the same positions, those before their sequences' last tokens,
    // and its queries one further.
    virtual bool stands_still() const { return false; }
    // The residual stream becomes x. `first`: the state of row i is that of row `logit_rows[i]` of the model's step;
    // else what `logits` left of its own.
    virtual void enter(Emitter& e, bool first) const = 0;
    void emit(Emitter& e, Phase phase) const {
        for (const auto& block : blocks_) block->emit(e, phase);
    }
    // The logits of all rows. With `common` only those of the common tokens are computed, and the others stay as they
    // are.
    virtual void logits(Emitter& e, bool common) const = 0;

    std::span<const std::unique_ptr<Block>> blocks() const { return blocks_; }
    // How many ids the common tokens have; 0 where the vocabulary is not much larger.
    std::uint32_t common_tokens() const { return static_cast<std::uint32_t>(common_.rows); }

  protected:
    Drafter(const ModelConfig& config, const Target& target) : config_(config), target_(target) {}
    // The first rows of an output matrix, where there are many more.
    void load_common(Loader& loader, const std::string& output, std::uint64_t dim) {
        if (config_.vocab_size < 2 * kCommonTokens) return;
        common_ = loader.part_of_rows(output, config_.vocab_size, dim, 0, kCommonTokens);
    }

    const ModelConfig& config_;  // the model's
    const Target target_;
    Weight common_;
    std::vector<std::unique_ptr<Block>> blocks_;
};

// The one that the model's configuration has.
std::unique_ptr<Drafter> load_drafter(const ModelConfig& config, Loader& loader, const Drafter::Target& target);

std::unique_ptr<Drafter> load_prediction_head(const ModelConfig& config, Loader& loader, const Drafter::Target& target);
std::unique_ptr<Drafter> load_assistant(const ModelConfig& config, Loader& loader, const Drafter::Target& target);

}  // namespace akunu
