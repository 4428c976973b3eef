// Products by tiles (AMX) with weights that were split (cpu/split.h).

namespace akunu::cpu::AKUNU_ISA {

static_assert(L == kWholeRows && kTileRows == kWholeRows);

class SplitProducts {
  public:
    static constexpr std::size_t kTokens = 2 * kTileRows, kMostTokens = 64, kProductsPerByte = 32;
    static constexpr std::size_t kMostRowBytes = kMostWholeColumns * 4;

    SplitProducts(DType weight, std::size_t k)
        : k_(k),
          steps_(whole_steps(k)),
          low_(split_step_bytes(weight) > kSplitTile),
          tile_bytes_(steps_ * LeftTiles::kStep) {}

    static std::size_t group_bytes(DType dtype, std::size_t k) { return split_group_bytes(dtype, k); }
    std::size_t row_bytes() const { return tile_bytes_ / kTileRows; }
    void store_row(const float* x, std::size_t t, std::byte* rows) const { LeftTiles::store_row(x, k_, t, rows); }
    void multiply(const std::byte* rows, std::size_t tokens, const std::byte* first, const std::byte* second,
                  float* sums) const {
        low_ ? multiply<true>(rows, tokens, first, second, sums) : multiply<false>(rows, tokens, first, second, sums);
    }

  private:
    // Whose factors of a strip stay in the first-level cache.
    static constexpr std::size_t kSteps = 12;
    static constexpr std::size_t kStrip = 2 * kWholeRows;

    template <bool kLow>
    void multiply(const std::byte* first_row, std::size_t tokens, const std::byte* first, const std::byte* second,
                  float* sums) const {
        constexpr std::size_t kStep = kLow ? 2 * kSplitTile : kSplitTile, kStride = kStrip * sizeof(float);
        for (std::size_t s = 0; s < steps_; s += kSteps) {
            for_row_tiles(tokens, [&]<int M>(std::size_t t) {
                const std::byte* rows = first_row + t / kTileRows * tile_bytes_ + s * LeftTiles::kStep;
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

    std::size_t k_, steps_;
    bool low_;
    std::size_t tile_bytes_;
    TileShapes shapes_;
};

}  // namespace akunu::cpu::AKUNU_ISA
