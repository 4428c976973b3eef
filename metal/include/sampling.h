// What the sampling kernels share with metal/choose/sampling.cpp: sizes, and where intermediate results lie in scratch
// memory. Grids have a row for every row of logits, and so has scratch memory.
#pragma once

#include "core/step_state.h"

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
    kSampleThreads = 512,
    kAcceptThreads = 64,
    kDepths = 32,  // coarse buckets of a relative logit
    kIdBits = 24,  // a token's id in a sort key
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
    Ranked winner;
    float sum, squares;  // of how far the logits are below the best
    u32 left, unused;    // how many there are
};

// A row's scratch memory of logprobs: one per slice.
struct LogprobSlice {
    float max, sum;  // sum of exp(logit - max)
    Ranked top[kMaxLogprobs];
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
