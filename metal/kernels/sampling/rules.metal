// The rules of transcripts: logits of what may not follow become -inf. First what the masks and the times so far forbid, slice
// by slice of the vocabulary; then, where all times together are more likely than the best word, the words.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "reduce.h"
#include "sampling.h"
#include "tokens.h"

static constant constexpr ushort kSimds = kSliceThreads / 32;

// Ids from `begin` on are times.
static inline uint times_begin(device const SpeechRules& rules, uint vocab) {
    return rules.timestamp_begin != 0 ? min(rules.timestamp_begin, vocab) : vocab;
}

// What the times so far forbid: ids before `words`, and times before `first` and from `end` on.
struct Forbidden {
    uint words, begin, first, end;
    bool has(uint id) const { return id < words || (id >= begin && (id < first || id >= end)); }
};

// Times come in pairs, at the beginning and between segments, and never go back. `said` are the n tokens so far, the last
// time of which is before `behind`.
static inline Forbidden forbidden_times(device const SpeechRules& rules, device const uint* said, uint n, uint behind,
                                        uint vocab) {
    const uint begin = times_begin(rules, vocab);
    Forbidden f = {0, begin, begin, vocab};
    if (rules.timestamp_begin == 0) return f;
    if (n == 0) {
        f.words = begin;
        if (rules.max_initial < vocab - begin) f.end = begin + rules.max_initial + 1;
        return f;
    }
    const bool after = said[n - 1] >= begin, twice = n < 2 || said[n - 2] >= begin;
    if (after && twice) {
        f.end = begin;  // the second of a pair: text follows
    } else if (after) {
        f.words = min(rules.end, vocab);  // the end of a segment: its twin follows, or the end
    }
    if (behind > 0) f.first = min(said[behind - 1], vocab - 1) + (after && !twice ? 0 : 1);
    return f;
}

static inline bool has_bit(device const uint* mask, uint id) { return (mask[id / 32] >> (id % 32) & 1) != 0; }

kernel void rules_slices_f32(
    device uint* logits [[buffer(0)]],
    device const uint* history [[buffer(1)]],
    device const SpeechRules* all_rules [[buffer(2)]],
    device const uint* masks [[buffer(3)]],  // of a slot: of every token, and of the first
    device const Row* rows [[buffer(4)]],
    device const uint* logit_rows [[buffer(5)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device RulesSlice* out [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint latest[kSimds], words[kSimds], times[kSimds];
    threadgroup float sums[kSimds];
    constexpr ushort kEach = kSliceTokens / kSliceThreads;
    const LogitRow row = logit_row(rows, logit_rows, p, at.y);
    device const SpeechRules& rules = all_rules[row.slot];
    const uint n = row.position > rules.prompt ? row.position - rules.prompt : 0, begin = times_begin(rules, p.vocab);
    const uint mask_words = (p.vocab + 31) / 32;
    device const uint* said = history + ulong(row.slot) * p.history_stride + rules.prompt;
    device const uint* never = masks + ulong(row.slot) * 2 * mask_words;
    logits += ulong(at.y) * p.vocab;

    uint behind = 0;
    for (uint i = thread_id; i < n; i += kSliceThreads) {
        if (said[i] >= begin) behind = i + 1;
    }
    behind = threadgroup_max(behind, latest, lane, simd, kSimds);
    const Forbidden f = forbidden_times(rules, said, n, behind, p.vocab);

    uint time_bits[kEach];
    uint word = 0, time = 0;  // less than any rank
    for (ushort i = 0; i < kEach; ++i) {
        const uint id = at.x * kSliceTokens + i * kSliceThreads + thread_id;
        time_bits[i] = kMinusInfinity;
        if (id >= p.vocab) continue;
        uint bits = finite_bits(logits[id]);
        if (f.has(id) || has_bit(never, id) || (n == 0 && has_bit(never + mask_words, id))) {
            bits = kMinusInfinity;
            logits[id] = bits;
        }
        if (id < begin) {
            word = max(word, rank_of(bits));
        } else {
            time_bits[i] = bits;
            time = max(time, rank_of(bits));
        }
    }
    word = threadgroup_max(word, words, lane, simd, kSimds);
    time = threadgroup_max(time, times, lane, simd, kSimds);
    float sum = 0.0f;
    for (ushort i = 0; i < kEach; ++i) sum += relative_exp(time_bits[i], as_type<float>(bits_of_rank(time)));
    sum = threadgroup_sum(sum, sums, lane, simd, kSimds);
    if (thread_id == 0) {
        device RulesSlice& slice = out[ulong(at.y) * slice_count(p.vocab) + at.x];
        slice.word = word;
        slice.time = time;
        slice.sum = sum;
    }
}

kernel void rules_words_f32(
    device uint* logits [[buffer(0)]],
    device const SpeechRules* all_rules [[buffer(2)]],
    device const Row* rows [[buffer(4)]],
    device const uint* logit_rows [[buffer(5)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device const RulesSlice* slices [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint words[kSimds], times[kSimds];
    threadgroup float sums[kSimds];
    const uint n = slice_count(p.vocab), none = rank_of(kMinusInfinity), most = rank_of(0x7F7FFFFFu);
    slices += ulong(at.y) * n;
    const uint own = thread_id < n ? slices[thread_id].time : 0;
    const uint word = threadgroup_max(thread_id < n ? slices[thread_id].word : 0, words, lane, simd, kSimds);
    const uint time = threadgroup_max(own, times, lane, simd, kSimds);
    const float top = as_type<float>(bits_of_rank(time));
    float sum = own > none ? slices[thread_id].sum * relative_exp(bits_of_rank(own), top) : 0.0f;
    sum = threadgroup_sum(sum, sums, lane, simd, kSimds);
    // Infinite logits, which only a damaged model gives, are not compared.
    if (word <= none || time <= none || max(word, time) >= most) return;
    if (precise::log(sum) <= as_type<float>(bits_of_rank(word)) - top) return;
    const uint end = min(times_begin(all_rules[logit_row(rows, logit_rows, p, at.y).slot], p.vocab), (at.x + 1) * kSliceTokens);
    logits += ulong(at.y) * p.vocab;
    for (uint id = at.x * kSliceTokens + thread_id; id < end; id += kSliceThreads) logits[id] = kMinusInfinity;
}
