// Sequence: a text in the making. It owns its place in the step's buffers (the slot), its pages, and its settings.
#pragma once

#include <cstdint>
#include <vector>

#include "core/params.h"
#include "core/sampling.h"
#include "engine/encoded_rows.h"

namespace akunu {

constexpr std::uint32_t kNoSound = UINT32_MAX;
constexpr std::uint32_t kLostState = UINT32_MAX;
constexpr std::uint32_t kNoRow = UINT32_MAX;

// A text's tokens are in the history of its slot. Those at [0, length) are in the cache, [length, known) are still to
// be run: the rest of the prompt, or the token that was drawn last.
struct Sequence {
    bool open = false;
    std::uint32_t length = 0, known = 0;
    std::uint32_t prompt = 0;     // tokens of the prompt
    std::uint32_t published = 0;  // pages that other texts can find, or have
    std::vector<std::uint32_t> pages;
    // For each group of layers, the first page of which the text holds that group's part; it holds those of all behind.
    std::vector<std::uint32_t> kept_from;
    // What its pages are known by, besides tokens: see pages.h. The hash of what stands at a position where it is not
    // the token, else 0; positions behind the last one have tokens.
    std::uint64_t root = 0;
    std::vector<std::uint64_t> contents;
    TextInputs inputs;
    std::uint32_t next_position = 0;  // rotary, of the first place that inputs.positions does not name
    // Where blocks have a state: the position that its record's is before, at most `length`; kLostState while a step
    // that changes it has not succeeded.
    std::uint32_t state_at = 0;
    std::uint32_t sound = kNoSound;  // that it is decoded from
    AdapterChoice adapter = {0, 1};
    bool ruled = false;              // it has SpeechRules
    SamplerState sampler;
    bool plain = true;  // greedy, without anything that changes a logit
    // Of the step that runs: the rows of logits that are the text's.
    std::uint32_t first_logits = 0, n_logits = 0;

    // Of the last replay: the row whose position is the last one in the cache, where its token was drawn from; drafts
    // go on from its state.
    std::uint32_t last_row = kNoRow;

    bool pending() const { return known > length && known > prompt; }
    bool prompting() const { return length < prompt; }
};

}  // namespace akunu
