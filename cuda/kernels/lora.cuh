// Adapters: t = A·x and y += B·t, each row with the adapter of its sequence. A row without one is not touched.
#pragma once

#include "block.cuh"

namespace akunu::cuda {

// Rows up to which each is multiplied by itself. Of more, tiles of kTileOfRows are multiplied with the tensor cores,
// and kLoraRows neighbours share what is read of B.
constexpr u32 kFewLoraRows = 16, kLoraRows = 8, kLoraRanks = 8;
constexpr u32 kMostLoraRank = 512;
static_assert(kLoraRows * kMostLoraRank * sizeof(float) <= kOpBytes, "what they are multiplied with fits");

// The adapters of the rows that a command has.
struct RowAdapters {
    const Row* rows;
    const AdapterChoice* choices;
    const u32* gathered;  // or null
    AKUNU_DEVICE AdapterChoice of(u32 row) const { return choices[rows[gathered ? gathered[row] : row].slot]; }
};
AKUNU_DEVICE RowAdapters row_adapters(Block b) {
    const bool gathers = b.params<LoraParams>().gather != 0;
    return {b.buffer<Row>(3), b.buffer<AdapterChoice>(4), gathers ? b.buffer<u32>(5) : nullptr};
}

// A layer's part of the adapter with that number.
struct AdapterPart {
    u32 rank;
    float scale;
    const u16 *a, *b;
};
AKUNU_DEVICE AdapterPart adapter_part(Block b, u32 number) {
    const auto& p = b.params<LoraParams>();
    const u8* at = b.buffer<const u8>(1) + u64(number - 1) * p.slot_words * 4;
    const u8 *a = at + kAdapterHeadBytes, *columns = a + lora_a_bytes(p.max_rank, p.k);
    return {load_weights4(at), bits_to_float(load_weights4(at + 4)), reinterpret_cast<const u16*>(a),
            reinterpret_cast<const u16*>(columns)};
}

AKUNU_DEVICE float low_half(u32 w) { return half_to_float(u16(w)); }
AKUNU_DEVICE float high_half(u32 w) { return half_to_float(u16(w >> 16)); }

// Eight products, of halves.
AKUNU_DEVICE float dot_halves(const uint4& a, const uint4& x) {
    return low_half(a.x) * low_half(x.x) + high_half(a.x) * high_half(x.x) + low_half(a.y) * low_half(x.y) +
           high_half(a.y) * high_half(x.y) + low_half(a.z) * low_half(x.z) + high_half(a.z) * high_half(x.z) +
           low_half(a.w) * low_half(x.w) + high_half(a.w) * high_half(x.w);
}
AKUNU_DEVICE float dot_halves(const uint4& a, const float4& x, const float4& y) {
    return low_half(a.x) * x.x + high_half(a.x) * x.y + low_half(a.y) * x.z + high_half(a.y) * x.w +
           low_half(a.z) * y.x + high_half(a.z) * y.y + low_half(a.w) * y.z + high_half(a.w) * y.w;
}

// A thread's share of a row of A times a row of x.
AKUNU_DEVICE float share_of_product(u32 k, bool half, const u16* a, const u8* x) {
    float sum = 0.0f;
    if (k % 8 != 0) {
        for (u32 i = thread_id(); i < k; i += kThreads) {
            const float v =
                half ? half_to_float(reinterpret_cast<const u16*>(x)[i]) : reinterpret_cast<const float*>(x)[i];
            sum += half_to_float(load_weights2(a + i)) * v;
        }
    } else if (half) {
        AKUNU_UNROLL_TWICE
        for (u32 i = thread_id() * 8; i < k; i += kThreads * 8) {
            sum += dot_halves(load_weights16(a + i), *reinterpret_cast<const uint4*>(x + i * 2));
        }
    } else {
        AKUNU_UNROLL_TWICE
        for (u32 i = thread_id() * 8; i < k; i += kThreads * 8) {
            const float4* v = reinterpret_cast<const float4*>(x + i * 4);
            sum += dot_halves(load_weights16(a + i), v[0], v[1]);
        }
    }
    return sum;
}

// By a warp: the smallest number above `last` of adapters that a tile's rows have, a row in each of the first lanes; 0:
// there is none.
AKUNU_DEVICE u32 adapter_behind(u32 number, u32 last) {
    const u32 best = largest_of_warp(number > last ? ~number : 0);
    return best == 0 ? 0 : ~best;
}

// A block takes kTileOfRows rows, whose inputs are F16, and kLoraRanks ranks; its warps share the inputs of a row.
AKUNU_DEVICE void lora_a_tiles(Block b) {
    const auto& p = b.params<LoraParams>();
    const RowAdapters of_rows = row_adapters(b);
    const u16* x = b.buffer<const u16>(0);
    float* t = b.buffer<float>(2);
    float* shares = reinterpret_cast<float*>(b.shared());  // [warp][row][rank]
    const u32 groups = (p.max_rank + kLoraRanks - 1) / kLoraRanks, tiles = (p.rows + kTileOfRows - 1) / kTileOfRows;
    const u32 lane = lane_id(), g = lane / 4, piece = lane % 4 * 8;
    for (u32 u = b.first(); u < tiles * groups; u += b.blocks()) {
        const u32 first_row = u / groups * kTileOfRows, first = u % groups * kLoraRanks;
        AdapterChoice choice{0, 0.0f};  // of the lane's row
        if (lane < kTileOfRows && first_row + lane < p.rows) choice = of_rows.of(first_row + lane);
        u32 number = 0;
        while ((number = adapter_behind(choice.number, number)) != 0) {
            const AdapterPart part = adapter_part(b, number);
            if (any_of_warp(first >= part.rank)) continue;
            float sum[4] = {};
            AKUNU_UNROLL_TWICE
            for (u32 begin = warp_id() * 32; begin < p.k; begin += kWarps * 32) {
                const u32 i = begin + piece;
                const auto load = [&](const u16* from, u32 row, u32 rows) {
                    if (row >= rows || i >= p.k) return uint4{0, 0, 0, 0};
                    return *reinterpret_cast<const uint4*>(from + u64(row) * p.k + i);
                };
                const uint4 v = load(x, first_row + g, p.rows), w = load(x, first_row + g + 8, p.rows);
                const uint4 a = load(part.a, first + g, part.rank);
                mma_f16(sum, {v.x, w.x, v.y, w.y}, {a.x, a.y});
                mma_f16(sum, {v.z, w.z, v.w, w.w}, {a.z, a.w});
            }
            sync_block();
            float* own = shares + warp_id() * (kTileOfRows * kLoraRanks) + g * kLoraRanks + lane % 4 * 2;
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) own[i / 2 * (8 * kLoraRanks) + i % 2] = sum[i];
            sync_block();
            const u32 at = thread_id(), row = first_row + at / kLoraRanks, rank = first + at % kLoraRanks;
            if (at < kTileOfRows * kLoraRanks && row < p.rows && rank < part.rank) {
                const AdapterChoice of_row = of_rows.of(row);
                float all = 0.0f;
                for (u32 i = 0; i < kWarps; ++i) all += shares[i * (kTileOfRows * kLoraRanks) + at];
                if (of_row.number == number) t[u64(row) * p.max_rank + rank] = all * part.scale * of_row.scale;
            }
        }
    }
}

AKUNU_DEVICE_CALL void lora_a(Block b) {
    const auto& p = b.params<LoraParams>();
    if (any_of_warp(p.rows > kFewLoraRows && p.format == kActF16 && p.k % 8 == 0)) return lora_a_tiles(b);
    const RowAdapters of_rows = row_adapters(b);
    const u8* x = b.buffer<const u8>(0);
    float* t = b.buffer<float>(2);
    const u32 row_bytes = p.k * (p.format == kActF16 ? 2 : 4);
    for (u32 u = b.first(); u < p.rows * p.max_rank; u += b.blocks()) {
        const u32 row = u / p.max_rank, rank = u % p.max_rank;
        const AdapterChoice choice = of_rows.of(row);
        if (any_of_warp(choice.number == 0)) continue;
        const AdapterPart part = adapter_part(b, choice.number);
        if (any_of_warp(rank >= part.rank)) continue;
        const float share =
            share_of_product(p.k, p.format == kActF16, part.a + u64(rank) * p.k, x + u64(row) * row_bytes);
        const float sum = reduce_block(b, share, Add());
        if (thread_id() == 0) t[u64(row) * p.max_rank + rank] = sum * part.scale * choice.scale;
    }
}

// kEach neighbouring columns of a row of B.
template <u32 kEach>
AKUNU_DEVICE void load_columns(const u16* b, float (&v)[kEach]) {
    if constexpr (kEach == 2) {
        const u32 w = load_weights4(b);
        v[0] = low_half(w);
        v[1] = high_half(w);
    } else {
        v[0] = half_to_float(load_weights2(b));
    }
}

// A thread takes kEach columns of a row.
template <u32 kEach>
AKUNU_DEVICE void lora_b_rows(Block b) {
    const auto& p = b.params<LoraParams>();
    const RowAdapters of_rows = row_adapters(b);
    const float* t = b.buffer<const float>(0);
    float* y = b.buffer<float>(2);
    const u32 strips = (p.n + kThreads * kEach - 1) / (kThreads * kEach);
    for (u32 u = b.first(); u < p.rows * strips; u += b.blocks()) {
        const u32 row = u / strips, column = (u % strips * kThreads + thread_id()) * kEach;
        const AdapterChoice choice = of_rows.of(row);
        if (choice.number == 0 || column >= p.n) continue;
        const AdapterPart part = adapter_part(b, choice.number);
        const float* in = t + u64(row) * p.max_rank;
        float sum[kEach] = {};
        AKUNU_UNROLL_EIGHT
        for (u32 i = 0; i < part.rank; ++i) {
            float v[kEach];
            load_columns<kEach>(part.b + u64(i) * p.n + column, v);
            AKUNU_UNROLL
            for (u32 c = 0; c < kEach; ++c) sum[c] += in[i] * v[c];
        }
        float* out = y + u64(row) * p.y_stride + column;
        AKUNU_UNROLL
        for (u32 c = 0; c < kEach; ++c) out[c] += sum[c];
    }
}

// So many rows of the same adapter; those of `in` behind them are zeros.
template <u32 kEach>
AKUNU_DEVICE void add_columns(const LoraParams& p, const AdapterPart& part, const float* in, u32 column, float* out,
                              u32 rows) {
    float sum[kLoraRows][kEach] = {};
    AKUNU_UNROLL_TWICE
    for (u32 i = 0; i < part.rank; ++i) {
        float v[kEach];
        load_columns<kEach>(part.b + u64(i) * p.n + column, v);
        AKUNU_UNROLL
        for (u32 r = 0; r < kLoraRows; r += 4) {
            const float4 x = *reinterpret_cast<const float4*>(in + i * kLoraRows + r);
            AKUNU_UNROLL
            for (u32 c = 0; c < kEach; ++c) {
                sum[r][c] += x.x * v[c];
                sum[r + 1][c] += x.y * v[c];
                sum[r + 2][c] += x.z * v[c];
                sum[r + 3][c] += x.w * v[c];
            }
        }
    }
    AKUNU_UNROLL
    for (u32 r = 0; r < kLoraRows; ++r) {
        if (r >= rows) continue;
        AKUNU_UNROLL
        for (u32 c = 0; c < kEach; ++c) out[u64(r) * p.y_stride + c] += sum[r][c];
    }
}

// The same of kLoraRows rows, as many neighbours of them at a time as have one adapter.
template <u32 kEach>
AKUNU_DEVICE void lora_b_neighbours(Block b) {
    const auto& p = b.params<LoraParams>();
    const RowAdapters of_rows = row_adapters(b);
    const float* t = b.buffer<const float>(0);
    float* y = b.buffer<float>(2);
    float* in = reinterpret_cast<float*>(b.shared());  // [rank][row]
    const u32 strips = (p.n + kThreads * kEach - 1) / (kThreads * kEach);
    const u32 all = (p.rows + kLoraRows - 1) / kLoraRows * strips;
    for (u32 u = b.first(); u < all; u += b.blocks()) {
        const u32 column = (u % strips * kThreads + thread_id()) * kEach;
        const u32 begin = u / strips * kLoraRows, end = smaller(begin + kLoraRows, p.rows);
        u32 row = begin;
        while (any_of_warp(row < end)) {
            const u32 first = row, number = of_rows.of(row).number;
            do {
                ++row;
            } while (row < end && of_rows.of(row).number == number);
            if (any_of_warp(number == 0)) continue;
            const AdapterPart part = adapter_part(b, number);
            sync_block();
            for (u32 i = thread_id(); i < part.rank * kLoraRows; i += kThreads) {
                const u32 r = first + i % kLoraRows;
                in[i] = r < row ? t[u64(r) * p.max_rank + i / kLoraRows] : 0.0f;
            }
            sync_block();
            if (column < p.n && part.rank != 0) {
                float* out = y + u64(first) * p.y_stride + column;
                add_columns<kEach>(p, part, in, column, out, row - first);
            }
        }
    }
}

AKUNU_DEVICE_CALL void lora_b(Block b) {
    const auto& p = b.params<LoraParams>();
    const bool pairs = any_of_warp(p.n % 2 == 0), few = any_of_warp(p.rows <= kFewLoraRows);
    if (few) return pairs ? lora_b_rows<2>(b) : lora_b_rows<1>(b);
    pairs ? lora_b_neighbours<2>(b) : lora_b_neighbours<1>(b);
}

}  // namespace akunu::cuda
