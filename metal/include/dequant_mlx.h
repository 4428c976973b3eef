// MLX's affine formats: w = scale·q + bias per group of 32, 64 or 128 elements of a row. The codes of a row are a dense
// stream, least significant bits first; scales and biases are arrays of their own, [rows][k / group].
#pragma once

#include "dequant.h"
#include "vector_load.h"

constant uint MLX_GROUP [[function_constant(3)]];
// Of scales and biases.
constant uint MLX_SCALE_TYPE [[function_constant(4)]];  // as DType: 0 F32, 1 F16, 30 BF16

static inline float load_scale(device const uchar* p, uint i) {
    if (MLX_SCALE_TYPE == 0) return ((device const float*)p)[i];
    if (MLX_SCALE_TYPE == 1) return to_float(((device const half*)p)[i]);
    return to_float(((device const ushort*)p)[i]);
}

template <ushort kBits>
struct Mlx {
    using Tile = half;
    using Input = half;
    static constexpr constant ushort kBlock = 32;  // the least whose codes end with a word
    static constexpr constant ushort kSlice = 32;
    static constexpr constant ushort kRun = 8;
    static constexpr constant bool kHasMin = true;
    static constexpr constant bool kGuarded = false;
    struct Row {
        device const uint* codes;
        device const uchar* scales;
        device const uchar* biases;
        uint first_group;
    };
    struct Matrix {
        device const uchar* data;
        device const uchar* scales;
        device const uchar* biases;
        Row row(uint r, uint k) const {
            return {(device const uint*)data + ulong(r) * (k / 32 * kBits), scales, biases, r * (k / MLX_GROUP)};
        }
    };
    // Of several matrices all codes come first, then all scales, then all biases: each aligned as prepare_experts does.
    static Matrix matrix_of(device const uchar* all, uint id, uint matrices, uint n, uint k) {
        const ulong codes = ulong(n) * (k / 32 * kBits * 4), scales = ulong(n) * (k / MLX_GROUP) * (MLX_SCALE_TYPE == 0 ? 4 : 2);
        device const uchar* first_scale = all + (matrices * codes + 63) / 64 * 64;
        device const uchar* first_bias = first_scale + (matrices * scales + 63) / 64 * 64;
        return {all + id * codes, first_scale + id * scales, first_bias + id * scales};
    }
    static ushort place(ushort, ushort r) { return 4 * r; }
    static Quad quad(thread const Row& row, uint block, ushort e, uint) {
        device const uint* words = row.codes + block * kBits;
        const ushort bit = e * kBits, word = bit / 32, shift = bit % 32;
        uint v = words[word] >> shift;
        if (shift + 4 * kBits > 32) v |= words[word + 1] << (32 - shift);
        constexpr uint kMask = (1u << kBits) - 1;
        uint bytes = v & kMask;
        for (ushort i = 1; i < 4; ++i) bytes |= v << (i * (8 - kBits)) & kMask << (8 * i);
        const uint group = row.first_group + (block * 32 + e) / MLX_GROUP;
        return {bytes_minus(bytes, 0), load_scale(row.scales, group), load_scale(row.biases, group)};
    }
};
