// Products with the weights of the experts that rows were sent to, which the router has written. A threadgroup computes
// some rows of one expert's weights for one choice, or, where results are added up, for all choices of a row, by the
// numbers of its experts.
#pragma once

#include "buffer_index.h"
#include "matmul_gemv.h"

// act(x·Gᵀ)·(x·Uᵀ), or act(x·Gᵀ) alone, with all that an expert may do besides; grid: rows of weights, choices.
template <typename F>
kernel void experts_gate_up(device const typename F::Input* x [[buffer(0)]], device const uchar* gates [[buffer(1)]],
                            device const uchar* ups [[buffer(2)]], device const float* gate_bias [[buffer(3)]],
                            device const float* up_bias [[buffer(4)]], device const uint* ids [[buffer(5)]],
                            device float* out [[buffer(6)]], device half* compact [[buffer(7)]],
                            constant ExpertsGateUpParams& p [[buffer(kParamsIndex)]],
                            uint2 group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                            ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint choice = group.y, id = metal::min(ids[choice], p.experts - 1);
    const typename F::Matrix matrices[2] = {F::matrix_of(gates, id, p.experts, p.n, p.k),
                                            F::matrix_of(ups, id, p.experts, p.n, p.k)};
    const PlainInput<F> input = {x + ulong(choice / p.chosen) * p.k};
    float2 v = float2(0.0f);
    if (p.gated) {
        v = gemv<F, 2>(input, matrices, p.n, p.k, at, partial);
    } else {
        const typename F::Matrix matrix[1] = {matrices[0]};
        v.x = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    }
    if (!at.stores(p.n)) return;
    const uint row = at.base_row() + lane;
    float a = v.x, b = v.y;
    if (p.has_bias) {
        a += gate_bias[ulong(id) * p.n + row];
        if (p.gated) b += up_bias[ulong(id) * p.n + row];
    }
    if (p.limit > 0.0f) {
        a = metal::min(a, p.limit);
        b = metal::clamp(b, -p.limit, p.limit);
    }
    const float activated = p.sharpness == 1.0f ? activate(p.activation, a) : a * sigmoid(p.sharpness * a);
    store_activation(p.gated ? activated * (b + p.up_offset) : activated, p.formats, out, compact, ulong(choice) * p.n + row);
}

// y (+)= Σ weight·(x·Wᵀ + bias); grid: rows of weights, rows.
template <typename F>
kernel void experts_down(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                         device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                         device const uint* ids [[buffer(4)]], device const float* weights [[buffer(5)]],
                         constant ExpertsDownParams& p [[buffer(kParamsIndex)]],
                         uint2 group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                         ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint row = at.base_row() + lane;
    const ulong first = ulong(group.y) * p.chosen;
    float sum = 0.0f;
    uint least = 0;  // expert that is not done yet
    for (uint n = 0; n < p.chosen; ++n) {
        uint choice = 0, id = ~0u;
        for (uint c = 0; c < p.chosen; ++c) {
            const uint other = ids[first + c];
            if (other >= least && other < id) {
                id = other;
                choice = c;
            }
        }
        least = id + 1;
        id = metal::min(id, p.experts - 1);
        const typename F::Matrix matrix[1] = {F::matrix_of(w, id, p.experts, p.n, p.k)};
        const PlainInput<F> input = {x + (first + choice) * p.k};
        float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
        if (at.stores(p.n)) {
            if (p.has_bias) v += bias[ulong(id) * p.n + row];
            sum += weights[first + choice] * v;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // `partial` is used again
    }
    if (!at.stores(p.n)) return;
    device float& to = y[ulong(group.y) * p.n + row];
    to = p.accumulate ? to + sum : sum;
}

// Floats as they are.
template <typename F>
struct FloatInput {
    device const float* x;
    float4 quad(uint e, uint k, thread float&) const {
        if (F::kGuarded) return load_quad<true>(x + e, k > e ? k - e : 0);
        return {x[e], x[e + 1], x[e + 2], x[e + 3]};  // rows of x may begin anywhere
    }
    static float scale(float, uint) { return 1; }
};

// y = x·Wᵀ with the weights of each head, and what follows x; grid: rows of weights, heads of all rows.
template <typename F>
kernel void head_matmul(device const float* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                        device float* y [[buffer(2)]], constant HeadMatmulParams& p [[buffer(kParamsIndex)]],
                        uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
                        ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                        ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group.x, simd, simds, lane};
    const uint head = group.y % p.heads;
    const typename F::Matrix matrix[1] = {F::matrix_of(w, head, p.heads, p.n, p.k)};
    x += ulong(group.y) * p.x_stride;
    y += ulong(group.y) * (p.n + p.copied);
    const FloatInput<F> input = {x};
    const float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    if (at.stores(p.n)) y[at.base_row() + lane] = v;
    for (uint i = group.x * simds * 32 + simd * 32 + lane; i < p.copied; i += groups.x * simds * 32) {
        y[p.n + i] = x[p.k + i];
    }
}
