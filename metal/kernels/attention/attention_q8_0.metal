// RoPE with the cache write, decode attention and prefill attention on a cache of q8_0.
#include <metal_stdlib>
using namespace metal;

#include "attention_types.h"

AKUNU_ATTENTION("q8_0", KvQ8, 16, KvInHalves<KvQ8>)
