// States that chunks of kChunkRows rows, counted from a sequence's position 0, advance: S [keys][values] of each head.
//
// A row decays S, and then adds its key times what it writes, u. So one row reads S once and writes what it adds to it
// beside it; many rows of a chunk read S together; and each sum goes through its terms in the same order, whichever
// rows of the chunk a step has. Rows that may be refused change S nowhere: it is written where a chunk has ended whose
// rows count.

namespace akunu::cpu::AKUNU_ISA {

// sums[m][w] += Σ_i x[m][i]·s[i][w], in the order of i.
template <int M, int W>
static inline void add_products(vf (&sums)[M][W], const float* x, std::size_t x_stride, const float* s,
                                std::size_t s_stride, std::size_t n) {
    vf local[M][W];  // in registers: `sums` may stay in memory
    for (int m = 0; m < M; ++m) {
        for (int w = 0; w < W; ++w) local[m][w] = sums[m][w];
    }
    for (std::size_t i = 0; i < n; ++i) {
        vf right[W];
        for (int w = 0; w < W; ++w) right[w] = load(s + i * s_stride + static_cast<std::size_t>(w * L));
        for (int m = 0; m < M; ++m) {
            const vf left = set1(x[static_cast<std::size_t>(m) * x_stride + i]);
            for (int w = 0; w < W; ++w) local[m][w] = fma(left, right[w], local[m][w]);
        }
    }
    for (int m = 0; m < M; ++m) {
        for (int w = 0; w < W; ++w) sums[m][w] = local[m][w];
    }
}

// Calls f.operator()<W>(first column) over strips of W vectors, and of one where `columns` leave a rest.
template <int W, typename F>
static inline void for_strips(std::size_t columns, F&& f) {
    std::size_t first = 0;
    for (; first + W * L <= columns; first += W * L) f.template operator()<W>(first);
    for (; first < columns; first += L) f.template operator()<1>(first);
}

// Heads of one sequence that share their keys, with a record as DeltaRecord has it: keys are those of a "key head", and
// the heads those of its values.
class ChunkedStates {
  public:
    static constexpr std::size_t kRows = kChunkRows, kLanes = kRows / L;
    // Vectors of a strip of values, for one row and for two.
    static constexpr int kWide = kVectorRegisters >= 32 ? 8 : 4, kNarrow = kWide / 2;
    static constexpr int kNear =
        kNarrow < static_cast<int>(kLanes) ? kNarrow : static_cast<int>(kLanes);  // of a chunk's rows
    // Decays below this count as none: their products would be subnormal, which takes long.
    static constexpr float kNothing = 1e-30f;

  protected:
    struct Sizes {
        u32 key_heads, heads, key_dim, value_dim;
        bool grouped;  // see DeltaRuleParams
    };

    ChunkedStates(const Sizes& sizes, std::byte* scratch)
        : sizes_(sizes),
          at_(delta_record(sizes.key_heads, sizes.heads, sizes.key_dim, sizes.value_dim)),
          heads_(sizes.heads / sizes.key_heads),
          next_(reinterpret_cast<float*>(scratch)) {
        keys_ = take(sizes.key_dim * kRows);
        refused_ = take(heads_ * sizes.key_dim * at_.width);
    }

    // Floats of the scratch that are left.
    float* take(std::size_t n) { return std::exchange(next_, next_ + n); }

    // Rows [row, row + n) of a sequence, the first of which is at `position`. The record's state is that before the
    // chunk of position `from`; rows before `to` count. Calls run_rows(chunk, states, row, n, first) for rows [first,
    // first + n) of a chunk, the first of which is `row` of the step.
    template <typename F>
    void run_chunks(float* record, u32 head, std::size_t row, std::size_t n, u32 position, u32 from, u32 to,
                    const F& run_rows) {
        record_ = record;
        head_ = head;
        const float* states = record;  // of the heads, from one to the next
        std::size_t chunk = from / kRows;
        for (; chunk < position / kRows; ++chunk) end_chunk(chunk, record, record);
        for (std::size_t i = 0; i < n;) {
            const std::size_t first = (position + i) % kRows, rows = std::min(n - i, kRows - first);
            run_rows(chunk, states, row + i, rows, first);
            i += rows;
            if (first + rows < kRows) break;
            const std::size_t end = ++chunk * kRows;
            if (end <= to) {
                end_chunk(chunk - 1, record, record);
            } else if (i < n) {
                end_chunk(chunk - 1, states, refused_);
                states = refused_;
            }
        }
    }

    std::size_t value_head(std::size_t i) const {
        return sizes_.grouped ? head_ * heads_ + i : i * sizes_.key_heads + head_;
    }
    // The state of value head i, in the record or where those lie whose rows may be refused.
    template <typename T>
    T* state(T* states, std::size_t i) const {
        return states + (states == refused_ ? i : value_head(i)) * sizes_.key_dim * at_.width;
    }
    float* written(std::size_t chunk, std::size_t i) const {
        return record_ + at_.written + (2 * value_head(i) + chunk % 2) * kRows * at_.width;
    }
    float* decays(std::size_t chunk, std::size_t i) const {
        return record_ + at_.decays + (2 * value_head(i) + chunk % 2) * kRows;
    }
    float* keys(std::size_t chunk) const {
        return record_ + at_.keys + (2 * head_ + chunk % 2) * sizes_.key_dim * kRows;
    }

    // The products of decays since each row of the chunk up to row i, and of all decays: f(i, the first, the second)
    // for all i < n.
    template <typename F>
    void for_decays(const float* decay, std::size_t n, F&& f) const {
        alignas(64) float lane[kRows];
        for (std::size_t j = 0; j < kRows; ++j) lane[j] = static_cast<float>(j);
        vf between[kLanes] = {};
        float since = 1.0f;
        for (std::size_t i = 0; i < n; ++i) {
            const vf d = set1(decay[i]), at = set1(static_cast<float>(i));
            for (std::size_t l = 0; l < kLanes; ++l) {
                const vf product = between[l] * d, kept = product < set1(kNothing) ? zero() : product;
                between[l] = load(lane + l * L) == at ? set1(1.0f) : kept;
            }
            since *= decay[i];
            if (since < kNothing) since = 0.0f;
            f(i, between, since);
        }
    }

    const Sizes sizes_;
    const DeltaRecord at_;
    const std::size_t heads_;  // of values
    float* record_ = nullptr;
    std::size_t head_ = 0;

  private:
    // The states behind a chunk, from those before it.
    void end_chunk(std::size_t chunk, const float* from, float* to) const {
        const std::size_t dim = sizes_.key_dim, width = at_.width;
        const float* keys = this->keys(chunk);
        for (std::size_t i = 0; i < heads_; ++i) {
            float since = 0;
            for_decays(decays(chunk, i), kRows, [&](std::size_t at, const vf(&between)[kLanes], float all) {
                if (at + 1 < kRows) return;
                since = all;
                for (std::size_t d = 0; d < dim; ++d) {
                    for (std::size_t l = 0; l < kLanes; ++l) {
                        store(keys_ + d * kRows + l * L, load(keys + d * kRows + l * L) * between[l]);
                    }
                }
            });
            const float *u = written(chunk, i), *before = chunk != 0 ? state(from, i) : nullptr;
            float* behind = state(to, i);
            for_strips<kNarrow>(width, [&]<int W>(std::size_t at) {
                for (std::size_t d = 0; d < dim; d += 4) {
                    write<W>(before ? before + d * width + at : nullptr, behind + d * width + at, since, d, u + at);
                }
            });
        }
    }

    // Four rows of a state, W vectors of each, from those before the chunk.
    template <int W>
    [[gnu::noinline]] void write(const float* before, float* behind, float since, std::size_t d, const float* u) const {
        const auto at = [&](int m, int w) {
            return static_cast<std::size_t>(m) * at_.width + static_cast<std::size_t>(w * L);
        };
        vf sums[4][W] = {};
        for (int m = 0; m < 4 && before; ++m) {
            for (int w = 0; w < W; ++w) sums[m][w] = set1(since) * load(before + at(m, w));
        }
        add_products(sums, keys_ + d * kRows, kRows, u, at_.width, kRows);
        for (int m = 0; m < 4; ++m) {
            for (int w = 0; w < W; ++w) store(behind + at(m, w), sums[m][w]);
        }
    }

    float* next_;
    float *keys_, *refused_;
};

// What a command has besides what it computes of.
struct StateInputs {
    std::byte* records;
    u32 state_words, step, rows, key_heads;
    const Row* where;
    const StateSpan* spans;
    const SlotState* slots;
};

// An item is a key head with its value heads, of one sequence's rows, worth bytes(sequences) as Worker::claim counts
// it. Each goes to `run` of what make() makes once for a worker.
template <typename Bytes, typename Make>
static void for_states(const StateInputs& in, const Worker& worker, const Bytes& bytes, const Make& make) {
    std::size_t sequences = 0;
    for_sequence_rows(in.where, in.rows, [&](std::size_t, std::size_t) { ++sequences; });
    auto items = worker.claim(sequences * in.key_heads, bytes(sequences));
    if (!items.next()) return;
    auto heads = make();
    do {
        std::size_t sequence = 0;
        for_sequence_rows(in.where, in.rows, [&](std::size_t row, std::size_t n) {
            const std::uint64_t first = sequence++ * in.key_heads;
            const u32 slot = in.where[row].slot, position = in.where[row].position + in.step;
            if (in.slots[slot].stopped) return;  // the rest of a chain is of other sequences
            const u32 from = in.step ? position : in.spans[slot].from, to = in.spans[slot].to + in.step;
            auto* record = reinterpret_cast<float*>(in.records) + std::size_t{slot} * in.state_words;
            for (auto u = std::max(items.begin, first); u < std::min(items.end, first + in.key_heads); ++u) {
                heads.run(record, static_cast<u32>(u - first), row, n, position, from, to);
            }
        });
    } while (items.next());
}

}  // namespace akunu::cpu::AKUNU_ISA
