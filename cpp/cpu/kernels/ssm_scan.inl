// The state of Mamba-2, in chunks of kChunkRows rows that are counted from a sequence's position 0.
//
// With S as it is before a chunk, and u_j = dt_j·x_j:
//   E_i = decay_0 ··· decay_i,  D_ij = decay_{j+1} ··· decay_i
//   y_i = E_i·C_iᵀS + Σ_{j<=i} D_ij·(C_i·B_j)·u_j + d·x_i
// and behind the chunk's last row S = E·S + Σ_j D_j·B_j·u_jᵀ (see chunked_states.inl).

namespace akunu::cpu::AKUNU_ISA {

// A block of neighbouring heads of one sequence, with B and C of their group.
class SsmHeads : ChunkedStates {
  public:
    SsmHeads(const DispatchCmd& cmd, const SsmScanParams& p, std::byte* scratch)
        : ChunkedStates({p.blocks, p.heads, p.state_dim, p.head_dim, true}, scratch),
          p_(p),
          dt_(cmd.buffers[1].as<float>()),
          constants_(cmd.buffers[2].as<float>()),
          xbc_(cmd.buffers[0].as<float>()),
          y_(cmd.buffers[4].as<float>()),
          values_(std::size_t{p.heads} * p.head_dim),
          channels_(values_ + 2 * std::size_t{p.groups} * p.state_dim) {
        dots_ = take(kRows * kRows);
        factors_ = take(kRows * kRows);
        since_ = take(kRows);
        o_ = take(kRows * at_.width);
    }

    void run(float* record, u32 block, std::size_t row, std::size_t n, u32 position, u32 from, u32 to) {
        run_chunks(record, block, row, n, position, from, to,
                   [&](std::size_t chunk, const float* states, std::size_t at, std::size_t rows, std::size_t first) {
                       run_rows(chunk, states, at, rows, first);
                   });
    }

  private:
    // B of a row of the step.
    const float* b_of(std::size_t row) const {
        const std::size_t group = head_ / (p_.blocks / p_.groups);
        return xbc_ + row * channels_ + values_ + group * p_.state_dim;
    }
    const float* c_of(std::size_t row) const { return b_of(row) + std::size_t{p_.groups} * p_.state_dim; }

    void run_rows(std::size_t chunk, const float* states, std::size_t row, std::size_t n, std::size_t first) {
        load_keys(chunk, row, n, first);
        for (std::size_t i = 0; i < heads_; ++i) {
            load_values(chunk, i, row, n, first);
            const float* s = chunk != 0 ? state(states, i) : nullptr;  // that before position 0 is zeros
            const float *u = written(chunk, i), *c = c_of(row);
            for_strips<kNarrow>(at_.width, [&]<int W>(std::size_t at) {
                std::size_t r = 0;
                for (; r + 4 <= n; r += 4) tile<4, W>(s, u, c, r, first, at);
                for (; r < n; ++r) tile<1, W>(s, u, c, r, first, at);
            });
            for (std::size_t r = 0; r < n; ++r) output(value_head(i), row + r, o_ + r * at_.width);
        }
    }

    // B of rows, and the products of their C with all B of the chunk so far.
    void load_keys(std::size_t chunk, std::size_t row, std::size_t n, std::size_t first) {
        float* keys = this->keys(chunk);
        for (std::size_t r = 0; r < n; ++r) {
            const float* b = b_of(row + r);
            for (std::size_t d = 0; d < p_.state_dim; ++d) keys[d * kRows + first + r] = b[d];
        }
        const std::size_t lanes = (first + n + L - 1) / L * L;
        for_strips<kNear>(lanes, [&]<int W>(std::size_t at) {
            std::size_t r = 0;
            for (; r + 4 <= n; r += 4) dots<4, W>(keys, c_of(row), r, at);
            for (; r < n; ++r) dots<1, W>(keys, c_of(row), r, at);
        });
    }

    // Dot products of the C of M rows and W vectors of B.
    template <int M, int W>
    [[gnu::noinline]] void dots(const float* keys, const float* c, std::size_t r, std::size_t at) const {
        vf sums[M][W] = {};
        add_products(sums, c + r * channels_, channels_, keys + at, kRows, p_.state_dim);
        for (int m = 0; m < M; ++m) {
            for (int w = 0; w < W; ++w) {
                store(dots_ + (r + static_cast<std::size_t>(m)) * kRows + at + static_cast<std::size_t>(w * L),
                      sums[m][w]);
            }
        }
    }

    // What rows of the block's head i write, their decays, and the factors of what the chunk's rows have written.
    void load_values(std::size_t chunk, std::size_t i, std::size_t row, std::size_t n, std::size_t first) {
        const std::size_t h = value_head(i), dim = p_.head_dim;
        float steps[kRows] = {}, decay_of[kRows] = {};
        for (std::size_t r = 0; r < n; ++r) steps[r] = dt_[(row + r) * p_.heads + h];
        const vf a = set1(constants_[h]), bias = set1(constants_[p_.heads + h]);
        for (std::size_t r = 0; r < n; r += L) {
            const vf step = softplus(load(steps + r) + bias);
            store(steps + r, step);
            store(decay_of + r, exp_(a * step));
        }
        float* u = written(chunk, i) + first * at_.width;
        for (std::size_t r = 0; r < n; ++r, u += at_.width) {
            const float* x = xbc_ + (row + r) * channels_ + h * dim;
            const vf step = set1(steps[r]);
            std::size_t v = 0;
            for (; v + L <= dim; v += L) store(u + v, step * load(x + v));
            for (; v < dim; ++v) u[v] = steps[r] * x[v];
            for (; v < at_.width; ++v) u[v] = 0.0f;
        }
        float* decay = decays(chunk, i);
        std::memcpy(decay + first, decay_of, n * sizeof(float));
        for_decays(decay, first + n, [&](std::size_t at, const vf(&between)[kLanes], float since) {
            if (at < first) return;
            const std::size_t r = at - first;
            since_[r] = since;
            for (std::size_t l = 0; l < kLanes; ++l) {
                store(factors_ + r * kRows + l * L, load(dots_ + r * kRows + l * L) * between[l]);
            }
        });
    }

    // W vectors, from column `at` on, of M rows, the first of which is row r of the step's and `first + r` of the
    // chunk's. To rows behind one, whose factors are 0, it is nothing.
    template <int M, int W>
    [[gnu::noinline]] void tile(const float* s, const float* u, const float* c, std::size_t r, std::size_t first,
                                std::size_t at) const {
        vf sums[M][W] = {};
        if (s) add_products(sums, c + r * channels_, channels_, s + at, at_.width, p_.state_dim);
        for (int m = 0; m < M; ++m) {
            const vf since = set1(since_[r + static_cast<std::size_t>(m)]);
            for (int w = 0; w < W; ++w) sums[m][w] = since * sums[m][w];
        }
        add_products(sums, factors_ + r * kRows, kRows, u + at, at_.width, first + r + static_cast<std::size_t>(M));
        for (int m = 0; m < M; ++m) {
            for (int w = 0; w < W; ++w) {
                store(o_ + (r + static_cast<std::size_t>(m)) * at_.width + at + static_cast<std::size_t>(w * L),
                      sums[m][w]);
            }
        }
    }

    // o + d·x
    void output(std::size_t h, std::size_t row, const float* o) const {
        const std::size_t dim = p_.head_dim;
        const float *x = xbc_ + row * channels_ + h * dim, d = constants_[2 * std::size_t{p_.heads} + h];
        float* y = y_ + row * values_ + h * dim;
        std::size_t v = 0;
        for (; v + L <= dim; v += L) store(y + v, fma(set1(d), load(x + v), load(o + v)));
        if (v < dim) {
            const int n = static_cast<int>(dim - v);
            store_first(y + v, fma(set1(d), load_first(x + v, n), load_first(o + v, n)), n);
        }
    }

    const SsmScanParams& p_;
    const float *dt_, *constants_, *xbc_;
    float* y_;
    const std::size_t values_, channels_;
    // What the rows at hand need.
    float *dots_, *factors_, *since_, *o_;
};

static void ssm_scan(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<SsmScanParams>(params);
    const StateInputs in{cmd.buffers[3].as<std::byte>(),
                         p.state_words,
                         p.step,
                         p.rows,
                         p.blocks,
                         cmd.buffers[5].as<Row>(),
                         cmd.buffers[6].as<StateSpan>(),
                         cmd.buffers[7].as<SlotState>()};
    // The cost is that of a delta rule with one product less.
    const std::uint64_t state = std::uint64_t{p.heads / p.blocks} * p.state_dim * p.head_dim;
    for_states(
        in, worker, [&](std::size_t sequences) { return 4 * state + state * p.rows / sequences * 2 / 3; },
        [&] { return SsmHeads(cmd, p, worker.scratch); });
}

}  // namespace akunu::cpu::AKUNU_ISA
