// Adapters: t = A·x and y += B·t, each row with the adapter of its sequence. A row's sums go in one order, whatever
// rows stand beside it; a row without an adapter is not touched.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kLoraRows = 16, kLoraRanks = 4, kLoraColumns = 256;

// The adapter of the rows that a command has.
struct RowAdapters {
    const Row* rows;
    const AdapterChoice* choices;
    const u32* gathered;  // or null

    AdapterChoice of(std::uint64_t row) const { return choices[rows[gathered ? gathered[row] : row].slot]; }
};

static inline RowAdapters row_adapters(const DispatchCmd& cmd, const LoraParams& p) {
    return {cmd.buffers[3].as<Row>(), cmd.buffers[4].as<AdapterChoice>(),
            p.gather ? cmd.buffers[5].as<u32>() : nullptr};
}

// A layer's part of the adapter with that number.
struct AdapterPart {
    AdapterPart(const std::byte* adapters, const LoraParams& p, u32 number)
        : base(adapters + std::size_t{number - 1} * p.slot_words * 4) {
        std::memcpy(&head, base, sizeof head);
    }
    const std::uint16_t* a() const { return reinterpret_cast<const std::uint16_t*>(base + kAdapterHeadBytes); }
    const std::uint16_t* b(const LoraParams& p) const {
        return reinterpret_cast<const std::uint16_t*>(base + kAdapterHeadBytes + lora_a_bytes(p.max_rank, p.k));
    }
    const std::byte* base;
    AdapterHead head;
};

// Pieces of adapters are too short for the processor to see that they are read in order: while one is multiplied, the
// next one is fetched. Of several rows each may have an adapter of its own.
constexpr std::size_t kLineHalves = 64 / sizeof(std::uint16_t);

// out[r] = scale·(A[r]·x) of N neighbouring ranks, while as many of `next` are fetched.
template <int N>
static inline void lora_dots(const std::uint16_t* a, std::size_t k, const float* x, float scale, float* out,
                             const std::uint16_t* next) {
    vf sum[N];
    for (int r = 0; r < N; ++r) sum[r] = zero();
    std::size_t i = 0;
    for (; i + L <= k; i += L) {
        for (std::size_t h = i * N; h < (i + L) * N; h += kLineHalves) __builtin_prefetch(next + h);
        const vf v = load(x + i);
        for (int r = 0; r < N; ++r) sum[r] = fma(load_half(a + static_cast<std::size_t>(r) * k + i), v, sum[r]);
    }
    for (int r = 0; r < N; ++r) {
        float total = reduce_add(sum[r]);
        for (std::size_t j = i; j < k; ++j) total += half_to_float(a[static_cast<std::size_t>(r) * k + j]) * x[j];
        out[r] = total * scale;
    }
}

// Calls f(unit, row, scale, part, then, after) for the rows of units, those that have an adapter, with what comes after
// each: its unit and its part, or their own.
template <typename F>
static inline void for_adapted_rows(const RowAdapters& of_rows, const std::byte* adapters, const LoraParams& p,
                                    std::uint64_t begin, std::uint64_t end, std::size_t across, const F& f) {
    struct At {
        std::uint64_t unit;
        std::size_t row;
        AdapterChoice choice;
    };
    std::optional<At> last;
    const auto flush = [&](const std::optional<At>& next) {
        if (!last) return;
        const AdapterPart part(adapters, p, last->choice.number);
        const AdapterPart after = next ? AdapterPart(adapters, p, next->choice.number) : part;
        f(last->unit, last->row, last->choice.scale, part, next ? next->unit : last->unit, after);
    };
    for (std::uint64_t u = begin; u < end; ++u) {
        const std::size_t row = u / across * kLoraRows;
        for (std::size_t r = row; r < std::min<std::size_t>(row + kLoraRows, p.rows); ++r) {
            const AdapterChoice choice = of_rows.of(r);
            if (choice.number == 0) continue;
            const std::optional<At> at = At{u, r, choice};
            flush(at);
            last = at;
        }
    }
    flush({});
}

// An item is some ranks of some rows.
static void lora_a(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<LoraParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* adapters = cmd.buffers[1].as<std::byte>();
    auto* t = cmd.buffers[2].as<float>();
    const RowAdapters of_rows = row_adapters(cmd, p);
    const std::size_t groups = (p.max_rank + kLoraRanks - 1) / kLoraRanks;
    const std::size_t blocks = (p.rows + kLoraRows - 1) / kLoraRows;
    auto units = worker.claim(groups * blocks, kLoraRanks * std::min<std::size_t>(p.rows, kLoraRows) * 2 * p.k);
    const auto piece = [&](std::uint64_t u, std::size_t r, float scale_of_row, const AdapterPart& part,
                           std::uint64_t then, const AdapterPart& after) {
        const std::size_t first = u % groups * kLoraRanks;
        if (first >= part.head.rank) return;
        const std::uint16_t *a = part.a() + first * p.k, *next = after.a() + then % groups * kLoraRanks * p.k;
        const float scale = part.head.scale * scale_of_row;
        const float* in = x + r * p.k;
        float* out = t + r * p.max_rank + first;
        switch (std::min<std::size_t>(part.head.rank - first, kLoraRanks)) {
            case 1:
                lora_dots<1>(a, p.k, in, scale, out, next);
                break;
            case 2:
                lora_dots<2>(a, p.k, in, scale, out, next);
                break;
            case 3:
                lora_dots<3>(a, p.k, in, scale, out, next);
                break;
            default:
                lora_dots<kLoraRanks>(a, p.k, in, scale, out, next);
        }
    };
    while (units.next()) for_adapted_rows(of_rows, adapters, p, units.begin, units.end, groups, piece);
}

// An item is some columns of some rows.
static void lora_b(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<LoraParams>(params);
    const auto* t = cmd.buffers[0].as<float>();
    const auto* adapters = cmd.buffers[1].as<std::byte>();
    auto* y = cmd.buffers[2].as<float>();
    const RowAdapters of_rows = row_adapters(cmd, p);
    const std::size_t strips = (p.n + kLoraColumns - 1) / kLoraColumns;
    const std::size_t blocks = (p.rows + kLoraRows - 1) / kLoraRows;
    auto units =
        worker.claim(strips * blocks, kLoraColumns * std::min<std::size_t>(p.rows, kLoraRows) * 2 * p.max_rank);
    const auto piece = [&](std::uint64_t u, std::size_t r, float, const AdapterPart& part, std::uint64_t then,
                           const AdapterPart& after) {
        if (part.head.rank == 0) return;
        const std::size_t first = u % strips * kLoraColumns;
        const std::size_t end = std::min<std::size_t>(first + kLoraColumns, p.n);
        const std::uint16_t *b = part.b(p), *next = after.b(p) + then % strips * kLoraColumns;
        const float* in = t + r * p.max_rank;
        float* out = y + r * p.y_stride;
        std::size_t j = first;
        for (; j + L <= end; j += L) {
            const bool fetches = (j - first) % kLineHalves == 0;
            vf sum = zero();
            for (u32 i = 0; i < part.head.rank; ++i) {
                if (fetches) __builtin_prefetch(next + std::size_t{i} * p.n + (j - first));
                sum = fma(set1(in[i]), load_half(b + std::size_t{i} * p.n + j), sum);
            }
            store(out + j, load(out + j) + sum);
        }
        for (; j < end; ++j) {
            float sum = 0;
            for (u32 i = 0; i < part.head.rank; ++i) sum += in[i] * half_to_float(b[std::size_t{i} * p.n + j]);
            out[j] += sum;
        }
    };
    while (units.next()) for_adapted_rows(of_rows, adapters, p, units.begin, units.end, strips, piece);
}

}  // namespace akunu::cpu::AKUNU_ISA
