// Activation functions and what activations are stored as.
#pragma once

#include <metal_stdlib>

#include "core/params.h"

// 1 / (1 + e^-x); the exponential never overflows.
static inline float sigmoid(float x) {
    const float e = metal::precise::exp(-metal::fabs(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

static inline float silu(float x) { return x * sigmoid(x); }

// 0.5·x·(1 + tanh(u)) with u = sqrt(2 / pi)·(x + 0.044715·x³); 0.5·(1 + tanh(u)) is sigmoid(2u).
static inline float gelu_tanh(float x) { return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x)); }

static inline float activate(uint activation, float x) { return activation == kActSilu ? silu(x) : gelu_tanh(x); }

// f16 activations are matmul inputs, where an outlier is better clamped than infinite.
static inline half to_half(float x) { return half(metal::clamp(x, -65504.0f, 65504.0f)); }
static inline half4 to_half(float4 x) { return half4(metal::clamp(x, float4(-65504.0f), float4(65504.0f))); }

// Stores an element, or four, in the formats that are asked for. Four are aligned as vectors are: bindings begin at
// multiples of 16 bytes.
static inline void store_activation(float x, uint formats, device float* f32, device half* f16, ulong index) {
    if (formats & kActF32) f32[index] = x;
    if (formats & kActF16) f16[index] = to_half(x);
}
static inline void store_activation(float4 x, uint formats, device float* f32, device half* f16, ulong index) {
    if (formats & kActF32) *(device float4*)(f32 + index) = x;
    if (formats & kActF16) *(device half4*)(f16 + index) = to_half(x);
}
