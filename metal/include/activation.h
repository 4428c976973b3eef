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

// The error function to 2e-7 (Chebyshev fits of erf(sqrt(s)) / sqrt(s), and of -log erfc).
static inline float error_function(float x) {
    const float a = metal::fabs(x);
    float y;
    if (a < 1.0f) {
        const float s = a * a;
        float p = -9.673590284364764e-06f;
        p = metal::fma(p, s, 0.00011268253729213029f);
        p = metal::fma(p, s, -0.0008484396385028958f);
        p = metal::fma(p, s, 0.005221053492277861f);
        p = metal::fma(p, s, -0.026865437626838684f);
        p = metal::fma(p, s, 0.11283782869577408f);
        p = metal::fma(p, s, -0.37612637877464294f);
        p = metal::fma(p, s, 1.128379225730896f);
        y = p * a;
    } else {
        const float t = metal::min(a, 4.0f);
        float q = -1.6140616025950294e-06f;
        q = metal::fma(q, t, 4.559062290354632e-05f);
        q = metal::fma(q, t, -0.0005927695310674608f);
        q = metal::fma(q, t, 0.004740222357213497f);
        q = metal::fma(q, t, -0.02636471763253212f);
        q = metal::fma(q, t, 0.10997824370861053f);
        q = metal::fma(q, t, 0.6319370865821838f);
        q = metal::fma(q, t, 1.1301666498184204f);
        q = metal::fma(q, t, -0.00030321296071633697f);
        y = 1.0f - metal::precise::exp(-q);
    }
    return x < 0.0f ? -y : y;
}

// x·Φ(x)
static inline float gelu_erf(float x) { return 0.5f * x * (1.0f + error_function(x * 0.7071067811865476f)); }

static inline float activate(uint activation, float x) {
    switch (activation) {
        case kActSilu:
            return silu(x);
        case kActGeluTanh:
            return gelu_tanh(x);
        case kActGelu:
            return gelu_erf(x);
        case kActTanh:
            return metal::precise::tanh(metal::clamp(x, -20.0f, 20.0f));  // Apple's overflows
        case kActSigmoid:
            return sigmoid(x);
        case kActNone:
            return x;
        case kActRelu2:
            return metal::max(x, 0.0f) * metal::max(x, 0.0f);
        default:
            return metal::max(x, 0.0f);  // kActRelu
    }
}

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
