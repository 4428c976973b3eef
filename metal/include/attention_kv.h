// What all attention kernels share: function constants, which keys a row sees, and how the cache's types are read.
#pragma once

#include <metal_stdlib>

#include "core/params.h"
#include "kv_layout.h"

constant uint kHeadDim [[function_constant(0)]];
constant uint kGroup [[function_constant(1)]];    // query heads per KV head
constant bool kBatched [[function_constant(2)]];  // few rows: keys are split over threadgroups, which leave partial results
constant uint kMostSplits [[function_constant(3)]];  // that decode attention has
constant bool kHasSinks [[function_constant(4)]];    // heads have a score that has no value
constant uint kKeyType [[function_constant(5)]];     // KvType, where a function is not of one type of cache alone
constant uint kValueType [[function_constant(6)]];
// Groups of four elements in a row, and whether rows may be read as vectors. No constants: those of a header that several
// files include would be several symbols of one library.
static inline uint head_quads() { return (kHeadDim + 3) / 4; }
static inline bool has_whole_quads() { return kHeadDim % 4 == 0; }

// A masked score: finite, for fast math knows no infinity, and less than any score.
static constant constexpr float kMasked = -1e30f;

// The first key that a row at `position` sees: with a window w those in (position - w, position].
static inline uint first_key(uint position, uint window) {
    return window != 0 && position >= window ? position + 1 - window : 0;
}
// Blocks of `each` keys that a row at `position` sees all or a part of.
static inline uint split_blocks(uint position, uint window, uint each) {
    return position / each - first_key(position, window) / each + 1;
}

// The last key that a row of decode attention sees.
static inline uint last_key(constant AttentionParams& p, device const Row& row) {
    return p.fixed_keys != 0 ? p.fixed_keys - 1 : row.position + p.step;
}

// Positions that a page table has room for.
static inline uint context_of(constant AttentionParams& p) { return p.max_pages * kPagePositions; }

// Splits of the keys that a batch of few rows has: the grid's, see GroupCount in metal/choose/kernel_choice.h. Split z has every
// n-th run of batch_split_keys from the first that is seen on; of rows that see fewer keys than others, some have none.
static inline uint batch_splits_used(constant AttentionParams& p, device const Row* rows) {
    const uint each = batch_split_keys(context_of(p));
    if (p.fixed_keys != 0) return (p.fixed_keys + each - 1) / each;
    uint last = 0;
    for (uint i = 0; i < p.rows; ++i) last = metal::max(last, rows[i].position);
    const uint all = last + p.step + 1;
    return ((p.window != 0 ? metal::min(all, p.window + each - 1) : all) + each - 1) / each;
}

// cap·tanh(s / cap). The fast tanh is NaN where its exponential overflows.
static inline float soft_cap(float score, float cap) {
    return cap > 0.0f ? cap * metal::precise::tanh(score / cap) : score;
}

// What a head's sink adds to the sum of its weights, each e^(score - top).
static inline float sink_weight(device const float* sinks, uint head, float top) {
    return kHasSinks ? metal::precise::exp(sinks[head] - top) : 0.0f;
}

// Four elements from `d` on of a head of f32 that begins at `x`.
static inline float4 load_head_quad(device const float* x, uint d) {
    if (has_whole_quads()) return *(device const float4*)(x + d);
    float4 v = float4(0.0f);
    for (uint i = 0; i < 4 && d + i < kHeadDim; ++i) v[i] = x[d + i];
    return v;
}

// Where a position's row lies, see kv_layout.h: bytes from the cache's start to the unit, and the row in it.
struct KvRow {
    ulong unit;
    uint row;
};

// Finds rows of one KV head's keys, or values, by a sequence's page table.
struct KvHead {
    device const uint* pages;
    ulong page_bytes, in_page;  // bytes from one page to the next, and in a page to the unit

    KvRow at(uint position) const {
        return {pages[position / kPagePositions] * page_bytes + in_page, position % kPagePositions};
    }
};
// The KV head of a threadgroup's query heads, which are those of a group or of a part of one: part `part` of all.
static inline uint kv_of(constant AttentionParams& p, uint part) { return part * kGroup * p.n_kv_heads / p.n_heads; }
// A KV head's keys, and its values, which begin behind the keys of all.
template <typename Kv, typename Params>
static inline KvHead key_head(device const uint* pages, constant Params& p, uint slot, uint kv) {
    return {pages + ulong(slot) * p.max_pages, ulong(p.page_words) * 4, kv * Kv::Keys::unit_bytes()};
}
template <typename Kv, typename Params>
static inline KvHead value_head(device const uint* pages, constant Params& p, uint slot, uint kv) {
    return {pages + ulong(slot) * p.max_pages, ulong(p.page_words) * 4,
            p.n_kv_heads * Kv::Keys::unit_bytes() + kv * Kv::Values::unit_bytes()};
}

// A cache of type T: `Tile` is what prefill keeps in threadgroup memory.
template <typename T>
struct KvFloat {
    typedef KvFloat<T> Keys;
    typedef KvFloat<T> Values;
    typedef T Tile;
    static ulong unit_bytes() { return ulong(kPagePositions) * kHeadDim * sizeof(T); }
    // Elements 4·quad to 4·quad + 3; past the row's end 0.
    static float4 load(device const uchar* cache, KvRow r, uint quad) {
        device const T* row = (device const T*)(cache + r.unit) + r.row * kHeadDim;
        if (has_whole_quads()) return float4(*(device const metal::vec<T, 4>*)(row + quad * 4));
        float4 v = float4(0.0f);
        for (uint i = 0; i < 4 && quad * 4 + i < kHeadDim; ++i) v[i] = float(row[quad * 4 + i]);
        return v;
    }
    // A SIMD-group stores elements d0..d0+31, `x` being the lane's; lanes past the row's end store nothing.
    static void store(device uchar* cache, KvRow r, uint d0, uint lane, float x) {
        if (d0 + lane < kHeadDim) ((device T*)(cache + r.unit))[r.row * kHeadDim + d0 + lane] = T(x);
    }
};

struct KvQ8 {
    typedef KvQ8 Keys;
    typedef KvQ8 Values;
    typedef float Tile;  // a product of int8 and f16 has more bits than f16
    static ulong unit_bytes() { return q8_unit_bytes(kPagePositions, kHeadDim); }
    static float4 load(device const uchar* cache, KvRow r, uint quad) {
        device const uchar* unit = cache + r.unit;
        device const char* row = (device const char*)unit + r.row * kHeadDim;
        device const half* scales = (device const half*)(unit + q8_scales_offset(kPagePositions, kHeadDim));
        const float d = float(scales[r.row * kv_row_blocks(kHeadDim) + quad * 4 / kKvBlock]);
        if (has_whole_quads()) return float4(*(device const char4*)(row + quad * 4)) * d;
        float4 v = float4(0.0f);
        for (uint i = 0; i < 4 && quad * 4 + i < kHeadDim; ++i) v[i] = float(row[quad * 4 + i]) * d;
        return v;
    }
    static void store(device uchar* cache, KvRow r, uint d0, uint lane, float x) {
        device uchar* unit = cache + r.unit;
        device half* scales = (device half*)(unit + q8_scales_offset(kPagePositions, kHeadDim));
        const float d = metal::simd_max(d0 + lane < kHeadDim ? metal::fabs(x) : 0.0f) / 127.0f;
        const float q = d > 0.0f ? metal::rint(metal::clamp(x / d, -127.0f, 127.0f)) : 0.0f;
        if (lane == 0) scales[r.row * kv_row_blocks(kHeadDim) + d0 / kKvBlock] = half(metal::min(d, 65504.0f));
        if (d0 + lane < kHeadDim) ((device char*)unit)[r.row * kHeadDim + d0 + lane] = char(q);
    }
};

struct KvQ4 {
    static ulong unit_bytes() { return q4_unit_bytes(kPagePositions, kHeadDim); }
    static uint block(KvRow r, uint quad) { return r.row * kv_row_blocks(kHeadDim) + quad * 4 / kKvBlock; }
    static float4 load(device const uchar* cache, KvRow r, uint quad) {
        device const uchar* unit = cache + r.unit;
        device const half* scales = (device const half*)(unit + q4_scales_offset(kPagePositions, kHeadDim));
        const uint at = block(r, quad), above = quad % 8 / 4 * 4;
        const uchar4 two = *(device const uchar4*)(unit + at * (kKvBlock / 2) + quad % 4 * 4);
        return (float4((two >> uchar4(above)) & uchar4(15)) - 8.0f) * float(scales[at]);
    }
    // The value that is farthest from 0 is -8 times the scale; of two as far the negative one.
    static void store(device uchar* cache, KvRow r, uint d0, uint lane, float x) {
        device uchar* unit = cache + r.unit;
        device half* scales = (device half*)(unit + q4_scales_offset(kPagePositions, kHeadDim));
        const float v = d0 + lane < kHeadDim ? x : 0.0f, high = metal::simd_max(v), low = metal::simd_min(v);
        const float d = (high > -low ? high : low) / -8.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
        const uint code = uint(metal::clamp(v * inverse + 8.5f, 0.0f, 15.0f));
        const uint above = metal::simd_shuffle_xor(code, ushort(16)), at = block(r, d0 / 4);
        if (lane == 0) scales[at] = half(metal::clamp(d, -65504.0f, 65504.0f));
        if (lane < kKvBlock / 2) unit[at * (kKvBlock / 2) + lane] = uchar(code | above << 4);
    }
};

typedef KvFloat<half> KvF16;
typedef KvFloat<float> KvF32;

// The same cache, of which prefill keeps halves where floats of long heads would not fit.
template <typename Kv>
struct KvInHalves : Kv {
    typedef half Tile;
};
