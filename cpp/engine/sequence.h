// Sequence: the tokens of one request, as far as they are known. It owns its place in the step's buffers (the slot),
// its pages, and its settings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/params.h"
#include "core/sampling.h"
#include "engine/encoded_rows.h"
#include "engine/pages.h"

namespace akunu {

constexpr std::uint32_t kNoSound = UINT32_MAX;
constexpr std::uint32_t kLostState = UINT32_MAX;
constexpr std::uint32_t kNoRow = UINT32_MAX;

// A sequence's tokens are in the history of its slot. Those at [0, length) are in the cache, [length, known) are still
// to be run: the rest of the prompt, or the token that was sampled last.
struct Sequence {
    bool open = false;
    std::uint32_t length = 0, known = 0;
    std::uint32_t prompt = 0;     // tokens of the prompt
    std::uint32_t published = 0;  // pages that other sequences can find, or have
    std::vector<std::uint32_t> pages;
    // For each group of layers, the first page of which the sequence holds that group's part; it holds those of all
    // pages behind.
    std::vector<std::uint32_t> kept_from;
    // What its pages are known by, besides tokens: see pages.h. The hash of what stands at a position where it is not
    // the token, else 0; positions behind the last one have tokens.
    std::uint64_t root = 0;
    std::vector<std::uint64_t> contents;
    SequenceInputs inputs;
    std::uint32_t next_position = 0;  // rotary, of the first place that inputs.positions does not name
    // Where blocks have a state: the position that its record's is before, at most `length`; kLostState while a step
    // that changes it has not succeeded.
    std::uint32_t state_at = 0;
    std::uint32_t sound = kNoSound;  // that it is decoded from
    AdapterChoice adapter = {0, 1};
    bool ruled = false;  // it has SpeechRules
    SamplerState sampler;
    bool plain = true;  // greedy, without anything that changes a logit
    // In the step that runs: the rows of logits that are the sequence's.
    std::uint32_t first_logits = 0, n_logits = 0;

    // In the last replay: the row whose position is the last one in the cache, where its token was sampled from; drafts
    // go on from its state.
    std::uint32_t last_row = kNoRow;

    bool pending() const { return known > length && known > prompt; }
    bool prompting() const { return length < prompt; }
};

// The sequences of an engine, by slot.
class Sequences {
  public:
    void resize(std::uint32_t n) { all_.resize(n); }
    std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }
    Sequence& operator[](std::uint32_t slot) { return all_[slot]; }
    const Sequence& at(std::uint32_t slot) const { return all_.at(slot); }
    auto begin() { return all_.begin(); }
    auto end() { return all_.end(); }
    // One that is in use; InvalidArgumentError for any other slot.
    Sequence& opened(std::uint32_t slot) {
        if (slot < all_.size() && all_[slot].open) return all_[slot];
        throw InvalidArgumentError("slot " + std::to_string(slot) + " holds no sequence: open one first");
    }
    // A slot that is not in use; nothing when all are.
    std::optional<std::uint32_t> free_slot() const {
        for (std::uint32_t slot = 0; slot < size(); ++slot) {
            if (!all_[slot].open) return slot;
        }
        return std::nullopt;
    }

  private:
    std::vector<Sequence> all_;
};

// A sequence, or the beginning of one, and all that its keys and values follow from.
struct Prefix {
    std::span<const std::uint32_t> ids;
    // What all of it depends on besides the model, such as an adapter, and who may share it: sequences of other roots
    // share no page with it.
    std::uint64_t root = 0;
    // Where something other than the token stands at a position, such as a piece of an image, its hash, which is not 0;
    // there may be fewer than tokens.
    std::span<const std::uint64_t> contents = {};

    Prefix(std::span<const std::uint32_t> tokens, std::uint64_t of_root = 0, std::span<const std::uint64_t> others = {})
        : ids(tokens), root(of_root), contents(others) {}
    Prefix(const std::vector<std::uint32_t>& tokens) : ids(tokens) {}
};
std::vector<PageKey> keys_of(const Prefix& prefix);

// A sequence's part of a step.
struct Part {
    std::uint32_t slot = 0;
    std::uint32_t rows = 1;   // of the tokens that are still to be run, drafts not counted
    bool sample = true;       // sample the next token; only where all known tokens are run
    std::uint32_t limit = 1;  // tokens to sample at most
    std::vector<std::uint32_t> drafts;
};

}  // namespace akunu
