// DraftHead: a head of the model's own that drafts (plan/drafter.h).
//
// What it keeps of a sequence lies in the sequence's pages, as a layer's keys and values do, and every step enters its
// rows: so drafts begin at any step, behind a cached beginning too. At a position it depends on the token that follows,
// which sequences that share a page may not; the last position of such a page may then be another sequence's. That
// makes a draft less likely to hold, and changes nothing else.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/encoded_inputs.h"
#include "engine/engine_context.h"

namespace akunu {

// Drafts that are wanted for a sequence.
struct Wish {
    std::uint32_t slot = 0, tokens = 1;
};

class DraftHead {
  public:
    DraftHead(const EngineContext& context, const EncodedInputs& inputs);

    // The segment of a step that keeps what drafts need of its rows; null where they need nothing.
    const Program* keeping(Phase phase);
    // Drafts for sequences whose last token was sampled by the last step: as many as are wanted, or fewer where a
    // sequence ends, was in no such step, or was not reserved for them. `common`: the common tokens alone, where the
    // head has such a choice.
    std::vector<std::vector<std::uint32_t>> draft(std::span<const Wish> wishes, const Poll& stop, bool common);

    const Program& body(Phase phase, bool first);
    const Program& tail(const TailKey& key, bool common);

  private:
    // So many rows, the first draft of each being the n-th of its sequence's.
    void place(std::span<const Wish> wishes, std::uint32_t n);

    const EngineContext& engine_;
    const EncodedInputs& inputs_;
    // What the rows of drafts are, as programs see it: the step's buffers but for these. A sequence's row is at the
    // position before its last token, whose state it goes on from, and samples as a row of that token would.
    StepBuffers rows_, samples_;
    StepBuffers common_;  // as `samples_`, with logits of which those of the other tokens are -infinity
    std::map<std::pair<Phase, bool>, std::unique_ptr<Program>> bodies_;
    std::map<std::pair<TailKey, bool>, std::unique_ptr<Program>> tails_;
    std::map<Phase, std::unique_ptr<Program>> keeping_;  // of the step's own rows
};

}  // namespace akunu
