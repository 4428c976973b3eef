// RoPE with the cache write, decode attention and prefill attention on a cache of f32.
#include <metal_stdlib>
using namespace metal;

#include "attention_types.h"

AKUNU_ATTENTION("f32", KvF32, 16, KvInHalves<KvF32>)
