// Temperature, the cuts and the sample: steps 4 to 11 of docs/sampling.md, by a block for each row.
//
// A cut is an order of the tokens by (key, id) and the place in it where a count or a mass is reached. Masses are
// integers, so that no order of summation changes a result. The tokens that a cut could keep are listed in shared
// memory where they are few enough; else the cut works on all of them.
#pragma once

#include "tokens.cuh"

namespace akunu::cuda {

constexpr float kMassUnit = 0x1p44f;
constexpr u32 kMaxList = 4096, kBuckets = 4096, kDepths = 6;

struct SamplerMemory {
    u64 weight[kBuckets];   // a histogram
    float logit[kMaxList];  // relative to the best of all tokens, and divided by the temperature
    u32 id[kMaxList];
    u64 part[kThreads];
    u64 before;
    u32 chosen, count;
};
static_assert(sizeof(SamplerMemory) <= kOpBytes, "the ring begins behind it");

AKUNU_DEVICE u64 mass_of(float t) { return t > -31.0f ? u64(expf(t) * kMassUnit) : 0; }

// Orders of the tokens, by keys >= 0 of their relative logits, smallest first.
struct ByLogit {
    AKUNU_DEVICE float operator()(float t) const { return 0.0f - t; }
};
struct ByDistance {  // from the mean logit
    float mean;
    AKUNU_DEVICE float operator()(float t) const { return fabsf(t - mean); }
};
struct Count {
    AKUNU_DEVICE u64 operator()(float) const { return 1; }
};
struct Mass {
    AKUNU_DEVICE u64 operator()(float t) const { return mass_of(t); }
};

// The tokens that are left, those dropped at -inf: all of a row, or a list.
struct Survivors {
    float* x;
    u32 n;
    SamplerMemory& memory;
    bool listed;

    AKUNU_DEVICE u32 size() const { return listed ? memory.count : n; }
    AKUNU_DEVICE float* logits() const { return listed ? memory.logit : x; }
    AKUNU_DEVICE u32 id(u32 i) const { return listed ? memory.id[i] : i; }
    // Calls f(logit, id, index) for this thread's.
    template <typename F>
    AKUNU_DEVICE void each(F&& f) const {
        const float* t = logits();
        for (u32 i = thread_id(); i < size(); i += kThreads) {
            if (t[i] > bits_to_float(0xFF800000u)) f(t[i], id(i), i);
        }
    }
};

// The first bucket with which the sum of the weights, from `before` on, reaches `want`, and the sum before it. There is
// one.
AKUNU_DEVICE u32 find_bucket(SamplerMemory& m, u64 want) {
    constexpr u32 kEach = kBuckets / kThreads;
    u64 sum = 0;
    for (u32 i = 0; i < kEach; ++i) sum += m.weight[thread_id() * kEach + i];
    m.part[thread_id()] = sum;
    sync_block();
    if (thread_id() == 0) {
        u64 before = m.before;
        u32 i = 0;
        while (i + 1 < kThreads && before + m.part[i] < want) before += m.part[i++];
        u32 bucket = i * kEach;
        while (bucket + 1 < kBuckets && before + m.weight[bucket] < want) before += m.weight[bucket++];
        m.before = before;
        m.chosen = bucket;
    }
    sync_block();
    return m.chosen;
}

// The place, (key, id), where the tokens before, with their measures, first reach `want`.
template <typename Key, typename Measure>
AKUNU_DEVICE_CALL u64 place_of(const Survivors& s, const Key& key, const Measure& measure, u64 want) {
    SamplerMemory& m = s.memory;
    // Digits of (key, id): 31 bits of the key, whose sign is 0, and 24 of the id.
    constexpr u32 kDigits[][2] = {{43, 12}, {31, 12}, {24, 7}, {12, 12}, {0, 12}};
    sync_block();
    if (thread_id() == 0) m.before = 0;
    u64 prefix = 0;
    for (u32 digit = 0; digit < 5; ++digit) {
        const u32 shift = kDigits[digit][0], bits = kDigits[digit][1];
        for (u32 i = thread_id(); i < kBuckets; i += kThreads) m.weight[i] = 0;
        sync_block();
        s.each([&](float t, u32 id, u32) {
            const u64 place = u64(float_to_bits(key(t))) << 24 | id;
            if (place >> (shift + bits) != prefix) return;
            const u64 amount = measure(t);
            if (amount) atomic_add(m.weight + (place >> shift & ((1u << bits) - 1)), amount);
        });
        sync_block();
        prefix = prefix << bits | find_bucket(m, want);
    }
    return prefix;
}

// Drops what comes behind a place.
template <typename Key>
AKUNU_DEVICE void drop_behind(const Survivors& s, const Key& key, u64 place) {
    s.each([&](float t, u32 id, u32 i) {
        if ((u64(float_to_bits(key(t))) << 24 | id) > place) s.logits()[i] = bits_to_float(0xFF800000u);
    });
    sync_block();
}

// Lists the tokens with keys up to `depth`; false when they are too many.
template <typename Key>
AKUNU_DEVICE bool list_within(Survivors& s, const Key& key, float depth) {
    SamplerMemory& m = s.memory;
    sync_block();
    if (thread_id() == 0) m.count = 0;
    sync_block();
    s.each([&](float t, u32 id, u32) {
        if (!(key(t) <= depth)) return;
        const u32 at = atomic_add(&m.count, 1u);
        if (at >= kMaxList) return;
        m.logit[at] = t;
        m.id[at] = id;
    });
    sync_block();
    s.listed = m.count <= kMaxList;
    return s.listed;
}

AKUNU_DEVICE u64 count_left(Block b, const Survivors& s) {
    u64 left = 0;
    s.each([&](float, u32, u32) { ++left; });
    return reduce_block(b, left, Add());
}

AKUNU_DEVICE float depth_at(u32 i) { return i + 1 == kDepths ? bits_to_float(0x7F7FFFFFu) : float(1u << i); }

// What tokens measure whose keys are within each depth; the deepest has all.
struct Depths {
    u64 sum[kDepths] = {};
    AKUNU_DEVICE void add(float key, u64 amount) {
        AKUNU_UNROLL
        for (u32 d = 0; d < kDepths; ++d) sum[d] += key <= depth_at(d) ? amount : 0;
    }
    // The least depth whose tokens measure enough, or the deepest.
    AKUNU_DEVICE u32 least_with(u64 enough) const {
        u32 least = kDepths - 1;
        AKUNU_UNROLL
        for (u32 d = kDepths; d-- > 0;) {
            if (sum[d] >= enough) least = d;
        }
        return least;
    }
    AKUNU_DEVICE void join(Block b) {
        AKUNU_UNROLL
        for (u32 d = 0; d < kDepths; ++d) sum[d] = reduce_block(b, sum[d], Add());
    }
};

// The smallest mass that is at least a share p of `total`.
AKUNU_DEVICE u64 share_of(u64 total, float p) {
    const double share = double(p) * double(total);
    u64 mass = u64(share);
    if (double(mass) < share) ++mass;
    return mass > total ? total : mass < 1 ? 1 : mass;
}
// How much a cut keeps of what all tokens measure: a number of them, or a share of their mass.
struct TokenCount {
    using Measure = Count;
    u64 n;
    AKUNU_DEVICE u64 of(u64) const { return n; }
};
struct MassShare {
    using Measure = Mass;
    float p;
    AKUNU_DEVICE u64 of(u64 total) const { return share_of(total, p); }
};

// Keeps the fewest tokens, smallest keys first, whose measures reach what is wanted, but `least` if there are. A
// function that is called, as others that are large: code that stands in several places takes long to compile.
template <typename Key, typename Want>
AKUNU_DEVICE_CALL void keep(Block b, Survivors& s, const Key& key, u32 least, const Want& want) {
    const typename Want::Measure measure{};
    Depths within;
    s.each([&](float t, u32, u32) { within.add(key(t), measure(t)); });
    within.join(b);
    const u64 total = within.sum[kDepths - 1], enough = want.of(total);
    const float depth = depth_at(least < 2 ? within.least_with(enough) : kDepths - 1);
    if (enough > total) return;
    const u64 left = least < 2 ? 0 : count_left(b, s);
    if (!s.listed) list_within(s, key, depth);
    u64 place = place_of(s, key, measure, enough);
    if (least >= 2) {
        const u64 other = left <= least ? ~u64(0) : place_of(s, key, Count(), least);
        if (other > place) place = other;
    }
    drop_behind(s, key, place);
}

// Mean of the relative logits under their own distribution.
AKUNU_DEVICE float mean_logit(Block b, const Survivors& s) {
    u64 mass = 0, moment = 0;
    s.each([&](float t, u32, u32) {
        const u64 own = mass_of(t);
        mass += own;
        moment += u64(float(own) * -t);
    });
    mass = reduce_block(b, mass, Add());
    moment = reduce_block(b, moment, Add());
    return -float(double(moment) / double(mass));
}

// Drops the tokens that are more than `sigmas` standard deviations of the logits below the best.
AKUNU_DEVICE void keep_sigmas(Block b, float* x, u32 n, float best, float sigmas) {
    const float none = bits_to_float(0xFF800000u);
    double sum = 0.0, squares = 0.0;
    u64 left = 0;
    for (u32 i = thread_id(); i < n; i += kThreads) {
        if (!(x[i] > none)) continue;
        const double d = double(x[i] - best);
        sum += d;
        squares += d * d;
        ++left;
    }
    sum = reduce_block(b, sum, Add());
    squares = reduce_block(b, squares, Add());
    left = reduce_block(b, left, Add());
    const double mean = sum / double(left), variance = squares / double(left) - mean * mean;
    if (!(variance < 1e300)) return;  // logits too large for it
    const float floor = float(-double(sigmas) * sqrt(variance > 0.0 ? variance : 0.0));
    for (u32 i = thread_id(); i < n; i += kThreads) {
        if (x[i] - best < floor) x[i] = none;
    }
    sync_block();
}

// Keeps the tokens from `gap` below the best on, but `least` if there are.
AKUNU_DEVICE void keep_above(Block b, const Survivors& s, float best, float gap, u32 least) {
    u64 above = 0;
    s.each([&](float t, u32, u32) { above += t - best >= gap ? 1 : 0; });
    above = reduce_block(b, above, Add());
    if (above < least) {
        if (count_left(b, s) > least) drop_behind(s, ByLogit(), place_of(s, ByLogit(), Count(), least));
        return;
    }
    s.each([&](float t, u32, u32 i) {
        if (t - best < gap) s.logits()[i] = bits_to_float(0xFF800000u);
    });
    sync_block();
}

// XTC: drops the tokens with a probability from `threshold` on, but for the last of them.
AKUNU_DEVICE void exclude_top(Block b, const Survivors& s, float threshold, u32 least) {
    u64 total = 0;
    s.each([&](float t, u32, u32) { total += mass_of(t); });
    total = reduce_block(b, total, Add());
    const double want = double(threshold) * double(total);
    u64 likely = 0, last = 0;  // what comes last has the highest place
    s.each([&](float t, u32 id, u32) {
        if (double(mass_of(t)) < want) return;
        ++likely;
        const u64 place = u64(float_to_bits(0.0f - t)) << 32 | id;
        if (place > last) last = place;
    });
    likely = reduce_block(b, likely, Add());
    last = reduce_block(b, last, Larger());
    const u64 left = count_left(b, s);
    if (likely < 2 || left - (likely - 1) < least) return;
    s.each([&](float t, u32 id, u32 i) {
        if (double(mass_of(t)) >= want && id != u32(last)) s.logits()[i] = bits_to_float(0xFF800000u);
    });
    sync_block();
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
AKUNU_DEVICE u32 random_word(const SamplerState& s, u32 position, u32 token, u32 purpose = 0) {
    u32 c0 = token / 4, c1 = position, c2 = purpose, c3 = 0, k0 = s.seed_lo, k1 = s.seed_hi;
    for (u32 round = 0; round < 10; ++round) {
        const u64 p0 = u64(0xD2511F53u) * c0, p1 = u64(0xCD9E8D57u) * c2;
        c0 = u32(p1 >> 32) ^ c1 ^ k0;
        c1 = u32(p1);
        c2 = u32(p0 >> 32) ^ c3 ^ k1;
        c3 = u32(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const u32 e = token % 4;
    return e == 0 ? c0 : e == 1 ? c1 : e == 2 ? c2 : c3;
}

// Whether XTC applies at a position.
AKUNU_DEVICE bool excludes(const SamplerState& s, u32 position) {
    if (!(s.xtc_probability > 0.0f)) return false;
    return (double(random_word(s, position, 0, 1)) + 0.5) * 0x1p-32 < double(s.xtc_probability);
}

// Standard Gumbel noise of a random word; the largest value is below kMaxGumbel.
constexpr double kMaxGumbel = 22.9;
AKUNU_DEVICE double gumbel(u32 word) {
    const double u = (double(word) + 0.5) * 0x1p-32;
    return -log(-log1p(-u));
}

struct Winner {
    double key;
    u32 id;
    AKUNU_DEVICE void offer(double k, u32 token) {
        if (k > key || (k == key && token < id)) {
            key = k;
            id = token;
        }
    }
};

// A token with its noise, if it may win.
AKUNU_DEVICE void offer(Winner& mine, float t, u32 id, const SamplerState& sampler, u32 position, float floor) {
    if (t < floor || !(double(t) + kMaxGumbel >= mine.key)) return;
    const u32 word = random_word(sampler, position, id);
    // -log(-log1p(-u)) <= -log u
    const float bound = t - logf((float(word >> 8) + 0.5f) * 0x1p-24f) + 1e-3f;
    if (word >> 8 != 0 && double(bound) < mine.key) return;
    mine.offer(double(t) + gumbel(word), id);
}
// Of all threads' winners the best one's id.
AKUNU_DEVICE u32 winner_of(Block b, const Winner& mine) {
    const double most = reduce_block(b, mine.key, Larger());
    return ~reduce_block(b, mine.key == most ? ~mine.id : 0u, Larger());
}

// argmax of logit + noise over the survivors from `floor` on; `best` is one of them.
AKUNU_DEVICE_CALL u32 sample(Block b, const Survivors& s, const SamplerState& sampler, u32 position, u64 best,
                             float floor) {
    Winner mine{double(logit_of(best)) + gumbel(random_word(sampler, position, id_of(best))), id_of(best)};
    s.each([&](float t, u32 id, u32) { offer(mine, t, id, sampler, position, floor); });
    return winner_of(b, mine);
}

AKUNU_DEVICE u64 best_left(Block b, const Survivors& s) {
    u64 best = 0;
    s.each([&](float t, u32 id, u32) {
        const u64 rank = rank_of(t, id);
        if (rank > best) best = rank;
    });
    return reduce_block(b, best, Larger());
}

// How far min_p lets a token be from the best one.
AKUNU_DEVICE float least_gap(const SamplerState& s) {
    return s.min_p > 0.0f ? logf(s.min_p) : bits_to_float(0xFF800000u);
}

// The token of one row; `x` are its penalised logits, which are overwritten.
AKUNU_DEVICE_CALL u32 select_token(Block b, float* x, u32 vocab, u32 position, const SamplerState& s) {
    const u64 first = best_of(b, x, vocab);
    const float top = logit_of(first);
    if (s.temperature == 0.0f || top == bits_to_float(0xFF800000u)) return id_of(first);
    if (s.top_n_sigma > 0.0f) keep_sigmas(b, x, vocab, top, s.top_n_sigma);
    // Relative to the best first: then nothing overflows but to -inf, whatever the temperature.
    const float inverse = finite(1.0f / s.temperature);
    for (u32 i = thread_id(); i < vocab; i += kThreads) x[i] = (x[i] - top) * inverse;
    sync_block();
    Survivors left{x, vocab, *reinterpret_cast<SamplerMemory*>(b.shared()), false};
    if (s.top_k > 0 && s.top_k < vocab) keep(b, left, ByLogit(), 0, TokenCount{s.top_k});
    if (s.typical_p < 1.0f) {
        const ByDistance order{mean_logit(b, left)};
        keep(b, left, order, s.min_keep, MassShare{s.typical_p});
    }
    if (s.top_p < 1.0f) keep(b, left, ByLogit(), s.min_keep, MassShare{s.top_p});
    u64 best = best_left(b, left);
    float gap = least_gap(s);
    const bool without_top = excludes(s, position);
    if (without_top || s.min_keep > 1) {  // what follows counts what min_p leaves
        if (s.min_p > 0.0f) keep_above(b, left, logit_of(best), gap, s.min_keep);
        gap = bits_to_float(0xFF800000u);
        if (without_top) exclude_top(b, left, s.xtc_threshold, s.min_keep);
        best = best_left(b, left);
    }
    return sample(b, left, s, position, best, logit_of(best) + gap);
}

}  // namespace akunu::cuda
