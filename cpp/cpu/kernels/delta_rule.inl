// The gated delta rule, in chunks of kChunkRows rows that are counted from a text's position 0.
//
// With S as it is before a chunk, and what its rows j < i have written, u_j, row i needs no other state:
//   E_i = decay_0 ··· decay_i,  D_ij = decay_{j+1} ··· decay_i
//   u_i = beta_i·(v_i - E_i·k_iᵀS - Σ_{j<i} D_ij·(k_i·k_j)·u_j)
//   o_i = E_i·q_iᵀS + Σ_{j<=i} D_ij·(q_i·k_j)·u_j
// and behind the chunk's last row S = E·S + Σ_j D_j·k_j·u_jᵀ. So one row reads S once and writes what it adds to it
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

// A key head and its value heads, of one text.
class DeltaGroup {
  public:
    static constexpr std::size_t kRows = kChunkRows, kLanes = kRows / L;
    // Vectors of a strip of values, for one row and for two.
    static constexpr int kWide = kVectorRegisters >= 32 ? 8 : 4, kNarrow = kWide / 2;
    static constexpr int kNear =
        kNarrow < static_cast<int>(kLanes) ? kNarrow : static_cast<int>(kLanes);  // of a chunk's rows
    // Decays below this count as none: their products would be subnormal, which takes long.
    static constexpr float kNothing = 1e-30f;

    DeltaGroup(const DispatchCmd& cmd, const DeltaRuleParams& p, std::byte* scratch)
        : cmd_(cmd),
          p_(p),
          at_(delta_record(p.key_heads, p.value_heads, p.key_dim, p.value_dim)),
          heads_(p.value_heads / p.key_heads) {
        auto* next = reinterpret_cast<float*>(scratch);
        const auto take = [&](std::size_t n) { return std::exchange(next, next + n); };
        qk_ = take(2 * kRows * p.key_dim);
        dots_ = take(2 * kRows * kRows);
        factors_ = take(2 * kRows * kRows);
        since_ = take(kRows);
        beta_ = take(kRows);
        v_ = take(kRows * at_.width);
        o_ = take(kRows * at_.width);
        keys_ = take(p.key_dim * kRows);
        weight_ = take(at_.width);
        std::ranges::fill_n(weight_, at_.width, 0.0f);
        std::memcpy(weight_, cmd.buffers[3].as<float>() + 2 * p.value_heads, p.value_dim * sizeof(float));
        refused_ = take(heads_ * p.key_dim * at_.width);
    }

    // Rows [row, row + n) of a text, the first of which is at `position`. The record's state is that before the chunk
    // of position `from`; rows before `to` count.
    void run(float* record, u32 head, std::size_t row, std::size_t n, u32 position, u32 from, u32 to) {
        record_ = record;
        head_ = head;
        const float* states = record;  // of the group's heads, from one to the next
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

  private:
    std::size_t value_head(std::size_t i) const { return p_.grouped ? head_ * heads_ + i : i * p_.key_heads + head_; }
    // Of the group's value head i, in the record or where those lie whose rows may be refused.
    template <typename T>
    T* state(T* states, std::size_t i) const {
        return states + (states == refused_ ? i : value_head(i)) * p_.key_dim * at_.width;
    }
    float* written(std::size_t chunk, std::size_t i) const {
        return record_ + at_.written + (2 * value_head(i) + chunk % 2) * kRows * at_.width;
    }
    float* decays(std::size_t chunk, std::size_t i) const {
        return record_ + at_.decays + (2 * value_head(i) + chunk % 2) * kRows;
    }
    float* keys(std::size_t chunk) const { return record_ + at_.keys + (2 * head_ + chunk % 2) * p_.key_dim * kRows; }

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

    // Rows [first, first + n) of a chunk.
    void run_rows(std::size_t chunk, const float* states, std::size_t row, std::size_t n, std::size_t first) {
        load_qk(chunk, row, n, first);
        for (std::size_t i = 0; i < heads_; ++i) {
            load_values(chunk, i, row, n, first);
            const float* s = chunk != 0 ? state(states, i) : nullptr;  // that before position 0 is zeros
            float* u = written(chunk, i);
            if (n == 1) {
                for_strips<kWide>(at_.width, [&]<int W>(std::size_t at) { tile<1, W>(s, u, 0, first, at); });
            } else {
                for_strips<kNarrow>(at_.width, [&]<int W>(std::size_t at) {
                    std::size_t r = 0;
                    for (; r + 2 <= n; r += 2) tile<2, W>(s, u, r, first, at);
                    if (r < n) tile<1, W>(s, u, r, first, at);
                });
            }
            for (std::size_t r = 0; r < n; ++r) output(value_head(i), row + r, o_ + r * at_.width);
        }
    }

    // k and q of rows, each of length 1, and their products with all k of the chunk so far.
    void load_qk(std::size_t chunk, std::size_t row, std::size_t n, std::size_t first) {
        const std::size_t dim = p_.key_dim, all = p_.key_heads * dim;
        float* keys = this->keys(chunk);
        for (std::size_t r = 0; r < n; ++r) {
            const float* q =
                cmd_.buffers[0].as<float>() + (row + r) * (2 * all + p_.value_heads * p_.value_dim) + head_ * dim;
            float *k_to = qk_ + 2 * r * dim, *q_to = k_to + dim;
            scale_to(k_to, q + all, 1.0f);
            scale_to(q_to, q, p_.scale);
            for (std::size_t d = 0; d < dim; ++d) keys[d * kRows + first + r] = k_to[d];
        }
        const std::size_t lanes = (first + n + L - 1) / L * L;
        for_strips<kNear>(lanes, [&]<int W>(std::size_t at) {
            std::size_t r = 0;
            for (; r + 4 <= 2 * n; r += 4) dots<4, W>(keys, r, at);
            if (r < 2 * n) dots<2, W>(keys, r, at);
        });
    }

    // Of M rows of k and of q by turns, and W vectors of keys.
    template <int M, int W>
    [[gnu::noinline]] void dots(const float* keys, std::size_t r, std::size_t at) const {
        vf sums[M][W] = {};
        add_products(sums, qk_ + r * p_.key_dim, p_.key_dim, keys + at, kRows, p_.key_dim);
        for (int m = 0; m < M; ++m) {
            for (int w = 0; w < W; ++w) {
                store(dots_ + (r + static_cast<std::size_t>(m)) * kRows + at + static_cast<std::size_t>(w * L),
                      sums[m][w]);
            }
        }
    }

    void scale_to(float* to, const float* x, float scale) const {
        vf sum = zero();
        std::size_t i = 0;
        for (; i + L <= p_.key_dim; i += L) sum = fma(load(x + i), load(x + i), sum);
        float squares = reduce_add(sum);
        for (; i < p_.key_dim; ++i) squares += x[i] * x[i];
        scale /= std::sqrt(squares + p_.l2_eps);
        for (i = 0; i < p_.key_dim; ++i) to[i] = x[i] * scale;
    }

    // What rows have of the group's value head i: v, beta, decays, and the factors of what the chunk's rows write.
    void load_values(std::size_t chunk, std::size_t i, std::size_t row, std::size_t n, std::size_t first) {
        const std::size_t h = value_head(i), stride = 2 * p_.key_heads * p_.key_dim + p_.value_heads * p_.value_dim;
        const float* v = cmd_.buffers[0].as<float>() + 2 * p_.key_heads * p_.key_dim + h * p_.value_dim;
        const float* gates = cmd_.buffers[1].as<float>();
        const float* constants = cmd_.buffers[3].as<float>();
        float a[kRows] = {}, b[kRows] = {};
        for (std::size_t r = 0; r < n; ++r) {
            const float* gate = gates + (row + r) * 2 * p_.value_heads + h;
            b[r] = gate[0];
            a[r] = gate[p_.value_heads];
            std::memcpy(v_ + r * at_.width, v + (row + r) * stride, p_.value_dim * sizeof(float));
            std::ranges::fill(v_ + r * at_.width + p_.value_dim, v_ + (r + 1) * at_.width, 0.0f);
        }
        const vf a_log = set1(constants[h]), bias = set1(constants[p_.value_heads + h]);
        for (std::size_t r = 0; r < n; r += L) {
            store(beta_ + r, sigmoid(load(b + r)));
            store(a + r, exp_(a_log * softplus(load(a + r) + bias)));
        }
        float* decay = decays(chunk, i);
        std::memcpy(decay + first, a, n * sizeof(float));
        for_decays(decay, first + n, [&](std::size_t at, const vf(&between)[kLanes], float since) {
            if (at < first) return;
            const std::size_t r = at - first;
            since_[r] = since;
            for (std::size_t l = 0; l < kLanes; ++l) {
                const float* dots = dots_ + 2 * r * kRows + l * L;
                float* to = factors_ + 2 * r * kRows + l * L;
                store(to, -(load(dots) * between[l]));
                store(to + kRows, load(dots + kRows) * between[l]);
            }
        });
    }

    // W vectors, from column `at` on, of M rows, the first of which is row r of the step's and `first + r` of the
    // chunk's: what they write, and their outputs.
    template <int M, int W>
    [[gnu::noinline]] void tile(const float* s, float* u, std::size_t r, std::size_t first, std::size_t at) const {
        const std::size_t width = at_.width, row = first + r;
        const auto column = [&](int w) { return at + static_cast<std::size_t>(w * L); };
        const float* factors = factors_ + 2 * r * kRows;
        vf sums[2 * M][W] = {};  // by turns: of k, of q
        if (s) add_products(sums, qk_ + 2 * r * p_.key_dim, p_.key_dim, s + at, width, p_.key_dim);
        for (int m = 0; m < M; ++m) {
            const std::size_t i = r + static_cast<std::size_t>(m);
            const vf since = set1(since_[i]);
            for (int w = 0; w < W; ++w) {
                sums[2 * m][w] = fma(-since, sums[2 * m][w], load(v_ + i * width + column(w)));
                sums[2 * m + 1][w] = since * sums[2 * m + 1][w];
            }
        }
        add_products(sums, factors, kRows, u + at, width, row);
        for (int m = 0; m < M; ++m) {
            const std::size_t i = r + static_cast<std::size_t>(m), j = row + static_cast<std::size_t>(m);
            const vf beta = set1(beta_[i]);
            for (int w = 0; w < W; ++w) {
                const vf written = beta * sums[2 * m][w];
                store(u + j * width + column(w), written);
                for (int later = m; later < M; ++later) {
                    const float* of = factors + 2 * static_cast<std::size_t>(later) * kRows + j;
                    if (later > m) sums[2 * later][w] = fma(set1(of[0]), written, sums[2 * later][w]);
                    sums[2 * later + 1][w] = fma(set1(of[kRows]), written, sums[2 * later + 1][w]);
                }
                store(o_ + i * width + column(w), sums[2 * m + 1][w]);
            }
        }
    }

    // rms_norm(o)·norm·silu(z)
    void output(std::size_t h, std::size_t row, float* o) const {
        const std::size_t dim = p_.value_dim, columns = p_.value_heads * dim;
        const float* z = cmd_.buffers[2].as<float>() + row * columns + h * dim;
        const vf scale = set1(rms_scale(o, dim, p_.norm_eps));
        std::size_t i = 0;
        for (; i + L <= dim; i += L) store(o + i, load(o + i) * scale * load(weight_ + i) * silu(load(z + i)));
        if (i < dim) {
            store(o + i, load(o + i) * scale * load(weight_ + i) * silu(load_first(z + i, static_cast<int>(dim - i))));
        }
        if (p_.formats & kActF32) {
            std::memcpy(cmd_.buffers[5].as<float>() + row * columns + h * dim, o, dim * sizeof(float));
        }
        if (p_.formats & kActQ8) {
            const Q8Layout at(columns);
            const Q8Row to{cmd_.buffers[6].as<std::byte>() + row * at.stride, at};
            for (std::size_t b = 0; b < dim / 32; ++b) quantize_block(to, h * (dim / 32) + b, o + b * 32);
        }
    }

    // The states behind a chunk, from those before it.
    void end_chunk(std::size_t chunk, const float* from, float* to) const {
        const std::size_t dim = p_.key_dim, width = at_.width;
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

    const DispatchCmd& cmd_;
    const DeltaRuleParams& p_;
    const DeltaRecord at_;
    const std::size_t heads_;  // of values
    float* record_ = nullptr;
    std::size_t head_ = 0;
    // Of the rows at hand, each with k and q by turns where it has both.
    float *qk_, *dots_, *factors_, *since_, *beta_, *v_, *o_;
    float *keys_, *weight_, *refused_;
};

// An item is a key head with its value heads, of one text's rows.
static void delta_rule(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<DeltaRuleParams>(params);
    auto* records = cmd.buffers[4].as<float>();
    const auto* where = cmd.buffers[7].as<Row>();
    const auto* spans = cmd.buffers[8].as<StateSpan>();
    const auto* slots = cmd.buffers[9].as<SlotState>();
    std::size_t texts = 0;
    for_text_rows(where, p.rows, [&](std::size_t, std::size_t) { ++texts; });
    // A product takes a quarter of what reading its element of the state does.
    const std::uint64_t state = std::uint64_t{p.value_heads / p.key_heads} * p.key_dim * p.value_dim;
    auto items = worker.claim(texts * p.key_heads, 4 * state + state * p.rows / texts);
    if (!items.next()) return;
    DeltaGroup group(cmd, p, worker.scratch);
    do {
        std::size_t text = 0;
        for_text_rows(where, p.rows, [&](std::size_t row, std::size_t n) {
            const std::uint64_t first = text++ * p.key_heads;
            const u32 slot = where[row].slot, position = where[row].position + p.step;
            if (slots[slot].stopped) return;  // the rest of a chain is of other texts
            const u32 from = p.step ? position : spans[slot].from, to = spans[slot].to + p.step;
            for (auto u = std::max(items.begin, first); u < std::min(items.end, first + p.key_heads); ++u) {
                group.run(records + std::size_t{slot} * p.state_words, static_cast<u32>(u - first), row, n, position,
                          from, to);
            }
        });
    } while (items.next());
}

}  // namespace akunu::cpu::AKUNU_ISA
