// Types with super-blocks of 256.
#pragma once

#include "dequant.h"

// A slice is 8 bytes of 32 that hold a plane of two bits in each quarter: 8 elements of each of the 4 planes of a half.
template <ushort kBlockBytes>
struct PlaneBlocks : Blocks<256, kBlockBytes> {
    static constexpr constant ushort kSlice = 32;
    static constexpr constant ushort kRun = 2;
    static ushort place(ushort sub, ushort r) { return 128 * (sub >> 2) + 8 * (sub & 3) + 32 * (r >> 1) + 4 * (r & 1); }
    // Two bits of four elements as bytes, from the planes at `p`.
    static uint two_bits(uint bytes, ushort e) { return bytes >> (e >> 4 & 6) & 0x03030303u; }
};

// d·(s & 15)·q - dmin·(s >> 4), a byte s per 16 elements
struct Q2_K : PlaneBlocks<84> {
    static constexpr constant bool kHasMin = true;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 84;
        const uint q = two_bits(load_u32(b + 16 + 32 * (e >> 7) + (e & 31)), e);
        const uint s = b[e >> 4];
        return {bytes_minus(q, 0), load_half(b + 80) * float(s & 15), -load_half(b + 82) * float(s >> 4)};
    }
};

// d·(s - 32)·(q - 4), a six-bit s per 16 elements: the low four bits in nibbles of bytes 0-7, the high two in 8-11.
struct Q3_K : PlaneBlocks<110> {
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 110;
        const uint low = two_bits(load_u32_at2(b + 32 + 32 * (e >> 7) + (e & 31)), e);
        const uint high = load_u32_at2(b + (e & 31)) >> (e >> 5) & 0x01010101u;
        const ushort t = e >> 4;
        Row scales = b + 96;
        const uint s = (scales[t & 7] >> (t >> 1 & 4) & 15) | (scales[8 + (t & 3)] >> (t >> 1 & 6) & 3) << 4;
        return {bytes_minus(low | high << 2, 4), load_half(b + 108) * float(int(s) - 32), 0};
    }
};

// d·s·(q - 32), a signed byte s per 16 elements
struct Q6_K : PlaneBlocks<210> {
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 210;
        const uint low = load_u32_at2(b + 64 * (e >> 7) + (e & 63)) >> (e >> 4 & 4) & 0x0F0F0F0Fu;
        const uint high = two_bits(load_u32_at2(b + 128 + 32 * (e >> 7) + (e & 31)), e);
        const float s = float(((device const char*)(b + 192))[e >> 4]);
        return {bytes_minus(low | high << 4, 32), load_half(b + 208) * s, 0};
    }
};

// d·s·q - dmin·m, six-bit s and m per 32 elements. 32 bytes hold 64 elements, low nibbles first; a slice is 16 of them.
template <ushort kBlockBytes>
struct ScaleMinBlocks : Blocks<256, kBlockBytes> {
    static constexpr constant ushort kSlice = 32;
    static constexpr constant ushort kRun = 4;
    static constexpr constant bool kHasMin = true;
    static ushort place(ushort sub, ushort r) { return 64 * (sub >> 1) + 16 * (sub & 1) + 32 * (r >> 2) + 4 * (r & 3); }
    // Of three words byte j % 4 each: six bits of s, and of m, for j < 4, above these two bits of s, and of m, for the
    // others, whose lower four are nibbles of the third. Lanes have different j: both are computed, and one selected.
    static Quad scaled(device const uchar* b, ushort e, float4 q) {
        const ushort j = e >> 5, shift = 8 * (j & 3);
        const uint first = load_u32(b + 4) >> shift, second = load_u32(b + 8) >> shift, third = load_u32(b + 12) >> shift;
        const bool late = j >= 4;
        const uint scale = select(first & 63, (third & 15) | (first >> 2 & 48), late);
        const uint lowest = select(second & 63, (third >> 4 & 15) | (second >> 2 & 48), late);
        const half2 d = *(device const half2*)b;
        return {q, float(d.x) * float(scale), -float(d.y) * float(lowest)};
    }
    static uint nibbles(uint bytes, ushort e) { return bytes >> (e >> 3 & 4) & 0x0F0F0F0Fu; }
};

struct Q4_K : ScaleMinBlocks<144> {
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 144;
        const uint q = nibbles(load_u32(b + 16 + 32 * (e >> 6) + (e & 31)), e);
        return scaled(b, e, bytes_minus(q, 0));
    }
};

// The fifth bit of element l of the j-th 32 is bit j of byte l.
struct Q5_K : ScaleMinBlocks<176> {
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 176;
        const uint low = nibbles(load_u32(b + 48 + 32 * (e >> 6) + (e & 31)), e);
        const uint high = load_u32(b + 16 + (e & 31)) >> (e >> 5) & 0x01010101u;
        return scaled(b, e, bytes_minus(low | high << 4, 0));
    }
};
