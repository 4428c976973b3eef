// Parameters of the audio kernels, and the activation that Whisper uses.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

enum ConvSizes : u32 {
    kConvTile = 32,   // output positions, and output channels, of a threadgroup
    kConvDepth = 16,  // input channels at a time
    kConvThreads = 128,
    kRowThreads = 256,  // of a threadgroup of the row kernels
};

// A convolution of width 3 with one position of zeros at both ends.
struct ConvParams {
    u32 in_length;
    u32 out_length;  // (in_length - 1) / stride + 1
    u32 in_channels;
    u32 out_channels;
    u32 stride;  // 1 or 2
};

struct BiasParams {
    u32 rows;
    u32 n;
    u32 position;  // of the first row, where there are position embeddings
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#else

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

// x·Φ(x), which Whisper means by GELU.
static inline float gelu_erf(float x) { return 0.5f * x * (1.0f + error_function(x * 0.7071067811865476f)); }
#endif
