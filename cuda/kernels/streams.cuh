// Several residual streams (AltUp), sums of rows, and gates of which most become 0.
#pragma once

#include "activation.cuh"
#include "rows.cuh"

namespace akunu::cuda {

AKUNU_DEVICE_CALL void add_rows(Block b) {
    const auto& p = b.params<AddRowsParams>();
    const float *x = b.buffer<float>(0), *like = b.buffer<float>(1);
    float* y = b.buffer<float>(2);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const float* in = x + u64(r) * p.dim;
        float* out = y + u64(r) * p.dim;
        float scale = p.scale;
        if (p.matched) {
            const float square = mean_square(b, in, p.dim);
            scale *= sqrtf(mean_square(b, like + u64(r) * p.dim, p.dim) / (square < p.floor ? p.floor : square));
        }
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            out[i] = p.accumulate ? out[i] + in[i] * scale : in[i] * scale;
        }
    }
}

AKUNU_DEVICE_CALL void mix_streams(Block b) {
    const auto& p = b.params<MixStreamsParams>();
    float *streams = b.buffer<float>(0), *hidden = b.buffer<float>(1);
    const float *gates = b.buffer<float>(2), *weights = b.buffer<float>(3), *scales = b.buffer<float>(4);
    const u32 n = p.streams, parts = (p.dim + kThreads - 1) / kThreads;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 row = u / parts, i = u % parts * kThreads + thread_id();
        if (i >= p.dim) continue;
        float gate[kMostStreams], was[kMostStreams];
        float active = 0.0f;
        AKUNU_UNROLL
        for (u32 k = 0; k < kMostStreams; ++k) {
            gate[k] = k < n ? tanhf(gates[u64(row) * n + k]) : 0.0f;
            was[k] = k < n ? streams[u64(k) * p.stride + u64(row) * p.dim + i] : 0.0f;
            if (k == p.active) active = was[k];
        }
        float& h = hidden[u64(row) * p.dim + i];
        const float made = h - active;
        const auto factor = [&](u32 at) {
            float sum = 0.0f;
            AKUNU_UNROLL
            for (u32 k = 0; k < kMostStreams; ++k) {
                if (k < n) sum += weights[at * n + k] * gate[k];
            }
            return sum;
        };
        AKUNU_UNROLL
        for (u32 j = 0; j < kMostStreams; ++j) {
            if (j >= n) continue;
            float sum = was[j];
            if (p.correct) {
                sum += made * (1.0f + factor(j));
            } else {
                AKUNU_UNROLL
                for (u32 k = 0; k < kMostStreams; ++k) {
                    if (k < n) sum += was[k] * factor(j * n + k);
                }
            }
            streams[u64(j) * p.stride + u64(row) * p.dim + i] = sum;
            if (j == p.active) h = p.scaled ? sum * scales[i] : sum;
        }
    }
}

AKUNU_DEVICE_CALL void sparsify(Block b) {
    const auto& p = b.params<SparsifyParams>();
    float* x = b.buffer<float>(0);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        float* row = x + u64(r) * p.n;
        float sum = 0.0f;
        for (u32 i = thread_id(); i < p.n; i += kThreads) sum += row[i];
        const float mean = reduce_block(b, sum, Add()) / float(p.n);
        const float cut = p.deviations * sqrtf(mean_square(b, row, p.n, mean));
        for (u32 i = thread_id(); i < p.n; i += kThreads) {
            const float v = row[i] - mean - cut;
            row[i] = v > 0.0f ? v : 0.0f;
        }
    }
}

}  // namespace akunu::cuda
