// What a step reads and writes besides weights and activations: rows, sequences, pages, settings, results. The engine
// fills it, tables refer to it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"

namespace akunu {

// A cache of pages, as a block's commands see it.
struct PagedCache {
    Binding kv;      // from the block's part of the first page on
    Binding tables;  // [slots, max_pages] u32: page tables
    std::uint32_t max_pages = 0, page_words = 0;
    Binding rows = {};  // Row of each row, where it has another one than in the step
};

// What a head that drafts has besides a step's own rows, where a chain moves both on.
struct DraftedRows {
    Binding rows, positions;  // Row of each row, and where rotary sets have axes its positions
    Binding states;           // u32: for each row, that of the step whose state it goes on from
    Binding sampled_rows;     // Row of each row, at the token that it goes on from
    Binding slots;            // SlotState of each slot, of drafts
    Binding records;          // ChainRecord of each slot
};

struct StepBuffers {
    Binding rows;          // Row of each row
    Binding sampled_rows;  // of drafts: Row of each row, at the token that it goes on from
    Binding logit_rows;    // [max_logits] u32: rows whose logits are wanted, or the last one of each sequence
    Binding row_kinds;     // [max_rows] u32, of encoders
    Binding positions;     // [max_rows, kPositionAxes] u32, where rotary sets have axes
    Binding added;         // [max_rows, dim] f32: of encoders of images, the vectors of their patches' positions
    Binding encoded;       // rows that an encoder made, f32
    Binding ends;          // [max_rows] u32: behind the last key that a row sees at least; 0: only those before
    Binding sources;       // [max_rows] u32: for each row, that of `encoded` that is its own, or kNoSource
    Binding vectors;       // [max_logits, width] f32, of encoders
    Binding merge_rows;    // of encoders of images: Row of each row, whose position is that among its row's patches
    Binding history;       // [slots, history_stride] u32: token at every position
    Binding copies;        // [1, 2] u32: records to copy, from and to
    Binding logits;        // [max_logits, vocab] f32
    Binding scaled;        // [max_logits, 2, vocab] f32: sampling scratch
    Binding sampled;       // [max_logits] u32
    Binding sampler;       // SamplerState of each slot
    Binding bias;          // [slots, kMaxLogitBias] LogitBias
    Binding breakers;      // [slots, breaker_words(vocab)] u32
    Binding mask;          // [max_logits, mask_words(vocab)] u32
    Binding slots;         // SlotState of each slot
    Binding control;       // Control
    Binding logprobs;      // LogprobRecord of each row with logits, step after step
    std::vector<PagedCache> kv;  // per block: its keys and values, of a sequence or of a sound
    // Where blocks have a state that cannot be truncated: records, the slots' own first, then checkpoints.
    Binding states;
    std::vector<Binding> state;  // per block: from the block's part of the first record on
    Binding state_spans;         // StateSpan of each slot
    std::uint32_t state_words = 0;
    // What decoders with cross-attention have.
    Binding sound_rows;          // Row of each row, whose slot is its sequence's sound
    Binding aligned;             // [aligned heads, aligned_rows, positions] f32: weights of cross-attention
    std::vector<Binding> heads;  // per block, u32: its aligned heads
    std::uint32_t aligned_rows = 0;
    Binding rules, forbidden;  // SpeechRules of each slot, and its masks [slots, 2, mask_words(vocab)] u32
    KvTypes kv_types;
    std::uint32_t max_pages = 0;  // of a page table
    std::uint32_t history_stride = 0;
    std::uint32_t max_rows = 0;    // of a step
    std::uint32_t max_logits = 0;  // rows of a step whose logits may be wanted
};

}  // namespace akunu
