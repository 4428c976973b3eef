// Recurrences: what advances a sequence's state row by row.

namespace akunu::cpu::AKUNU_ISA {

// Calls f(first row, rows) for the rows of each sequence.
template <typename F>
static inline void for_sequence_rows(const Row* where, std::size_t rows, F&& f) {
    for (std::size_t row = 0, end; row < rows; row = end) {
        for (end = row + 1; end < rows && where[end].slot == where[row].slot;) ++end;
        f(row, end - row);
    }
}

// Up to 32 channels of a recurrence, from `first` on.
struct RecurBlock {
    std::size_t first, n;

    // s += sigmoid(gate)·(x - s)
    void advance(float* s, const float* x, const float* gate) const {
        float inputs[32] = {}, gates[32] = {};
        std::memcpy(inputs, x + first, n * sizeof(float));
        std::memcpy(gates, gate + first, n * sizeof(float));
        for (int i = 0; i < 32; i += L) {
            const vf before = load(s + i);
            store(s + i, fma(sigmoid(load(gates + i)), load(inputs + i) - before, before));
        }
    }
    void copy(float* to, const float* from) const { std::memcpy(to, from, n * sizeof(float)); }
};

// Rows are applied one after the other, whatever the step: so are the bits. An item is a block of channels, of all
// rows.
static void recur(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<RecurParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* gate = cmd.buffers[1].as<float>();
    auto* records = cmd.buffers[2].as<float>();
    auto* out_f32 = cmd.buffers[3].as<float>();
    auto* out_q8 = cmd.buffers[4].as<std::byte>();
    const auto* where = cmd.buffers[5].as<Row>();
    const auto* spans = cmd.buffers[6].as<StateSpan>();
    const auto* slots = cmd.buffers[7].as<SlotState>();
    const std::size_t dim = p.dim;
    const Q8Layout at(dim);
    auto blocks = worker.claim((dim + 31) / 32, kGatedBlock * p.rows);
    while (blocks.next()) {
        for (std::uint64_t b = blocks.begin; b < blocks.end; ++b) {
            const RecurBlock block{b * 32, std::min<std::size_t>(32, dim - b * 32)};
            float s[32] = {};
            u32 slot = ~0u;
            for (std::size_t r = 0; r < p.rows; ++r) {
                const u32 position = where[r].position + p.step;
                const bool begins = where[r].slot != slot;
                slot = where[r].slot;
                if (slots[slot].stopped) continue;  // the rest of a chain is of other sequences
                float* state = records + std::size_t{slot} * p.state_words;
                const auto stashed = [&](u32 i) { return state + dim + (i % kStashRows) * 2 * dim; };
                if (begins) {
                    u32 i = p.step ? position : spans[slot].from;
                    std::ranges::fill(s, 0.0f);
                    if (i != 0) block.copy(s, state + block.first);
                    for (; i < position; ++i) block.advance(s, stashed(i), stashed(i) + dim);
                }
                const float *inputs = x + r * dim, *gates = gate + r * dim;
                block.advance(s, inputs, gates);
                const u32 to = spans[slot].to + p.step;
                if (position + 1 == to) block.copy(state + block.first, s);
                if (position >= to) {
                    block.copy(stashed(position) + block.first, inputs + block.first);
                    block.copy(stashed(position) + dim + block.first, gates + block.first);
                }
                if (p.formats & kActF32) block.copy(out_f32 + r * dim + block.first, s);
                if (p.formats & kActQ8) quantize_block({out_q8 + r * at.stride, at}, b, s);
            }
        }
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
