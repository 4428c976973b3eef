// A row times weights on the tensor cores: a tile is 16 rows of weights, whose inputs are dealt to a few warps.
//
// The first weights are on their way to registers before the command waits for those before it; from then on each warp
// loads one step ahead. Warps leave their sums in shared memory, and a thread for each row adds them up, so that a
// command has two barriers of the block, however many tiles there are.
//
// One function serves kMatmul, kGateUp, kNormQkv and kNormGateUp: what they differ in stands in a TileJob.
#pragma once

#include "activation.cuh"
#include "fragments.cuh"

namespace akunu::cuda {

// Offsets in shared memory: so every access is known to be one of it.
struct TileMemory {
    u32 parts;     // u16 [kParts][k]
    u32 sums;      // float [k / 16]: of inputs
    u32 factors;   // float [k / kStepInputs]
    u32 zeros;     // u16 [kStepInputs]
    u32 squares;   // float [kWarps], where the input is to be normalised
    u32 partials;  // float [tiles of the block][splits · 16 + 16]
};
AKUNU_DEVICE TileMemory tile_memory(u32 k, u32 parts) {
    TileMemory m;
    m.parts = kSharedHead;
    m.sums = m.parts + parts * k * 2;
    m.factors = m.sums + k / 4;
    m.zeros = m.factors + (k / kStepInputs + 3) / 4 * 16;
    m.squares = m.zeros + kStepInputs * 2;
    m.partials = m.squares + kWarps * 4;
    return m;
}
template <typename V>
AKUNU_DEVICE V& shared_at(u32 offset) {
    return *reinterpret_cast<V*>(shared_memory() + offset);
}

// What a command multiplies. Pairs: a tile has eight rows of the first weights and the same of the second; else its
// rows are those of up to three matrices, one behind the other.
struct TileJob {
    u32 k, first, rows[3];  // rows of the matrices from `first` on
    u32 pairs, normed, splits;
    AKUNU_DEVICE u32 tiles_of(u32 i) const { return (rows[i] + kTileRows - 1) / kTileRows; }
    AKUNU_DEVICE u32 tiles() const {
        return pairs ? (rows[0] + kTileRows / 2 - 1) / (kTileRows / 2) : tiles_of(0) + tiles_of(1) + tiles_of(2);
    }
};

// Of kNormQkv, whose last weights have a type of their own, `second` is the job of these.
AKUNU_DEVICE TileJob tile_job(Block b, u32 second) {
    const Command& c = b.command();
    const u32 splits = c.splits[second];
    switch (c.op) {
        case kOpMatmul: {
            const auto& p = b.params<MatmulParams>();
            return {p.k, 0, {p.n, 0, 0}, 0, 0, splits};
        }
        case kOpGateUp: {
            const auto& p = b.params<GateUpParams>();
            return {p.k, 0, {p.n, p.n, 0}, 1, 0, splits};
        }
        case kOpNormGateUp: {
            const auto& p = b.params<NormGateUpParams>();
            return {p.k, 0, {p.n, p.n, 0}, 1, 1, splits};
        }
        default: {
            const auto& p = b.params<NormQkvParams>();
            const u32 n_k = c.weights[1].codes ? p.n_kv : 0, n_v = c.weights[2].codes ? p.n_kv : 0;
            if (second) return {p.k, 2, {n_v, 0, 0}, 0, 1, splits};
            return {p.k, 0, {p.n_q, n_k, c.weights[2].reader == c.weights[0].reader ? n_v : 0}, 0, 1, splits};
        }
    }
}

// Row r of a tile: of which matrix, counted from the first, and which of its rows; false behind its end.
struct TileRow {
    u32 matrix, row;
    bool there;
};
AKUNU_DEVICE TileRow tile_row(const TileJob& job, u32 tile, u32 r) {
    if (job.pairs) {
        const u32 row = tile * (kTileRows / 2) + r % (kTileRows / 2);
        return {r / (kTileRows / 2), row, row < job.rows[0]};
    }
    const u32 n0 = job.tiles_of(0), n1 = n0 + job.tiles_of(1);
    const u32 matrix = tile < n0 ? 0 : tile < n1 ? 1 : 2;
    const u32 row = (tile - (matrix == 0 ? 0 : matrix == 1 ? n0 : n1)) * kTileRows + r;
    return {matrix, row, row < (matrix == 0 ? job.rows[0] : matrix == 1 ? job.rows[1] : job.rows[2])};
}

// Four inputs, and what the norm is of.
AKUNU_DEVICE float4 tile_inputs(Block b, const TileJob& job, u32 i, float& squares) {
    if (b.command().half_input && !job.normed) {
        const uint2 h = *reinterpret_cast<const uint2*>(b.buffer<u16>(0) + i);
        return {half_to_float(u16(h.x)), half_to_float(u16(h.x >> 16)), half_to_float(u16(h.y)),
                half_to_float(u16(h.y >> 16))};
    }
    const float4 x = *reinterpret_cast<const float4*>(b.buffer<float>(0) + i);
    if (!job.normed) return x;
    const float4 w = *reinterpret_cast<const float4*>(b.buffer<float>(1) + i);
    squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
    return {x.x * w.x, x.y * w.y, x.z * w.z, x.w * w.w};
}

// Splits the inputs into parts, as kind T reads them.
template <typename T>
AKUNU_DEVICE void stage_tiles(Block b, const TileJob& job, const TileMemory& m) {
    constexpr u32 kAtOnce = 4, kEach = 4;
    const u32 k = job.k;
    if (thread_id() < kStepInputs / 2) shared_at<u32>(m.zeros + thread_id() * 4) = 0;
    float squares = 0.0f;
    for (u32 base = thread_id() * kEach; base < k; base += kThreads * kEach * kAtOnce) {
        float4 v[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 i = base + j * kThreads * kEach;
            v[j] = i < k ? tile_inputs(b, job, i, squares) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 i = base + j * kThreads * kEach;
            if (i >= k) continue;  // for whole warps: k is a multiple of kStepInputs
            float x[4] = {v[j].x, v[j].y, v[j].z, v[j].w};
            // A warp has a step's inputs: the largest comes to be from 2^14 to 2^15.
            const float top = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
            const u32 exponent = larger(largest_of_warp(float_to_bits(top)) >> 23, 15);
            const float scale = bits_to_float((268 - exponent) << 23);
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) x[e] *= scale;
            float sum = (x[0] + x[1]) + (x[2] + x[3]);
            sum += shuffle_xor(sum, 1);
            sum += shuffle_xor(sum, 2);
            if (lane_id() % 4 == 0) shared_at<float>(m.sums + i / 16 * 4) = sum;
            if (lane_id() == 0) shared_at<float>(m.factors + i / kStepInputs * 4) = bits_to_float((exponent - 14) << 23);
            AKUNU_UNROLL
            for (u32 part = 0; part < T::kParts; ++part) {
                u32 h[4];
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) {
                    h[e] = T::kBf16 ? float_to_bfloat(x[e]) : float_to_half(x[e]);
                    x[e] = (x[e] - (T::kBf16 ? bits_to_float(h[e] << 16) : half_to_float(u16(h[e])))) * kPartShift;
                }
                // Masks take every second of the codes in a word's half.
                constexpr u32 kSecond = T::kFloats ? 1 : 2;
                shared_at<uint2>(m.parts + (part * k + i) * 2) =
                    uint2{h[0] | h[kSecond] << 16, h[3 - kSecond] | h[3] << 16};
            }
        }
    }
    squares = reduce_warp(squares, Add());
    if (lane_id() == 0) shared_at<float>(m.squares + warp_id() * 4) = squares;
}

// 1 / sqrt(mean of squares + eps) of what was staged, or 1.
AKUNU_DEVICE float tile_norm(const TileJob& job, const TileMemory& m, float eps) {
    if (!job.normed) return 1.0f;
    float sum = 0.0f;
    for (u32 i = 0; i < kWarps; ++i) sum += shared_at<float>(m.squares + i * 4);
    return 1.0f / sqrtf(sum / float(job.k) + eps);
}

AKUNU_DEVICE float soft_capped(float v, float cap) { return cap > 0.0f ? soft_cap(v, cap) : v; }

// What is there already of a row of kMatmul.
AKUNU_DEVICE float tile_base(Block b, const TileRow& at) {
    if (b.command().op != kOpMatmul || !at.there) return 0.0f;
    const auto& p = b.params<MatmulParams>();
    return p.accumulate ? b.buffer<float>(2)[at.row] : 0.0f;
}

// Stores a row's result; `sum` is the row's, `up` that of the second matrix, where tiles have pairs.
AKUNU_DEVICE void tile_store(Block b, const TileJob& job, const TileRow& at, const TileMemory& m, float base, float sum,
                             float up) {
    switch (b.command().op) {
        case kOpMatmul: {
            const auto& p = b.params<MatmulParams>();
            if (p.has_bias) sum += b.buffer<float>(3)[at.row];
            b.buffer<float>(2)[at.row] = base + soft_capped(sum, p.softcap);
            return;
        }
        case kOpNormQkv: {
            const auto& p = b.params<NormQkvParams>();
            const u32 part = job.first + at.matrix;
            const u32 y = part == 0 ? 0 : part == 1 ? p.k_offset : p.v_offset;
            const u32 bias = part == 0 ? 0 : part == 1 ? p.n_q : p.n_q + p.n_kv;
            sum *= tile_norm(job, m, p.eps);
            b.buffer<float>(5)[y + at.row] = p.has_bias ? sum + b.buffer<float>(6)[bias + at.row] : sum;
            return;
        }
        case kOpGateUp: {
            const auto& p = b.params<GateUpParams>();
            const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
            out.store(at.row, activate(p.activation, sum) * up);
            return;
        }
        default: {
            const auto& p = b.params<NormGateUpParams>();
            const float scale = tile_norm(job, m, p.eps);
            const Output out{b.buffer<float>(4), b.buffer<u16>(5), p.formats};
            out.store(at.row, activate(p.activation, sum * scale) * (up * scale));
        }
    }
}

// Where a lane's row of weights begins.
struct RowPlace {
    const u8 *codes, *extras;
};
template <typename T>
AKUNU_DEVICE RowPlace row_place(Block b, const TileJob& job, u32 tile, u32 r) {
    const TileRow at = tile_row(job, tile, r);
    const u32 last = (job.pairs || at.matrix == 0 ? job.rows[0] : at.matrix == 1 ? job.rows[1] : job.rows[2]) - 1;
    const WeightPlanes& w = b.command().weights[job.first + at.matrix];
    const u64 row = smaller(at.row, last);
    return {reinterpret_cast<const u8*>(w.codes) + row * T::code_bytes(job.k),
            reinterpret_cast<const u8*>(w.extras) + row * T::extra_bytes(job.k)};
}

// Where the next of a warp's steps is: it goes through its part of a tile's inputs, then on to its next tile.
struct TileSteps {
    u32 tile, step;
    u32 first, last, teams;

    AKUNU_DEVICE bool next() {
        if (++step != last) return false;
        step = first;
        tile += teams;
        return true;
    }
};

// A warp's weights on their way to registers: those of its next step. With more of them the compiler moves what came to
// the stack, and waits for it.
template <typename T>
struct TileStream {
    typename T::Part part[2];
    RowPlace at[2];
    TileSteps to;

    AKUNU_DEVICE void begin_tile(Block b, const TileJob& job) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) at[i] = row_place<T>(b, job, to.tile, 8 * i + lane_id() / 4);
    }
    AKUNU_DEVICE void load(Block b, const TileJob& job, u32 end) {
        if (to.tile >= end) return;
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) T::load(at[i].codes, at[i].extras, to.step, lane_id() % 4, part[i]);
        if (to.next() && to.tile < end) begin_tile(b, job);
    }
};

// A block's share of a job's tiles. The first job of a command stages the input for the second, too.
template <u32 kReader>
AKUNU_DEVICE_CALL void row_tiles(Block b, u32 second) {
    using T = Fragments<kReader>;
    const TileJob job = tile_job(b, second);
    const TileMemory m = tile_memory(job.k, T::kParts);
    const u32 tiles = job.tiles(), splits = job.splits;
    const u32 begin = u32(u64(tiles) * b.first() / b.blocks()), end = u32(u64(tiles) * (b.first() + 1) / b.blocks());
    const u32 split = warp_id() % splits, steps = job.k / kStepInputs;
    TileSteps at{begin + warp_id() / splits, steps * split / splits, steps * split / splits,
                 steps * (split + 1) / splits, kWarps / splits};
    TileStream<T> weights;
    weights.to = at;
    if (at.tile < end) weights.begin_tile(b, job);
    weights.load(b, job, end);
    if (!second) {
        b.ready();
        stage_tiles<T>(b, job, m);
    }
    // What is there already of the row that this thread stores first.
    const u32 r = thread_id() % kTileRows, mine = begin + thread_id() / kTileRows;
    const float base = mine < end ? tile_base(b, tile_row(job, mine, r)) : 0.0f;
    sync_block();
    // Lanes that have no inputs read zeros, always the same.
    const u32 g = lane_id() / 4, t = lane_id() % 4, stride = splits * kTileRows + kTileRows;
    const bool takes = T::takes(g, t);
    const u32 inputs = takes ? m.parts + T::part(g) * job.k * 2 : m.zeros, stride_x = takes ? kStepInputs * 2 : 0;
    StepInputs in;
    in.t = t;
    in.first = T::first(t);
    in.second = T::second(t);
    float sum[2] = {0.0f, 0.0f};
    while (at.tile < end) {
        const typename T::Part part[2] = {weights.part[0], weights.part[1]};
        weights.load(b, job, end);
        const u32 from = inputs + at.step * stride_x;
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const uint4 x = shared_at<uint4>(from + T::piece(i, t) * 2);
            in.x[4 * i] = x.x;
            in.x[4 * i + 1] = x.y;
            in.x[4 * i + 2] = x.z;
            in.x[4 * i + 3] = x.w;
        }
        in.step = at.step;
        in.sums = m.sums + at.step * (kStepInputs / 16) * 4;
        in.factor = shared_at<float>(m.factors + at.step * 4);
        T::multiply(part, in, sum);
        const u32 tile = at.tile;
        if (!at.next()) continue;
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            sum[i] += shuffle_xor(sum[i], 1);
            sum[i] += shuffle_xor(sum[i], 2);
            const u32 to = (tile - begin) * stride + split * kTileRows + 8 * i + g;
            if (t == 0) shared_at<float>(m.partials + to * 4) = sum[i];
            sum[i] = 0.0f;
        }
    }
    sync_block();
    for (u32 tile = mine; tile < end; tile += kThreads / kTileRows) {
        const TileRow row = tile_row(job, tile, r);
        if (!row.there || (job.pairs && row.matrix != 0)) continue;
        const u32 of = m.partials + ((tile - begin) * stride + r) * 4;
        float v = 0.0f, up = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < kWarps; ++i) {
            v += i < splits ? shared_at<float>(of + i * kTileRows * 4) : 0.0f;
            up += i < splits && job.pairs ? shared_at<float>(of + (i * kTileRows + kTileRows / 2) * 4) : 0.0f;
        }
        tile_store(b, job, row, m, tile == mine ? base : tile_base(b, row), v, up);
    }
}

}  // namespace akunu::cuda
