// Temperature, the cuts and the sample, steps 4 to 11 of docs/sampling.md, in four passes:
//   best_slices    (argmax.metal) the best token of each slice of the vocabulary
//   sample_spread  per slice: a coarse histogram of the distances from the best; without cuts, the sample
//   sample_gather  lists the tokens that the first cut could keep
//   sample_select  cuts the list exactly, and samples
// A cut is an order of the tokens by (key, id), packed into 55 bits, and the place in it where a count or a mass is reached;
// it is found by radix select. Masses are integers, so neither schedule nor the list's order changes the result.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "philox.h"
#include "sampling.h"
#include "sampling_mass.h"
#include "tokens.h"

// Where things lie in a row's scratch; see sampling.h.
static inline device Ranked* best_in(device uchar* scratch) { return (device Ranked*)(scratch + sizeof(SampleList)); }
static inline device SampleSlice* slice_in(device uchar* scratch, uint vocab) {
    return (device SampleSlice*)(best_in(scratch) + slice_count(vocab));
}
static inline device Ranked* entries_in(device uchar* scratch, uint vocab) {
    return (device Ranked*)(slice_in(scratch, vocab) + slice_count(vocab));
}

static inline bool is_greedy(device const SamplerState& s, Ranked best) {
    return (as_type<uint>(s.temperature) & 0x7FFFFFFFu) == 0 || bits_of_rank(best.key) == kMinusInfinity;
}
static inline bool cuts_top_k(device const SamplerState& s, uint vocab) { return s.top_k > 0 && s.top_k < vocab; }
// Any but min_p alone, which is only a threshold.
static inline bool has_cuts(device const SamplerState& s, uint vocab) {
    return cuts_top_k(s, vocab) || s.typical_p < 1.0f || s.top_p < 1.0f || s.top_n_sigma > 0.0f ||
           s.xtc_probability > 0.0f || s.min_keep > 1;
}
// Whether XTC applies at a position: (word + 1/2) / 2^32 < probability.
static inline bool excludes(device const SamplerState& s, uint position) {
    if (!(s.xtc_probability > 0.0f)) return false;
    const uint word = philox4x32(uint4(0, position, 1, 0), uint2(s.seed_lo, s.seed_hi)).x;
    return ulong(word) * 2 + 1 < share_of(1ul << 33, s.xtc_probability);
}
// The largest distance that min_p keeps.
static inline float reach(device const SamplerState& s) {
    return s.min_p > 0.0f ? -precise::log(s.min_p) : as_type<float>(0x7F7FFFFFu);
}

// Half octaves of the distance, from 2^-8 to 2^8.
static inline uint depth_of(uint distance) {
    constexpr uint kFirst = (127 - 8) << 1;
    const uint half_octave = distance >> 22;
    return half_octave < kFirst ? 0 : min(half_octave - kFirst, kDepths - 1);
}

// A token's sum of logit and noise, as a rank. No other noise can make good a distance beyond kHopeless.
static constant constexpr float kHopeless = 27.0f;
static inline Ranked perturbed(float distance, uint id, uint word) {
    const float key = gumbel(word) - distance;
    return ranked(rank_of(as_type<uint>(key)), id);
}

kernel void sample_spread_f32(
    device const uint* scaled [[buffer(0)]],
    device const SamplerState* states [[buffer(1)]],
    device const Row* rows [[buffer(3)]],
    device const uint* logit_rows [[buffer(4)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device uchar* scratch [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSliceThreads / 32];
    threadgroup atomic_uint count[kDepths];
    threadgroup atomic_uint mass[2 * kDepths];
    threadgroup atomic_uint moment[2];
    threadgroup float sums[2 * (kSliceThreads / 32)];
    threadgroup uint lefts[kSliceThreads / 32];
    constexpr ushort kSimds = kSliceThreads / 32;
    const uint slice = at.x;
    const LogitRow row = logit_row(rows, logit_rows, p, at.y);
    device const SamplerState& settings = states[row.slot];
    scaled += ulong(at.y) * p.vocab * 2;
    scratch += at.y * select_bytes(p.vocab);
    const Ranked best = best_of_slices(best_in(scratch), slice_count(p.vocab), shared, thread_id, lane, simd, kSimds);
    if (is_greedy(settings, best)) return;  // all threads

    const float top = as_type<float>(bits_of_rank(best.key)), inverse = inverse_of(settings.temperature);
    const uint first = slice * kSliceTokens, end = min(p.vocab, first + kSliceTokens);
    device SampleSlice& out = slice_in(scratch, p.vocab)[slice];
    if (!has_cuts(settings, p.vocab)) {
        const float limit = min(reach(settings), kHopeless);
        Ranked winner = nothing();
        for (uint id = first + 4 * thread_id; id < end; id += 4 * kSliceThreads) {
            uint d[4];
            bool any = false;
            for (ushort i = 0; i < 4; ++i) {
                d[i] = id + i < end ? distance_below(scaled[id + i], top, inverse) : kDropped;
                if (d[i] != kDropped && as_type<float>(d[i]) > limit) d[i] = kDropped;
                any = any || d[i] != kDropped;
            }
            if (!any) continue;
            const uint4 words = philox4x32(uint4(id / 4, row.position, 0, 0), uint2(settings.seed_lo, settings.seed_hi));
            for (ushort i = 0; i < 4; ++i) {
                if (d[i] != kDropped) winner = better(winner, perturbed(as_type<float>(d[i]), id + i, words[i]));
            }
        }
        winner = group_best(winner, shared, lane, simd, kSimds);
        if (thread_id == 0) {
            out.winner.key = winner.key;
            out.winner.id = winner.id;
        }
        return;
    }

    if (thread_id < kDepths) {
        atomic_store_explicit(&count[thread_id], 0, memory_order_relaxed);
        atomic_store_explicit(&mass[2 * thread_id], 0, memory_order_relaxed);
        atomic_store_explicit(&mass[2 * thread_id + 1], 0, memory_order_relaxed);
    }
    if (thread_id < 2) atomic_store_explicit(&moment[thread_id], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong my_moment = 0;
    for (uint id = first + thread_id; id < end; id += kSliceThreads) {
        const uint d = distance_below(scaled[id], top, inverse);
        if (d == kDropped) continue;
        const ulong m = mass_of(d);
        atomic_fetch_add_explicit(&count[depth_of(d)], 1, memory_order_relaxed);
        if (m != 0) add_mass(&mass[2 * depth_of(d)], m);
        if (m != 0) my_moment += ulong(float(m) * as_type<float>(d));
    }
    add_mass(moment, my_moment);
    if (settings.top_n_sigma > 0.0f) {
        float sum = 0.0f, squares = 0.0f;
        uint left = 0;
        for (uint id = first + thread_id; id < end; id += kSliceThreads) {
            if (scaled[id] == kMinusInfinity) continue;
            const float below = top - as_type<float>(scaled[id]);
            sum += below;
            squares += below * below;
            left += 1;
        }
        sum = simd_sum(sum);
        squares = simd_sum(squares);
        left = simd_sum(left);
        if (lane == 0) {
            sums[simd] = sum;
            sums[kSimds + simd] = squares;
            lefts[simd] = left;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_id == 0) {
            for (ushort i = 1; i < kSimds; ++i) {
                sums[0] += sums[i];
                sums[kSimds] += sums[kSimds + i];
                lefts[0] += lefts[i];
            }
            out.sum = sums[0];
            out.squares = sums[kSimds];
            out.left = lefts[0];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id < kDepths) {
        out.count[thread_id] = atomic_load_explicit(&count[thread_id], memory_order_relaxed);
        out.mass[thread_id] = mass_in(&mass[2 * thread_id]);
    }
    if (thread_id == 0) out.moment = mass_in(moment);
}

// How far below the best top_n_sigma keeps logits.
static inline float reach_of_sigmas(device const SampleSlice* spread, uint slices, float sigmas) {
    float sum = 0.0f, squares = 0.0f;
    uint left = 0;
    for (uint s = 0; s < slices; ++s) {
        sum += spread[s].sum;
        squares += spread[s].squares;
        left += spread[s].left;
    }
    const float mean = sum / float(left), variance = max(squares / float(left) - mean * mean, 0.0f);
    const bool overflows = (as_type<uint>(variance) & 0x7FFFFFFFu) >= 0x7F800000u;
    return overflows ? as_type<float>(0x7F7FFFFFu) : sigmas * precise::sqrt(variance);
}

// Lists the tokens up to the depth that the first cut needs: all of them where it is none of top_k and top_p.
kernel void sample_gather_f32(
    device const uint* scaled [[buffer(0)]],
    device const SamplerState* states [[buffer(1)]],
    device const Row* rows [[buffer(3)]],
    device const uint* logit_rows [[buffer(4)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device uchar* scratch [[buffer(kScratchIndex)]],
    uint2 at [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSliceThreads / 32];
    threadgroup ulong mass[kDepths];
    threadgroup uint count[kDepths], before[kDepths];
    threadgroup uint deepest[1];
    threadgroup float sigmas[1];
    threadgroup atomic_uint next[1];
    const uint slice = at.x;
    device const SamplerState& settings = states[rows[logit_rows[at.y]].slot];
    scaled += ulong(at.y) * p.vocab * 2;
    scratch += at.y * select_bytes(p.vocab);
    const uint slices = slice_count(p.vocab);
    const Ranked best =
        best_of_slices(best_in(scratch), slices, shared, thread_id, lane, simd, kSliceThreads / 32);
    if (is_greedy(settings, best) || !has_cuts(settings, p.vocab)) return;  // all threads

    device const SampleSlice* spread = slice_in(scratch, p.vocab);
    if (thread_id < kDepths) {
        ulong all_mass = 0;
        uint all = 0, earlier = 0;
        for (uint s = 0; s < slices; ++s) {
            const uint n = spread[s].count[thread_id];
            all_mass += spread[s].mass[thread_id];
            all += n;
            earlier += s < slice ? n : 0;
        }
        mass[thread_id] = all_mass;
        count[thread_id] = all;
        before[thread_id] = earlier;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id == 0) {
        ulong total = 0;
        for (uint d = 0; d < kDepths; ++d) total += mass[d];
        const bool top_k = cuts_top_k(settings, p.vocab);
        const bool top_p = !top_k && !(settings.typical_p < 1.0f);
        const bool all = settings.top_n_sigma > 0.0f || settings.min_keep > 1;  // the counts have what others drop
        const ulong want = top_k ? settings.top_k : share_of(total, settings.top_p);
        ulong reached = 0;
        uint n = 0, start = 0, depth = 0;
        for (uint d = 0; d < kDepths; ++d) {
            depth = d;
            reached += top_k ? ulong(count[d]) : mass[d];
            n += count[d];
            start += before[d];
            if (!all && (top_k || top_p) && reached >= want) break;
        }
        deepest[0] = depth;
        sigmas[0] = settings.top_n_sigma > 0.0f ? reach_of_sigmas(spread, slices, settings.top_n_sigma)
                                                : as_type<float>(0x7F7FFFFFu);
        atomic_store_explicit(&next[0], start, memory_order_relaxed);
        if (slice == 0) {
            device SampleList& list = *(device SampleList*)scratch;
            list.total = total;
            list.n = n;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float top = as_type<float>(bits_of_rank(best.key)), inverse = inverse_of(settings.temperature);
    device Ranked* entries = entries_in(scratch, p.vocab);
    const uint first = slice * kSliceTokens, end = min(p.vocab, first + kSliceTokens);
    for (uint id = first + thread_id; id < end; id += kSliceThreads) {
        const uint d = distance_below(scaled[id], top, inverse);
        if (d == kDropped || depth_of(d) > deepest[0]) continue;
        const uint place = atomic_fetch_add_explicit(&next[0], 1, memory_order_relaxed);
        const bool kept = top - as_type<float>(scaled[id]) <= sigmas[0];
        entries[place].key = kept ? d : kDropped;
        entries[place].id = id;
    }
}

// ---- the last pass: one threadgroup over the list -----------------------------------------------

static constant constexpr ushort kSampleSimds = kSampleThreads / 32;
static constant constexpr uint kBuckets = 256;

// Threadgroup memory of a cut.
struct CutSpace {
    atomic_uint count[kBuckets];
    atomic_uint mass[2 * kBuckets];
    atomic_uint sum[2];
    ulong before;  // mass before the chosen bucket
    uint chosen, chosen_count;
};

// What comes after the `prefix` of an entry's bits from `shift` on is dropped.
struct Cut {
    ulong prefix;
    uint shift;
};

struct ByLogit {
    uint operator()(uint distance) const thread { return distance; }
};
// By the distance from the mean logit, which is `mean` below the best. A token's surprise differs from the entropy as its
// logit does from the mean: |-log p - H| = |t - E[t]|.
struct ByMean {
    float mean;
    uint operator()(uint distance) const thread { return as_type<uint>(as_type<float>(distance) - mean) & 0x7FFFFFFFu; }
};

// Sum of the masses; every thread gets it.
static inline ulong group_mass(ulong mine, threadgroup atomic_uint* sum, ushort thread_id) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id < 2) atomic_store_explicit(&sum[thread_id], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (mine != 0) add_mass(sum, mine);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return mass_in(sum);
}

static inline ulong shuffle_up(ulong x, ushort by) {
    const uint low = simd_shuffle_up(uint(x), by), high = simd_shuffle_up(uint(x >> 32), by);
    return ulong(low) | ulong(high) << 32;
}

// SIMD-group 0: the first bucket at which the mass reaches `want`; the last that holds anything if none does.
static inline void choose_bucket(threadgroup CutSpace& space, ulong before, ulong want, ushort lane) {
    constexpr ushort kEach = kBuckets / 32;
    ulong own = 0;
    uint last = 0;  // + 1
    for (ushort i = 0; i < kEach; ++i) {
        const uint b = lane * kEach + i;
        own += mass_in(&space.mass[2 * b]);
        if (atomic_load_explicit(&space.count[b], memory_order_relaxed) != 0) last = b + 1;
    }
    ulong to = own;
    for (ushort by = 1; by < 32; by *= 2) {
        const ulong other = shuffle_up(to, by);
        if (lane >= by) to += other;
    }
    const uint crossing = simd_min(before + to >= want && last != 0 ? uint(lane) : 32u);
    last = simd_max(last);
    const ushort owner = crossing < 32 ? crossing : (last - 1) / kEach;
    if (lane != owner) return;
    ulong sum = before + to - own;
    for (ushort i = 0; i < kEach; ++i) {
        const uint b = lane * kEach + i, n = atomic_load_explicit(&space.count[b], memory_order_relaxed);
        if (n == 0) continue;
        space.before = sum;
        space.chosen = b;
        space.chosen_count = n;
        sum += mass_in(&space.mass[2 * b]);
        if (crossing < 32 && sum >= want) break;
    }
}

// The token with which the mass (or for COUNTS the number) of those before it, itself included, first reaches `want`.
template <bool COUNTS, typename Key>
static inline Cut find_cut(device Ranked* entries, uint n, Key key, ulong want, threadgroup CutSpace& space,
                           ushort thread_id, ushort lane, ushort simd) {
    ulong prefix = 0, before = 0;
    uint known = kIdBits + 31, shift = known;
    while (shift > 0) {
        shift = known > 8 ? known - 8 : 0;
        for (uint b = thread_id; b < kBuckets; b += kSampleThreads) {
            atomic_store_explicit(&space.count[b], 0, memory_order_relaxed);
            atomic_store_explicit(&space.mass[2 * b], 0, memory_order_relaxed);
            atomic_store_explicit(&space.mass[2 * b + 1], 0, memory_order_relaxed);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = thread_id; i < n; i += kSampleThreads) {
            const uint d = entries[i].key;
            if (d == kDropped) continue;
            const ulong place = ulong(key(d)) << kIdBits | entries[i].id;
            if (place >> known != prefix) continue;
            const uint bucket = uint(place >> shift) & ((1u << (known - shift)) - 1);
            atomic_fetch_add_explicit(&space.count[bucket], 1, memory_order_relaxed);
            const ulong mass = COUNTS ? 1 : mass_of(d);
            if (mass != 0) add_mass(&space.mass[2 * bucket], mass);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (simd == 0) choose_bucket(space, before, want, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        prefix = prefix << (known - shift) | space.chosen;
        before = space.before;
        known = shift;
        if (space.chosen_count == 1) break;  // all threads
    }
    Cut found;
    found.prefix = prefix;
    found.shift = known;
    return found;
}

// Drops what comes after both of two tokens.
template <typename Key>
static inline void drop_after(device Ranked* entries, uint n, Key key, Cut a, Cut b, ushort thread_id) {
    for (uint i = thread_id; i < n; i += kSampleThreads) {
        const uint d = entries[i].key;
        if (d == kDropped) continue;
        const ulong place = ulong(key(d)) << kIdBits | entries[i].id;
        if (place >> a.shift > a.prefix && place >> b.shift > b.prefix) entries[i].key = kDropped;
    }
}

// Keeps the tokens that hold `want` of the mass, but `least` if there are.
template <typename Key>
static inline void keep_mass(device Ranked* entries, uint n, Key key, ulong want, uint least,
                             threadgroup CutSpace& space, ushort thread_id, ushort lane, ushort simd) {
    const Cut mass = find_cut<false>(entries, n, key, want, space, thread_id, lane, simd);
    Cut both = mass;
    if (least > 1) both = find_cut<true>(entries, n, key, ulong(least), space, thread_id, lane, simd);
    drop_after(entries, n, key, mass, both, thread_id);
}
template <typename Key>
static inline void keep_count(device Ranked* entries, uint n, Key key, ulong want, threadgroup CutSpace& space,
                              ushort thread_id, ushort lane, ushort simd) {
    const Cut cut = find_cut<true>(entries, n, key, want, space, thread_id, lane, simd);
    drop_after(entries, n, key, cut, cut, thread_id);
}

// The distance of the nearest survivor.
static inline uint nearest_of(device const Ranked* entries, uint n, threadgroup Ranked* shared, ushort thread_id,
                              ushort lane, ushort simd) {
    uint nearest = kDropped;
    for (uint i = thread_id; i < n; i += kSampleThreads) nearest = min(nearest, entries[i].key);
    return ~group_best(ranked(~nearest, 0), shared, lane, simd, kSampleSimds).key;
}

// Keeps the tokens from `limit` behind the nearest on, but `least` if there are.
static inline void keep_above(device Ranked* entries, uint n, float limit, uint least, threadgroup Ranked* shared,
                              threadgroup CutSpace& space, ushort thread_id, ushort lane, ushort simd) {
    const float nearest = as_type<float>(nearest_of(entries, n, shared, thread_id, lane, simd));
    ulong above = 0;
    for (uint i = thread_id; i < n; i += kSampleThreads) {
        if (entries[i].key != kDropped && as_type<float>(entries[i].key) - nearest <= limit) above += 1;
    }
    if (group_mass(above, space.sum, thread_id) < least) {  // all threads
        keep_count(entries, n, ByLogit(), ulong(least), space, thread_id, lane, simd);
        return;
    }
    for (uint i = thread_id; i < n; i += kSampleThreads) {
        if (entries[i].key != kDropped && as_type<float>(entries[i].key) - nearest > limit) entries[i].key = kDropped;
    }
}

// XTC: drops the tokens with a probability from `threshold` on, but for the last of them.
static inline void exclude_top(device Ranked* entries, uint n, float threshold, uint least,
                               threadgroup Ranked* shared, threadgroup CutSpace& space, ushort thread_id, ushort lane,
                               ushort simd) {
    ulong total = 0;
    for (uint i = thread_id; i < n; i += kSampleThreads) total += mass_of(entries[i].key);
    total = group_mass(total, space.sum, thread_id);
    const ulong want = threshold > 0.0f ? share_of(total, threshold) : 0;
    Ranked last = nothing();  // the farthest, then the highest id
    ulong counts = 0;         // those that reach it, and above 2^32 all
    for (uint i = thread_id; i < n; i += kSampleThreads) {
        const uint d = entries[i].key;
        if (d == kDropped) continue;
        counts += 1ul << 32;
        if (mass_of(d) < want) continue;
        counts += 1;
        last = better(last, ranked(d, ~entries[i].id));
    }
    last = group_best(last, shared, lane, simd, kSampleSimds);
    counts = group_mass(counts, space.sum, thread_id);
    const uint likely = uint(counts), left = uint(counts >> 32);
    if (likely < 2 || left - (likely - 1) < least) return;  // all threads
    for (uint i = thread_id; i < n; i += kSampleThreads) {
        const uint d = entries[i].key;
        if (d != kDropped && mass_of(d) >= want && entries[i].id != ~last.id) entries[i].key = kDropped;
    }
}

kernel void sample_select_f32(
    device const SamplerState* states [[buffer(1)]],
    device uint* sampled [[buffer(2)]],
    device const Row* rows [[buffer(3)]],
    device const uint* logit_rows [[buffer(4)]],
    constant SampleParams& p [[buffer(kParamsIndex)]],
    device uchar* scratch [[buffer(kScratchIndex)]],
    uint logit [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup Ranked shared[kSampleSimds];
    threadgroup CutSpace space;
    const LogitRow row = logit_row(rows, logit_rows, p, logit);
    device const SamplerState& settings = states[row.slot];
    scratch += logit * select_bytes(p.vocab);
    const uint slices = slice_count(p.vocab);
    const Ranked best = best_of_slices(best_in(scratch), slices, shared, thread_id, lane, simd, kSampleSimds);
    Ranked winner = best;
    if (!is_greedy(settings, best) && !has_cuts(settings, p.vocab)) {
        Ranked mine = nothing();
        if (thread_id < slices) {
            device const SampleSlice& s = slice_in(scratch, p.vocab)[thread_id];
            mine = ranked(s.winner.key, s.winner.id);
        }
        winner = group_best(mine, shared, lane, simd, kSampleSimds);
    } else if (!is_greedy(settings, best)) {
        device Ranked* entries = entries_in(scratch, p.vocab);
        device const SampleList& list = *(device const SampleList*)scratch;
        const uint n = list.n, least = settings.min_keep;
        const bool top_k = cuts_top_k(settings, p.vocab), typical = settings.typical_p < 1.0f;
        if (top_k && settings.top_k < n) {
            keep_count(entries, n, ByLogit(), ulong(settings.top_k), space, thread_id, lane, simd);
        }
        if (typical) {
            ulong mass = 0, moment = 0;
            for (uint i = thread_id; i < n; i += kSampleThreads) {
                const ulong m = mass_of(entries[i].key);
                mass += m;
                if (m != 0) moment += ulong(float(m) * as_type<float>(entries[i].key));
            }
            mass = group_mass(mass, space.sum, thread_id);
            moment = group_mass(moment, space.sum, thread_id);
            ByMean key;
            key.mean = float(moment / mass) + float(moment % mass) / float(mass);
            keep_mass(entries, n, key, share_of(mass, settings.typical_p), least, space, thread_id, lane, simd);
        }
        if (settings.top_p < 1.0f) {
            ulong mass = list.total;
            if (top_k || typical || settings.top_n_sigma > 0.0f) {
                mass = 0;
                for (uint i = thread_id; i < n; i += kSampleThreads) mass += mass_of(entries[i].key);
                mass = group_mass(mass, space.sum, thread_id);
            }
            keep_mass(entries, n, ByLogit(), share_of(mass, settings.top_p), least, space, thread_id, lane, simd);
        }
        const bool without_top = excludes(settings, row.position);
        if ((without_top || least > 1) && settings.min_p > 0.0f) {  // what follows counts what min_p leaves
            keep_above(entries, n, reach(settings), least, shared, space, thread_id, lane, simd);
        }
        if (without_top) {
            exclude_top(entries, n, settings.xtc_threshold, least, shared, space, thread_id, lane, simd);
        }
        // The nearest survivor, then the sample among those within min_p's reach of it.
        const uint nearest = nearest_of(entries, n, shared, thread_id, lane, simd);
        const float limit = without_top || least > 1 ? kHopeless : min(reach(settings), kHopeless);
        Ranked mine = nothing();
        for (uint i = thread_id; i < n; i += kSampleThreads) {
            const uint id = entries[i].id;
            const float d = as_type<float>(entries[i].key) - as_type<float>(nearest);
            if (entries[i].key == kDropped || d > limit) continue;
            const uint word = random_word(uint2(settings.seed_lo, settings.seed_hi), row.position, id);
            mine = better(mine, perturbed(d, id, word));
        }
        winner = group_best(mine, shared, lane, simd, kSampleSimds);
    }
    if (thread_id == 0) sampled[logit] = winner.id;
}
