// The sample of a row by several blocks, where rows are few and the vocabulary is large. Each takes a part of the
// tokens: what they measure, and which of them a first cut could keep. The last one to come has these alone before it,
// and goes on as one block does with a list (sampler.cuh). Measures are integers, and orders have no equals, so the
// token is the same.
#pragma once

#include "sampler.cuh"

namespace akunu::cuda {

// What a row's first cut counts. Other rows are one block's: their measures need all tokens before any is dropped.
enum FirstCut : u32 { kCutsNothing, kCutsByCount, kCutsByMass, kCutsAlone };
AKUNU_DEVICE FirstCut first_cut(const SamplerState& s, u32 vocab, u32 position) {
    if (s.top_n_sigma > 0.0f || s.typical_p < 1.0f || s.min_keep > 1 || excludes(s, position)) return kCutsAlone;
    if (s.top_k > 0 && s.top_k < vocab) return kCutsByCount;
    return s.top_p < 1.0f ? kCutsByMass : kCutsNothing;
}

// What a part leaves for the last one to come, in the second half of a row's memory, whose beginning has the slices'
// best tokens: in its second quarter measures, in its last half a list of logits and ids.
struct SamplePart {
    // Words behind the measures: how many tokens are listed, and how many of the depths.
    static constexpr u32 kCountAt = 2 * kDepths, kDepthsAt = kCountAt + 1;
    u32 begin, end;
    u32* words;
    AKUNU_DEVICE SamplePart(float* x, u32 vocab, u32 part, u32 parts)
        : begin(u32(u64(vocab) * part / parts)),
          end(u32(u64(vocab) * (part + 1) / parts)),
          words(reinterpret_cast<u32*>(x + vocab) + begin) {}
    AKUNU_DEVICE u32 size() const { return end - begin; }
    AKUNU_DEVICE u32 room() const { return size() / 4; }
    AKUNU_DEVICE u32* measures() const { return words + size() / 4; }
    AKUNU_DEVICE u32* listed(u32 i) const { return words + size() / 2 + 2 * i; }
};

// A row's tokens relative to the best one, and over the temperature.
struct RelativeLogits {
    const float* x;
    float top, inverse;
    AKUNU_DEVICE float operator()(u32 i) const { return (x[i] - top) * inverse; }
};

// The part's winner, where nothing is cut but what is below the floor; `best` is a token of the row.
AKUNU_DEVICE void find_winner(Block b, const SamplePart& part, const RelativeLogits& logits, const SamplerState& s,
                              u32 position, u32 best, float floor) {
    Winner mine{gumbel(random_word(s, position, best)), best};
    for (u32 i = part.begin + thread_id(); i < part.end; i += kThreads) offer(mine, logits(i), i, s, position, floor);
    const u32 id = winner_of(b, mine);
    if (mine.id != id) return;
    leave_long(part.measures(), double_to_bits(mine.key));
    part.measures()[2] = id;
}
AKUNU_DEVICE u32 winner_of_parts(Block b, float* x, u32 vocab, u32 parts) {
    Winner mine{-1e300, ~0u};
    for (u32 i = thread_id(); i < parts; i += kThreads) {
        const u32* at = SamplePart(x, vocab, i, parts).measures();
        mine.offer(bits_to_double(fresh_long(at)), fresh_word(at + 2));
    }
    return winner_of(b, mine);
}

// Measures of the part's tokens within each depth, and a list of those within as many of these as there is room for.
template <typename Measure>
AKUNU_DEVICE void measure_part(Block b, const SamplePart& part, const RelativeLogits& logits, const Measure& measure) {
    u32& listed = reinterpret_cast<SamplerMemory*>(b.shared())->count;
    Depths within, tokens;
    const auto each = [&](auto&& f) {
        for (u32 i = part.begin + thread_id(); i < part.end; i += kThreads) {
            const float t = logits(i);
            if (t > bits_to_float(0xFF800000u)) f(t, i);
        }
    };
    each([&](float t, u32) {
        within.add(-t, measure(t));
        tokens.add(-t, 1);
    });
    within.join(b);
    tokens.join(b);
    u32 depths = 0;
    AKUNU_UNROLL
    for (u32 d = 0; d < kDepths; ++d) depths = tokens.sum[d] <= part.room() ? d + 1 : depths;
    if (thread_id() == 0) listed = 0;
    sync_block();
    const float depth = depths ? depth_at(depths - 1) : -1.0f;
    each([&](float t, u32 id) {
        if (!(-t <= depth)) return;
        const u32 at = atomic_add(&listed, 1u);
        part.listed(at)[0] = float_to_bits(t);
        part.listed(at)[1] = id;
    });
    sync_block();
    if (thread_id() != 0) return;
    AKUNU_UNROLL
    for (u32 d = 0; d < kDepths; ++d) leave_long(part.measures() + 2 * d, within.sum[d]);
    part.measures()[SamplePart::kCountAt] = listed;
    part.measures()[SamplePart::kDepthsAt] = depths;
}

// What the first cut of all parts keeps, listed in shared memory: false where some part has not listed its tokens, or
// there are too many.
template <typename Want>
AKUNU_DEVICE bool cut_parts(Block b, Survivors& s, float* x, u32 vocab, u32 parts, const Want& want) {
    SamplerMemory& m = s.memory;
    Depths within;
    u32 missing = 0;  // of the depths
    for (u32 i = thread_id(); i < parts; i += kThreads) {
        const SamplePart part(x, vocab, i, parts);
        AKUNU_UNROLL
        for (u32 d = 0; d < kDepths; ++d) within.sum[d] += fresh_long(part.measures() + 2 * d);
        missing = larger(missing, kDepths - fresh_word(part.measures() + SamplePart::kDepthsAt));
    }
    missing = reduce_block(b, missing, Larger());
    within.join(b);
    const u64 enough = want.of(within.sum[kDepths - 1]);
    const u32 least = within.least_with(enough);
    if (within.sum[least] < enough || least + missing >= kDepths) return false;
    if (thread_id() == 0) m.count = 0;
    sync_block();
    for (u32 i = warp_id(); i < parts; i += kWarps) {
        const SamplePart part(x, vocab, i, parts);
        const u32 count = fresh_word(part.measures() + SamplePart::kCountAt);
        for (u32 j = lane_id(); j < count; j += 32) {
            const float t = bits_to_float(fresh_word(part.listed(j)));
            if (!(-t <= depth_at(least))) continue;
            const u32 at = atomic_add(&m.count, 1u);
            if (at >= kMaxList) break;
            m.logit[at] = t;
            m.id[at] = fresh_word(part.listed(j) + 1);
        }
    }
    sync_block();
    if (any_of_warp(m.count > kMaxList)) return false;
    s.listed = true;
    drop_behind(s, ByLogit(), place_of(s, ByLogit(), typename Want::Measure(), enough));
    return true;
}

// Row r's token by `parts` blocks, of which this one has a part.
AKUNU_DEVICE void select_in_parts(Block b, float* x, const SampleParams& p, u32 r, u32 part, u32 parts, u32 position,
                                  const SamplerState& s) {
    const u32 vocab = p.vocab;
    const SamplePart mine(x, vocab, part, parts);
    u64 best = 0;
    const u32* const slices = reinterpret_cast<const u32*>(x + vocab);
    for (u32 i = thread_id(); i < sampler_slices(vocab); i += kThreads) {
        const u64 rank = fresh_long(slices + 2 * i);
        if (rank > best) best = rank;
    }
    best = reduce_block(b, best, Larger());
    const FirstCut cut = first_cut(s, vocab, position);
    u32& token = b.buffer<u32>(2)[r];
    const auto alone = [&] {
        const u32 found = select_token(b, x, vocab, position, s);
        if (thread_id() == 0) token = found;
    };
    const float top = logit_of(best);
    if (s.temperature == 0.0f || top == bits_to_float(0xFF800000u)) {
        if (part == 0 && thread_id() == 0) token = id_of(best);
        return;
    }
    if (cut == kCutsAlone) {
        if (part == 0) alone();
        return;
    }
    const RelativeLogits logits{x, top, finite(1.0f / s.temperature)};
    const float floor = least_gap(s);
    if (cut == kCutsNothing) {
        find_winner(b, mine, logits, s, position, id_of(best), floor);
    } else if (cut == kCutsByCount) {
        measure_part(b, mine, logits, Count());
    } else {
        measure_part(b, mine, logits, Mass());
    }
    if (!comes_last(b.grid()->tickets[r], parts)) return;
    if (cut == kCutsNothing) {
        const u32 found = winner_of_parts(b, x, vocab, parts);
        if (thread_id() == 0) token = found;
        return;
    }
    Survivors left{x, vocab, *reinterpret_cast<SamplerMemory*>(b.shared()), false};
    const MassShare share{s.top_p};
    const bool done = cut == kCutsByCount ? cut_parts(b, left, x, vocab, parts, TokenCount{s.top_k})
                                          : cut_parts(b, left, x, vocab, parts, share);
    if (!done) return alone();
    if (cut == kCutsByCount && s.top_p < 1.0f) keep(b, left, ByLogit(), s.min_keep, share);
    const u64 first = best_left(b, left);
    const u32 found = sample(b, left, s, position, first, logit_of(first) + floor);
    if (thread_id() == 0) token = found;
}

AKUNU_DEVICE_CALL void sample_select(Block b) {
    const auto& p = b.params<SampleParams>();
    const u32 parts = sampler_parts(b, p);
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 r = u / parts;
        const LogitRow row = logit_row(b.buffer<Row>(3), b.buffer<u32>(4), p, r);
        const SamplerState& s = b.buffer<SamplerState>(1)[row.slot];
        float* const x = b.buffer<float>(0) + u64(r) * 2 * p.vocab;
        if (parts != 1) {
            select_in_parts(b, x, p, r, u % parts, parts, row.position, s);
            continue;
        }
        const u32 token = select_token(b, x, p.vocab, row.position, s);
        sync_block();
        if (thread_id() == 0) b.buffer<u32>(2)[r] = token;
    }
}

}  // namespace akunu::cuda
