// The gated delta rule, in chunks of kChunkRows rows that are counted from a sequence's position 0.
//
// With S as it is before a chunk, and what its rows j < i have written, u_j, row i needs no other state:
//   E_i = decay_0 ··· decay_i,  D_ij = decay_{j+1} ··· decay_i
//   u_i = beta_i·(v_i - E_i·k_iᵀS - Σ_{j<i} D_ij·(k_i·k_j)·u_j)
//   o_i = E_i·q_iᵀS + Σ_{j<=i} D_ij·(q_i·k_j)·u_j
// and behind the chunk's last row S = E·S + Σ_j D_j·k_j·u_jᵀ (see chunked_states.inl).

namespace akunu::cpu::AKUNU_ISA {

// A key head and its value heads, of one sequence.
class DeltaGroup : ChunkedStates {
  public:
    DeltaGroup(const DispatchCmd& cmd, const DeltaRuleParams& p, std::byte* scratch)
        : ChunkedStates({p.key_heads, p.value_heads, p.key_dim, p.value_dim, p.grouped != 0}, scratch),
          cmd_(cmd),
          p_(p) {
        qk_ = take(2 * kRows * p.key_dim);
        dots_ = take(2 * kRows * kRows);
        factors_ = take(2 * kRows * kRows);
        since_ = take(kRows);
        beta_ = take(kRows);
        v_ = take(kRows * at_.width);
        o_ = take(kRows * at_.width);
        weight_ = take(at_.width);
        std::ranges::fill_n(weight_, at_.width, 0.0f);
        std::memcpy(weight_, cmd.buffers[3].as<float>() + 2 * p.value_heads, p.value_dim * sizeof(float));
    }

    void run(float* record, u32 head, std::size_t row, std::size_t n, u32 position, u32 from, u32 to) {
        run_chunks(record, head, row, n, position, from, to,
                   [&](std::size_t chunk, const float* states, std::size_t at, std::size_t rows, std::size_t first) {
                       run_rows(chunk, states, at, rows, first);
                   });
    }

  private:
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

    // Dot products of M rows, of k and of q by turns, and W vectors of keys.
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

    const DispatchCmd& cmd_;
    const DeltaRuleParams& p_;
    // What the rows at hand need; each has k and q by turns where it has both.
    float *qk_, *dots_, *factors_, *since_, *beta_, *v_, *o_;
    float* weight_;
};

static void delta_rule(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<DeltaRuleParams>(params);
    const StateInputs in{cmd.buffers[4].as<std::byte>(),
                         p.state_words,
                         p.step,
                         p.rows,
                         p.key_heads,
                         cmd.buffers[7].as<Row>(),
                         cmd.buffers[8].as<StateSpan>(),
                         cmd.buffers[9].as<SlotState>()};
    // A product takes a quarter of what reading its element of the state does.
    const std::uint64_t state = std::uint64_t{p.value_heads / p.key_heads} * p.key_dim * p.value_dim;
    for_states(
        in, worker, [&](std::size_t sequences) { return 4 * state + state * p.rows / sequences; },
        [&] { return DeltaGroup(cmd, p, worker.scratch); });
}

}  // namespace akunu::cpu::AKUNU_ISA
