// Types with blocks of 32: the low nibble of byte j is element j, the high one element j + 16.
#pragma once

#include "dequant.h"

// A slice is half a block: the low and the high nibbles of 8 bytes.
template <ushort kBlockBytes>
struct NibbleBlocks : Blocks<32, kBlockBytes> {
    static constexpr constant ushort kSlice = 16;
    static constexpr constant ushort kRun = 4;
    static ushort place(ushort sub, ushort r) { return 8 * sub + 4 * (r & 1) + 16 * (r >> 1); }
    // Four nibbles as bytes, out of the 32 bits that start at byte e % 16.
    static uint nibbles(uint bytes, ushort e) { return bytes >> (e >> 2 & 4) & 0x0F0F0F0Fu; }
};

// d·(q - 8)
struct Q4_0 : NibbleBlocks<18> {
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 18;
        return {bytes_minus(nibbles(load_u32_at2(b + 2 + (e & 15)), e), 8), load_half(b), 0};
    }
};

// d·q + m
struct Q4_1 : NibbleBlocks<20> {
    static constexpr constant bool kHasMin = true;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 20;
        return {bytes_minus(nibbles(load_u32(b + 4 + (e & 15)), e), 0), load_half(b), load_half(b + 2)};
    }
};

// d·(q - 16); bit i of `high` is the fifth of element i.
struct Q5_0 : NibbleBlocks<22> {
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 22;
        const uint high = bits_to_bytes(load_u32_at2(b + 2) >> e) << 4;
        return {bytes_minus(nibbles(load_u32_at2(b + 6 + (e & 15)), e) | high, 16), load_half(b), 0};
    }
};

// d·q + m
struct Q5_1 : NibbleBlocks<24> {
    static constexpr constant bool kHasMin = true;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 24;
        const uint high = bits_to_bytes(load_u32(b + 4) >> e) << 4;
        const uint q = nibbles(load_u32(b + 8 + (e & 15)), e) | high;
        return {bytes_minus(q, 0), load_half(b), load_half(b + 2)};
    }
};

// d·q, q a signed byte
struct Q8_0 : Blocks<32, 34> {
    static constexpr constant ushort kSlice = 16;
    static constexpr constant ushort kRun = 4;
    static constexpr constant bool kHasMin = false;
    static ushort place(ushort sub, ushort r) { return 16 * sub + 4 * r; }
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 34;
        return {bytes_minus(load_u32_at2(b + 2 + e) ^ 0x80808080u, 128), load_half(b), 0};
    }
};
