// Several residual streams (AltUp), sums of rows, and gates of which most become 0.

namespace akunu::cpu::AKUNU_ISA {

static void add_rows(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AddRowsParams>(params);
    const auto *x = cmd.buffers[0].as<float>(), *like = cmd.buffers[1].as<float>();
    auto* y = cmd.buffers[2].as<float>();
    auto rows = worker.claim(p.rows, 16 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const float* in = x + r * p.dim;
            float* out = y + r * p.dim;
            float scale = p.scale;
            if (p.matched) {
                const float most = std::max(mean_square(in, p.dim), p.floor);
                scale *= std::sqrt(mean_square(like + r * p.dim, p.dim) / most);
            }
            if (p.accumulate) {
                add_scaled(in, scale, out, p.dim);
            } else {
                for (std::size_t i = 0; i < p.dim; ++i) out[i] = in[i] * scale;
            }
        }
    }
}

// A processor shares its models with no other device.
static void all_reduce(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<AllReduceParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    auto* y = cmd.buffers[1].as<float>();
    auto rows = worker.claim(p.rows, 8 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const float* in = x + r * p.x_stride;
            float* out = y + r * p.y_stride;
            if (p.accumulate) {
                add_scaled(in, 1.0f, out, p.dim);
            } else {
                std::memmove(out, in, p.dim * sizeof(float));
            }
        }
    }
}

// An item is a part of a row.
static void mix_streams(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    constexpr std::size_t kPart = 256;
    const auto& p = params_as<MixStreamsParams>(params);
    auto *streams = cmd.buffers[0].as<float>(), *hidden = cmd.buffers[1].as<float>();
    const auto *gates = cmd.buffers[2].as<float>(), *weights = cmd.buffers[3].as<float>(),
               *scales = cmd.buffers[4].as<float>();
    const std::size_t n = std::min<u32>(p.streams, kMostStreams), factors = p.correct ? n : n * n;
    const std::size_t parts = (p.dim + kPart - 1) / kPart;
    auto units = worker.claim(p.rows * parts, 8 * (n + 1) * kPart);
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::size_t row = u / parts, first = u % parts * kPart,
                              end = std::min<std::size_t>(first + kPart, p.dim);
            float factor[kMostStreams * kMostStreams];
            for (std::size_t j = 0; j < factors; ++j) {
                factor[j] = p.correct ? 1.0f : 0.0f;
                for (std::size_t k = 0; k < n; ++k) factor[j] += weights[j * n + k] * std::tanh(gates[row * n + k]);
            }
            float* s = streams + row * p.dim;
            float* h = hidden + row * p.dim;
            for (std::size_t i = first; i < end; ++i) {
                float was[kMostStreams];
                for (std::size_t j = 0; j < n; ++j) was[j] = s[j * p.stride + i];
                const float made = h[i] - was[p.active];
                for (std::size_t j = 0; j < n; ++j) {
                    float sum = was[j];
                    if (p.correct) {
                        sum += made * factor[j];
                    } else {
                        for (std::size_t k = 0; k < n; ++k) sum += was[k] * factor[j * n + k];
                    }
                    s[j * p.stride + i] = sum;
                    if (j == p.active) h[i] = p.scaled ? sum * scales[i] : sum;
                }
            }
        }
    }
}

static void sparsify(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SparsifyParams>(params);
    auto* x = cmd.buffers[0].as<float>();
    auto rows = worker.claim(p.rows, 16 * std::uint64_t{p.n});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            float* row = x + r * p.n;
            const float mean = sum_row(row, p.n) / static_cast<float>(p.n);
            const vf m = set1(mean);
            std::size_t i = 0;
            for (; i + L <= p.n; i += L) store(row + i, load(row + i) - m);
            for (; i < p.n; ++i) row[i] -= mean;
            const float cut = p.deviations * std::sqrt(mean_square(row, p.n));
            const vf c = set1(cut);
            for (i = 0; i + L <= p.n; i += L) store(row + i, max_(load(row + i) - c, zero()));
            for (; i < p.n; ++i) row[i] = std::max(row[i] - cut, 0.0f);
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
