// Logits as order-preserving integers. Fast math may fold comparisons with NaN and infinity, so what may be either is
// only ever looked at as bits. Included by .metal files only.
#pragma once

#include "core/params.h"
#include "sampling.h"

static constant constexpr uint kMinusInfinity = 0xFF800000u;  // bits
static constant constexpr uint kDropped = 0x7F800000u;        // the distance of a token that cannot be sampled

// A logit's bits: NaN, which only a damaged model gives, counts as -inf, more than the largest float as that.
static inline uint finite_bits(uint bits) {
    const uint magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return kMinusInfinity;
    if (bits == 0x7F800000u) return 0x7F7FFFFFu;
    return magnitude == 0 ? 0 : bits;  // one zero
}

// Rises with the float that has these (finite_bits) bits.
static inline uint rank_of(uint bits) { return bits & 0x80000000u ? ~bits : bits | 0x80000000u; }
static inline uint bits_of_rank(uint rank) { return rank & 0x80000000u ? rank ^ 0x80000000u : ~rank; }

// exp(x - top), 0 for -inf.
static inline float relative_exp(uint bits, float top) {
    return bits == kMinusInfinity ? 0.0f : precise::exp(as_type<float>(bits) - top);
}

static inline bool is_better(Ranked a, Ranked b) { return a.key > b.key || (a.key == b.key && a.id < b.id); }
static inline Ranked better(Ranked a, Ranked b) {
    const bool first = is_better(a, b);
    Ranked r;
    r.key = first ? a.key : b.key;
    r.id = first ? a.id : b.id;
    return r;
}
static inline Ranked ranked(uint key, uint id) {
    Ranked r;
    r.key = key;
    r.id = id;
    return r;
}
static inline Ranked nothing() { return ranked(0, 0xFFFFFFFFu); }

// The best of a SIMD-group, and of a threadgroup; `shared` holds one per SIMD-group.
static inline Ranked simd_best(Ranked a) {
    const uint key = simd_max(a.key);
    return ranked(key, simd_min(a.key == key ? a.id : 0xFFFFFFFFu));
}
static inline Ranked group_best(Ranked a, threadgroup Ranked* shared, ushort lane, ushort simd, ushort n_simds) {
    a = simd_best(a);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // those who still read an earlier result
    if (lane == 0) {
        shared[simd].key = a.key;
        shared[simd].id = a.id;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Ranked b = nothing();
    if (lane < n_simds) b = ranked(shared[lane].key, shared[lane].id);
    return simd_best(b);
}

// The best of what best_slices found.
static inline Ranked best_of_slices(device const Ranked* best, uint n, threadgroup Ranked* shared, ushort thread_id,
                                    ushort lane, ushort simd, ushort n_simds) {
    Ranked mine = nothing();
    if (thread_id < n) mine = ranked(best[thread_id].key, best[thread_id].id);
    return group_best(mine, shared, lane, simd, n_simds);
}

// A row of logits: its sequence, and the position of the token to be sampled.
struct LogitRow {
    uint slot, position;
};
static inline LogitRow logit_row(device const Row* rows, device const uint* logit_rows, constant SampleParams& p, uint i) {
    const uint row = logit_rows[i];
    LogitRow r;
    r.slot = rows[row].slot;
    r.position = rows[row].position + p.step + 1;
    return r;
}
