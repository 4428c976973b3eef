// Argmax, the sampler's first steps, log-probabilities, and what becomes of sampled tokens. docs/sampling.md defines
// them.
#pragma once

#include "block.cuh"
#include "core/step_state.h"

namespace akunu::cuda {

// NaN, which only a damaged model gives, counts as -inf; too large counts as the largest float.
AKUNU_DEVICE float finite(float x) {
    const float none = bits_to_float(0xFF800000u), most = bits_to_float(0x7F7FFFFFu);
    return !(x > none) ? none : x < most ? x : most;
}

// Rises with the logit, and among equals falls with the id.
AKUNU_DEVICE u64 rank_of(float x, u32 id) {
    const u32 bits = float_to_bits(x + 0.0f);  // one zero
    return u64(bits & 0x80000000u ? ~bits : bits | 0x80000000u) << 32 | u32(~id);
}
AKUNU_DEVICE u32 id_of(u64 rank) { return ~u32(rank); }
AKUNU_DEVICE float logit_of(u64 rank) {
    const u32 key = u32(rank >> 32);
    return bits_to_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// The best token of a part of a row, by a block.
AKUNU_DEVICE u64 best_within(Block b, const float* x, u32 begin, u32 end) {
    u64 best = 0;
    AKUNU_UNROLL_EIGHT
    for (u32 i = begin + thread_id(); i < end; i += kThreads) {
        const u64 rank = rank_of(finite(x[i]), i);
        if (rank > best) best = rank;
    }
    return reduce_block(b, best, Larger());
}
// The best token below `limit`, by a block.
AKUNU_DEVICE u64 best_below(Block b, const float* x, u32 n, u64 limit) {
    u64 best = 0;
    for (u32 i = thread_id(); i < n; i += kThreads) {
        const u64 rank = rank_of(finite(x[i]), i);
        if (rank < limit && rank > best) best = rank;
    }
    return reduce_block(b, best, Larger());
}
AKUNU_DEVICE u64 best_of(Block b, const float* x, u32 n) { return best_below(b, x, n, ~u64(0)); }

// A row whose logits were asked for: where its token's successor goes.
struct LogitRow {
    u32 slot, position;  // of the token to be sampled
};
AKUNU_DEVICE LogitRow logit_row(const Row* rows, const u32* logit_rows, const SampleParams& p, u32 i) {
    const Row row = rows[logit_rows[i]];
    return {row.slot, row.position + p.step + 1};
}

AKUNU_DEVICE_CALL void argmax(Block b) {
    const auto& p = b.params<SampleParams>();
    // Where rows are few, several blocks take a part of each.
    const u32 parts = p.rows <= kMaxTickets ? larger(1, b.blocks() / larger(1, p.rows)) : 1;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 r = u / parts, part = u % parts;
        const u32 begin = u32(u64(p.vocab) * part / parts), end = u32(u64(p.vocab) * (part + 1) / parts);
        const float* logits = b.buffer<float>(0) + u64(r) * p.vocab;
        const u64 best = best_within(b, logits, begin, end);
        if (thread_id() != 0) continue;
        u32& token = b.buffer<u32>(1)[r];
        if (parts == 1) {
            token = id_of(best);
            continue;
        }
        u64& joined = b.grid()->best[r];
        u32& ticket = b.grid()->tickets[r];
        atomic_max(&joined, best);
        if (atomic_next_ordered(&ticket, parts - 1) + 1 != parts) continue;
        token = id_of(atomic_max(&joined, u64(0)));
        joined = 0;
    }
}

// x to the n-th, by squaring; what is too large counts as the largest float.
AKUNU_DEVICE float power(float x, u32 n) {
    float y = 1.0f;
    for (; n != 0; n >>= 1) {
        if (n & 1) y *= x;
        x *= x;
    }
    return finite(y);
}

AKUNU_DEVICE u32 breaker_words(u32 vocab) { return kBreakerBytesAt + (vocab + 3) / 4; }

// A token's set among sequence breakers; see BreakerLimits.
AKUNU_DEVICE u32 breaker_set(const u32* breakers, u32 id) {
    return breakers[breakers[kBreakerBytesAt + id / 4] >> (8 * (id % 4)) & 0xFF];
}

// Tokens behind the last sequence breaker of the `window` tokens before `end`, or `window`, by a block. One that is far
// enough back for repeats of `longest` is not looked for.
AKUNU_DEVICE u32 repeat_limit(Block b, const u32* breakers, const u32* end, u32 window, u32 longest) {
    const u32 look = longest < window ? smaller(window, longest + 1 + kBreakerTailIds) : window;
    for (u32 first = 0; first < look; first += kThreads) {
        const u32 back = first + thread_id();
        u32 mine = 0;  // the nearest wins: its distance, and how many tokens of the breaker follow
        if (back < look) {
            const u32 set = breaker_set(breakers, *(end - 1 - back));
            bool found = (set & kIsBreaker) != 0;
            u32 behind = 0;
            const u32* tail = breakers + kBreakerSets + (set & 0xFFFF) * kBreakerTailWords;
            for (u32 i = 0; i < (set >> 16 & 0x7FFF); ++i, tail += kBreakerTailWords) {
                bool fits = tail[0] >= behind && tail[0] <= back;
                for (u32 j = 0; fits && j < tail[0]; ++j) fits = tail[1 + j] == *(end - back + j);
                if (!fits) continue;
                found = true;
                behind = tail[0];
            }
            if (found) mine = ~(thread_id() << 8 | behind);
        }
        const u32 nearest = reduce_block(b, mine, Larger());
        if (nearest != 0) return first + (~nearest >> 8) - (~nearest & 0xFF);
    }
    return window;
}

// DRY: takes from the logit of each token that would go on with a repeat of what the sequence ends with, of the `n`
// tokens from `begin` on. `counts` are zero before.
AKUNU_DEVICE void penalise_repeats(Block b, const SamplerState& s, const u32* breakers, const u32* end, u32 position,
                                   u32 begin, u32 n, float* scaled, u32* counts) {
    const u32 window = smaller(position, s.dry_window);
    if (s.dry_multiplier == 0.0f || window <= s.dry_allowed) return;
    sync_block();
    u32 longest = s.dry_longest;
    if (breakers) longest = smaller(longest, repeat_limit(b, breakers, end, window, longest));
    if (longest < s.dry_allowed) return;
    for (u32 back = 1 + thread_id(); back < window; back += kThreads) {
        const u32 at = *(end - back) - begin, most = smaller(longest, window - back);
        if (at >= n || atomic_max(counts + at, 0u) > most) continue;
        u32 same = 0;
        while (same < most && *(end - 1 - same) == *(end - 1 - same - back)) ++same;
        if (same >= s.dry_allowed) atomic_max(counts + at, same + 1);
    }
    sync_block();
    for (u32 i = thread_id(); i < n; i += kThreads) {
        if (counts[i] == 0 || (breakers && (breaker_set(breakers, begin + i) & kIsBreaker))) continue;
        const float penalty = mul_rn(s.dry_multiplier, power(s.dry_base, counts[i] - 1 - s.dry_allowed));
        scaled[i] = finite(add_rn(scaled[i], -penalty));
    }
}

// Slices of a row that prepare it, and blocks that then sample it together, where they have room for what they leave
// one another (sampler_parts.cuh).
constexpr u32 kSlice = 4096, kLeastPart = 2048;
AKUNU_DEVICE void leave_long(u32* at, u64 v) {
    at[0] = u32(v);
    at[1] = u32(v >> 32);
}
AKUNU_DEVICE u32 fresh_word(const u32* at) { return float_to_bits(load_fresh(reinterpret_cast<const float*>(at))); }
AKUNU_DEVICE u64 fresh_long(const u32* at) { return fresh_word(at) | u64(fresh_word(at + 1)) << 32; }
AKUNU_DEVICE u32 sampler_slices(u32 vocab) { return (vocab + kSlice - 1) / kSlice; }
AKUNU_DEVICE u32 sampler_parts(Block b, const SampleParams& p) {
    if (p.rows == 0 || p.rows > kMaxTickets) return 1;
    const u32 parts = smaller(b.blocks() / p.rows, smaller(p.vocab / kLeastPart, kThreads));
    return parts > 1 && 2 * sampler_slices(p.vocab) <= p.vocab / parts / 4 ? parts : 1;
}

// scaled = penalised(logits + bias), or -inf where the mask forbids. A block takes a slice of a row's tokens, the best
// of which it leaves behind the row's logits.
AKUNU_DEVICE_CALL void sample_prepare(Block b) {
    const auto& p = b.params<SampleParams>();
    const u32 slices = sampler_slices(p.vocab);
    u32* counts = reinterpret_cast<u32*>(b.shared());
    for (u32 u = b.first(); u < p.rows * slices; u += b.blocks()) {
        const u32 r = u / slices, begin = u % slices * kSlice, n = smaller(kSlice, p.vocab - begin);
        const LogitRow row = logit_row(b.buffer<Row>(6), b.buffer<u32>(7), p, r);
        const float* logits = b.buffer<float>(0) + u64(r) * p.vocab + begin;
        const u32* history = b.buffer<u32>(1) + u64(row.slot) * p.history_stride;
        const SamplerState& s = b.buffer<SamplerState>(2)[row.slot];
        const LogitBias* bias = b.buffer<LogitBias>(3) + u64(row.slot) * kMaxLogitBias;
        const u32* mask = b.buffer<u32>(4) + u64(r) * ((p.vocab + 31) / 32);
        float* scaled = b.buffer<float>(5) + u64(r) * 2 * p.vocab + begin;
        const float none = bits_to_float(0xFF800000u);
        sync_block();
        for (u32 i = thread_id(); i < n; i += kThreads) {
            const u32 id = begin + i;
            const bool allowed = !s.masked || (mask[id / 32] >> (id % 32) & 1) != 0;
            scaled[i] = allowed ? finite(logits[i]) : none;
            counts[i] = 0;
        }
        sync_block();
        for (u32 i = thread_id(); i < s.n_bias; i += kThreads) {  // ids are unique
            const u32 at = bias[i].id - begin;
            if (at < n) scaled[at] = finite(scaled[at] + bias[i].bias);
        }
        const bool penalises = s.repeat_penalty != 1.0f || s.presence_penalty != 0.0f || s.frequency_penalty != 0.0f;
        if (penalises) {
            for (u32 i = row.position - smaller(row.position, s.penalty_window) + thread_id(); i < row.position;
                 i += kThreads) {
                const u32 at = history[i] - begin;
                if (at < n) atomic_add(counts + at, 1u);
            }
            sync_block();
            for (u32 i = thread_id(); i < n; i += kThreads) {
                if (counts[i] == 0) continue;
                const float l = scaled[i] > 0.0f ? scaled[i] / s.repeat_penalty : scaled[i] * s.repeat_penalty;
                scaled[i] =
                    finite(add_rn(add_rn(l, -s.presence_penalty), -mul_rn(s.frequency_penalty, float(counts[i]))));
                counts[i] = 0;
            }
        }
        const u32* breakers = nullptr;
        if (s.has_dry_breakers) breakers = b.buffer<u32>(8) + u64(row.slot) * breaker_words(p.vocab);
        penalise_repeats(b, s, breakers, history + row.position, row.position, begin, n, scaled, counts);
        if (sampler_parts(b, p) == 1) continue;
        sync_block();
        float* const row_scaled = scaled - begin;
        const u64 best = best_within(b, row_scaled, begin, begin + n);
        if (thread_id() == 0) leave_long(reinterpret_cast<u32*>(row_scaled + p.vocab) + u % slices * 2, best);
    }
}

AKUNU_DEVICE_CALL void logprobs(Block b) {
    const auto& p = b.params<SampleParams>();
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const LogitRow row = logit_row(b.buffer<Row>(4), b.buffer<u32>(5), p, r);
        const SamplerState& s = b.buffer<SamplerState>(2)[row.slot];
        if (!s.want_logprobs) continue;
        const float* logits = b.buffer<float>(0) + u64(r) * p.vocab;
        LogprobRecord& out = b.buffer<LogprobRecord>(3)[u64(p.step) * p.rows + r];
        const float top = logit_of(best_of(b, logits, p.vocab));
        double sum = 0.0;
        for (u32 i = thread_id(); i < p.vocab; i += kThreads) sum += double(expf(finite(logits[i]) - top));
        sum = reduce_block(b, sum, Add());
        const double log_sum = double(top) + log(sum);
        if (thread_id() == 0) out.chosen = float(double(logits[b.buffer<u32>(1)[r]]) - log_sum);
        u64 limit = ~u64(0);
        for (u32 i = 0; i < smaller(s.n_logprobs, p.vocab); ++i) {
            limit = best_below(b, logits, p.vocab, limit);
            if (thread_id() == 0) {
                out.ids[i] = id_of(limit);
                out.values[i] = float(double(logit_of(limit)) - log_sum);
            }
        }
    }
}

// Writes the sampled tokens into the histories. Where a sequence has several rows, those after the first are drafts: a
// row counts as long as what was sampled for the row before it is the token that it was run for.
AKUNU_DEVICE_CALL void accept(Block b) {
    if (b.first() != 0 || thread_id() != 0) return;
    const auto& p = b.params<SampleParams>();
    const u32* sampled = b.buffer<u32>(0);
    Control& control = *b.buffer<Control>(4);
    u32 slot_before = 0xFFFFFFFFu;
    bool drafts_hold = true;
    for (u32 i = 0; i < p.rows; ++i) {
        const LogitRow row = logit_row(b.buffer<Row>(5), b.buffer<u32>(6), p, i);
        if (row.slot != slot_before) drafts_hold = true;
        slot_before = row.slot;
        SlotState& slot = b.buffer<SlotState>(3)[row.slot];
        if (slot.stopped || !drafts_hold) continue;
        u32& next = b.buffer<u32>(1)[u64(row.slot) * p.history_stride + row.position];
        drafts_hold = next == sampled[i];
        next = sampled[i];
        const SamplerState& s = b.buffer<SamplerState>(2)[row.slot];
        bool ended = false;
        for (u32 e = 0; e < s.n_end_ids; ++e) ended = ended || s.end_ids[e] == sampled[i];
        if (++slot.produced == slot.limit || ended) {
            slot.stopped = ended ? kStoppedAtEnd : kStoppedAtLimit;
            if (--control.active == 0) control.stop = 1;
        }
    }
}

AKUNU_DEVICE void move_axes(u32* positions, u32 row, u32 by) {
    for (u32 axis = 0; axis < kPositionAxes; ++axis) positions[u64(row) * kPositionAxes + axis] += by;
}

// Moves the rows on to what follows the tokens that the step gave; see ChainRecord. Those of a sequence that ended then
// stand behind its last token, and stay. A thread has every kThreads-th sequence.
AKUNU_DEVICE_CALL void advance(Block b) {
    if (b.first() != 0) return;
    const auto& p = b.params<AdvanceParams>();
    Row *rows = b.buffer<Row>(0), *draft_rows = b.buffer<Row>(4), *sampled_rows = b.buffer<Row>(7);
    u32 each = 1;
    while (each < p.rows && rows[each].slot == rows[0].slot) ++each;
    for (u32 i = thread_id(); i * each < p.rows; i += kThreads) {
        const u32 slot = rows[i * each].slot;
        ChainRecord& record = b.buffer<ChainRecord>(3)[slot];
        const u32 next = record.start + b.buffer<SlotState>(2)[slot].produced;
        const u32 tokens = next - rows[i * each].position;
        b.buffer<SlotState>(8)[slot] = {};
        if (tokens == 0) continue;  // it had ended before
        record.tokens[record.steps++] = tokens;
        for (u32 row = i * each; row < (i + 1) * each; ++row) {
            rows[row].position += tokens;
            if (p.has_axes) move_axes(b.buffer<u32>(1), row, tokens);
        }
        draft_rows[i].position += tokens;
        if (p.has_axes) move_axes(b.buffer<u32>(5), i, tokens);
        b.buffer<u32>(6)[i] = i * each + tokens - 1;
        sampled_rows[i].position += tokens;
        if (!p.has_spans) continue;
        StateSpan& span = b.buffer<StateSpan>(9)[slot];
        span = {span.to, next + 1};
    }
}

}  // namespace akunu::cuda
