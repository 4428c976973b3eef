// What the sampling kernels share with metal/choose/sampling.cpp: sizes, the sampler's state as device code reads it, and
// where intermediate results lie in scratch memory. Grids have a row for every row of logits, and so has scratch memory.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
#include <cstddef>
namespace akunu::metal {
using u64 = std::uint64_t;
#else
using u64 = ulong;
#endif

// An enum, since Metal has no constants at file scope but in constant memory.
enum SamplingSizes : u32 {
    kSliceTokens = 2048,  // of the vocabulary, per threadgroup
    kSliceThreads = 256,
    kMaxSlices = kSliceThreads,  // a thread each when slices are combined
    kPrepareTokens = 1024,       // fewer, since their counts are in threadgroup memory
    kDrawThreads = 512,
    kAcceptThreads = 64,
    kMostBiases = 4096,  // of a slot
    kDepths = 32,  // coarse buckets of a relative logit
    kTopLogprobs = 20,
    kIdBits = 24,  // a token's id in a sort key
};

// SamplerState of core/sampling.h; metal/choose/sampling.cpp checks that they agree.
struct SamplerSettings {
    float temperature;
    u32 top_k;
    float top_p, min_p, typical_p;
    float repeat_penalty, presence_penalty, frequency_penalty;
    u32 penalty_window;
    u32 seed_lo, seed_hi;
    u32 want_logprobs, n_logprobs;
    u32 n_end_ids, n_bias, masked;
    u32 end_ids[64];
};

// SlotState of core/sampling.h.
struct ReplaySlot {
    u32 stopped;
    u32 produced;
    u32 limit;
};

// Control of core/dispatch.h.
struct ReplayControl {
    u32 stop;
    u32 active;
    u32 yield;
};

// LogprobRecord of core/sampling.h.
struct TokenLogprobs {
    float chosen;
    u32 ids[kTopLogprobs];
    float values[kTopLogprobs];
};

// SpeechRules of core/sampling.h.
struct TranscriptRules {
    u32 prompt;
    u32 end;
    u32 timestamp_begin;
    u32 max_initial;
};

// A candidate among tokens: the highest key wins, then the lowest id.
struct Ranked {
    u32 key;
    u32 id;
};

// A row's scratch memory of sample_select: SampleList; Ranked best[slices]; SampleSlice[slices]; Ranked entry[vocab].
struct SampleList {
    u64 total;  // mass of all tokens
    u32 n;      // entries
    u32 unused;
};
struct SampleSlice {
    u64 mass[kDepths];
    u64 moment;  // sum of mass x |relative logit|
    u32 count[kDepths];
    Ranked draw;
};

// A row's scratch memory of logprobs: one per slice.
struct LogprobSlice {
    float max, sum;  // sum of exp(logit - max)
    Ranked top[kTopLogprobs];
};

// A row's scratch memory of speech_rules: one per slice. Ranks of the best word and of the best time.
struct RulesSlice {
    u32 word, time;
    float sum;  // of exp(logit - best) of the times
};

constexpr u32 slice_count(u32 vocab) { return (vocab + kSliceTokens - 1) / kSliceTokens; }
// Bytes of a row's scratch memory.
constexpr u64 best_bytes(u32 vocab) { return u64(slice_count(vocab)) * sizeof(Ranked); }
constexpr u64 select_bytes(u32 vocab) {
    return sizeof(SampleList) + best_bytes(vocab) + u64(slice_count(vocab)) * sizeof(SampleSlice) +
           u64(vocab) * sizeof(Ranked);
}
constexpr u64 rules_bytes(u32 vocab) { return u64(slice_count(vocab)) * sizeof(RulesSlice); }
constexpr u64 logprob_bytes(u32 vocab) { return u64(slice_count(vocab)) * sizeof(LogprobSlice); }

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
