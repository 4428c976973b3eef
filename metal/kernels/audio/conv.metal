// gelu(conv1d(x) + bias) of Whisper's encoder: width 3, stride 1 or 2, as a matrix product over channels for each of the three
// taps. A threadgroup computes 32 positions x 32 channels, each of its four SIMD-groups 16 x 16.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

#include "audio.h"
#include "activation.h"

// Elements of the input: position t, channel c. The spectrogram is [channel][position] f32, what follows [position][channel].
static inline half element(device const float* x, uint t, uint c, constant ConvParams& p) {
    return to_half(x[ulong(c) * p.in_length + t]);
}
static inline half element(device const half* x, uint t, uint c, constant ConvParams& p) {
    return x[ulong(t) * p.in_channels + c];
}

template <typename T>
[[kernel]] void conv_gelu(
    device const T* x [[buffer(0)]],
    device const half* weight [[buffer(1)]],  // [out_channels][in_channels][3]
    device const float* bias [[buffer(2)]],
    device half* y [[buffer(3)]],  // [out_length][out_channels]
    constant ConvParams& p [[buffer(8)]],
    uint2 group [[threadgroup_position_in_grid]],
    ushort thread_id [[thread_index_in_threadgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup half inputs[(2 * kConvTile + 1) * kConvDepth];  // [position][channel]
    threadgroup half weights[3 * kConvDepth * kConvTile];       // [tap][channel][out channel]
    threadgroup float tile[kConvTile * kConvTile];
    const uint out0 = group.x * kConvTile, t0 = group.y * kConvTile;
    const uint rows = (kConvTile - 1) * p.stride + 3;
    const uint row = simd / 2 * 16, column = simd % 2 * 16;

    simdgroup_matrix<float, 8, 8> sum[2][2];
    for (ushort i = 0; i < 2; ++i) {
        for (ushort j = 0; j < 2; ++j) sum[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (uint c0 = 0; c0 < p.in_channels; c0 += kConvDepth) {
        for (uint i = thread_id; i < rows * kConvDepth; i += kConvThreads) {
            const uint t = t0 * p.stride + i / kConvDepth - 1, c = c0 + i % kConvDepth;  // -1 wraps, and is outside
            inputs[i] = t < p.in_length && c < p.in_channels ? element(x, t, c, p) : half(0);
        }
        for (uint i = thread_id; i < 3 * kConvDepth * kConvTile; i += kConvThreads) {
            const uint o = i / (3 * kConvDepth), within = i % (3 * kConvDepth), c = within / 3, tap = within % 3;
            const bool inside = out0 + o < p.out_channels && c0 + c < p.in_channels;
            const ulong at = (ulong(out0 + o) * p.in_channels + c0 + c) * 3 + tap;
            weights[(tap * kConvDepth + c) * kConvTile + o] = inside ? weight[at] : half(0);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint tap = 0; tap < 3; ++tap) {
            for (uint c = 0; c < kConvDepth; c += 8) {
                simdgroup_matrix<half, 8, 8> a[2], b[2];
                for (ushort i = 0; i < 2; ++i) {
                    simdgroup_load(a[i], inputs + ((row + i * 8) * p.stride + tap) * kConvDepth + c, p.stride * kConvDepth);
                    simdgroup_load(b[i], weights + (tap * kConvDepth + c) * kConvTile + column + i * 8, kConvTile);
                }
                for (ushort i = 0; i < 2; ++i) {
                    for (ushort j = 0; j < 2; ++j) simdgroup_multiply_accumulate(sum[i][j], a[i], b[j], sum[i][j]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (ushort i = 0; i < 2; ++i) {
        for (ushort j = 0; j < 2; ++j) {
            simdgroup_store(sum[i][j], tile + (row + i * 8) * kConvTile + column + j * 8, kConvTile);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_id; i < kConvTile * kConvTile; i += kConvThreads) {
        const uint t = t0 + i / kConvTile, o = out0 + i % kConvTile;
        if (t < p.out_length && o < p.out_channels) {
            y[ulong(t) * p.out_channels + o] = to_half(gelu_erf(tile[i] + bias[o]));
        }
    }
}

template [[host_name("conv_gelu_f32")]] [[kernel]] void conv_gelu<float>(
    device const float*, device const half*, device const float*, device half*, constant ConvParams&, uint2, ushort, ushort);
template [[host_name("conv_gelu_f16")]] [[kernel]] void conv_gelu<half>(
    device const half*, device const half*, device const float*, device half*, constant ConvParams&, uint2, ushort, ushort);
