// What each column of a matmul's input weighs, for importance matrices.

namespace akunu::cpu::AKUNU_ISA {

// sums[c] += x[r, c]² of the 32 columns of block b, a block of the q8 format.
static void add_squares(const ColumnSquaresParams& p, const std::byte* x, const Q8Layout& at, std::size_t r,
                        std::size_t b, float* sums) {
    const std::size_t first = 32 * b, n = std::min<std::size_t>(32, p.dim - first);
    if (p.format == kActQ8) {
        const Q8Row row{const_cast<std::byte*>(x) + r * at.stride, at};
        const float d = row.d()[b];
        for (std::size_t i = 0; i < n; ++i) {
            const float v = d * static_cast<float>(row.q()[first + i]);
            sums[i] += v * v;
        }
    } else {
        const float* row = reinterpret_cast<const float*>(x) + r * p.dim + first;
        for (std::size_t i = 0; i < n; ++i) sums[i] += row[i] * row[i];
    }
}

// sums[c] = Σ x[r, c]² over all rows, or those of each expert. An item is 32 columns.
static void column_squares(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ColumnSquaresParams>(params);
    const auto* x = cmd.buffers[0].as<std::byte>();
    auto* sums = cmd.buffers[1].as<float>();
    const auto* ids = cmd.buffers[2].as<u32>();
    const Q8Layout at(p.dim);
    auto blocks = worker.claim((p.dim + 31) / 32, 128 * std::uint64_t{p.rows} * (p.experts ? p.chosen : 1));
    while (blocks.next()) {
        for (std::uint64_t b = blocks.begin; b < blocks.end; ++b) {
            const std::size_t first = 32 * b, n = std::min<std::size_t>(32, p.dim - first);
            if (p.experts == 0) {
                float sum[32] = {};
                for (std::size_t r = 0; r < p.rows; ++r) add_squares(p, x, at, r, b, sum);
                std::copy_n(sum, n, sums + first);
                continue;
            }
            for (std::size_t e = 0; e < p.experts; ++e) std::fill_n(sums + e * p.dim + first, n, 0.0f);
            for (std::size_t i = 0; i < std::size_t{p.rows} * p.chosen; ++i) {
                add_squares(p, x, at, p.apart ? i : i / p.chosen, b, sums + std::size_t{ids[i]} * p.dim + first);
            }
            if (b != 0) continue;
            float* counts = sums + std::size_t{p.experts} * p.dim;
            std::fill_n(counts, p.experts, 0.0f);
            for (std::size_t i = 0; i < std::size_t{p.rows} * p.chosen; ++i) counts[ids[i]] += 1;
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
