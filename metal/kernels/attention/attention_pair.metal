// RoPE with the cache write, decode attention and prefill attention on a cache whose keys and values have types that
// function constants name: which are different, or q4_0.
#include <metal_stdlib>
using namespace metal;

#include "attention_types.h"

// The keys, or the values. Of the types all but one are left out when a pipeline is made.
template <bool kValues>
struct KvChosen {
    static uint type() { return kValues ? kValueType : kKeyType; }
    static ulong unit_bytes() {
        switch (type()) {
            case kKvF16: return KvF16::unit_bytes();
            case kKvF32: return KvF32::unit_bytes();
            case kKvQ8: return KvQ8::unit_bytes();
            default: return KvQ4::unit_bytes();
        }
    }
    static float4 load(device const uchar* cache, KvRow r, uint quad) {
        switch (type()) {
            case kKvF16: return KvF16::load(cache, r, quad);
            case kKvF32: return KvF32::load(cache, r, quad);
            case kKvQ8: return KvQ8::load(cache, r, quad);
            default: return KvQ4::load(cache, r, quad);
        }
    }
    static void store(device uchar* cache, KvRow r, uint d0, uint lane, float x) {
        switch (type()) {
            case kKvF16: return KvF16::store(cache, r, d0, lane, x);
            case kKvF32: return KvF32::store(cache, r, d0, lane, x);
            case kKvQ8: return KvQ8::store(cache, r, d0, lane, x);
            default: return KvQ4::store(cache, r, d0, lane, x);
        }
    }
};

struct KvPair {
    typedef KvChosen<false> Keys;
    typedef KvChosen<true> Values;
    typedef float Tile;
};

AKUNU_ATTENTION("pair", KvPair, 16, KvInHalves<KvPair>)
