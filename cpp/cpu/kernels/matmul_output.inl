// What becomes of the sums of matmuls.

namespace akunu::cpu::AKUNU_ISA {

// Tokens whose results come together, but for those of panels.
constexpr int kMostTokens = kSharedRuns ? kBytePanelTiles * kTokenTile - 1 : kTokenTile;

// What becomes of a tile's results.
class Epilogue {
  public:
    Epilogue(const DispatchCmd& cmd, const MatmulParams& params)
        : p(params), y(cmd.buffers[2].as<float>()), bias(cmd.buffers[3].as<float>()), q8(params.n) {}

    // Stores a tile's acc[token][group]; groups past the end are left out. It is out of line, where many kinds of tiles
    // share it. What is quantised comes in whole blocks of 32 rows, or, at most kMostTokens at a time, in parts of a
    // block one after the other.
    [[gnu::noinline]] void store(const vf* acc, int tokens, int groups, std::size_t token, std::size_t row0) {
        if (p.format == kActF32) {
            float* out = y + token * p.y_stride + row0;
            int g = 0;
            for (; g + 2 <= groups && row0 + 2 * L <= p.n; g += 2, row0 += 2 * L, out += 2 * L) {
                store_groups<2>(acc + g, tokens, groups, row0, out, p.y_stride);
            }
            for (; g < groups && row0 < p.n; ++g, row0 += L, out += L) {
                store_groups<1>(acc + g, tokens, groups, row0, out, p.y_stride);
            }
            return;
        }
        for (int n; tokens > 0; tokens -= n, acc += n * groups, token += static_cast<std::size_t>(n)) {
            n = std::min(tokens, kMostTokens);
            std::size_t row = row0;
            for (int g = 0; g < groups && row < p.n; ++g, row += L) {
                store_groups<1>(acc + g, n, groups, row, block[0] + row % 32, 32);
                if ((row + L) % 32 == 0) quantize_blocks(token, n, row / 32);
            }
        }
    }

    // Brings what `store` of a strip of whole weights will write, and may read, to where it is written.
    void fetch(std::size_t token, std::size_t tokens, std::size_t row0) const {
        if (p.format != kActF32) return;
        const float* out = y + token * p.y_stride + row0;
        for (std::size_t t = 0; t < tokens; ++t, out += p.y_stride) {
            __builtin_prefetch(out, 1, 3);
            __builtin_prefetch(out + 16, 1, 3);
        }
    }

  private:
    void quantize_blocks(std::size_t token, int tokens, std::size_t of_row) const {
        std::byte* out = reinterpret_cast<std::byte*>(y) + token * q8.stride;
        for (int m = 0; m < tokens; ++m, out += q8.stride) quantize_block({out, q8}, of_row, block[m]);
    }
    // Stores kGroups that lie side by side; one alone may have less than L rows.
    template <int kGroups>
    void store_groups(const vf* acc, int tokens, int groups, std::size_t row0, float* out, std::size_t stride) const {
        const MatmulParams by = p;  // a copy: the compiler must assume that a store changes what p refers to
        const int n = kGroups > 1 ? L : static_cast<int>(std::min<std::size_t>(L, by.n - row0));
        vf b[kGroups];
        for (int g = 0; g < kGroups; ++g) {
            b[g] = !by.has_bias ? zero() : n == L ? load(bias + row0 + g * L) : load_first(bias + row0, n);
        }
        const auto store_all = [&](const auto& activated) {
            for (int m = 0; m < tokens; ++m, out += stride) {
                for (int g = 0; g < kGroups; ++g) {
                    float* to = out + g * L;
                    vf v = acc[m * groups + g];
                    if (by.has_bias) v += b[g];
                    if (by.softcap > 0) v = set1(by.softcap) * tanh_(v / set1(by.softcap));
                    v = activated(v);
                    if (by.accumulate) v += n == L ? load(to) : load_first(to, n);
                    if (n == L) {
                        AKUNU_ISA::store(to, v);
                    } else {
                        store_first(to, v, n);
                    }
                }
            }
        };
        if (by.activation > 0) {
            with_activation(by.activation - 1, store_all);
        } else {
            store_all([](vf v) { return v; });
        }
    }

    const MatmulParams& p;
    float* y;
    const float* bias;
    const Q8Layout q8;
    float block[kMostTokens][32];  // of a tile's tokens, until it is quantised
};

// What becomes of a gated unit: 32 rows, a whole q8 block.
struct GatedOutput {
    const GateUpParams& p;
    float* f32;
    std::byte* q8;
    Q8Layout at;
    GatedOutput(const DispatchCmd& cmd, const GateUpParams& params)
        : p(params), f32(cmd.buffers[3].as<float>()), q8(cmd.buffers[4].as<std::byte>()), at(params.n) {}
    // act(gate)·up of a tile: [token][group], to [token][32]. Out of line, as Epilogue::store.
    [[gnu::noinline]] void gated(const vf* gate, const vf* up, int tokens, int groups, float* out) const {
        with_activation(p.activation, [&](const auto& activated) {
            for (int m = 0; m < tokens; ++m, out += 32) {
                for (int g = 0; g < groups; ++g) AKUNU_ISA::store(out + g * L, activated(*gate++) * *up++);
            }
        });
    }
    void store(const float* values, std::size_t token, std::size_t unit) const {
        const std::size_t first = unit * 32, n = std::min<std::size_t>(32, p.n - first);
        if (p.formats & kActF32) std::memcpy(f32 + token * p.n + first, values, n * sizeof(float));
        if (p.formats & kActQ8) quantize_block({q8 + token * at.stride, at}, unit, values);
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
