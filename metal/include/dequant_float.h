// F32, F16, BF16: any row length, so that a row may begin anywhere and end within a quad.
#pragma once

#include "dequant.h"
#include "vector_load.h"

template <typename T, typename TileType, typename InputType>
struct Floats {
    using Row = device const T*;
    using Tile = TileType;
    using Input = InputType;
    static constexpr constant ushort kBlock = 16;
    static constexpr constant ushort kSlice = 16;
    static constexpr constant ushort kRun = 4;
    static constexpr constant bool kHasMin = false;
    static constexpr constant bool kGuarded = true;
    struct Matrix {
        device const uchar* data;
        Row row(uint r, uint k) const { return (Row)data + ulong(r) * k; }
    };
    static Matrix matrix_of(device const uchar* all, uint id, uint, uint n, uint k) {
        return {all + ulong(id) * n * k * sizeof(T)};
    }
    static ushort place(ushort, ushort r) { return 4 * r; }
    static Quad quad(Row row, uint block, ushort e, uint left) {
        return {load_quad<true>(row + 16 * block + e, left > e ? left - e : 0), 1, 0};
    }
};

// The tiles of F32 and BF16 are float: binary16 has neither the precision of the one nor the range of the other.
struct F32 : Floats<float, float, float> {};
struct F16 : Floats<half, half, half> {};
struct BF16 : Floats<ushort, float, half> {};
