// Adapters: t = A·x and y += B·t, each row with the adapter of its sequence. A row without one is not touched.
#include <metal_stdlib>
using namespace metal;

#include "buffer_index.h"
#include "core/params.h"
#include "instantiate.h"
#include "lora_sizes.h"
#include "vector_load.h"

// A layer's part of the adapter that a row has, and what its products are multiplied with; `rank` is 0 where the row has
// none.
struct AdapterOfRow {
    device const uchar* part;
    uint rank;
    float scale;
};

inline AdapterOfRow adapter_of(device const uint* adapters, device const Row* rows, device const AdapterChoice* choices,
                               device const uint* logit_rows, constant LoraParams& p, uint row) {
    const uint slot = rows[p.gather ? logit_rows[row] : row].slot, number = choices[slot].number;
    AdapterOfRow a;
    a.part = (device const uchar*)adapters;
    a.rank = 0;
    a.scale = 0.0f;
    if (number == 0) return a;
    a.part += ulong(number - 1) * p.slot_words * 4;
    device const AdapterHead* head = (device const AdapterHead*)a.part;
    a.rank = head->rank;
    a.scale = head->scale * choices[slot].scale;
    return a;
}

// A SIMD-group takes kLoraRanks ranks of a row.
template <typename T>
kernel void lora_a(device const T* x [[buffer(0)]],
                   device const uint* adapters [[buffer(1)]],
                   device float* t [[buffer(2)]],
                   device const Row* rows [[buffer(3)]],
                   device const AdapterChoice* choices [[buffer(4)]],
                   device const uint* logit_rows [[buffer(5)]],
                   constant LoraParams& p [[buffer(kParamsIndex)]],
                   uint2 group [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]],
                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    const AdapterOfRow own = adapter_of(adapters, rows, choices, logit_rows, p, group.y);
    const uint first = (group.x * kLoraSimdgroups + simdgroup) * kLoraRanks;
    if (first >= own.rank) return;
    device const half* a = (device const half*)(own.part + kAdapterHeadBytes);
    x += ulong(group.y) * p.k;
    float sums[kLoraRanks] = {};
    for (uint i = lane * 4; i < p.k; i += 4 * 32) {
        const float4 v = load_quad<true>(x + i, p.k - i);
#pragma clang loop unroll(full)
        for (ushort r = 0; r < kLoraRanks; ++r) {
            // Of ranks that there are not, the last one's.
            const ulong rank = min(first + r, own.rank - 1);
            sums[r] += dot(v, load_quad<true>(a + rank * p.k + i, p.k - i));
        }
    }
    t += ulong(group.y) * p.max_rank;
#pragma clang loop unroll(full)
    for (ushort r = 0; r < kLoraRanks; ++r) {
        const float sum = simd_sum(sums[r]);
        if (lane == 0 && first + r < own.rank) t[first + r] = sum * own.scale;
    }
}

AKUNU_KERNEL("lora_a_f32", lora_a<float>)
AKUNU_KERNEL("lora_a_f16", lora_a<half>)

// A thread takes four columns of a row.
kernel void lora_b(device const float* t [[buffer(0)]],
                   device const uint* adapters [[buffer(1)]],
                   device float* y [[buffer(2)]],
                   device const Row* rows [[buffer(3)]],
                   device const AdapterChoice* choices [[buffer(4)]],
                   device const uint* logit_rows [[buffer(5)]],
                   constant LoraParams& p [[buffer(kParamsIndex)]],
                   uint2 at [[thread_position_in_grid]]) {
    const uint column = at.x * kLoraColumns;
    const AdapterOfRow own = adapter_of(adapters, rows, choices, logit_rows, p, at.y);
    if (column >= p.n || own.rank == 0) return;
    device const half* b = (device const half*)(own.part + kAdapterHeadBytes + lora_a_bytes(p.max_rank, p.k)) + column;
    t += ulong(at.y) * p.max_rank;
    float4 sum = float4(0.0f);
    for (uint i = 0; i < own.rank; ++i) sum += t[i] * load_quad<true>(b + ulong(i) * p.n, p.n - column);
    y += ulong(at.y) * p.y_stride + column;
    for (ushort c = 0; c < kLoraColumns; ++c) {
        if (column + c < p.n) y[c] += sum[c];
    }
}
