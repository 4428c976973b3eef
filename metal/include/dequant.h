// Dequantisers: one struct per weight type, all of one shape, from which every matmul kernel is instantiated.
//
// A type stores kBlock elements of a row together, and `quad(row, block, e, left)` gives elements e..e+3 (e a multiple
// of 4) of a block as  scale·q + min. `left` is how many elements the row has from the block's first on; only the types
// without blocks look at it.
//
// A SIMD-group's lane takes a *slice* of kSlice elements at a time: those whose bits share bytes, so that each byte is
// loaded by one lane. `place(sub, r)` is where quad r of a block's slice `sub` lies. kRun quads in a row have the same
// scale and min.
//
// Integers become floats without conversion instructions, which are slow on Apple GPUs: 0x6400 | q is 1024 + q in
// binary16, for q < 1024.
#pragma once

#include <metal_stdlib>

using namespace metal;

struct Quad {
    float4 q;
    float scale;
    float min;
};

// 32 bits at an address of lesser alignment.
inline uint load_u32_at2(device const uchar* p) {
    device const ushort* h = (device const ushort*)p;
    return uint(h[0]) | uint(h[1]) << 16;
}
inline uint load_u32_at1(device const uchar* p) {
    return uint(p[0]) | uint(p[1]) << 8 | uint(p[2]) << 16 | uint(p[3]) << 24;
}
inline uint load_u32(device const uchar* p) { return *(device const uint*)p; }
inline float load_half(device const uchar* p) { return float(*(device const half*)p); }

// The four bytes of v, less `bias`: exact for biases up to 1024.
inline float4 bytes_minus(uint v, half bias) {
    const half2 even = as_type<half2>((v & 0x00FF00FFu) | 0x64006400u);
    const half2 odd = as_type<half2>((v >> 8 & 0x00FF00FFu) | 0x64006400u);
    return float4(half4(even.x, odd.x, even.y, odd.y) - half4(half(1024) + bias));
}

// Four bits spread to the lowest bits of four bytes.
inline uint bits_to_bytes(uint four) { return (four & 15u) * 0x00204081u & 0x01010101u; }

// What types with blocks share; rows follow one another without gaps.
template <ushort kElements, ushort kBlockBytes>
struct Blocks {
    using Row = device const uchar*;
    using Tile = half;  // of a GEMM
    using Input = half;
    static constexpr constant ushort kBlock = kElements;
    static constexpr constant ushort kBytes = kBlockBytes;
    static constexpr constant bool kGuarded = false;
    struct Matrix {
        device const uchar* data;
        Row row(uint r, uint k) const { return data + ulong(r) * (k / kElements * kBlockBytes); }
    };
    // Of several matrices of n rows, one behind the other, matrix `id`.
    static Matrix matrix_of(device const uchar* all, uint id, uint, uint n, uint k) {
        return {all + ulong(id) * n * (k / kElements * kBlockBytes)};
    }
};
