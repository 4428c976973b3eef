// What host and device tell each other in a step's buffers besides rows: a slot's settings, how far it is, and what was
// sampled. Plain C structs of 4-byte fields, shared by the host and by device code, as core/params.h is.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu {
#endif

enum SamplerLimits : u32 { kMaxEndIds = 64, kMaxLogitBias = 4096, kMaxLogprobs = 20 };

// Sequence breakers of DRY: texts that a repeat does not go beyond. A token that has a whole breaker is one itself; one
// that ends with the beginning of some is a head, and is one where one of its tails follows. A slot's entry is u32
// words:
//   a set of tokens each: the first of its tails, how many << 16, and bit 31 where the token itself is a breaker
//   the tails: how many tokens, and which
//   a byte for every token of the vocabulary: its set; set 0 has nothing.
enum BreakerLimits : u32 {
    kBreakerSets = 256,
    kBreakerTails = 512,
    kBreakerTailIds = 20,
    kBreakerTailWords = kBreakerTailIds + 1,
    kBreakerBytesAt = kBreakerSets + kBreakerTails * kBreakerTailWords,
    kIsBreaker = 0x80000000u,
};

struct LogitBias {
    u32 id;
    float bias;
};

// One generation's settings: a slot's entry in a device buffer that the sampling commands read. What is not a few words
// lies apart: kMaxLogitBias biases at the slot's place, and a mask of a bit for every token at that of a row of logits.
struct SamplerState {
    float temperature = 0;
    u32 top_k = 0;  // 0: off
    float top_p = 1, min_p = 0, typical_p = 1;
    float top_n_sigma = 0;                            // 0: off
    float xtc_probability = 0, xtc_threshold = 0.1f;  // 0: off
    u32 min_keep = 0;                                 // what typical, top-p, min-p and XTC leave
    float repeat_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
    u32 penalty_window = 64;
    float dry_multiplier = 0, dry_base = 1.75f;  // 0: off
    u32 dry_allowed = 2, dry_window = 0xFFFFFFFFu;
    u32 dry_longest = 0;       // a longer repeat counts as this long
    u32 has_dry_breakers = 0;  // 1: the slot has breakers
    u32 seed_lo = 0, seed_hi = 0;
    u32 want_logprobs = 0;  // 1: record the chosen token's log p
    u32 n_logprobs = 0;     // and those of the n most likely
    u32 n_end_ids = 0, n_bias = 0;
    u32 masked = 0;  // 1: only tokens whose bit is set in the row's mask
    u32 end_ids[kMaxEndIds] = {};
};

// What may not come next in a transcript: a slot's entry in a device buffer. Two masks of a bit for every token lie
// apart, at the slot's place: tokens that never come, and those that are not the first.
struct SpeechRules {
    u32 prompt = 0;           // tokens before the transcript
    u32 end = 0;              // the end of the sequence: smaller ids are words
    u32 timestamp_begin = 0;  // from here on ids are times; 0: times are no matter
    u32 max_initial = 0;      // the first time is at most this one
};

// How far a slot is within a replay.
struct SlotState {
    u32 stopped = 0;   // a StopReason, from which on it writes no more; 0: it goes on
    u32 produced = 0;  // tokens written
    u32 limit = 0;     // tokens to write at most
};

// What a chain of steps that verify drafts, each of up to as many tokens, notes of a slot. Behind each step kAdvance
// moves the rows on: those of a sequence begin at the first position that is not in the cache, `start` + its tokens so
// far, and so do its state's span and the rows of the head, which goes on from the row of the last position that is.
enum ChainLimits : u32 { kMostVerifications = 128 };
struct ChainRecord {
    u32 start = 0;                        // positions in the cache before the first step
    u32 steps = 0;                        // that gave it tokens
    u32 tokens[kMostVerifications] = {};  // that each of them gave
};

// What kLogprobs writes for each row with logits, step after step.
struct LogprobRecord {
    float chosen = 0;
    u32 ids[kMaxLogprobs] = {};
    float values[kMaxLogprobs] = {};
};

// What device and host share during a replay.
struct Control {
    u32 stop = 0;    // set by the device when no sequence goes on
    u32 active = 0;  // sequences that still write
    u32 yield = 0;   // set by the host, at any time, to end the chain after the step that runs
};

#ifndef __METAL_VERSION__
}  // namespace akunu
#endif
