// Rows of the embedding of a step's tokens, however they are stored.

namespace akunu::cpu::AKUNU_ISA {

// Calls load_row(token, out) for each row that the worker claims, and scales it. Where rows are added to what is there,
// they come to the end of the worker's scratch first: load_row may need the beginning.
template <typename Load>
static inline void for_embedded(const DispatchCmd& cmd, const std::byte* params, const Worker& worker,
                                Load&& load_row) {
    const auto& p = params_as<EmbedParams>(params);
    const auto* history = cmd.buffers[0].as<u32>();
    auto* h = cmd.buffers[2].as<float>();
    const auto* where = cmd.buffers[3].as<Row>();
    const vf scale = set1(p.scale);
    auto rows = worker.claim(p.rows, 8 * std::uint64_t{p.dim});
    while (rows.next()) {
        for (std::uint64_t r = rows.begin; r < rows.end; ++r) {
            const std::size_t at = std::size_t{where[r].slot} * p.history_stride + where[r].position + p.step;
            float* const out = h + r * p.dim;
            float* const x = p.accumulate ? reinterpret_cast<float*>(worker.scratch) + kMaxRow - p.dim : out;
            load_row(history[at] < p.vocab ? history[at] : 0, x);
            std::size_t i = 0;
            if (p.accumulate) {
                for (; i + L <= p.dim; i += L) store(out + i, fma(load(x + i), scale, load(out + i)));
                for (; i < p.dim; ++i) out[i] = std::fma(x[i], p.scale, out[i]);
                continue;
            }
            if (p.scale == 1.0f) continue;
            for (; i + L <= p.dim; i += L) store(out + i, load(out + i) * scale);
            for (; i < p.dim; ++i) out[i] *= p.scale;
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
