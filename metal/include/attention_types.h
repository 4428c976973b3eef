// The kernels that read or write the cache, for one of its types: included once per type by metal/kernels/attention, so
// that a session compiles only what it uses.
#pragma once

#include "attention_flash.h"
#include "attention_rope.h"
#include "attention_split.h"
#include "attention_weights.h"
#include "instantiate.h"

#include "attention_latent.h"

// kKeys256: keys of a tile where a head may have 256 elements, as many as fit into 32 KB. Kv512: of a tile where it may
// have 512.
#define AKUNU_ATTENTION(type, Kv, kKeys256, Kv512)                               \
    AKUNU_KERNEL("prepare_heads_" type, prepare_heads<Kv>)                                   \
    AKUNU_KERNEL("attention_weights_" type, attention_weights<Kv>)               \
    AKUNU_KERNEL("latent_kv_" type, latent_kv<Kv>)                               \
    AKUNU_KERNEL("attention_latent_" type, attention_latent<Kv>)                 \
    AKUNU_KERNEL("attention_latent_split_" type, attention_latent_split<Kv>)     \
    AKUNU_KERNEL("attention_split_" type "_g1_hd128", attention_split<Kv, 128, 1>)   \
    AKUNU_KERNEL("attention_split_" type "_g4_hd128", attention_split<Kv, 128, 4>)   \
    AKUNU_KERNEL("attention_split_" type "_g8_hd128", attention_split<Kv, 128, 8>)   \
    AKUNU_KERNEL("attention_split_" type "_g16_hd128", attention_split<Kv, 128, 16>) \
    AKUNU_KERNEL("attention_split_" type "_g1_hd256", attention_split<Kv, 256, 1>)   \
    AKUNU_KERNEL("attention_split_" type "_g4_hd256", attention_split<Kv, 256, 4>)   \
    AKUNU_KERNEL("attention_split_" type "_g8_hd256", attention_split<Kv, 256, 8>)   \
    AKUNU_KERNEL("attention_split_" type "_g16_hd256", attention_split<Kv, 256, 16>) \
    AKUNU_KERNEL("attention_split_" type "_g1_hd512", attention_split<Kv, 512, 1>)   \
    AKUNU_KERNEL("attention_split_" type "_g4_hd512", attention_split<Kv, 512, 4>)   \
    AKUNU_KERNEL("attention_split_" type "_g8_hd512", attention_split<Kv, 512, 8>)   \
    AKUNU_KERNEL("attention_" type "_hd64", attention<Kv, 64, 1, 32>)            \
    AKUNU_KERNEL("attention_" type "_hd128", attention<Kv, 128, 1, 32>)          \
    AKUNU_KERNEL("attention_" type "_hd256", attention<Kv, 256, 2, kKeys256>)    \
    AKUNU_KERNEL("attention_" type "_hd512", attention<Kv512, 512, 4, 16>)
