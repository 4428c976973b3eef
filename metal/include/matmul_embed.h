// hidden (+)= table[token]·scale, four elements per thread.
#pragma once

#include "buffer_index.h"
#include "core/params.h"
#include "dequant.h"
#include "vector_load.h"

template <typename F>
inline void embed_quad(device const uint* history, thread const typename F::Matrix& table, device float* hidden,
                       device const Row* rows, constant EmbedParams& p, uint2 at) {
    const uint e = 4 * at.x;
    if (e >= p.dim || at.y >= p.rows) return;
    const ulong place = ulong(rows[at.y].slot) * p.history_stride + rows[at.y].position + p.step;
    const typename F::Row row = table.row(history[place] < p.vocab ? history[place] : 0, p.dim);
    const uint block = e / F::kBlock;
    const Quad q = F::quad(row, block, e % F::kBlock, p.dim - block * F::kBlock);
    const float4 v = (q.scale * q.q + q.min) * p.scale;
    device float* to = hidden + ulong(at.y) * p.dim + e;
    if (!F::kGuarded || ROWS_ARE_VECTORS) {
        *(device float4*)to = p.accumulate != 0 ? *(device float4*)to + v : v;
    } else {
        for (ushort i = 0; i < min(4u, p.dim - e); ++i) to[i] = p.accumulate != 0 ? to[i] + v[i] : v[i];
    }
}

template <typename F>
kernel void embed(device const uint* history [[buffer(0)]], device const uchar* table [[buffer(1)]],
                  device float* hidden [[buffer(2)]], device const Row* rows [[buffer(3)]],
                  constant EmbedParams& p [[buffer(kParamsIndex)]], uint2 at [[thread_position_in_grid]]) {
    const typename F::Matrix matrix = {table};
    embed_quad<F>(history, matrix, hidden, rows, p, at);
}
