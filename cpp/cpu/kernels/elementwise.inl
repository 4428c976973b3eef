// Embedding, norms, activation formats, RoPE with the cache write: everything between the matmuls and attention.

namespace akunu::cpu::AKUNU_ISA {

// What an element's work is worth, as Worker::claim counts it.
constexpr std::uint64_t kGatedBlock = 512, kAngle = 512;

static inline float sum_row(const float* x, std::size_t dim) {
    vf sum[4] = {zero(), zero(), zero(), zero()};
    std::size_t i = 0;
    for (; i + 4 * L <= dim; i += 4 * L) {
        for (std::size_t j = 0; j < 4; ++j) sum[j] += load(x + i + j * L);
    }
    float total = reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < dim; ++i) total += x[i];
    return total;
}

static inline float mean_square(const float* x, std::size_t dim) {
    vf sum[4] = {zero(), zero(), zero(), zero()};
    std::size_t i = 0;
    for (; i + 4 * L <= dim; i += 4 * L) {
        for (std::size_t j = 0; j < 4; ++j) {
            const vf v = load(x + i + j * L);
            sum[j] = fma(v, v, sum[j]);
        }
    }
    float total = reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < dim; ++i) total += x[i] * x[i];
    return total / static_cast<float>(dim);
}

static inline float rms_scale(const float* x, std::size_t dim, float eps) {
    return 1.0f / std::sqrt(mean_square(x, dim) + eps);
}

// out = x·scale·weight
static inline void scale_row(const float* x, float scale, const float* weight, float* out, std::size_t dim) {
    const vf s = set1(scale);
    std::size_t i = 0;
    for (; i + L <= dim; i += L) store(out + i, load(x + i) * s * load(weight + i));
    for (; i < dim; ++i) out[i] = x[i] * scale * weight[i];
}

// out = x - mean(x). `out` may be x.
static inline void centre_row(const float* x, float* out, std::size_t dim) {
    const float mean = sum_row(x, dim) / static_cast<float>(dim);
    const vf m = set1(mean);
    std::size_t i = 0;
    for (; i + L <= dim; i += L) store(out + i, load(x + i) - m);
    for (; i < dim; ++i) out[i] = x[i] - mean;
}

// Worker scratch as a row of up to kMaxRow f32.
static inline float* scratch_row(const Worker& worker) { return reinterpret_cast<float*>(worker.scratch); }

static void norm(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<NormParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* weight = cmd.buffers[1].as<float>();
    auto* out_f32 = cmd.buffers[2].as<float>();
    auto* out_q8 = cmd.buffers[3].as<std::byte>();
    const auto* gathered = cmd.buffers[4].as<u32>();
    const Q8Layout at(p.dim);
    auto rows = worker.claim(p.rows, 8 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const float* in = x + (p.gather ? gathered[r] : r) * p.dim;
            float* out = p.formats & kActF32 ? out_f32 + r * p.dim : scratch_row(worker);
            scale_row(in, rms_scale(in, p.dim, p.eps), weight, out, p.dim);
            if (p.formats & kActQ8) quantize_row(out_q8 + r * at.stride, at, p.dim, out);
        }
    }
}

// An item is a row; its norm is over each of its groups.
static void gated_norm(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GatedNormParams>(params);
    const auto *x = cmd.buffers[0].as<float>(), *gate = cmd.buffers[1].as<float>();
    const auto* weight = cmd.buffers[2].as<float>();
    auto* out_f32 = cmd.buffers[3].as<float>();
    auto* out_q8 = cmd.buffers[4].as<std::byte>();
    const std::size_t n = std::size_t{p.groups} * p.dim;
    const Q8Layout at(n);
    auto rows = worker.claim(p.rows, 16 * n);
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* out = p.formats & kActF32 ? out_f32 + r * n : scratch_row(worker);
            const float *in = x + r * n, *g = gate + r * n;
            std::size_t i = 0;
            for (; i + L <= n; i += L) store(out + i, load(in + i) * silu(load(g + i)));
            if (i < n) {
                const int rest = static_cast<int>(n - i);
                store_first(out + i, load_first(in + i, rest) * silu(load_first(g + i, rest)), rest);
            }
            for (std::size_t first = 0; first < n; first += p.dim) {
                scale_row(out + first, rms_scale(out + first, p.dim, p.eps), weight + first, out + first, p.dim);
            }
            if (p.formats & kActQ8) quantize_row(out_q8 + r * at.stride, at, n, out);
        }
    }
}

// h = (h + norm(x))·sum_scale
static void norm_add(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<NormParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* weight = cmd.buffers[1].as<float>();
    auto* h = cmd.buffers[2].as<float>();
    auto rows = worker.claim(p.rows, 12 * std::uint64_t{p.dim});
    float* normed = scratch_row(worker);
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const float* in = x + r * p.dim;
            scale_row(in, rms_scale(in, p.dim, p.eps), weight, normed, p.dim);
            float* out = h + r * p.dim;
            for (std::size_t i = 0; i < p.dim; ++i) out[i] = (out[i] + normed[i]) * p.sum_scale;
        }
    }
}

static void quantize(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<QuantizeParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    auto* out_f32 = cmd.buffers[1].as<float>();
    auto* out_q8 = cmd.buffers[2].as<std::byte>();
    const Q8Layout at(p.dim);
    auto rows = worker.claim(p.rows, 8 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const float* in = x + r * p.dim;
            if (p.formats & kActF32) std::memcpy(out_f32 + r * p.dim, in, p.dim * sizeof(float));
            if (p.formats & kActQ8) quantize_row(out_q8 + r * at.stride, at, p.dim, in);
        }
    }
}

// act(gate)·up where gate and up are separate commands, or act(gate) where there is no up.
static void gate_act(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateActParams>(params);
    const auto* gate = cmd.buffers[0].as<float>();
    const auto* up = cmd.buffers[1].as<float>();
    auto* out_f32 = cmd.buffers[2].as<float>();
    auto* out_q8 = cmd.buffers[3].as<std::byte>();
    const Q8Layout at(p.n);
    const std::size_t blocks = (p.n + 31) / 32;
    auto units = worker.claim(p.rows * blocks, kGatedBlock);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t row = u / blocks, block = u % blocks, first = block * 32;
            const std::size_t n = std::min<std::size_t>(32, p.n - first);
            const float *g = gate + row * p.n + first, *v = p.gated ? up + row * p.up_stride + first : g;
            float values[32], last[2][32] = {};
            if (n < 32) {
                g = static_cast<float*>(std::memcpy(last[0], g, n * sizeof(float)));
                v = static_cast<float*>(std::memcpy(last[1], v, n * sizeof(float)));
            }
            with_activation(p.activation, [&](const auto& activated) {
                for (int i = 0; i < 32; i += L) {
                    const vf x = activated(load(g + i));
                    store(values + i, p.gated ? x * load(v + i) : x);
                }
            });
            if (p.formats & kActF32) std::memcpy(out_f32 + row * p.n + first, values, n * sizeof(float));
            if (p.formats & kActQ8) quantize_block({out_q8 + row * at.stride, at}, block, values);
        }
    }
}

static void embed(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto* table = cmd.buffers[1].as<std::byte>();
    const WeightPlanes planes{table, cmd.buffers[4].as<std::byte>(), cmd.buffers[5].as<std::byte>()};
    const std::size_t dim = params_as<EmbedParams>(params).dim, bytes = row_bytes(cmd.weight, dim);
    for_embedded(cmd, params, worker, [&](std::size_t id, float* out) {
        if (cmd.packed) {
            unpack_row(cmd.weight, dim, L, table, id, worker.scratch);
            dequantize_row(cmd.weight, worker.scratch, out, dim);
        } else if (planes.scales) {
            join_row(cmd.weight, dim, planes, id, worker.scratch);
            dequantize_row(cmd.weight, worker.scratch, out, dim);
        } else {
            dequantize_row(cmd.weight, table + id * bytes, out, dim);
        }
    });
}

// cos and sin of position · inv_freq, once per replay for all layers.
static void rope_table(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<RopeTableParams>(params);
    const auto* inv_freq = cmd.buffers[0].as<float>();
    auto* out = cmd.buffers[1].as<float>();
    const auto* where = cmd.buffers[2].as<Row>();
    const auto* axes = cmd.buffers[3].as<u32>();
    const auto* positions = cmd.buffers[4].as<u32>();
    auto units = worker.claim(std::uint64_t{p.rows} * p.half_dim, kAngle);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t row = u / p.half_dim;
            const u32 first = p.axes ? positions[row * kPositionAxes + axes[u % p.half_dim]] : where[row].position;
            const u32 position = first + p.step;
            const float angle = static_cast<float>(position) * inv_freq[u % p.half_dim];
            float scale = p.scale;
            if (p.temperature_length) {
                scale *= 1.0f + p.temperature * std::log(1.0f + static_cast<float>(position / p.temperature_length));
            }
            out[2 * u] = std::cos(angle) * scale;
            out[2 * u + 1] = std::sin(angle) * scale;
        }
    }
}

// Rows that an encoder made, in the place of those of tokens, or added to them.
static void insert_rows(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<InsertRowsParams>(params);
    auto* hidden = cmd.buffers[0].as<float>();
    const auto* encoded = cmd.buffers[1].as<float>();
    const auto* sources = cmd.buffers[2].as<u32>();
    if (p.step) return;
    auto rows = worker.claim(p.rows, 12 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            if (sources[r] == kNoSource) continue;
            const float* from = encoded + std::size_t{sources[r]} * p.width + p.offset;
            float* out = hidden + r * p.dim;
            for (std::size_t i = 0; i < p.dim; ++i) out[i] = p.accumulate ? out[i] + from[i] : from[i];
        }
    }
}

static void affine(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AffineParams>(params);
    const auto *x = cmd.buffers[0].as<float>(), *scale = cmd.buffers[1].as<float>(), *bias = cmd.buffers[2].as<float>();
    auto* y = cmd.buffers[3].as<float>();
    auto rows = worker.claim(p.rows, 8 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            for (std::uint64_t i = 0; i < p.dim; ++i) {
                float value = x[r * p.dim + i];
                if (p.has_scale) value *= scale[i];
                if (p.has_bias) value += bias[i];
                y[r * p.dim + i] = std::min(std::max(value, p.low), p.high);
            }
        }
    }
}

static inline void rotate(float* x, const float* table, u32 rope_dim, u32 style) {
    const std::size_t half = rope_dim / 2;
    std::size_t i = 0;
    for (; i + L <= half; i += L) {
        const vf t0 = load(table + 2 * i), t1 = load(table + 2 * i + L), c = firsts(t0, t1), s = seconds(t0, t1);
        if (style == kRopeInterleaved) {
            const vf x0 = load(x + 2 * i), x1 = load(x + 2 * i + L), a = firsts(x0, x1), b = seconds(x0, x1);
            store(x + 2 * i, paired<false>(a * c - b * s, a * s + b * c));
            store(x + 2 * i + L, paired<true>(a * c - b * s, a * s + b * c));
        } else {
            const vf a = load(x + i), b = load(x + i + half);
            store(x + i, a * c - b * s);
            store(x + i + half, a * s + b * c);
        }
    }
    for (; i < half; ++i) {
        const float c = table[2 * i], s = table[2 * i + 1];
        float& a = x[style == kRopeInterleaved ? 2 * i : i];
        float& b = x[style == kRopeInterleaved ? 2 * i + 1 : i + half];
        const float a0 = a, b0 = b;
        a = a0 * c - b0 * s;
        b = a0 * s + b0 * c;
    }
}

// Calls f(row, n) for each n rows of a sequence whose positions follow one another in a group of keys, if the first of
// them is one of [begin, end).
template <typename F>
static inline void for_key_groups(const Row* where, std::size_t rows, u32 step, std::size_t begin, std::size_t end,
                                  F&& f) {
    const auto goes_on = [&](std::size_t row) {
        return where[row].slot == where[row - 1].slot && where[row].position == where[row - 1].position + 1 &&
               (where[row].position + step) % kKeyGroup != 0;
    };
    std::size_t row = begin;
    while (row > 0 && row < rows && goes_on(row)) ++row;
    for (std::size_t next; row < std::min(rows, end); row = next) {
        for (next = row + 1; next < rows && goes_on(next);) ++next;
        f(row, next - row);
    }
}

static void prepare_heads(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<PrepareHeadsParams>(params);
    auto* q = cmd.buffers[0].as<float>();
    auto* k = cmd.buffers[1].as<float>();
    auto* v = cmd.buffers[2].as<float>();
    const auto* table = cmd.buffers[3].as<float>();
    const auto* norms = cmd.buffers[5].as<float>();
    const auto* where = cmd.buffers[6].as<Row>();
    const auto* pages = cmd.buffers[7].as<u32>();
    const std::size_t hd = p.head_dim;
    // Heads of q, which may stay as it is, of k and of v. A unit has every `parts`-th head, and so its share of k,
    // which takes longest to write, of the groups of keys that begin in its rows: such a group is written at once.
    constexpr std::size_t kHeads = 4;
    const std::size_t rows = p.rows, first = p.qk_norm || p.rope_dim ? 0 : p.n_heads,
                      end = p.n_heads + std::size_t{2} * p.n_kv_heads;
    const std::size_t blocks = (rows + kKeyGroup - 1) / kKeyGroup, parts = (end - first + kHeads - 1) / kHeads;
    const auto turn = [&](float* x, std::size_t heads, std::size_t row, std::size_t h) {
        x += row * heads * hd;
        if (p.qk_norm == kHeadNormLayer) centre_row(x, x, hd);
        if (p.qk_norm != kHeadNormNone) {
            const std::size_t norm = p.qk_norm == kHeadNormLayer ? h : h >= p.n_heads;
            scale_row(x, rms_scale(x, hd, p.eps), norms + norm * hd, x, hd);
        }
        rotate(x, table + row * p.rope_dim, p.rope_dim, p.style);
    };
    auto units = worker.claim(blocks * parts, 16 * hd * kHeads * std::min(rows, kKeyGroup));
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t begin = u / parts * kKeyGroup, h0 = first + u % parts;
            for_key_groups(where, rows, p.step, begin, begin + kKeyGroup, [&](std::size_t row, std::size_t n) {
                const std::size_t pos = where[row].position + p.step;
                const KvPages cache{cmd.buffers[4].as<std::byte>(),
                                    pages + std::size_t{where[row].slot} * p.max_pages,
                                    std::size_t{p.page_words} * 4,
                                    p.n_kv_heads,
                                    hd,
                                    cmd.kv};
                const std::size_t page = pos / kPagePositions, in_page = pos % kPagePositions;
                for (std::size_t h = h0; h < end; h += parts) {
                    if (h < p.n_heads) {
                        for (std::size_t i = row; i < row + n; ++i) turn(q + h * hd, p.n_heads, i, h);
                    } else if (h < p.n_heads + p.n_kv_heads) {
                        const std::size_t kv = h - p.n_heads, stride = p.n_kv_heads * hd;
                        for (std::size_t i = row; i < row + n; ++i) turn(k + kv * hd, p.n_kv_heads, i, h);
                        with_elements(cmd.kv.k, [&]<typename T>() {
                            cache.keys<T>(page, kv).store_keys(in_page, n, k + row * stride + kv * hd, stride, hd);
                        });
                    } else {
                        const std::size_t kv = h - p.n_heads - p.n_kv_heads, stride = p.n_kv_heads * hd;
                        const float* x = v + row * stride + kv * hd;
                        with_elements(cmd.kv.v, [&]<typename T>() {
                            for (std::size_t i = 0; i < n; ++i) {
                                cache.values<T>(page, kv).store_value(in_page + i, x + i * stride, hd);
                            }
                        });
                    }
                }
            });
        }
    }
}

// Copies whole records, pages or states: a sequence that goes on from a shared, unfinished page gets one of its own.
static void copy_records(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<CopyRecordsParams>(params);
    const auto* pairs = cmd.buffers[0].as<u32>();
    auto* records = cmd.buffers[1].as<std::byte>();
    const std::size_t bytes = std::size_t{p.record_words} * 4;
    auto rows = worker.claim(p.rows, 2 * bytes);
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            std::memcpy(records + pairs[2 * r + 1] * bytes, records + pairs[2 * r] * bytes, bytes);
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
