// DraftHead: a head of the model's own that drafts (plan/drafter.h).
//
// What it keeps of a sequence lies in the sequence's pages, as a layer's keys and values do, and every step enters its
// rows: so drafts begin at any step, behind a cached beginning too. At a position it depends on the token that follows,
// which sequences that share a page may not; the last position of such a page may then be another sequence's. That
// makes a draft less likely to hold, and changes nothing else.
//
// Drafts are written for the host (`draft`), or as part of a chain, each of whose steps writes some, verifies them and
// moves all rows on.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/encoded_inputs.h"
#include "engine/step_programs.h"

namespace akunu {

constexpr std::uint32_t kMostDrafts = 8;  // of a sequence at a time
static_assert(2 * kMostDrafts + 4 <= kMaxSegments, "each is two segments, before those that verify them");
static_assert(kMaxChain <= 2 * kMostVerifications, "a step has room for two tokens at least");

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

    // Whether it can draft for a sequence: the last step sampled its last token.
    bool goes_on(const Sequence& s) const { return s.last_row != kNoRow && s.known == s.length + 1; }
    // Begins a chain that drafts for the sequences of these slots, in this order.
    void begin_chain(std::span<const Part> parts);
    // Adds the segments that write so many drafts for all sequences; none of them sees more than so many keys before
    // the first one.
    void add_drafts(StepSegments& segments, std::uint32_t drafts, std::uint32_t sequences, std::uint32_t keys,
                    Sampling sampling, bool common);
    // The segment that ends a chain's step.
    const Program& advance();
    // After a chain: what each of its steps gave a slot's sequence, and the row whose state the i-th one of
    // begin_chain goes on from.
    std::span<const std::uint32_t> tokens(std::uint32_t slot) const;
    std::uint32_t last_row(std::uint32_t i) const { return rows_.logit_rows.host<u32>()[i]; }

    const Program& body(Phase phase, bool first);
    const Program& tail(const TailKey& key, bool common);

  private:
    // The i-th row is that of a slot, of so many drafts at most (0: of any number).
    void place(std::uint32_t i, std::uint32_t slot, std::uint32_t limit);
    // Adds the segments of the n-th draft of so many sequences.
    void add_draft(StepSegments& segments, std::uint32_t n, const ReplayArgs& args, Sampling sampling, bool common);

    const EngineContext& engine_;
    const EncodedInputs& inputs_;
    // What the rows of drafts are, as programs see it: the step's buffers but for these. A sequence's row is at the
    // position before its last token, whose state it goes on from, and samples as a row of that token would.
    StepBuffers rows_, samples_;
    Binding records_;     // ChainRecord of each slot
    StepBuffers common_;  // as `samples_`, with logits of which those of the other tokens are -infinity
    std::map<std::pair<Phase, bool>, std::unique_ptr<Program>> bodies_;
    std::map<std::pair<TailKey, bool>, std::unique_ptr<Program>> tails_;
    std::map<Phase, std::unique_ptr<Program>> keeping_;  // of the step's own rows
    std::unique_ptr<Program> advance_;
};

}  // namespace akunu
