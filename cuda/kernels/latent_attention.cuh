// Multi-head latent attention: all heads read the same row of a position, and a value is the beginning of its key.
// Rows are taken by tiles (prompt_attention.cuh), which read a key once for several heads. Of keys of odd sizes, and of
// a single row whose tile has no room, a block takes one head, and every head reads all rows of the cache anew.
#pragma once

#include "experts.cuh"
#include "prompt_attention.cuh"

namespace akunu::cuda {

// By a warp: turns the elements of a query or a key that have a position, times `scale`.
AKUNU_DEVICE void turn_latent(const LatentKvParams& p, const float* table, const float* from, float* to, float scale) {
    const u32 half = p.rope_dim / 2;
    const bool interleaved = p.style == kRopeInterleaved;
    for (u32 i = lane_id(); i < half; i += 32) {
        const u32 first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
        const float x = from[first] * scale, y = from[second] * scale;
        const float c = table[2 * i], s = table[2 * i + 1];
        to[first] = x * c - y * s;
        to[second] = x * s + y * c;
    }
}

// By a block: writes row r's latent, normed, and its rotated key to the cache.
template <u32 kTypes>
AKUNU_DEVICE_CALL void keep_row(Block b, const LatentKvParams& p, u32 r) {
    constexpr u32 kEach = kMaxLatentKey / kThreads;
    static_assert(kMaxLatentKey % kThreads == 0, "all elements are some thread's");
    const u32 key_dim = p.latent + p.rope_dim;
    const float *x = b.buffer<float>(0) + u64(r) * key_dim, *norm = b.buffer<float>(3);
    float* const kept = reinterpret_cast<float*>(b.shared());
    // All that is read is asked for before the first of it is waited for.
    float v[kEach], factor[kEach], sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kEach; ++i) {
        const u32 d = i * kThreads + thread_id();
        v[i] = d < key_dim ? x[d] : 0.0f;
        factor[i] = d < p.latent ? norm[d] : 0.0f;
        sum += d < p.latent ? v[i] * v[i] : 0.0f;
    }
    const float scale = 1.0f / sqrtf(reduce_block(b, sum, Add()) / float(p.latent) + p.eps);
    AKUNU_UNROLL
    for (u32 i = 0; i < kEach; ++i) {
        const u32 d = i * kThreads + thread_id();
        if (d < key_dim) kept[d] = d < p.latent ? v[i] * scale * factor[i] : v[i];
    }
    sync_block();
    if (warp_id() != 0) return;
    turn_latent(p, b.buffer<float>(2) + u64(r) * p.rope_dim, kept + p.latent, kept + p.latent, 1.0f);
    sync_warp();
    const Row row = b.buffer<Row>(5)[r];
    const KvUnit<key_type(kTypes)> to{b.buffer<u8>(4), b.buffer<u32>(6) + u64(row.slot) * p.max_pages,
                                      u64(p.page_words) * 4, key_dim};
    to.store(row.position + p.step, kept);
}

// What is kept of each row, by blocks, and its queries rotated, a warp for each head.
template <u32 kTypes>
AKUNU_DEVICE_CALL void latent_kv(Block b) {
    const auto& p = b.params<LatentKvParams>();
    const u32 query_dim = p.nope_dim + p.rope_dim;
    static_assert(kMaxLatentKey * 4 <= kOpBytes, "there is room");
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) keep_row<kTypes>(b, p, r);
    for (u32 u = b.first() * kWarps + warp_id(); u < p.rows * p.n_heads; u += b.blocks() * kWarps) {
        const u32 r = u / p.n_heads;
        float* x = b.buffer<float>(1) + u64(u) * query_dim;
        float scale = 1.0f;
        if (p.temperature_length) {
            const u32 position = b.buffer<Row>(5)[r].position + p.step;
            scale += p.temperature * logf(1.0f + float(position / p.temperature_length));
            for (u32 d = lane_id(); d < p.nope_dim; d += 32) x[d] *= scale;
        }
        turn_latent(p, b.buffer<float>(2) + u64(r) * p.rope_dim, x + p.nope_dim, x + p.nope_dim, scale);
    }
}

// A head against keys [first, end): calls out(d, value, top, sum) with what is to be divided by the sum.
template <u32 kTypes, typename Out>
AKUNU_DEVICE void attend_latent(Block b, const AttentionParams& p, const float* q, u32 slot, u32 first, u32 end,
                                Out&& out) {
    constexpr u32 kLanes = 8;  // of a key
    const u32 hd = p.head_dim, quads = (hd + 3) / 4, value_quads = (p.latent + 3) / 4;
    float* const query = reinterpret_cast<float*>(b.shared());
    float* const scores = query + kMaxLatentKey;
    const auto keys = key_unit<kTypes>(b.buffer<u8>(1), b.buffer<u32>(4), p, slot, 0);
    sync_block();
    for (u32 d = thread_id(); d < quads * 4; d += kThreads) query[d] = d < hd ? q[d] * p.scale : 0.0f;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f}, top = minus_infinity(), sum = 0.0f;
    for (u32 begin = first; begin < end; begin += kTileKeys) {
        const u32 n = smaller(kTileKeys, end - begin);
        sync_block();
        for (u32 i = thread_id() / kLanes; i < kTileKeys; i += kThreads / kLanes) {
            float s = 0.0f;
            for (u32 d = lane_id() % kLanes; i < n && d < quads; d += kLanes) {
                const float4 k = keys.load(begin + i, d), x = *reinterpret_cast<const float4*>(query + d * 4);
                s += x.x * k.x + x.y * k.y + x.z * k.z + x.w * k.w;
            }
            AKUNU_UNROLL
            for (u32 mask = kLanes / 2; mask > 0; mask /= 2) s += shuffle_xor(s, mask);
            if (lane_id() % kLanes == 0) scores[i] = i < n ? s : minus_infinity();
        }
        sync_block();
        // Every warp computes the same.
        float s[kTileKeys / 32], most = top, added = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kTileKeys / 32; ++i) {
            s[i] = scores[i * 32 + lane_id()];
            most = fmaxf(most, s[i]);
        }
        most = reduce_warp(most, Larger());
        AKUNU_UNROLL
        for (u32 i = 0; i < kTileKeys / 32; ++i) {
            s[i] = s[i] == minus_infinity() ? 0.0f : expf(s[i] - most);
            added += s[i];
        }
        const float keep = top == minus_infinity() ? 0.0f : expf(top - most);
        sum = sum * keep + reduce_warp(added, Add());
        top = most;
        sync_block();
        if (warp_id() == 0) {
            AKUNU_UNROLL
            for (u32 i = 0; i < kTileKeys / 32; ++i) scores[i * 32 + lane_id()] = s[i];
        }
        sync_block();
        if (thread_id() >= value_quads) continue;
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) acc[e] *= keep;
        for (u32 i = 0; i < n; ++i) {
            const float4 v = keys.load(begin + i, thread_id());
            acc[0] += scores[i] * v.x;
            acc[1] += scores[i] * v.y;
            acc[2] += scores[i] * v.z;
            acc[3] += scores[i] * v.w;
        }
    }
    static_assert(kMaxLatentKey / 4 <= kThreads, "a thread has one quad of the values");
    for (u32 e = 0; e < 4; ++e) {
        const u32 d = thread_id() * 4 + e;
        if (d < p.latent) out(d, acc[e], top, sum);
    }
}

// A tile has as many rows as their heads fill it with, and even one row alone is one: a tile reads its keys once for
// all heads of a part.
template <u32 kTypes>
AKUNU_DEVICE_CALL void attention_latent(Block b) {
    const auto& p = b.params<AttentionParams>();
    const u32 dim = prompt_dim(p.head_dim, p.latent);
    if (dim != 0) {
        const u32 tile = rows_of_tile<kTypes>(dim) / GroupParts(p).heads;
        return attend_tiles<kTypes>(b, tile, 1, [](Runs) {});
    }
    for (u32 u = b.first(); u < p.rows * p.n_heads; u += b.blocks()) {
        const Row row = b.buffer<Row>(3)[u / p.n_heads];
        float* to = b.buffer<float>(2) + u64(u) * p.latent;
        attend_latent<kTypes>(b, p, b.buffer<float>(0) + u64(u) * p.head_dim, row.slot, 0, row.position + p.step + 1,
                              [&](u32 d, float v, float, float sum) { to[d] = v / sum; });
    }
}

// A row's heads take whole tiles of keys, so that warps share 16 of them, each a slice of their elements.
template <u32 kTypes, u32 kDim>
using LatentRow = PromptMemory<kTypes, kDim, kDim == 640 ? 8 : slices_of(kTypes, kDim)>;
template <u32 kTypes, u32 kDim>
AKUNU_DEVICE void split_by_tiles(Block b, const AttentionParams& p, Row row, u32 n, u32 splits) {
    using M = LatentRow<kTypes, kDim>;
    const GroupParts groups(p);
    const u32 tiles = (n + M::kKeys - 1) / M::kKeys;
    for (u32 u = b.first(); u < splits * groups.all; u += b.blocks()) {
        const u32 split = u / groups.all;
        attend_run<kTypes, M>(
            b, Run{0, 1, u % groups.all, row.slot, row.position + p.step, u32(u64(tiles) * split / splits) * M::kKeys,
                   smaller(u32(u64(tiles) * (split + 1) / splits) * M::kKeys, n), 0, split});
    }
}

// One row; its keys are dealt to the splits in equal parts. attention_merge joins them.
template <u32 kTypes>
AKUNU_DEVICE_CALL void attention_latent_split(Block b) {
    const auto& p = b.params<AttentionParams>();
    const Row row = b.buffer<Row>(3)[0];
    const u32 n = row.position + p.step + 1, splits = splits_of(n, kLatentKeys);
    switch (same_in_warp(prompt_dim(p.head_dim, p.latent))) {
#define X(dim)                                                                            \
    case dim:                                                                             \
        if constexpr (is_latent_dim(dim) && LatentRow<kTypes, dim>::kBytes <= kOpBytes) { \
            return split_by_tiles<kTypes, dim>(b, p, row, n, splits);                     \
        }                                                                                 \
        break;
        AKUNU_PROMPT_DIMS
#undef X
    }
    float* partials = b.buffer<float>(2);
    float* stats = partials + u64(p.n_heads) * kMaxSplits * p.latent;
    for (u32 u = b.first(); u < splits * p.n_heads; u += b.blocks()) {
        const u32 split = u / p.n_heads, head = u % p.n_heads, at = head * kMaxSplits + split;
        attend_latent<kTypes>(b, p, b.buffer<float>(0) + u64(head) * p.head_dim, row.slot, u32(u64(n) * split / splits),
                              u32(u64(n) * (split + 1) / splits), [&](u32 d, float v, float top, float sum) {
                                  partials[u64(at) * p.latent + d] = v;
                                  if (d != 0) return;
                                  stats[2 * at] = top;
                                  stats[2 * at + 1] = sum;
                              });
    }
}

// Each head's part of each row times the head's weights, row after row: some lanes of a warp take two rows of the
// weights, a group each, which are there before the input is waited for. The input is in shared memory.
template <typename F>
struct HeadRows {
    static constexpr u32 kAtOnce = 2;
    const HeadMatmulParams& p;
    u32 groups = (p.k + 31) / 32, lanes = 32, parts;
    Group held[kAtOnce];

    AKUNU_DEVICE explicit HeadRows(const HeadMatmulParams& params) : p(params) {
        while (lanes / 2 >= groups) lanes /= 2;
        const u32 each = kAtOnce * kThreads / lanes;
        parts = (p.n + each - 1) / each;
    }
    AKUNU_DEVICE u32 row(u32 part, u32 i) const { return ((part * kAtOnce + i) * kThreads + thread_id()) / lanes; }
    AKUNU_DEVICE void fetch(Block b, u32 head, u32 part, u32 group) {
        const Weights w = expert_of(b, 0, p.k, head);
        AKUNU_UNROLL
        for (u32 i = 0; i < kAtOnce; ++i)
            F::load(w, smaller(row(part, i), p.n - 1), smaller(group, groups - 1), held[i]);
    }
    AKUNU_DEVICE void add(const float* xs, u32 group, float (&sum)[kAtOnce]) const {
        if (group < groups) add_group<F, kAtOnce>(xs + group * kGroupStride, held, sum);
    }
};
// A block's share of heads' products: the units from `first` on that are so many apart.
struct HeadShare {
    u32 first, apart;
};
// Row after row and head after head: begin(m, part) brings the m-th input to shared memory, if it is another one than
// before, and store(m, n, v, next) takes the results. Where kPairs, of an even row `next` is that of the row behind it.
template <typename F, bool kPairs = false, typename Begin, typename Store>
AKUNU_DEVICE void multiply_heads(Block b, const HeadMatmulParams& p, const HeadShare& share, Begin&& begin,
                                 Store&& store) {
    HeadRows<F> rows(p);
    const float* xs = reinterpret_cast<const float*>(b.shared());
    const u32 units = rows.parts * p.rows * p.heads;
    float sum[HeadRows<F>::kAtOnce] = {};
    bool waits = true;
    // Units, and each one's groups where they are more than lanes: weights are asked for at one place, since unpacking
    // them is most of the code.
    AKUNU_NO_UNROLL
    for (u32 u = share.first, passed = 0; u < units || waits;) {
        const u32 m = u / rows.parts, part = u % rows.parts, lane = lane_id() % rows.lanes;
        if (u < units) rows.fetch(b, m % p.heads, part, passed + lane);
        if (waits) b.wait();
        waits = false;
        if (u >= units) break;
        if (passed == 0) begin(m, part);
        rows.add(xs, passed + lane, sum);
        passed += rows.lanes;
        if (passed < rows.groups) continue;
        AKUNU_UNROLL
        for (u32 i = 0; i < HeadRows<F>::kAtOnce; ++i) {
            for (u32 mask = rows.lanes / 2; mask > 0; mask /= 2) sum[i] += shuffle_xor(sum[i], mask);
            // What the next row has, if it is the warp's.
            const float next = kPairs ? shuffle_xor(sum[i], rows.lanes % 32) : 0.0f;
            if (lane == 0 && rows.row(part, i) < p.n) store(m, rows.row(part, i), sum[i], next);
            sum[i] = 0.0f;
        }
        passed = 0;
        u += share.apart;
    }
}
template <typename F>
AKUNU_DEVICE_CALL void head_matmul_rows(Block b) {
    const auto& p = b.params<HeadMatmulParams>();
    const u32 y_stride = p.n + p.copied;
    float* const y = b.buffer<float>(2);
    u32 staged = ~0u;
    multiply_heads<F>(
        b, p, {b.first(), b.blocks()},
        [&](u32 m, u32 part) {
            const float* x = b.buffer<float>(0) + u64(m) * p.x_stride;
            if (m != staged) stage_input(b, p.k, [&](u32 i) { return x[i]; });
            staged = m;
            if (part != 0) return;
            for (u32 i = thread_id(); i < p.copied; i += kThreads) y[u64(m) * y_stride + p.n + i] = x[p.k + i];
        },
        [&](u32 m, u32 n, float v, float) { y[u64(m) * y_stride + n] = v; });
}

// Of one row what is kept, by the last block, and its queries times their heads' weights of keys, with their rotated
// ends behind, by the others.
template <typename F>
AKUNU_DEVICE_CALL void latent_queries(Block b) {
    const auto& both = b.params<LatentQueriesParams>();
    const auto& p = both.product;
    const u32 y_stride = p.n + p.copied, others = b.blocks() - 1;
    float* const y = b.buffer<float>(7);
    const bool keeps = b.first() == others;
    const HeadShare share{keeps && others != 0 ? ~0u : b.first(), larger(others, 1)};
    multiply_heads<F>(
        b, p, share,
        [&](u32 m, u32 part) {
            const float* x = b.buffer<float>(1) + u64(m) * p.x_stride;
            stage_input(b, p.k, [&](u32 i) { return x[i]; });
            if (part != 0 || warp_id() != 0) return;
            turn_latent(both.kept, b.buffer<float>(2), x + p.k, y + u64(m) * y_stride + p.n, 1.0f);
        },
        [&](u32 m, u32 n, float v, float) { y[u64(m) * y_stride + n] = v; });
    if (!keeps) return;
#define X(type) \
    if (b.command().kv == (type)) keep_row<type>(b, both.kept, 0);
    AKUNU_KV_TYPES
#undef X
}

// Of one row what its splits of keys have found, joined, times the heads' weights of values, in F16.
template <typename F>
AKUNU_DEVICE_CALL void latent_values(Block b) {
    const auto& both = b.params<LatentValuesParams>();
    const auto& p = both.product;
    u16* const y = b.buffer<u16>(2);
    u64* const words = in_global(block_state().walk[b.slot].left);
    const u32 number = block_state().walk[b.slot].number;
    const float *const partials = b.buffer<float>(0), *const stats = partials + u64(p.heads) * kMaxSplits * p.k;
    multiply_heads<F, true>(
        b, p, {b.first(), b.blocks()},
        [&](u32 m, u32) {
            const u32 splits = splits_of(b.buffer<Row>(1)[0].position + both.attention.step + 1, kLatentKeys);
            const SplitWeights weights(stats, m, splits, nullptr);
            stage_input(b, p.k, [&](u32 i) {
                float v = 0.0f;
                for (u32 s = 0; s < splits; ++s) {
                    v += weights.of(s) * partials[(u64(m) * kMaxSplits + s) * p.k + i];
                }
                return v / weights.sum;
            });
        },
        [&](u32 m, u32 n, float v, float next) {
            const u64 at = u64(m) * p.n + n;
            if (words != nullptr && n % 2 == 0) leave_word(words + at / 2, pack_halves(v, next), number);
            y[at] = to_half(v);
        });
}

// Of many rows, a head's by tiles, as if it were an expert that all of them have.
template <typename F, typename T>
AKUNU_DEVICE_CALL void head_matmul_tiles(Block b) {
    const auto& p = b.params<HeadMatmulParams>();
    const u32 y_stride = p.n + p.copied, columns = (p.n + T::kN - 1) / T::kN, tiles = (p.rows + T::kM - 1) / T::kM;
    const float* xs = b.buffer<float>(0);
    float* ys = b.buffer<float>(2);
    for (u32 i = b.first() * kThreads + thread_id(); i < p.rows * p.heads * p.copied; i += b.blocks() * kThreads) {
        const u64 m = i / p.copied;
        ys[m * y_stride + p.n + i % p.copied] = xs[m * p.x_stride + p.k + i % p.copied];
    }
    for (u32 u = b.first(); u < tiles * columns * p.heads; u += b.blocks()) {
        const u32 m0 = u % tiles * T::kM, n0 = u / tiles % columns * T::kN, head = u / tiles / columns;
        const auto row_at = [&](u32 m) { return u64(m0 + m) * p.heads + head; };
        expert_tile<F, T, float>(
            p.k, [&](u32 m) { return xs + row_at(smaller(m, p.rows - 1 - m0)) * p.x_stride; },
            [&](u32 r, Weights& w) {
                w = expert_of(b, 0, p.k, head);
                return smaller(n0 + r, p.n - 1);
            },
            [&](u32 m, u32 r, float v0, float v1) {
                if (m0 + m >= p.rows) return;
                float* y = ys + row_at(m) * y_stride + n0 + r;
                if (n0 + r < p.n) y[0] = v0;
                if (n0 + r + 1 < p.n) y[1] = v1;
            });
    }
}

template <typename F>
AKUNU_DEVICE_CALL void head_matmul(Block b) {
    const u32 rows = b.params<HeadMatmulParams>().rows;
    if constexpr (F::kFloatBytes == 4) {
        head_matmul_rows<F>(b);
    } else {
        if (rows == 1) return head_matmul_rows<F>(b);
        b.wait();
        rows <= SmallExpertTile::kM ? head_matmul_tiles<F, SmallExpertTile>(b)
                                    : head_matmul_tiles<F, LargeExpertTile>(b);
    }
}

}  // namespace akunu::cuda
