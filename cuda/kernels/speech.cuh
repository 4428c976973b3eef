// What speech needs besides: the inputs of convolutions, the weights of cross-attention, and the rules of transcripts.
#pragma once

#include "attention.cuh"
#include "tokens.cuh"

namespace akunu::cuda {

// A row's inputs lie side by side in x, too.
AKUNU_DEVICE_CALL void unfold(Block b) {
    const auto& p = b.params<UnfoldParams>();
    const float* x = b.buffer<float>(0);
    const Output out{b.buffer<float>(1), b.buffer<u16>(2), p.formats};
    const u32 width = p.taps * p.channels, before = (p.taps - 1) / 2 * p.channels, all = p.length * p.channels;
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        for (u32 i = thread_id(); i < width; i += kThreads) {
            const u32 at =
                r * p.stride * p.channels + i - before;  // far behind the end where it is before the beginning
            out.store(u64(r) * width + i, at < all ? x[at] : 0.0f);
        }
    }
}

// out[i][row][key] = softmax(scale·q·Kᵀ) of the i-th chosen head. A block takes a row and a head, eight lanes a key.
template <u32 kTypes>
AKUNU_DEVICE_CALL void attention_weights(Block b) {
    constexpr u32 kLanes = 8;
    const auto& p = b.params<AttentionWeightsParams>();
    const u32 hd = p.head_dim, quads = (hd + 3) / 4, n = p.fixed_keys;
    float4* query = reinterpret_cast<float4*>(b.shared());
    for (u32 u = b.first(); u < p.rows * p.chosen; u += b.blocks()) {
        const u32 row = u / p.chosen, i = u % p.chosen, head = b.buffer<u32>(2)[i];
        const float* q = b.buffer<float>(0) + (u64(row) * p.n_heads + head) * hd;
        const auto keys = key_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(5), p, b.buffer<Row>(4)[row].slot,
                                           head / (p.n_heads / p.n_kv_heads));
        float* out = b.buffer<float>(3) + (u64(i) * p.out_rows + row) * n;
        sync_block();
        for (u32 d = thread_id(); d < quads * 4; d += kThreads) {
            reinterpret_cast<float*>(query)[d] = d < hd ? q[d] * p.scale : 0.0f;
        }
        sync_block();
        for (u32 begin = 0; begin < n; begin += kThreads / kLanes) {
            const u32 key = begin + thread_id() / kLanes;
            float score = 0.0f;
            for (u32 d = lane_id() % kLanes; key < n && d < quads; d += kLanes) {
                const float4 k = keys.load(key, d), x = query[d];
                score += x.x * k.x + x.y * k.y + x.z * k.z + x.w * k.w;
            }
            AKUNU_UNROLL
            for (u32 mask = kLanes / 2; mask > 0; mask /= 2) score += shuffle_xor(score, mask);
            if (key < n && lane_id() % kLanes == 0) out[key] = score;
        }
        sync_block();
        float top = bits_to_float(0xFF800000u), sum = 0.0f;
        for (u32 key = thread_id(); key < n; key += kThreads) top = fmaxf(top, out[key]);
        top = reduce_block(b, top, Larger());
        for (u32 key = thread_id(); key < n; key += kThreads) {
            out[key] = expf(out[key] - top);
            sum += out[key];
        }
        const float share = 1.0f / reduce_block(b, sum, Add());
        for (u32 key = thread_id(); key < n; key += kThreads) out[key] *= share;
    }
}

// What the times so far forbid: ids before `words`, and, from `begin` on, times before `first` and from `end` on.
struct ForbiddenTimes {
    u32 words, begin, first, end;
    AKUNU_DEVICE bool has(u32 id) const { return id < words || (id >= begin && (id < first || id >= end)); }
};

// Times come in pairs, at the beginning and between segments, and never go back. `said` are the n tokens so far,
// `behind` the place behind their last time, `begin` the first id that is a time.
AKUNU_DEVICE ForbiddenTimes forbidden_times(const SpeechRules& rules, const u32* said, u32 n, u32 behind, u32 begin,
                                            u32 vocab) {
    ForbiddenTimes f{0, begin, begin, vocab};
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
        f.words = smaller(rules.end, vocab);  // the end of a segment: its twin follows, or the end
    }
    if (behind > 0) f.first = smaller(said[behind - 1], vocab - 1) + (after && !twice ? 0 : 1);
    return f;
}

AKUNU_DEVICE bool has_bit(const u32* mask, u32 id) { return (mask[id / 32] >> (id % 32) & 1) != 0; }

// Where all times together are more likely than the best word, words become impossible. `x` was written by other
// blocks.
AKUNU_DEVICE void forbid_words(Block b, float* x, float word, u32 begin, u32 vocab) {
    const float none = bits_to_float(0xFF800000u), most = bits_to_float(0x7F7FFFFFu);
    float time = none;
    for (u32 i = begin + thread_id(); i < vocab; i += kThreads) time = fmaxf(time, finite(load_fresh(x + i)));
    time = reduce_block(b, time, Larger());
    // Infinite logits, which only a damaged model gives, are not compared.
    if (word == none || time == none || word >= most || time >= most) return;
    double sum = 0.0;
    for (u32 i = begin + thread_id(); i < vocab; i += kThreads) sum += double(expf(finite(load_fresh(x + i)) - time));
    sum = reduce_block(b, sum, Add());
    if (log(sum) <= double(word) - double(time)) return;
    for (u32 i = thread_id(); i < begin; i += kThreads) x[i] = none;
}

// The rules of transcripts: logits of what may not follow become -inf. A block takes a slice of a row's tokens; the
// last one of a row compares words and times.
AKUNU_DEVICE_CALL void speech_rules(Block b) {
    const auto& p = b.params<SampleParams>();
    const u32 slice = p.rows > kMaxTickets ? p.vocab : 1024, slices = (p.vocab + slice - 1) / slice;
    for (u32 u = b.first(); u < p.rows * slices; u += b.blocks()) {
        const u32 r = u / slices, from = u % slices * slice, to = smaller(p.vocab, from + slice);
        const LogitRow row = logit_row(b.buffer<Row>(4), b.buffer<u32>(5), p, r);
        const SpeechRules& rules = b.buffer<SpeechRules>(2)[row.slot];
        const u32 n = row.position > rules.prompt ? row.position - rules.prompt : 0;
        const u32 begin = rules.timestamp_begin != 0 ? smaller(rules.timestamp_begin, p.vocab) : p.vocab;
        const u32 words = (p.vocab + 31) / 32;
        const u32* said = b.buffer<u32>(1) + u64(row.slot) * p.history_stride + rules.prompt;
        const u32* never = b.buffer<u32>(3) + u64(row.slot) * 2 * words;
        float* x = b.buffer<float>(0) + u64(r) * p.vocab;

        u32 behind = 0;
        for (u32 i = thread_id(); i < n; i += kThreads) {
            if (said[i] >= begin) behind = i + 1;
        }
        behind = reduce_block(b, behind, Larger());
        const ForbiddenTimes times = forbidden_times(rules, said, n, behind, begin, p.vocab);
        u64 word = 0;
        for (u32 id = from + thread_id(); id < to; id += kThreads) {
            if (times.has(id) || has_bit(never, id) || (n == 0 && has_bit(never + words, id))) {
                x[id] = bits_to_float(0xFF800000u);
            }
            if (id >= begin) continue;
            const u64 rank = rank_of(finite(x[id]), id);
            if (rank > word) word = rank;
        }
        if (begin == p.vocab) continue;
        word = reduce_block(b, word, Larger());
        if (slices > 1) {
            Barrier& shared = *b.grid();
            if (thread_id() == 0) atomic_max(&shared.best[r], word);
            if (!comes_last(shared.tickets[r], slices)) continue;
            word = reduce_block(b, thread_id() == 0 ? atomic_max(&shared.best[r], u64(0)) : 0, Larger());
            if (thread_id() == 0) shared.best[r] = 0;
        } else {
            sync_block();
        }
        forbid_words(b, x, logit_of(word), begin, p.vocab);
    }
}

}  // namespace akunu::cuda
