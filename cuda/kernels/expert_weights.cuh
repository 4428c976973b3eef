// Where an expert's weights are, and what it does between its two products.
#pragma once

#include "activation.cuh"
#include "formats.cuh"

namespace akunu::cuda {

// Weight i of a command, of an expert.
AKUNU_DEVICE Weights expert_of(Block b, u32 i, u32 cols, u32 id) {
    const WeightPlanes& w = b.command().weights[i];
    const u64 at = u64(id) * b.command().params[kApartWord + i] * kExpertAlign;
    return {reinterpret_cast<const u8*>(w.codes + at), reinterpret_cast<const u8*>(w.extras + at),
            reinterpret_cast<const u8*>(w.biases + at), cols, w.spec};
}

// What is added to an expert's gate and up.
struct GateUp {
    float gate, up;
};
AKUNU_DEVICE GateUp gate_up_bias(Block b, u32 id, u32 n) {
    const auto& p = b.params<ExpertsGateUpParams>();
    GateUp bias{};
    if (p.has_bias) {
        bias.gate = b.buffer<float>(3)[u64(id) * p.n + n];
        if (p.gated) bias.up = b.buffer<float>(4)[u64(id) * p.n + n];
    }
    return bias;
}

// act(gate)·up, or act(gate) alone, with all that an expert may do besides.
AKUNU_DEVICE float gated(const ExpertsGateUpParams& p, float gate, float up) {
    if (p.limit > 0.0f) {
        gate = fminf(gate, p.limit);
        up = fmaxf(-p.limit, fminf(up, p.limit));
    }
    const float act = p.sharpness == 1.0f ? activate(p.activation, gate) : gate / (1.0f + expf(-p.sharpness * gate));
    return p.gated ? act * (up + p.up_offset) : act;
}
// A function of its own: tiles would have it as often as a thread has results.
AKUNU_DEVICE_CALL float gated(Block b, u32 id, u32 n, float gate, float up) {
    const GateUp bias = gate_up_bias(b, id, n);
    return gated(b.params<ExpertsGateUpParams>(), gate + bias.gate, up + bias.up);
}

}  // namespace akunu::cuda
