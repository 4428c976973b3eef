// Gated delta nets: the convolution along a sequence's rows, and the gated delta rule in chunks of kChunkRows rows that
// are counted from a sequence's position 0 (docs/architecture.md).
#pragma once

#include "activation.cuh"
#include "sequences.cuh"

namespace akunu::cuda {

// A thread takes a channel and up to kConvRows rows of a sequence. What a record has of the rows before a step is read
// by who takes the first of them, and who writes there what later steps need: so nobody overwrites what another reads.
AKUNU_DEVICE_CALL void short_conv(Block b) {
    constexpr u32 kConvRows = 32, kMostTaps = 8;
    const auto& p = b.params<ShortConvParams>();
    const float *x = b.buffer<float>(0), *weights = b.buffer<float>(1);
    const Row* where = b.buffer<Row>(4);
    const Sequences sequences{where, p.rows};
    // Of row r of the step, channel c: an input, and what its output is multiplied by.
    const auto input = [&](u64 r, u32 c) {
        const float* row = x + r * (p.gated ? 3 : 1) * p.channels + c;
        return p.gated ? row[0] * row[2 * p.channels] : row[0];
    };
    const auto gate = [&](u64 r, u32 c) { return p.gated ? x[(r * 3 + 1) * p.channels + c] : 1.0f; };
    const u32 kept = p.taps - 1 + kStashRows, parts = (p.channels + kThreads - 1) / kThreads,
              n_sequences = sequences.count();
    u32 units = 0;  // of the sequences before
    for (u32 sequence = 0; sequence < n_sequences; ++sequence) {
        const SequenceRows of = sequences.at(sequence);
        const u32 blocks = (of.rows + kConvRows - 1) / kConvRows, mine = blocks * parts;
        const Row row = where[of.first];
        // The block's first unit of this sequence.
        u32 u = units % b.blocks();
        u = b.first() >= u ? b.first() - u : b.first() + b.blocks() - u;
        units += mine;
        if (b.buffer<SlotState>(5)[row.slot].stopped) continue;  // the rest of a chain is of other sequences
        for (; u < mine; u += b.blocks()) {
            const u32 c = u % parts * kThreads + thread_id(), begin = u / parts * kConvRows;
            const u32 end = smaller(begin + kConvRows, of.rows), position = row.position + p.step;
            if (c >= p.channels) continue;
            float* record = b.buffer<float>(2) + u64(row.slot) * p.state_words + c;
            float w[kMostTaps], past[kMostTaps];  // the newest last
            const float bias = p.has_bias ? weights[u64(p.taps) * p.channels + c] : 0.0f;
            AKUNU_UNROLL
            for (u32 t = 0; t < kMostTaps; ++t) {
                const u32 back = kMostTaps - 1 - t;  // rows before the one at hand
                w[t] = back < p.taps ? weights[u64(p.taps - 1 - back) * p.channels + c] : 0.0f;
                past[t] = 0.0f;
                if (back == 0 || back >= p.taps) continue;
                if (begin >= back) {
                    past[t] = input(of.first + begin - back, c);
                } else if (position + begin >= back) {
                    past[t] = record[u64((position + begin - back) % kept) * p.channels];
                }
            }
            for (u32 i = begin; i < end; ++i) {
                past[kMostTaps - 1] = input(of.first + i, c);
                float sum = bias;
                AKUNU_UNROLL
                for (u32 t = 0; t < kMostTaps; ++t) {
                    if (kMostTaps - 1 - t < p.taps) sum = fmaf(w[t], past[t], sum);
                }
                b.buffer<float>(3)[u64(of.first + i) * p.channels + c] =
                    gate(of.first + i, c) * (p.activation ? activate(p.activation - 1, sum) : sum);
                AKUNU_UNROLL
                for (u32 t = 0; t + 2 < kMostTaps; ++t) past[t] = past[t + 1];
                past[kMostTaps - 2] = past[kMostTaps - 1];
            }
            if (begin != 0) continue;
            for (u32 i = of.rows - smaller(of.rows, kept); i < of.rows; ++i) {
                record[u64((position + i) % kept) * p.channels] = input(of.first + i, c);
            }
        }
    }
}

// Decays below this count as none: their products would be subnormal.
constexpr float kNoDecay = 1e-30f;

// A value head of a sequence, and 32 of its values, by a block; a lane of each warp has one of them. Sums over a head's
// keys go through kWarps parts of them, each in order, and then through the parts: so do all rows, whoever takes them.
//
// `qkv` gives its place to results that are not normalised yet: those of a head are complete only when the block that
// comes last of the head's blocks has come.
struct DeltaHead {
    static constexpr u32 kColumns = 32, kRows = kChunkRows, kEach = 4;  // rows of a warp at once
    static_assert(kRows == 32 && kRows == kWarps * kEach, "a lane for each row of a chunk, and all warps have as many");
    static constexpr u32 kWideKeys = 128;  // longer ones have no room for all rows of a chunk at once

    const Block b;
    const DeltaRuleParams& p;
    const DeltaRecord at;
    const u32 lane, warp;
    u32 sequence, head, key_head, column, first_row, n, position, from, to, slot;
    float* record;

    // Shared memory: keys [key_dim][key_stride] of the chunk's rows, what they wrote [kRows][kColumns], the state
    // [key_dim][kColumns], queries [rows at once][key_dim], factors of what rows wrote for u and for o
    // [rows at once][kRows], and for each row its beta, decay, and the product of decays up to it.
    u32 key_stride, at_once;
    float *keys, *written, *state, *queries, *for_u, *for_o, *beta, *decay, *since;

    AKUNU_DEVICE explicit DeltaHead(Block block)
        : b(block),
          p(block.params<DeltaRuleParams>()),
          at(delta_record(p.key_heads, p.value_heads, p.key_dim, p.value_dim)),
          lane(lane_id()),
          warp(warp_id()) {
        key_stride = p.key_dim <= kWideKeys ? kRows + 4 : kRows;
        at_once = p.key_dim <= kWideKeys ? kRows : kEach;
        float* next = reinterpret_cast<float*>(b.shared());
        const auto reserve = [&](u32 floats) {
            float* mine = next;
            next += floats;
            return mine;
        };
        keys = reserve(p.key_dim * key_stride);
        written = reserve(kRows * kColumns);
        state = reserve(p.key_dim * kColumns);
        queries = reserve(at_once * p.key_dim);
        for_u = reserve(at_once * kRows);
        for_o = reserve(at_once * kRows);
        beta = reserve(kRows);
        decay = reserve(kRows);
        since = reserve(kRows);
    }

    AKUNU_DEVICE u32 channels() const { return 2 * p.key_heads * p.key_dim + p.value_heads * p.value_dim; }
    AKUNU_DEVICE u32 col() const { return column * kColumns + lane; }
    AKUNU_DEVICE bool has_column() const { return col() < at.width; }
    // Of row r of the step.
    AKUNU_DEVICE const float* query_of(u32 r) const {
        return b.buffer<float>(0) + u64(first_row + r) * channels() + key_head * p.key_dim;
    }
    AKUNU_DEVICE const float* key_of(u32 r) const { return query_of(r) + p.key_heads * p.key_dim; }
    AKUNU_DEVICE float* values_of(u32 r) const {
        return b.buffer<float>(0) + u64(first_row + r) * channels() + 2 * p.key_heads * p.key_dim + head * p.value_dim;
    }
    // Of the record.
    AKUNU_DEVICE float* kept_state() const { return record + u64(head) * p.key_dim * at.width + col(); }
    AKUNU_DEVICE float* kept_written(u32 chunk) const {
        return record + at.written + u64(2 * head + chunk % 2) * kRows * at.width + col();
    }
    AKUNU_DEVICE float* kept_decays(u32 chunk) const { return record + at.decays + (2 * head + chunk % 2) * kRows; }
    AKUNU_DEVICE float* kept_keys(u32 chunk) const {
        return record + at.keys + u64(2 * key_head + chunk % 2) * p.key_dim * kRows;
    }
    AKUNU_DEVICE u32 part_keys() const { return (p.key_dim + kWarps - 1) / kWarps; }

    // By a warp: the factor that makes a vector of a head as long as `scale`.
    AKUNU_DEVICE float length_factor(const float* v, float scale) const {
        float squares = 0.0f;
        for (u32 d = lane; d < p.key_dim; d += 32) squares = fmaf(v[d], v[d], squares);
        return scale / sqrtf(reduce_warp(squares, Add()) + p.l2_eps);
    }
    AKUNU_DEVICE float beta_of(u32 r) const {
        const float x = b.buffer<float>(1)[u64(first_row + r) * 2 * p.value_heads + head];
        return 1.0f / (1.0f + expf(-x));
    }
    AKUNU_DEVICE float decay_of(u32 r) const { return decay_of(r, head); }
    AKUNU_DEVICE float decay_of(u32 r, u32 of) const {
        const float* constants = b.buffer<float>(3);
        const float x = b.buffer<float>(1)[u64(first_row + r) * 2 * p.value_heads + p.value_heads + of] +
                        constants[p.value_heads + of];
        return expf(constants[of] * (fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)))));
    }

    // By a warp: of the chunk's row `row` the product of decays since this lane's row, and of all up to it.
    AKUNU_DEVICE float decays_between(u32 row, float& all) const {
        float between = 0.0f;
        all = 1.0f;
        for (u32 i = 0; i <= row; ++i) {
            between *= decay[i];
            if (between < kNoDecay) between = 0.0f;
            if (lane == i) between = 1.0f;
            all *= decay[i];
            if (all < kNoDecay) all = 0.0f;
        }
        return between;
    }

    AKUNU_DEVICE void load_state(bool zeros) const {
        for (u32 d = warp; d < p.key_dim; d += kWarps) {
            state[d * kColumns + lane] = zeros || !has_column() ? 0.0f : kept_state()[u64(d) * at.width];
        }
    }
    // What the record has of the first rows of a chunk.
    AKUNU_DEVICE void load_rows(u32 chunk, u32 rows) const {
        for (u32 d = warp; d < p.key_dim; d += kWarps) {
            if (lane < rows) keys[d * key_stride + lane] = kept_keys(chunk)[d * kRows + lane];
        }
        for (u32 j = warp; j < rows; j += kWarps) {
            written[j * kColumns + lane] = has_column() ? kept_written(chunk)[j * at.width] : 0.0f;
        }
        if (warp == 0 && lane < rows) decay[lane] = kept_decays(chunk)[lane];
    }

    // The state behind the chunk whose rows are there, from that before it; kept where its rows count. Keys are not
    // there afterwards.
    AKUNU_DEVICE void end_chunk(bool counts) const {
        sync_block();
        float all;
        const float between = decays_between(kRows - 1, all);
        const u32 first = warp * part_keys(), end = smaller(first + part_keys(), p.key_dim);
        for (u32 d = first; d < end; ++d) keys[d * key_stride + lane] *= between;
        sync_warp();
        float u[kRows];
        AKUNU_UNROLL
        for (u32 j = 0; j < kRows; ++j) u[j] = written[j * kColumns + lane];
        for (u32 d = first; d < end; ++d) {
            float sum = all * state[d * kColumns + lane];
            AKUNU_UNROLL
            for (u32 j = 0; j < kRows; j += 4) {
                const float4 k = *reinterpret_cast<const float4*>(keys + d * key_stride + j);
                sum = fmaf(k.x, u[j], sum);
                sum = fmaf(k.y, u[j + 1], sum);
                sum = fmaf(k.z, u[j + 2], sum);
                sum = fmaf(k.w, u[j + 3], sum);
            }
            state[d * kColumns + lane] = sum;
            if (counts && has_column()) kept_state()[u64(d) * at.width] = sum;
        }
        sync_block();
    }

    // Rows [r0, r0 + rows) of the step, the first of which is row `first` of a chunk.
    AKUNU_DEVICE void run_rows(u32 chunk, u32 r0, u32 rows, u32 first) const {
        const u32 dim = p.key_dim;
        for (u32 r = warp; r < rows; r += kWarps) {
            const float *k = key_of(r0 + r), *q = query_of(r0 + r);
            const float k_factor = length_factor(k, 1.0f), q_factor = length_factor(q, p.scale);
            for (u32 d = lane; d < dim; d += 32) {
                keys[d * key_stride + first + r] = k[d] * k_factor;
                queries[r * dim + d] = q[d] * q_factor;
            }
        }
        if (warp == kWarps - 1 && lane < rows) {
            beta[lane] = beta_of(r0 + lane);
            decay[first + lane] = decay_of(r0 + lane);
        }
        sync_block();
        // A warp's rows: products of their keys and queries with the state, and with all keys of the chunk so far.
        const u32 mine = warp * kEach, have = mine < rows ? smaller(kEach, rows - mine) : 0;
        float u[kEach], o[kEach];
        if (have != 0) {
            float ks[kEach], qs[kEach], kk[kEach], qk[kEach];
            AKUNU_UNROLL
            for (u32 i = 0; i < kEach; ++i) ks[i] = qs[i] = kk[i] = qk[i] = 0.0f;
            const u32 last = first + rows - 1;
            for (u32 begin = 0; begin < dim; begin += part_keys()) {
                const u32 end = smaller(begin + part_keys(), dim);
                float sums[kEach][4] = {};
                for (u32 d = begin; d < end; ++d) {
                    const float s = state[d * kColumns + lane], k = keys[d * key_stride + lane];
                    AKUNU_UNROLL
                    for (u32 i = 0; i < kEach; ++i) {
                        const u32 row = smaller(mine + i, rows - 1);
                        const float own = keys[d * key_stride + first + row], q = queries[row * dim + d];
                        sums[i][0] = fmaf(own, s, sums[i][0]);
                        sums[i][1] = fmaf(q, s, sums[i][1]);
                        sums[i][2] = fmaf(own, k, sums[i][2]);
                        sums[i][3] = fmaf(q, k, sums[i][3]);
                    }
                }
                AKUNU_UNROLL
                for (u32 i = 0; i < kEach; ++i) {
                    ks[i] += sums[i][0];
                    qs[i] += sums[i][1];
                    kk[i] += sums[i][2];
                    qk[i] += sums[i][3];
                }
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < kEach; ++i) {
                const u32 row = first + smaller(mine + i, rows - 1);
                float all;
                const float between = decays_between(row, all);
                const bool before = lane <= row && lane <= last;  // behind it there may be no keys
                for_u[(mine + i) % at_once * kRows + lane] = before ? -(kk[i] * between) : 0.0f;
                for_o[(mine + i) % at_once * kRows + lane] = before ? qk[i] * between : 0.0f;
                const float v = col() < p.value_dim ? values_of(r0 + row - first)[col()] : 0.0f;
                u[i] = fmaf(-all, ks[i], v);
                o[i] = all * qs[i];
            }
            sync_warp();
            // What rows of the chunk that were there before have written.
            for (u32 j = 0; j < first; ++j) {
                const float w = written[j * kColumns + lane];
                AKUNU_UNROLL
                for (u32 i = 0; i < kEach; ++i) {
                    u[i] = fmaf(for_u[(mine + i) % at_once * kRows + j], w, u[i]);
                    o[i] = fmaf(for_o[(mine + i) % at_once * kRows + j], w, o[i]);
                }
            }
        }
        // Warp after warp: each row's u, then what it is to the rows behind it.
        for (u32 turn = 0; turn * kEach < rows; ++turn) {
            const u32 theirs = smaller(kEach, rows - turn * kEach);
            if (warp == turn) {
                AKUNU_UNROLL
                for (u32 i = 0; i < kEach; ++i) {
                    if (i >= have) continue;
                    const u32 j = first + mine + i;
                    const float w = beta[mine + i] * u[i];
                    written[j * kColumns + lane] = w;
                    if (has_column()) kept_written(chunk)[j * at.width] = w;
                    AKUNU_UNROLL
                    for (u32 later = i; later < kEach; ++later) {
                        if (later > i) u[later] = fmaf(for_u[(mine + later) % at_once * kRows + j], w, u[later]);
                        o[later] = fmaf(for_o[(mine + later) % at_once * kRows + j], w, o[later]);
                    }
                }
            }
            sync_block();
            if (warp > turn && have != 0) {
                for (u32 i = 0; i < theirs; ++i) {
                    const u32 j = first + turn * kEach + i;
                    const float w = written[j * kColumns + lane];
                    AKUNU_UNROLL
                    for (u32 k = 0; k < kEach; ++k) {
                        u[k] = fmaf(for_u[(mine + k) % at_once * kRows + j], w, u[k]);
                        o[k] = fmaf(for_o[(mine + k) % at_once * kRows + j], w, o[k]);
                    }
                }
            }
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) {
            if (i < have && col() < p.value_dim) values_of(r0 + mine + i)[col()] = o[i];
        }
        sync_block();
    }

    // One row, which ends no chunk: warps share its products.
    AKUNU_DEVICE void run_one(u32 chunk, u32 row) const {
        const u32 dim = p.key_dim;
        float* k_one = keys;  // that row's key, query, and the warps' parts
        float* q_one = k_one + dim;
        float* parts = q_one + dim;
        const u32 begin = warp * part_keys(), end = smaller(begin + part_keys(), dim);
        const float* past = kept_keys(chunk);
        const float* before = kept_state();
        constexpr u32 kAhead = 16;
        const bool zeros = chunk == 0 || !has_column();
        float s[kAhead], k[kAhead];
        AKUNU_UNROLL
        for (u32 i = 0; i < kAhead; ++i) {
            const u32 d = begin + i;
            s[i] = d < end && !zeros ? before[u64(d) * at.width] : 0.0f;
            k[i] = d < end && lane < row ? past[d * kRows + lane] : 0.0f;
        }
        if (warp < 2) {
            const float* from_row = warp == 0 ? key_of(0) : query_of(0);
            const float factor = length_factor(from_row, warp == 0 ? 1.0f : p.scale);
            float* to_row = warp == 0 ? k_one : q_one;
            for (u32 d = lane; d < dim; d += 32) to_row[d] = from_row[d] * factor;
        }
        if (warp == 2) {
            if (lane < row) decay[lane] = kept_decays(chunk)[lane];
            if (lane == row) decay[lane] = decay_of(0);
            if (lane == 0) beta[0] = beta_of(0);
        }
        sync_block();
        float sums[4] = {};
        const auto add = [&](float own, float q, float state_at, float key_at) {
            sums[0] = fmaf(own, state_at, sums[0]);
            sums[1] = fmaf(q, state_at, sums[1]);
            sums[2] = fmaf(own, key_at, sums[2]);
            sums[3] = fmaf(q, key_at, sums[3]);
        };
        AKUNU_UNROLL
        for (u32 i = 0; i < kAhead; ++i) {
            const u32 d = begin + i;
            if (d < end) add(k_one[d], q_one[d], s[i], lane == row ? k_one[d] : k[i]);
        }
        for (u32 d = begin + kAhead; d < end; ++d) {
            const float at_d = zeros ? 0.0f : before[u64(d) * at.width];
            const float key = lane < row ? past[d * kRows + lane] : 0.0f;
            add(k_one[d], q_one[d], at_d, lane == row ? k_one[d] : key);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) parts[(warp * 4 + i) * 32 + lane] = sums[i];
        sync_block();
        if (warp == 0) {
            float all, total[4] = {};
            for (u32 w = 0; w * part_keys() < dim; ++w) {
                AKUNU_UNROLL
                for (u32 i = 0; i < 4; ++i) total[i] += parts[(w * 4 + i) * 32 + lane];
            }
            const float between = decays_between(row, all);
            for_u[lane] = lane <= row ? -(total[2] * between) : 0.0f;
            for_o[lane] = lane <= row ? total[3] * between : 0.0f;
            sync_warp();
            const float v = col() < p.value_dim ? values_of(0)[col()] : 0.0f;
            float u = fmaf(-all, total[0], v), o = all * total[1];
            const float* wrote = kept_written(chunk);
            AKUNU_UNROLL_EIGHT
            for (u32 j = 0; j < row; ++j) {
                const float w = has_column() ? wrote[j * at.width] : 0.0f;
                u = fmaf(for_u[j], w, u);
                o = fmaf(for_o[j], w, o);
            }
            const float w = beta[0] * u;
            o = fmaf(for_o[row], w, o);
            if (has_column()) kept_written(chunk)[row * at.width] = w;
            if (col() < p.value_dim) values_of(0)[col()] = o;
        }
    }

    // What others need of the step's rows [r0, n): those of key head and value head that no column has of its own.
    AKUNU_DEVICE void keep_keys(u32 r0) const {
        for (u32 r = r0 + warp; r < n; r += kWarps) {
            const u32 at_row = position + r;
            const float* k = key_of(r);
            const float factor = length_factor(k, 1.0f);
            float* to_keys = kept_keys(at_row / kRows) + at_row % kRows;
            for (u32 d = lane; d < p.key_dim; d += 32) to_keys[d * kRows] = k[d] * factor;
        }
    }
    AKUNU_DEVICE void keep_decays(u32 r0, u32 of) const {
        for (u32 r = r0 + thread_id(); r < n; r += kThreads) {
            const u32 at_row = position + r;
            record[at.decays + (2 * of + at_row / kRows % 2) * kRows + at_row % kRows] = decay_of(r, of);
        }
    }

    // rms_norm(o)·norm·silu(z) of the head's rows, a warp each.
    AKUNU_DEVICE void finish() const {
        const Output out{b.buffer<float>(5), b.buffer<u16>(6), p.formats};
        const float* norm = b.buffer<float>(3) + 2 * p.value_heads;
        const u32 all = p.value_heads * p.value_dim;
        for (u32 r = warp; r < n; r += kWarps) {
            const float* o = values_of(r);
            const u64 to_row = u64(first_row + r) * all + head * p.value_dim;
            const float* z = b.buffer<float>(2) + to_row;
            float squares = 0.0f;
            for (u32 i = lane; i < p.value_dim; i += 32) {
                const float v = load_fresh(o + i);
                squares = fmaf(v, v, squares);
            }
            const float factor = 1.0f / sqrtf(reduce_warp(squares, Add()) / float(p.value_dim) + p.norm_eps);
            for (u32 i = lane; i < p.value_dim; i += 32) {
                out.store(to_row + i, load_fresh(o + i) * factor * norm[i] * activate(kActSilu, z[i]));
            }
        }
    }

    AKUNU_DEVICE void run() const {
        u32 chunk = from / kRows;
        const u32 first = position % kRows, now = position / kRows;
        // Where a step goes beyond the chunk that it begins in, other blocks may still read what its rows would
        // overwrite.
        const bool crosses = first + n > kRows;
        if (!crosses) {
            if (column == 0) keep_decays(0, head);
            if (column == 0 && first_of_key_head()) keep_keys(0);
        }
        if (n == 1 && chunk == now && first + 1 < kRows) return run_one(chunk, first);
        load_state(chunk == 0);
        for (; chunk < now; ++chunk) {
            load_rows(chunk, kRows);
            end_chunk(true);
        }
        load_rows(chunk, first);
        sync_block();
        for (u32 r = 0; r < n;) {
            const u32 at_row = (position + r) % kRows, rows = smaller(smaller(n - r, kRows - at_row), at_once);
            run_rows(chunk, r, rows, at_row);
            r += rows;
            if (at_row + rows < kRows) continue;
            end_chunk(++chunk * kRows <= to);
        }
    }
    // Value heads of a key head, and which of them this is.
    AKUNU_DEVICE u32 group() const { return p.value_heads / p.key_heads; }
    AKUNU_DEVICE bool first_of_key_head() const { return p.grouped ? head % group() == 0 : head < p.key_heads; }
    AKUNU_DEVICE u32 head_of_group(u32 i) const {
        return p.grouped ? key_head * group() + i : i * p.key_heads + key_head;
    }
};

AKUNU_DEVICE_CALL void delta_rule(Block b) {
    const auto& p = b.params<DeltaRuleParams>();
    const Row* where = b.buffer<Row>(7);
    const Sequences sequences{where, p.rows};
    DeltaHead h(b);
    const u32 columns = (h.at.width + DeltaHead::kColumns - 1) / DeltaHead::kColumns;
    const u32 of_sequence = p.value_heads * columns, n_sequences = sequences.count();
    for (u32 u = b.first(); u < n_sequences * of_sequence; u += b.blocks()) {
        h.sequence = u / of_sequence;
        h.head = u % of_sequence / columns;
        h.column = u % columns;
        h.key_head = p.grouped ? h.head / h.group() : h.head % p.key_heads;
        const SequenceRows of = sequences.at(h.sequence);
        const Row row = where[of.first];
        h.slot = row.slot;
        if (b.buffer<SlotState>(9)[h.slot].stopped) continue;  // the rest of a chain is of other sequences
        h.first_row = of.first;
        h.n = of.rows;
        h.position = row.position + p.step;
        const StateSpan span = b.buffer<StateSpan>(8)[h.slot];
        h.from = p.step ? h.position : span.from;
        h.to = span.to + p.step;
        h.record = b.buffer<float>(4) + u64(h.slot) * p.state_words;
        sync_block();
        h.run();
        u32* tickets = b.grid()->groups + h.sequence * (p.value_heads + p.key_heads);
        if (comes_last(tickets[h.head], columns)) h.finish();
        if (h.position % kChunkRows + h.n <= kChunkRows) continue;
        if (!comes_last(tickets[p.value_heads + h.key_head], columns * h.group())) continue;
        // Nobody reads the record any more: rows of the last two chunks.
        const u32 last = (h.position + h.n - 1) / kChunkRows * kChunkRows, least = last - smaller(last, kChunkRows);
        const u32 r0 = least - smaller(least, h.position);
        h.keep_keys(r0);
        for (u32 i = 0; i < h.group(); ++i) h.keep_decays(r0, h.head_of_group(i));
    }
}

}  // namespace akunu::cuda
