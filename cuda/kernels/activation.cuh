// Activation functions.
#pragma once

#include "block.cuh"

namespace akunu::cuda {

// The most frequent one ahead of the switch, whose table of jumps would have to be fetched.
AKUNU_DEVICE float activate(u32 activation, float x) {
    if (activation == kActSilu) return x * reciprocal(1.0f + expf(-x));
    switch (activation) {
        case kActGeluTanh: {
            const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
            return x * reciprocal(1.0f + expf(-2.0f * u));
        }
        case kActGelu:
            return 0.5f * x * (1.0f + erff(x * 0.70710678f));
        case kActTanh:
            return tanhf(x);
        case kActSigmoid:
            return reciprocal(1.0f + expf(-x));
        case kActNone:
            return x;
        case kActRelu2:
            return x > 0.0f ? x * x : 0.0f;
        default:
            return x > 0.0f ? x : 0.0f;
    }
}

AKUNU_DEVICE float soft_cap(float x, float cap) { return cap > 0.0f ? cap * tanhf(x / cap) : x; }

}  // namespace akunu::cuda
