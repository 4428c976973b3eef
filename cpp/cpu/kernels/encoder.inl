// What encoders have besides a decoder's ops: LayerNorm, learned positions, and one vector for each sequence.

namespace akunu::cpu::AKUNU_ISA {

// out = (x - mean) / √(variance + eps)·weight (+ bias). `out` may be x.
static inline void layer_norm_row(const float* x, const LayerNormParams& p, const float* weight, const float* bias,
                                  float* out) {
    const std::size_t dim = p.dim;
    centre_row(x, out, dim);
    const float scale = rms_scale(out, dim, p.eps);
    const vf s = set1(scale);
    std::size_t i = 0;
    for (; i + L <= dim; i += L) {
        const vf v = load(out + i) * s * load(weight + i);
        store(out + i, p.has_bias ? v + load(bias + i) : v);
    }
    for (; i < dim; ++i) out[i] = out[i] * scale * weight[i] + (p.has_bias ? bias[i] : 0.0f);
}

static void layer_norm(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<LayerNormParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* weight = cmd.buffers[1].as<float>();
    const auto* bias = cmd.buffers[2].as<float>();
    auto* out_f32 = cmd.buffers[3].as<float>();
    auto* out_q8 = cmd.buffers[4].as<std::byte>();
    const auto* gathered = cmd.buffers[5].as<u32>();
    const Q8Layout at(p.dim);
    auto rows = worker.claim(p.rows, 12 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* out = p.formats & kActF32 ? out_f32 + r * p.dim : scratch_row(worker);
            layer_norm_row(x + (p.gather ? gathered[r] : r) * p.dim, p, weight, bias, out);
            if (p.formats & kActQ8) quantize_row(out_q8 + r * at.stride, at, p.dim, out);
        }
    }
}

// y += x·scale
static inline void add_scaled(const float* x, float scale, float* y, std::size_t dim) {
    const vf s = set1(scale);
    std::size_t i = 0;
    for (; i + L <= dim; i += L) store(y + i, fma(load(x + i), s, load(y + i)));
    for (; i < dim; ++i) y[i] = std::fma(x[i], scale, y[i]);
}

static void embed_position(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<EmbedPositionParams>(params);
    const auto* positions = cmd.buffers[0].as<float>();
    const auto* kinds = cmd.buffers[1].as<float>();
    auto* hidden = cmd.buffers[2].as<float>();
    const auto* where = cmd.buffers[3].as<Row>();
    const auto* row_kinds = cmd.buffers[4].as<u32>();
    auto rows = worker.claim(p.rows, 16 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* out = hidden + r * p.dim;
            if (p.positions) {
                const std::size_t position = std::min(where[r].position + p.step, p.positions - 1);
                add_scaled(positions + position * p.dim, 1, out, p.dim);
            }
            if (p.kinds) add_scaled(kinds + std::size_t{std::min(row_kinds[r], p.kinds - 1)} * p.dim, 1, out, p.dim);
        }
    }
}

static void pool(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<PoolParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* where = cmd.buffers[1].as<Row>();
    const auto* last_rows = cmd.buffers[2].as<u32>();
    auto* out = cmd.buffers[3].as<float>();
    constexpr std::uint64_t kRowsOfSequence = 32;
    auto sequences = worker.claim(p.rows, kRowsOfSequence * 4 * p.dim);
    while (sequences.next()) {
        for (std::uint64_t t = sequences.begin; t < sequences.end; ++t) {
            const std::size_t last = last_rows[t], n = where[last].position + std::size_t{1}, first = last + 1 - n;
            float* y = out + t * p.dim;
            if (p.pooling != kPoolMean) {
                std::memcpy(y, x + (p.pooling == kPoolFirst ? first : last) * p.dim, p.dim * sizeof(float));
                continue;
            }
            std::memset(y, 0, p.dim * sizeof(float));
            const float share = 1.0f / static_cast<float>(n);
            for (std::size_t r = first; r <= last; ++r) add_scaled(x + r * p.dim, share, y, p.dim);
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
