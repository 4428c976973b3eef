// norm(hidden) times the weights of q, k and v, or of those that there are.
#pragma once

#include "matvec.cuh"

namespace akunu::cuda {

struct QkvPart {
    u32 n, y, bias;
};
AKUNU_DEVICE QkvPart qkv_part(const NormQkvParams& p, u32 i) {
    if (i == 0) return {p.n_q, 0, 0};
    return i == 1 ? QkvPart{p.n_kv, p.k_offset, p.n_q} : QkvPart{p.n_kv, p.v_offset, p.n_q + p.n_kv};
}

// One part on the ordinary units; its units follow those of the parts before it.
template <typename F>
AKUNU_DEVICE_CALL void norm_qkv_part(Block b, u32 part, u32 before) {
    const auto& p = b.params<NormQkvParams>();
    const QkvPart at = qkv_part(p, part);
    const Weights w = weights_of(b.command().weights[part], p.k);
    float* y = b.buffer<float>(5) + at.y;
    const float* bias = b.buffer<float>(6) + at.bias;
    const u32 units = matvec_units(b, at.n);
    u32 u = b.first();
    while (u < before) u += b.blocks();
    for (; u < before + units; u += b.blocks()) {
        matvec_unit<F>(b, w, at.n, u - before, [&](u32 n, float v) { y[n] = p.has_bias ? v + bias[n] : v; });
    }
}

AKUNU_DEVICE void norm_qkv(Block b) {
    const auto& p = b.params<NormQkvParams>();
    const WeightPlanes* w = b.command().weights;
    u32 before = 0;
    stage_norm(b, p.k, p.eps);
    for (u32 part = 0; part < 3; ++part) {
        if (!b.command().buffers[2 + part]) continue;
        switch (w[part].reader) {
#define X(reader)                                       \
    case reader:                                        \
        norm_qkv_part<Format<reader>>(b, part, before); \
        break;
            AKUNU_READERS
#undef X
        }
        before += matvec_units(b, qkv_part(p, part).n);
    }
}

}  // namespace akunu::cuda
