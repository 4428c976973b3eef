// What each column of a matmul's input weighs, for importance matrices.

namespace akunu::cpu::AKUNU_ISA {

// sums[c] = Σ x[r, c]² over all rows. An item is 32 columns, a block of the q8 format.
static void column_squares(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ColumnSquaresParams>(params);
    const auto* x = cmd.buffers[0].as<std::byte>();
    auto* sums = cmd.buffers[1].as<float>();
    const Q8Layout at(p.dim);
    auto blocks = worker.claim((p.dim + 31) / 32, 128 * std::uint64_t{p.rows});
    while (blocks.next()) {
        for (std::uint64_t b = blocks.begin; b < blocks.end; ++b) {
            const std::size_t first = 32 * b, n = std::min<std::size_t>(32, p.dim - first);
            float sum[32] = {};
            for (std::size_t r = 0; r < p.rows; ++r) {
                if (p.format == kActQ8) {
                    const Q8Row row{const_cast<std::byte*>(x) + r * at.stride, at};
                    const float d = row.d()[b];
                    for (std::size_t i = 0; i < n; ++i) {
                        const float v = d * static_cast<float>(row.q()[first + i]);
                        sum[i] += v * v;
                    }
                } else {
                    const float* row = reinterpret_cast<const float*>(x) + r * p.dim + first;
                    for (std::size_t i = 0; i < n; ++i) sum[i] += row[i] * row[i];
                }
            }
            std::copy_n(sum, n, sums + first);
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
