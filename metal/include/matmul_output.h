// What happens to a product on its way to memory.
#pragma once

#include "activation.h"

// cap·tanh(y / cap); Apple's tanh overflows for large arguments.
static inline float softcapped(float y, float cap) {
    return cap * metal::precise::tanh(metal::clamp(y / cap, -20.0f, 20.0f));
}

// y[token][row] = v (+ bias), capped; or that added to what is there
static inline void store_product(device float* y, device const float* bias, constant MatmulParams& p, uint token,
                                 uint row, float v) {
    device float& to = y[ulong(token) * p.y_stride + row];
    if (p.has_bias) v += bias[row];
    if (p.softcap > 0) v = softcapped(v, p.softcap);
    to = p.accumulate ? to + v : v;
}

// out[token][row] = act(gate)·up, p being the parameters of any op that ends so
template <typename P>
static inline void store_gated(device float* out, device half* compact, constant P& p, uint token, uint row, float gate,
                               float up) {
    store_activation(activate(p.activation, gate) * up, p.formats, out, compact, ulong(token) * p.n + row);
}
