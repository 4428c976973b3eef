// RoPE with the cache write, decode attention and prefill attention on a cache of f16.
#include <metal_stdlib>
using namespace metal;

#include "attention_types.h"

AKUNU_ATTENTION("f16", KvF16, 32, KvF16)
