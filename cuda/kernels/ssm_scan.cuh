// Mamba-2: the scan in chunks of kChunkRows rows that are counted from a sequence's position 0 (docs/architecture.md),
// and the norm behind it.
#pragma once

#include "activation.cuh"
#include "rows.cuh"
#include "sequences.cuh"

namespace akunu::cuda {

// A block of heads of a sequence, which share B and C, by a block of threads: rows one after the other, so that a
// sequence's bits are the same whatever the step. A thread has some of a head's values.
//
// Of rows that may be refused the state behind a chunk is kept nowhere: those of the next chunk work out its elements
// where they need them.
struct SsmHeads {
    static constexpr u32 kRows = kChunkRows, kMostState = 256;
    static constexpr float kNothing = 1e-30f;  // decays below this count as none

    const Block b;
    const SsmScanParams& p;
    const DeltaRecord at;
    const u32 values, channels, size;
    // Shared memory: C of the row, its products with the chunk's keys, the factors of what rows of the chunk wrote,
    // decays since each row of the chunk before, and the products of all decays, of both, and the row's step.
    float *c, *dots, *factors, *between, *rest;
    u32 block;
    float* record;

    AKUNU_DEVICE explicit SsmHeads(Block of)
        : b(of),
          p(of.params<SsmScanParams>()),
          at(delta_record(p.blocks, p.heads, p.state_dim, p.head_dim)),
          values(p.heads * p.head_dim),
          channels(values + 2 * p.groups * p.state_dim),
          size(p.heads / p.blocks) {
        float* next = reinterpret_cast<float*>(of.shared());
        const auto reserve = [&](u32 floats) {
            float* mine = next;
            next += floats;
            return mine;
        };
        c = reserve(kMostState);
        dots = reserve(kRows);
        factors = reserve(kRows);
        between = reserve(kRows);
        rest = reserve(3);
    }

    AKUNU_DEVICE float* state(u32 head) const { return record + u64(head) * p.state_dim * at.width; }
    AKUNU_DEVICE float* written(u32 head, u32 chunk) const {
        return record + at.written + u64(2 * head + chunk % 2) * kRows * at.width;
    }
    AKUNU_DEVICE float* decays(u32 head, u32 chunk) const {
        return record + at.decays + (2 * head + chunk % 2) * kRows;
    }
    AKUNU_DEVICE float* keys(u32 chunk) const {
        return record + at.keys + u64(2 * block + chunk % 2) * p.state_dim * kRows;
    }

    // The product of decays since row j of a chunk up to row `row`, and in `all` that of all up to it.
    AKUNU_DEVICE static float decays_between(const float* decay, u32 row, u32 j, float& all) {
        float product = 0.0f;
        all = 1.0f;
        for (u32 i = 0; i <= row; ++i) {
            product *= decay[i];
            if (product < kNothing) product = 0.0f;
            if (i == j) product = 1.0f;
            all *= decay[i];
            if (all < kNothing) all = 0.0f;
        }
        return product;
    }
    // An element of a state behind a chunk, from that before it.
    AKUNU_DEVICE float behind(float before, const float* key, const float* wrote, float all) const {
        float sum = all * before;
        for (u32 j = 0; j < kRows; ++j) sum = fmaf(key[j] * between[j], wrote[u64(j) * at.width], sum);
        return sum;
    }
    // By all threads: `between` and the product of all decays of a head's whole chunk.
    AKUNU_DEVICE void load_decays(u32 head, u32 chunk) const {
        if (thread_id() < kRows) {
            float all;
            between[thread_id()] = decays_between(decays(head, chunk), kRows - 1, thread_id(), all);
            if (thread_id() == 0) rest[1] = all;
        }
    }

    AKUNU_DEVICE void end_chunk(u32 chunk) const {
        for (u32 h = 0; h < size; ++h) {
            const u32 head = block * size + h;
            sync_block();
            load_decays(head, chunk);
            sync_block();
            float* s = state(head);
            const float *k = keys(chunk), *wrote = written(head, chunk);
            for (u32 i = thread_id(); i < p.state_dim * at.width; i += kThreads) {
                s[i] = behind(chunk != 0 ? s[i] : 0.0f, k + i / at.width * kRows, wrote + i % at.width, rest[1]);
            }
        }
    }

    // Row r of the step, which is `row` of a chunk; the states are those behind `done` chunks.
    AKUNU_DEVICE void run_row(u64 r, u32 chunk, u32 row, u32 done) const {
        const u32 dim = p.state_dim;
        const float* xbc = b.buffer<float>(0) + r * channels;
        const float* key = xbc + values + block / (p.blocks / p.groups) * dim;
        const float* constants = b.buffer<float>(2);
        float* kept = keys(chunk);
        sync_block();
        for (u32 d = thread_id(); d < dim; d += kThreads) {
            c[d] = key[u64(p.groups) * dim + d];
            kept[d * kRows + row] = key[d];
        }
        sync_block();
        if (thread_id() < kRows) {
            float sum = 0.0f;
            for (u32 d = 0; d < dim && thread_id() <= row; ++d) sum = fmaf(c[d], kept[d * kRows + thread_id()], sum);
            dots[thread_id()] = sum;
        }
        const bool pending = done < chunk;  // the state behind the chunk before is kept nowhere
        for (u32 h = 0; h < size; ++h) {
            const u32 head = block * size + h;
            sync_block();
            if (thread_id() == 0) {
                const float x = b.buffer<float>(1)[r * p.heads + head] + constants[p.heads + head];
                const float step = fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
                rest[2] = step;
                decays(head, chunk)[row] = expf(constants[head] * step);
            }
            sync_block();
            if (thread_id() < kRows) {
                float all;
                const float product = decays_between(decays(head, chunk), row, thread_id(), all);
                factors[thread_id()] = thread_id() <= row ? dots[thread_id()] * product : 0.0f;
                if (thread_id() == 0) rest[0] = all;
            }
            if (pending) load_decays(head, done);
            sync_block();
            const float step = rest[2], d_of = constants[2 * p.heads + head];
            const float *s = state(head), *keys_before = keys(done), *wrote_before = written(head, done);
            float* wrote = written(head, chunk);
            for (u32 v = thread_id(); v < at.width; v += kThreads) {
                float o = 0.0f;
                for (u32 d = 0; d < dim && chunk != 0; ++d) {
                    float element = done != 0 ? s[u64(d) * at.width + v] : 0.0f;
                    if (pending) element = behind(element, keys_before + d * kRows, wrote_before + v, rest[1]);
                    o = fmaf(c[d], element, o);
                }
                o = rest[0] * o;
                for (u32 j = 0; j < row; ++j) o = fmaf(factors[j], wrote[u64(j) * at.width + v], o);
                const float x = v < p.head_dim ? xbc[head * p.head_dim + v] : 0.0f;
                wrote[u64(row) * at.width + v] = step * x;
                o = fmaf(factors[row], step * x, o);
                if (v < p.head_dim) b.buffer<float>(4)[r * values + head * p.head_dim + v] = fmaf(d_of, x, o);
            }
        }
    }
};

AKUNU_DEVICE_CALL void ssm_scan(Block b) {
    const auto& p = b.params<SsmScanParams>();
    const Row* where = b.buffer<Row>(5);
    const Sequences sequences{where, p.rows};
    SsmHeads heads(b);
    const u32 n_sequences = sequences.count();
    for (u32 u = b.first(); u < n_sequences * p.blocks; u += b.blocks()) {
        const SequenceRows of = sequences.at(u / p.blocks);
        const Row first = where[of.first];
        if (b.buffer<SlotState>(7)[first.slot].stopped) continue;  // the rest of a chain is of other sequences
        const StateSpan span = b.buffer<StateSpan>(6)[first.slot];
        const u32 position = first.position + p.step, from = p.step ? position : span.from, to = span.to + p.step;
        heads.block = u % p.blocks;
        heads.record = b.buffer<float>(3) + u64(first.slot) * p.state_words;
        u32 done = from / kChunkRows;
        for (u32 r = 0;; ++r) {
            // The chunk of the next row; behind the last one there is none, but its chunk may have ended.
            const u32 row = position + r, chunk = row / kChunkRows;
            for (; done < chunk && (done + 1) * kChunkRows <= to; ++done) heads.end_chunk(done);
            if (r == of.rows) break;
            heads.run_row(u64(of.first) + r, chunk, row % kChunkRows, done);
        }
        sync_block();
    }
}

// A block takes a group of a row.
AKUNU_DEVICE_CALL void gated_norm(Block b) {
    const auto& p = b.params<GatedNormParams>();
    const float *x = b.buffer<float>(0), *gate = b.buffer<float>(1), *weight = b.buffer<float>(2);
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    for (u32 u = b.first(); u < p.rows * p.groups; u += b.blocks()) {
        const u64 first = u64(u) * p.dim;
        const float* weights = weight + u64(u % p.groups) * p.dim;
        const auto gated = [&](u32 i) { return x[first + i] * activate(kActSilu, gate[first + i]); };
        float sum = 0.0f;
        for (u32 i = thread_id(); i < p.dim; i += kThreads) sum = fmaf(gated(i), gated(i), sum);
        const float scale = 1.0f / sqrtf(reduce_block(b, sum, Add()) / float(p.dim) + p.eps);
        for (u32 i = thread_id(); i < p.dim; i += kThreads) out.store(first + i, gated(i) * scale * weights[i]);
    }
}

}  // namespace akunu::cuda
