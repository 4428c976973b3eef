// x·Wᵀ by tiles (AMX), for weights that were split (cpu/split.h). A block of tokens is split once for all the rows of W
// that a worker has for it. Sums run along k in the same order however many tokens there are.

namespace akunu::cpu::AKUNU_ISA {

static_assert(L == kSplitRows && kTileRows == kSplitRows);

class SplitMatmul {
  public:
    // Two groups of a weight make a strip.
    static constexpr std::size_t kStrip = 2 * kSplitRows;

    SplitMatmul(const DispatchCmd& cmd, std::size_t k, const Worker& worker)
        : x_(cmd.buffers[0].as<float>()),
          k_(k),
          steps_(split_steps(k)),
          low_(split_step_bytes(cmd.weight) > kSplitTile),
          tile_bytes_(steps_ * LeftTiles::kStep),
          most_(std::clamp(kBlockBytes / tile_bytes_ * kTileRows / kPair * kPair, kPair, kMostTokens)),
          rows_(worker.scratch),
          sums_(reinterpret_cast<float*>(rows_ + most_ / kTileRows * tile_bytes_)) {}

    // Calls f(first token, tokens, unit) for all tokens and units, as far as the worker claims them. A unit has
    // `strips`.
    template <typename F>
    void for_units(std::size_t tokens, std::size_t units, std::size_t strips, const Worker& worker, F&& f) const {
        const std::size_t blocks = (tokens + most_ - 1) / most_;
        const std::size_t block = ((tokens + blocks - 1) / blocks + kPair - 1) / kPair * kPair;
        constexpr std::size_t kPiecesPerWorker = 4, kProductsPerByte = 32;
        std::size_t at_once = kStrips / strips;
        while (at_once > 1 &&
               (units + at_once - 1) / at_once * blocks < kPiecesPerWorker * static_cast<std::size_t>(worker.count)) {
            at_once /= 2;
        }
        const std::size_t parts = (units + at_once - 1) / at_once;
        const TileShapes shapes;
        std::size_t here = blocks;  // the block that rows_ has
        auto pieces =
            worker.claim(parts * blocks, at_once * strips * kStrip * std::min(block, tokens) * k_ / kProductsPerByte);
        while (pieces.next()) {
            for (std::uint64_t i = pieces.begin; i < pieces.end; ++i) {
                const std::size_t t0 = i / parts * block, n = std::min(tokens - t0, block), u0 = i % parts * at_once;
                if (here != i / parts) {
                    for (std::size_t t = 0; t < n; ++t) LeftTiles::store_row(x_ + (t0 + t) * k_, k_, t, rows_);
                    here = i / parts;
                }
                for (std::size_t u = u0; u < std::min(units, u0 + at_once); ++u) f(t0, n, u);
            }
        }
    }

    // Sums of the block's tokens with two groups: [token][kStrip], in the strip's own memory of those of a unit.
    const float* multiply(std::size_t tokens, const std::byte* first, const std::byte* second,
                          std::size_t strip) const {
        float* sums = sums_ + strip * most_ * kStrip;
        low_ ? multiply<true>(tokens, first, second, sums) : multiply<false>(tokens, first, second, sums);
        return sums;
    }

  private:
    // Of tokens: what is split at once, so much that it stays in the second-level cache. Of k: steps whose factors of a
    // strip stay in the first.
    static constexpr std::size_t kBlockBytes = std::size_t{512} << 10, kMostTokens = 64, kPair = 2 * kTileRows;
    static constexpr std::size_t kStrips = 8, kSteps = 12, kStripsOfUnit = 2;
    static_assert(kPair * (kMostSplitColumns * 4 + kStripsOfUnit * kStrip * sizeof(float)) <= kWorkerScratch &&
                  kBlockBytes + kStripsOfUnit * kMostTokens * kStrip * sizeof(float) <= kWorkerScratch);

    template <bool kLow>
    void multiply(std::size_t tokens, const std::byte* first, const std::byte* second, float* sums) const {
        constexpr std::size_t kStep = kLow ? 2 * kSplitTile : kSplitTile, kStride = kStrip * sizeof(float);
        for (std::size_t s = 0; s < steps_; s += kSteps) {
            for_row_tiles(tokens, [&]<int M>(std::size_t t) {
                const std::byte* rows = rows_ + t / kTileRows * tile_bytes_ + s * LeftTiles::kStep;
                const auto at = [&](std::size_t m, std::size_t v) { return sums + (t + m) * kStrip + v * L; };
                for_sums<M>([&]<int i>(std::size_t m, std::size_t v) {
                    if (s == 0) {
                        tile_zero<i>();
                    } else {
                        tile_load<i>(at(m, v), kStride);
                    }
                });
                multiply_split<M, kLow>({rows, rows + tile_bytes_, 64, LeftTiles::kTileBytes, LeftTiles::kStep,
                                         first + s * kStep, second + s * kStep, kStep},
                                        std::min(kSteps, steps_ - s));
                for_sums<M>([&]<int i>(std::size_t m, std::size_t v) { tile_store<i>(at(m, v), kStride); });
            });
        }
    }

    const float* x_;
    std::size_t k_, steps_;
    bool low_;
    std::size_t tile_bytes_, most_;
    std::byte* rows_;
    float* sums_;
};

static void matmul_split(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const auto* w = cmd.buffers[1].as<std::byte>();
    const std::size_t group = split_group_bytes(cmd.weight, p.k), groups = (p.n + kSplitRows - 1) / kSplitRows;
    Epilogue out(cmd, p);
    const SplitMatmul matmul(cmd, p.k, worker);
    matmul.for_units(p.rows, (groups + 1) / 2, 1, worker, [&](std::size_t token, std::size_t n, std::size_t strip) {
        const std::size_t g = 2 * strip;
        const float* sums = matmul.multiply(n, w + g * group, w + std::min(g + 1, groups - 1) * group, 0);
        out.store(reinterpret_cast<const vf*>(sums), static_cast<int>(n), 2, token, g * L);
    });
}

// A unit is 32 rows of gate and of up: 16 of each are a strip.
static void gate_up_split(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const std::size_t group = split_group_bytes(cmd.weight, p.k), groups = (p.n + kSplitRows - 1) / kSplitRows;
    const GatedOutput out(cmd, p);
    const SplitMatmul matmul(cmd, p.k, worker);
    matmul.for_units(p.rows, (groups + 1) / 2, 2, worker, [&](std::size_t token, std::size_t n, std::size_t unit) {
        const float* sums[2];
        for (std::size_t s = 0; s < 2; ++s) {
            const std::size_t g = std::min(2 * unit + s, groups - 1);  // behind the end: what is not stored
            sums[s] = matmul.multiply(n, w_gate + g * group, w_up + g * group, s);
        }
        alignas(64) float values[32];
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t s = 0; s < 2; ++s) {
                const auto* v = reinterpret_cast<const vf*>(sums[s] + t * SplitMatmul::kStrip);
                out.gated(v, v + 1, 1, 1, values + s * L);
            }
            out.store(values, token + t, unit);
        }
    });
}

}  // namespace akunu::cpu::AKUNU_ISA
