// Rows in, rows out: embedding, norms, formats, gates; what encoders have besides.
#pragma once

#include "activation.cuh"
#include "formats.cuh"

namespace akunu::cuda {

template <typename F>
AKUNU_DEVICE_CALL void embed(Block b) {
    const auto& p = b.params<EmbedParams>();
    const u32* history = b.buffer<u32>(0);
    float* hidden = b.buffer<float>(2);
    const Row* rows = b.buffer<Row>(3);
    const Weights w = weights_of(b.command().weights[0], p.dim);
    const u32 groups = (p.dim + 31) / 32, parts = (groups + kThreads - 1) / kThreads;
    const bool adds = p.accumulate != 0;  // looked up once: behind each store it would be looked up again
    const float scale = p.scale;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 r = u / parts, group = u % parts * kThreads + thread_id();
        const Row row = rows[r];
        const u32 token = history[u64(row.slot) * p.history_stride + row.position + p.step];
        const u32 id = token < p.vocab ? token : 0;
        if (group >= groups) continue;
        Group g;
        F::load(w, id, group, g);
        float* out = hidden + u64(r) * p.dim + group * 32;
        const auto value = [&](int i) { return mul_rn(value_of<F>(g, i), scale); };
        if (p.dim % 32 == 0) {
            AKUNU_UNROLL
            for (int i = 0; i < 32; i += 4) {
                float4& to = *reinterpret_cast<float4*>(out + i);
                float4 v = {value(i), value(i + 1), value(i + 2), value(i + 3)};
                if (adds) v = {to.x + v.x, to.y + v.y, to.z + v.z, to.w + v.w};
                to = v;
            }
            continue;
        }
        AKUNU_UNROLL
        for (int i = 0; i < 32; ++i) {
            if (group * 32 + i < p.dim) out[i] = adds ? out[i] + value(i) : value(i);
        }
    }
}

AKUNU_DEVICE_CALL void embed_position(Block b) {
    const auto& p = b.params<EmbedPositionParams>();
    const float *positions = b.buffer<float>(0), *kinds = b.buffer<float>(1);
    float* hidden = b.buffer<float>(2);
    const Row* rows = b.buffer<Row>(3);
    const u32* row_kinds = b.buffer<u32>(4);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const u64 position = smaller(rows[r].position + p.step, p.positions - 1);
        const u64 kind = p.kinds ? smaller(row_kinds[r], p.kinds - 1) : 0;
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            float v = hidden[u64(r) * p.dim + i];
            if (p.positions) v += positions[position * p.dim + i];
            if (p.kinds) v += kinds[kind * p.dim + i];
            hidden[u64(r) * p.dim + i] = v;
        }
    }
}

// Rows that an encoder made, in the place of those of tokens, or added to them.
AKUNU_DEVICE_CALL void insert_rows(Block b) {
    const auto& p = b.params<InsertRowsParams>();
    float* hidden = b.buffer<float>(0);
    const float* encoded = b.buffer<float>(1);
    const u32* sources = b.buffer<u32>(2);
    if (p.step != 0) return;
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const u32 source = sources[r];
        if (source == kNoSource) continue;
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            const float v = encoded[u64(source) * p.width + p.offset + i];
            float& h = hidden[u64(r) * p.dim + i];
            h = p.accumulate ? h + v : v;
        }
    }
}

// y = min(max(x·scale + bias, low), high)
AKUNU_DEVICE_CALL void affine(Block b) {
    const auto& p = b.params<AffineParams>();
    const float *x = b.buffer<float>(0), *scale = b.buffer<float>(1), *bias = b.buffer<float>(2);
    float* y = b.buffer<float>(3);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            float value = x[u64(r) * p.dim + i];
            if (p.has_scale) value *= scale[i];
            if (p.has_bias) value += bias[i];
            y[u64(r) * p.dim + i] = fminf(fmaxf(value, p.low), p.high);
        }
    }
}

AKUNU_DEVICE_CALL void rope_table(Block b) {
    const auto& p = b.params<RopeTableParams>();
    const float* inv_freq = b.buffer<float>(0);
    float* out = b.buffer<float>(1);
    const Row* rows = b.buffer<Row>(2);
    const u32 *axes = b.buffer<u32>(3), *positions = b.buffer<u32>(4);
    const u64 n = u64(p.rows) * p.half_dim;
    for (u64 u = u64(b.first()) * kThreads + thread_id(); u < n; u += u64(b.blocks()) * kThreads) {
        const u64 row = u / p.half_dim;
        const u32 i = u % p.half_dim;
        const u32 position = (p.axes ? positions[row * kPositionAxes + axes[i]] : rows[row].position) + p.step;
        const float angle = float(position) * inv_freq[i];
        float scale = p.scale;
        if (p.temperature_length) scale *= 1.0f + p.temperature * logf(1.0f + float(position / p.temperature_length));
        out[2 * u] = cosf(angle) * scale;
        out[2 * u + 1] = sinf(angle) * scale;
    }
}

// The mean of the squares of a row, or of its distances from `mean`.
AKUNU_DEVICE float mean_square(Block b, const float* x, u32 dim, float mean = 0.0f) {
    float sum = 0.0f;
    for (u32 i = thread_id(); i < dim; i += kThreads) sum += (x[i] - mean) * (x[i] - mean);
    return reduce_block(b, sum, Add()) / float(dim);
}

AKUNU_DEVICE float rms_scale(Block b, const float* x, u32 dim, float eps, float mean = 0.0f) {
    return 1.0f / sqrtf(mean_square(b, x, dim, mean) + eps);
}

// A part of a row, which a thread has all at once.
template <u32 kOf = 16>
struct RowPart {
    static constexpr u32 kEach = kOf, kInputs = kThreads * kEach;
    float v[kEach];
    AKUNU_DEVICE void load(const float* x, u32 first, u32 n) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) {
            const u32 at = first + i * kThreads + thread_id();
            v[i] = at < n ? x[at] : 0.0f;
        }
    }
};

// A part of a row that a warp has all at once, four elements after the other in a lane.
template <u32 kParts>
struct WarpPart {
    static constexpr u32 kEach = kParts, kApart = 128, kInputs = kEach * kApart;
    float4 v[kEach];
    AKUNU_DEVICE void load(const float* x, u32 first, u32 n) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kEach; ++i) {
            const u32 at = first + i * kApart + lane_id() * 4;
            v[i] = at < n ? *reinterpret_cast<const float4*>(x + at) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        }
    }
};

// Rows of which there are more than blocks: a warp takes one. The second time a row comes from the first-level cache.
AKUNU_DEVICE void norm_by_warps(Block b, const NormParams& p, const float* x, const float* norms, const u32* gathered,
                                const Output& out) {
    for (u32 r = b.first() * kWarps + warp_id(); r < p.rows; r += b.blocks() * kWarps) {
        const float* in = x + u64(p.gather ? gathered[r] : r) * p.dim;
        float sum = 0.0f;
        using Squares = WarpPart<8>;
        AKUNU_NO_UNROLL
        for (u32 first = 0; first < p.dim; first += Squares::kInputs) {
            Squares row;
            row.load(in, first, p.dim);
            AKUNU_UNROLL
            for (u32 i = 0; i < Squares::kEach; ++i) {
                const float4& v = row.v[i];
                sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
            }
        }
        const float scale = 1.0f / sqrtf(reduce_warp(sum, Add()) / float(p.dim) + p.eps);
        using Part = WarpPart<4>;
        AKUNU_NO_UNROLL
        for (u32 first = 0; first < p.dim; first += Part::kInputs) {
            Part row, weight;
            row.load(in, first, p.dim);
            weight.load(norms, first, p.dim);
            AKUNU_UNROLL
            for (u32 i = 0; i < Part::kEach; ++i) {
                const u32 at = first + i * Part::kApart + lane_id() * 4;
                const float4 &v = row.v[i], &w = weight.v[i];
                if (at >= p.dim) continue;
                out.store4(u64(r) * p.dim + at,
                           {v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w});
            }
        }
    }
}

// The weights' first part is read while the block waits.
AKUNU_DEVICE_CALL void norm(Block b) {
    const auto& p = b.params<NormParams>();
    const float *x = b.buffer<float>(0), *norms = b.buffer<float>(1);
    const Output out{b.buffer<float>(2), b.buffer<u16>(3), p.formats};
    const u32* gathered = b.buffer<u32>(4);
    if (p.rows > b.blocks() && p.dim % 4 == 0) {
        b.wait();
        return norm_by_warps(b, p, x, norms, gathered, out);
    }
    using Part = RowPart<>;
    Part row, weight;
    weight.load(norms, 0, b.first() < p.rows ? p.dim : 0);
    b.wait();
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const float* in = x + u64(p.gather ? gathered[r] : r) * p.dim;
        float sum = 0.0f;
        for (u32 first = 0; first < p.dim; first += Part::kInputs) {
            row.load(in, first, p.dim);
            AKUNU_UNROLL
            for (u32 i = 0; i < Part::kEach; ++i) sum += row.v[i] * row.v[i];
        }
        const float scale = 1.0f / sqrtf(reduce_block(b, sum, Add()) / float(p.dim) + p.eps);
        for (u32 first = 0; first < p.dim; first += Part::kInputs) {
            if (p.dim > Part::kInputs) {
                row.load(in, first, p.dim);
                weight.load(norms, first, p.dim);
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < Part::kEach; ++i) {
                const u32 at = first + i * kThreads + thread_id();
                if (at < p.dim) out.store(u64(r) * p.dim + at, row.v[i] * scale * weight.v[i]);
            }
        }
    }
}

// h = (h + norm(x))·sum_scale
AKUNU_DEVICE_CALL void norm_add(Block b) {
    const auto& p = b.params<NormParams>();
    const float *x = b.buffer<float>(0), *weight = b.buffer<float>(1);
    float* hidden = b.buffer<float>(2);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const float* in = x + u64(r) * p.dim;
        const float scale = rms_scale(b, in, p.dim, p.eps);
        float* out = hidden + u64(r) * p.dim;
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            out[i] = (out[i] + in[i] * scale * weight[i]) * p.sum_scale;
        }
    }
}

// See NormSumsParams: one block. The weights are read while it waits.
AKUNU_DEVICE_CALL void norm_sums(Block b) {
    using Part = RowPart<kMostNormSums / kThreads>;
    const auto& p = b.params<NormSumsParams>();
    const u32 dim = b.first() == 0 ? p.dim : 0;
    Part sum, row, stream, norms[3];
    AKUNU_UNROLL
    for (u32 i = 0; i < 3; ++i) norms[i].load(b.buffer<float>(2 * i + 1), 0, dim);
    b.wait();
    if (dim == 0) return;
    sum.load(b.buffer<float>(0), 0, dim);
    row.load(b.buffer<float>(2), 0, dim);
    stream.load(b.buffer<float>(4), 0, dim);
    const auto scale_of = [&](const Part& of, float eps) {
        float squares = 0.0f;
        AKUNU_UNROLL
        for (u32 i = 0; i < Part::kEach; ++i) squares += of.v[i] * of.v[i];
        return 1.0f / sqrtf(reduce_block(b, squares, Add()) / float(dim) + eps);
    };
    const auto add = [&](Part& to, const Part& of, float scale, const Part& norm, float sum_scale) {
        AKUNU_UNROLL
        for (u32 i = 0; i < Part::kEach; ++i) to.v[i] = (to.v[i] + of.v[i] * scale * norm.v[i]) * sum_scale;
    };
    const float first = scale_of(sum, p.eps[0]), second = scale_of(row, p.eps[1]);
    AKUNU_UNROLL
    for (u32 i = 0; i < Part::kEach; ++i) sum.v[i] = sum.v[i] * first * norms[0].v[i];
    add(sum, row, second, norms[1], p.sum_scale[0]);
    add(stream, sum, scale_of(sum, p.eps[2]), norms[2], p.sum_scale[1]);
    AKUNU_UNROLL
    for (u32 i = 0; i < Part::kEach; ++i) {
        const u32 at = i * kThreads + thread_id();
        if (at < dim) b.buffer<float>(4)[at] = stream.v[i];
    }
}

// Rows of which there are more than blocks, as `norm_by_warps` has them.
AKUNU_DEVICE void layer_norm_by_warps(Block b, const LayerNormParams& p, const float* x, const float* weights,
                                      const float* biases, const u32* gathered, const Output& out) {
    using Part = WarpPart<4>;
    const bool has_bias = p.has_bias != 0;  // looked up once: behind each store it would be looked up again
    const u32 dim = p.dim;
    for (u32 r = b.first() * kWarps + warp_id(); r < p.rows; r += b.blocks() * kWarps) {
        const float* in = x + u64(p.gather ? gathered[r] : r) * dim;
        // The sum over a row of what `of` makes of four elements.
        const auto sum_of = [&](auto&& of) {
            float sum = 0.0f;
            AKUNU_NO_UNROLL
            for (u32 first = 0; first < dim; first += Part::kInputs) {
                Part row;
                row.load(in, first, dim);
                AKUNU_UNROLL
                for (u32 i = 0; i < Part::kEach; ++i) {
                    if (first + i * Part::kApart + lane_id() * 4 < dim) sum += of(row.v[i]);
                }
            }
            return reduce_warp(sum, Add());
        };
        const float mean = sum_of([](const float4& v) { return (v.x + v.y) + (v.z + v.w); }) / float(dim);
        const float squares = sum_of([&](const float4& v) {
            const float4 d = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
            return (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
        });
        const float scale = 1.0f / sqrtf(squares / float(dim) + p.eps);
        AKUNU_NO_UNROLL
        for (u32 first = 0; first < dim; first += Part::kInputs) {
            Part row, weight, bias;
            row.load(in, first, dim);
            weight.load(weights, first, dim);
            if (has_bias) bias.load(biases, first, dim);
            AKUNU_UNROLL
            for (u32 i = 0; i < Part::kEach; ++i) {
                const u32 at = first + i * Part::kApart + lane_id() * 4;
                if (at >= dim) continue;
                const float4 &v = row.v[i], &w = weight.v[i], &added = bias.v[i];
                float4 y = {(v.x - mean) * scale * w.x, (v.y - mean) * scale * w.y, (v.z - mean) * scale * w.z,
                            (v.w - mean) * scale * w.w};
                if (has_bias) y = {y.x + added.x, y.y + added.y, y.z + added.z, y.w + added.w};
                out.store4(u64(r) * dim + at, y);
            }
        }
    }
}

// (x - mean) / √(variance + eps)·weight (+ bias); the output may be x.
AKUNU_DEVICE_CALL void layer_norm(Block b) {
    const auto& p = b.params<LayerNormParams>();
    const float *x = b.buffer<float>(0), *weight = b.buffer<float>(1), *bias = b.buffer<float>(2);
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    const u32* gathered = b.buffer<u32>(5);
    if (p.rows > b.blocks() && p.dim % 4 == 0) return layer_norm_by_warps(b, p, x, weight, bias, gathered, out);
    for (u32 r = b.first(); r < p.rows; r += b.blocks()) {
        const float* in = x + u64(p.gather ? gathered[r] : r) * p.dim;
        float sum = 0.0f;
        for (u32 i = thread_id(); i < p.dim; i += kThreads) sum += in[i];
        const float mean = reduce_block(b, sum, Add()) / float(p.dim);
        const float scale = rms_scale(b, in, p.dim, p.eps, mean);
        for (u32 i = thread_id(); i < p.dim; i += kThreads) {
            const float v = (in[i] - mean) * scale * weight[i];
            out.store(u64(r) * p.dim + i, p.has_bias ? v + bias[i] : v);
        }
    }
}

AKUNU_DEVICE_CALL void quantize(Block b) {
    const auto& p = b.params<QuantizeParams>();
    const float* x = b.buffer<float>(0);
    const Output out{b.buffer<float>(1), b.buffer<u16>(2), p.formats};
    const u64 n = u64(p.rows) * p.dim, first = u64(b.first()) * kThreads + thread_id(),
              apart = u64(b.blocks()) * kThreads;
    if (n % 4 != 0) {
        for (u64 i = first; i < n; i += apart) out.store(i, x[i]);
        return;
    }
    constexpr u32 kAtOnce = 4;  // of four each
    for (u64 i = first; i < n / 4; i += kAtOnce * apart) {
        float4 v[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            v[j] = reinterpret_cast<const float4*>(x)[i + j * apart < n / 4 ? i + j * apart : i];
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (i + j * apart < n / 4) out.store4((i + j * apart) * 4, v[j]);
        }
    }
}

// A function, as it is large: activations are many.
AKUNU_DEVICE_CALL float4 gated_four(u32 activation, float4 gate, float4 up) {
    return {activate(activation, gate.x) * up.x, activate(activation, gate.y) * up.y,
            activate(activation, gate.z) * up.z, activate(activation, gate.w) * up.w};
}

AKUNU_DEVICE_CALL void gate_act(Block b) {
    const auto& p = b.params<GateActParams>();
    const float *gate = b.buffer<float>(0), *up = b.buffer<float>(1);
    const Output out{b.buffer<float>(2), b.buffer<u16>(3), p.formats};
    // Looked up once: behind each store they would be looked up again.
    const u32 activation = p.activation, width = p.n, stride = p.up_stride;
    const bool gated = p.gated != 0;
    const u64 n = u64(p.rows) * width, first = u64(b.first()) * kThreads + thread_id(),
              apart = u64(b.blocks()) * kThreads;
    const auto up_at = [&](u64 i) { return up + i / width * stride + i % width; };
    if (width % 4 != 0 || stride % 4 != 0) {
        for (u64 i = first; i < n; i += apart) {
            const float v = activate(activation, gate[i]);
            out.store(i, gated ? v * *up_at(i) : v);
        }
        return;
    }
    constexpr u32 kAtOnce = 4;  // of four each
    for (u64 i = first; i < n / 4; i += kAtOnce * apart) {
        float4 g[kAtOnce], u[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u64 at = i + j * apart < n / 4 ? i + j * apart : i;
            g[j] = reinterpret_cast<const float4*>(gate)[at];
            u[j] = gated ? *reinterpret_cast<const float4*>(up_at(4 * at)) : float4{1.0f, 1.0f, 1.0f, 1.0f};
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            if (i + j * apart < n / 4) out.store4((i + j * apart) * 4, gated_four(activation, g[j], u[j]));
        }
    }
}

// Of each sequence the mean of its rows, the first or the last.
AKUNU_DEVICE_CALL void pool(Block b) {
    const auto& p = b.params<PoolParams>();
    const float* x = b.buffer<float>(0);
    const Row* rows = b.buffer<Row>(1);
    const u32* last_rows = b.buffer<u32>(2);
    float* out = b.buffer<float>(3);
    const u32 parts = (p.dim + kThreads - 1) / kThreads;
    for (u32 u = b.first(); u < p.rows * parts; u += b.blocks()) {
        const u32 sequence = u / parts, i = u % parts * kThreads + thread_id();
        const u32 last = last_rows[sequence], n = rows[last].position + 1, first = last + 1 - n;
        if (i >= p.dim) continue;
        float v = 0.0f;
        if (p.pooling == kPoolMean) {
            for (u32 r = first; r <= last; ++r) v += x[u64(r) * p.dim + i];
            v /= float(n);
        } else {
            v = x[u64(p.pooling == kPoolFirst ? first : last) * p.dim + i];
        }
        out[u64(sequence) * p.dim + i] = v;
    }
}

// The sum over all rows of each column's squares, or over those that chose each expert. A thread takes a column; eight
// rows are asked for at once.
template <typename X>
AKUNU_DEVICE void sum_squares(Block b, const ColumnSquaresParams& p, X&& x) {
    float* sums = b.buffer<float>(1);
    const u32* ids = b.buffer<u32>(2);
    for (u32 c = b.first() * kThreads + thread_id(); c < p.dim; c += b.blocks() * kThreads) {
        if (p.experts) {
            float* counts = sums + u64(p.experts) * p.dim;
            for (u32 e = 0; e < p.experts; ++e) {
                sums[u64(e) * p.dim + c] = 0.0f;
                if (c == 0) counts[e] = 0.0f;
            }
            for (u32 i = 0; i < p.rows * p.chosen; ++i) {
                const float v = x(u64(p.apart ? i : i / p.chosen) * p.dim + c);
                sums[u64(ids[i]) * p.dim + c] += v * v;
                if (c == 0) counts[ids[i]] += 1.0f;
            }
            continue;
        }
        float sum = 0.0f;
        AKUNU_UNROLL_EIGHT
        for (u32 r = 0; r < p.rows; ++r) {
            const float v = x(u64(r) * p.dim + c);
            sum += v * v;
        }
        sums[c] = sum;
    }
}
AKUNU_DEVICE_CALL void column_squares(Block b) {
    const auto& p = b.params<ColumnSquaresParams>();
    const float* x = b.buffer<float>(0);
    const u16* halves = b.buffer<u16>(0);
    if (p.format == kActF16) {
        sum_squares(b, p, [&](u64 i) { return half_to_float(halves[i]); });
    } else {
        sum_squares(b, p, [&](u64 i) { return x[i]; });
    }
}

}  // namespace akunu::cuda
