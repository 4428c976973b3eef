// Whose keys a row sees, and how the results of blocks of keys become one.

namespace akunu::cpu::AKUNU_ISA {

// The keys that a query, or one of several, sees of a block: [from, to).
struct Keys {
    std::size_t from, to;
    bool empty() const { return from >= to; }
    void join(const Keys& other) {
        if (other.empty()) return;
        *this = empty() ? other : Keys{std::min(from, other.from), std::max(to, other.to)};
    }
    Keys within(const Keys& other) const { return {std::max(from, other.from), std::min(to, other.to)}; }
};

// That some row sees, at most.
static inline std::size_t keys_seen(const AttentionParams& p) { return p.fixed_keys ? p.fixed_keys : p.keys; }

// The first key that a query at position `pos` sees.
static inline std::size_t first_key(std::size_t pos, u32 window) {
    return window && pos + 1 > window ? pos + 1 - window : 0;
}

// One block's result for a query: the greatest score and Σ exp(score - max), which is 0 when no key is seen.
struct BlockStats {
    float max, sum;
};

// Running softmax over blocks: (max, sum, out) of what has been merged so far.
struct Running {
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0;
    float* out;
    void merge(const BlockStats& b, const float* b_out, std::size_t head_dim) {
        if (b.sum == 0) return;
        const float top = std::max(max, b.max);
        const float keep = sum == 0 ? 0.0f : std::exp(max - top), add = std::exp(b.max - top);
        for (std::size_t d = 0; d < head_dim; ++d) out[d] = (keep == 0 ? 0.0f : out[d] * keep) + b_out[d] * add;
        sum = sum * keep + b.sum * add;
        max = top;
    }
    // `sink`: a score that has no value, or null.
    void finish(std::size_t head_dim, const float* sink) const {
        const float total = sink ? sum + std::exp(*sink - max) : sum;
        for (std::size_t d = 0; d < head_dim; ++d) out[d] /= total;
    }
};

// A run of rows of one sequence.
struct Span {
    std::size_t first_row, rows, position;
    const u32* pages;
    std::size_t keys;  // of the sequence, where rows see what comes after them
};

// Behind the last key that a span's row sees.
static inline std::size_t end_of_keys(const AttentionParams& p, const Span& span, std::size_t row) {
    if (p.fixed_keys) return p.fixed_keys;
    const std::size_t pos = span.position + row;
    if (!p.bidirectional) return pos + 1;
    return p.window ? std::min(span.keys, pos + p.window) : span.keys;
}

// Rows [first, end) of one sequence, for the memory of a command's buffers.
static inline Span row_span(const DispatchCmd& cmd, const AttentionParams& p, std::size_t first, std::size_t end) {
    const Row* rows = cmd.buffers[3].as<Row>();
    const Row& row = rows[first];
    std::size_t keys = 0;
    if (p.bidirectional) {
        std::size_t last = end - 1;
        while (last + 1 < p.rows && rows[last + 1].slot == row.slot) ++last;
        keys = rows[last].position + std::size_t{1};
    }
    return {first, end - first, row.position + p.step, cmd.buffers[4].as<u32>() + std::size_t{row.slot} * p.max_pages,
            keys};
}

// Calls f(span) for each of the rows [first, end).
template <typename F>
static inline void for_spans(const DispatchCmd& cmd, const AttentionParams& p, std::size_t first, std::size_t end,
                             F&& f) {
    const Row* rows = cmd.buffers[3].as<Row>();
    for (std::size_t next; first < end; first = next) {
        for (next = first + 1; next < end && rows[next].slot == rows[first].slot;) ++next;
        f(row_span(cmd, p, first, next));
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
