// Causal convolutions of each channel along a sequence's rows.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kMaxTaps = 8;

// 32 neighbouring channels of a convolution, or what is left of them: their weights, and the inputs of the last
// positions, [position % kMaxTaps].
struct ConvBlock {
    const std::size_t first, n, part;  // `part`: elements from b to c, and from c to v; 0: not gated
    float weights[kMaxTaps][32], bias[32], past[kMaxTaps][32];

    ConvBlock(std::size_t begin, std::size_t dim, bool gated)
        : first(begin), n(std::min<std::size_t>(32, dim - begin)), part(gated ? dim : 0) {
        if (n == 32) return;
        for (auto& w : weights) std::ranges::fill(w, 0.0f);
        for (auto& x : past) std::ranges::fill(x, 0.0f);
    }

    void copy(float* to, const float* from) const {
        if (n == 32) {
            std::memcpy(to, from, 32 * sizeof(float));  // of a known size: no call
        } else {
            std::memcpy(to, from, n * sizeof(float));
        }
    }

    // The input of a row.
    void input(float* to, const float* x) const {
        copy(to, x + first);
        if (part == 0) return;
        float v[32] = {};
        copy(v, x + 2 * part + first);
        for (std::size_t i = 0; i < n; ++i) to[i] *= v[i];
    }
    // Its output, of what the convolution makes.
    void output_to(float* to, const float* x, float* y) const {
        if (part != 0) {
            float c[32] = {};
            copy(c, x + part + first);
            for (std::size_t i = 0; i < n; ++i) y[i] *= c[i];
        }
        copy(to + first, y);
    }

    // The output at a position whose input and those before it are in `past`; the oldest is added first.
    template <typename F>
    void output(std::size_t position, std::size_t taps, const F& activated, float* y) const {
        for (int i = 0; i < 32; i += L) {
            vf sum = load(bias + i);
            for (std::size_t t = 0; t < taps; ++t) {
                sum = fma(load(weights[t] + i), load(past[(position + 1 + t - taps) % kMaxTaps] + i), sum);
            }
            store(y + i, activated(sum));
        }
    }
};

// An item is a block of channels, of all rows. What a sequence's rows read of its record is read before they write
// there.
static void short_conv(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ShortConvParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* weights = cmd.buffers[1].as<float>();
    auto* records = cmd.buffers[2].as<float>();
    auto* y = cmd.buffers[3].as<float>();
    const auto* where = cmd.buffers[4].as<Row>();
    const auto* slots = cmd.buffers[5].as<SlotState>();
    const std::size_t dim = p.channels, taps = p.taps, kept = taps - 1 + kStashRows, width = (p.gated ? 3 : 1) * dim;
    auto blocks = worker.claim((dim + 31) / 32, kGatedBlock * p.rows);
    while (blocks.next()) {
        for (std::uint64_t b = blocks.begin; b < blocks.end; ++b) {
            ConvBlock block(b * 32, dim, p.gated != 0);
            for (std::size_t t = 0; t < taps; ++t) block.copy(block.weights[t], weights + t * dim + block.first);
            std::ranges::fill(block.bias, 0.0f);
            if (p.has_bias) block.copy(block.bias, weights + taps * dim + block.first);
            for_sequence_rows(where, p.rows, [&](std::size_t row, std::size_t n) {
                const u32 slot = where[row].slot;
                if (slots[slot].stopped) return;  // the rest of a chain is of other sequences
                const std::size_t position = where[row].position + p.step;
                float* record = records + std::size_t{slot} * p.state_words + block.first;
                for (std::size_t t = 1; t < taps; ++t) {
                    float* past = block.past[(position - t) % kMaxTaps];
                    std::ranges::fill_n(past, 32, 0.0f);
                    if (t <= position) block.copy(past, record + (position - t) % kept * dim);
                }
                const auto run = [&](const auto& activated) {
                    for (std::size_t i = 0; i < n; ++i) {
                        const float* of = x + (row + i) * width;
                        float *input = block.past[(position + i) % kMaxTaps], out[32];
                        block.input(input, of);
                        block.output(position + i, taps, activated, out);
                        block.output_to(y + (row + i) * dim, of, out);
                    }
                };
                p.activation ? with_activation(p.activation - 1, run) : run([](vf v) { return v; });
                for (std::size_t i = n - std::min(n, kept); i < n; ++i) {
                    float input[32];
                    block.input(input, x + (row + i) * width);
                    block.copy(record + (position + i) % kept * dim, input);
                }
            });
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
