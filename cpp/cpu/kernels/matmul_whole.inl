// x·Wᵀ for weights in a format of their own (cpu/whole.h). A block of tokens is turned into what
// multiplies such weights once for all the rows of W that a worker has for it.

namespace akunu::cpu::AKUNU_ISA {

// Factors are a set's own:
//   kTokens, kMostTokens                          tokens of a block: a multiple, at most
//   kProductsPerByte                              as Worker::claim counts work
//   group_bytes(dtype, k)                         of a group of weights
//   row_bytes()                                   of a token
//   store_row(x, t, rows)                         token t of the block
//   multiply(rows, tokens, first, second, sums, soon)   sums[token][kStrip] of two groups; they run along k in the same
//                                                       order however many tokens there are. Calls soon(token, tokens)
//                                                       some time before these have their sums
template <typename Factors>
class WholeMatmul {
  public:
    // Two groups of a weight make a strip.
    static constexpr std::size_t kStrip = 2 * kWholeRows;
    static constexpr std::size_t kGroupVectors = kWholeRows / L;

    WholeMatmul(const DispatchCmd& cmd, std::size_t k, const Worker& worker)
        : x_(cmd.buffers[0].as<float>()),
          k_(k),
          factors_(cmd.weight, k),
          most_(std::clamp(kBlockBytes / factors_.row_bytes() / kTokens * kTokens, kTokens, kMostTokens)),
          rows_(worker.scratch),
          sums_(reinterpret_cast<float*>(rows_ + most_ * factors_.row_bytes())) {}

    // Calls f(first token, tokens, unit) for all tokens and units, as far as the worker claims them. A unit has
    // `strips`.
    template <typename F>
    void for_units(std::size_t tokens, std::size_t units, std::size_t strips, const Worker& worker, F&& f) const {
        const std::size_t blocks = (tokens + most_ - 1) / most_;
        // Blocks of a size, for as many workers: a tile that is not full costs less than a worker that waits.
        const std::size_t block = (tokens + blocks - 1) / blocks;
        constexpr std::size_t kPiecesPerWorker = 4;
        std::size_t at_once = kStrips / strips;
        while (at_once > 1 &&
               (units + at_once - 1) / at_once * blocks < kPiecesPerWorker * static_cast<std::size_t>(worker.count)) {
            at_once /= 2;
        }
        const std::size_t parts = (units + at_once - 1) / at_once;
        std::size_t here = blocks;  // the block that rows_ has
        // A weight has two bytes, however few tokens there are.
        const std::size_t rows = std::max(block, 2 * Factors::kProductsPerByte);
        auto pieces = worker.claim(parts * blocks, at_once * strips * kStrip * rows * k_ / Factors::kProductsPerByte);
        while (pieces.next()) {
            for (std::uint64_t i = pieces.begin; i < pieces.end; ++i) {
                const std::size_t t0 = i / parts * block, n = std::min(tokens - t0, block), u0 = i % parts * at_once;
                if (here != i / parts) {
                    for (std::size_t t = 0; t < n; ++t) factors_.store_row(x_ + (t0 + t) * k_, t, rows_);
                    here = i / parts;
                }
                for (std::size_t u = u0; u < std::min(units, u0 + at_once); ++u) f(t0, n, u);
            }
        }
    }

    // Sums of the block's tokens with two groups: [token][kStrip], in the strip's own memory of those of a unit.
    template <typename F>
    const float* multiply(std::size_t tokens, const std::byte* first, const std::byte* second, std::size_t strip,
                          F&& soon) const {
        float* sums = sums_ + strip * most_ * kStrip;
        factors_.multiply(rows_, tokens, first, second, sums, soon);
        return sums;
    }

  private:
    // Tokens that stay in the second-level cache.
    static constexpr std::size_t kBlockBytes = std::size_t{512} << 10;
    static constexpr std::size_t kTokens = Factors::kTokens, kMostTokens = Factors::kMostTokens;
    static constexpr std::size_t kStrips = 8, kStripsOfUnit = 2;
    static_assert(kTokens * (Factors::kMostRowBytes + kStripsOfUnit * kStrip * sizeof(float)) <= kWorkerScratch &&
                  kBlockBytes + kStripsOfUnit * kMostTokens * kStrip * sizeof(float) <= kWorkerScratch);

    const float* x_;
    std::size_t k_;
    Factors factors_;
    std::size_t most_;
    std::byte* rows_;
    float* sums_;
};

template <typename Factors>
static void matmul_whole(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    using Matmul = WholeMatmul<Factors>;
    const auto& p = params_as<MatmulParams>(params);
    const auto* w = cmd.buffers[1].as<std::byte>();
    const std::size_t group = Factors::group_bytes(cmd.weight, p.k), groups = (p.n + kWholeRows - 1) / kWholeRows;
    Epilogue out(cmd, p);
    const Matmul matmul(cmd, p.k, worker);
    matmul.for_units(p.rows, (groups + 1) / 2, 1, worker, [&](std::size_t token, std::size_t n, std::size_t strip) {
        const std::size_t g = 2 * strip;
        const float* sums =
            matmul.multiply(n, w + g * group, w + std::min(g + 1, groups - 1) * group, 0,
                            [&](std::size_t t, std::size_t m) { out.fetch(token + t, m, g * kWholeRows); });
        out.store(reinterpret_cast<const vf*>(sums), static_cast<int>(n), 2 * Matmul::kGroupVectors, token,
                  g * kWholeRows);
    });
}

// A unit is 32 rows of gate and of up: 16 of each are a strip.
template <typename Factors>
static void gate_up_whole(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    using Matmul = WholeMatmul<Factors>;
    const auto& p = params_as<GateUpParams>(params);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const std::size_t group = Factors::group_bytes(cmd.weight, p.k), groups = (p.n + kWholeRows - 1) / kWholeRows;
    const GatedOutput out(cmd, p);
    const Matmul matmul(cmd, p.k, worker);
    matmul.for_units(p.rows, (groups + 1) / 2, 2, worker, [&](std::size_t token, std::size_t n, std::size_t unit) {
        const float* sums[2];
        for (std::size_t s = 0; s < 2; ++s) {
            const std::size_t g = std::min(2 * unit + s, groups - 1);  // behind the end: what is not stored
            sums[s] = matmul.multiply(n, w_gate + g * group, w_up + g * group, s, [](std::size_t, std::size_t) {});
        }
        alignas(64) float values[32];
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t s = 0; s < 2; ++s) {
                const auto* v = reinterpret_cast<const vf*>(sums[s] + t * Matmul::kStrip);
                out.gated(v, v + Matmul::kGroupVectors, 1, Matmul::kGroupVectors, values + s * kWholeRows);
            }
            out.store(values, token + t, unit);
        }
    });
}

// The kernel of kMatmul or kGateUp.
template <typename Factors>
static Kernel find_matmul_whole(Op op) {
    return op == Op::kMatmul ? matmul_whole<Factors> : op == Op::kGateUp ? gate_up_whole<Factors> : Kernel{};
}

}  // namespace akunu::cpu::AKUNU_ISA
