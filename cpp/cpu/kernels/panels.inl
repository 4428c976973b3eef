// Products of rows with panels: matrices of F32 whose rows have kPanel columns, small enough for the first-level cache.
// What many rows multiply with is widened to F32 into such a panel once; tiles of rows then keep their sums in
// registers. Each sum runs straight along k, so that a result does not depend on how many rows there are.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kPanel = 32;
constexpr int kPanelVectors = kPanel / L;

// Whether tiles of at most kTile tokens may have M.
template <int kTile, int M>
constexpr bool kHasTokenTile = M == kTile || M == 1 || (kSmallTokenTiles && M < kTile);

// Calls f.operator()<M>(first) over tiles of at most kTile tokens.
template <int kTile, typename F>
static inline void for_token_tiles(std::size_t begin, std::size_t end, F&& f) {
    std::size_t t = begin;
    for (; t + kTile <= end; t += kTile) f.template operator()<kTile>(t);
    if constexpr (kTile > 8 && kHasTokenTile<kTile, 8>) {
        if (t + 8 <= end) f.template operator()<8>(t), t += 8;
    }
    if constexpr (kTile > 4 && kHasTokenTile<kTile, 4>) {
        if (t + 4 <= end) f.template operator()<4>(t), t += 4;
    }
    if constexpr (kTile > 2 && kHasTokenTile<kTile, 2>) {
        if (t + 2 <= end) f.template operator()<2>(t), t += 2;
    }
    for (; t < end; ++t) f.template operator()<1>(t);
}

// How many vectors of a row, up to kMost, N queries take together: so that all sums are in registers.
template <int N, int kMost>
constexpr int wide() {
    int w = 1;
    while (w < kMost && N * 2 * w + 2 * w + 1 <= kVectorRegisters) w *= 2;
    return w;
}

struct TwoRows {
    vf row[2];
};

// A panel in memory. Columns may have scales that change from run to run of the rows.
struct WidePanel {
    const float* elems;
    const float* scales = nullptr;  // [run][kPanel]
    vf row(std::size_t k, std::size_t column) const { return load(elems + k * kPanel + column); }
    vf scale(std::size_t run, std::size_t column) const { return load(scales + run * kPanel + column); }
};

template <int N>
struct Rows {
    const float* row[N];
    Rows(const float* first, std::size_t stride) {
        for (int n = 0; n < N; ++n) row[n] = first + static_cast<std::size_t>(n) * stride;
    }
    float at(int n, std::size_t k) const { return row[n][k]; }
};

// Rows that lie kStride elements apart, for more of them than there are registers for addresses.
template <std::size_t kStride>
struct RowsApart {
    const float* first;
    float at(int n, std::size_t k) const { return first[static_cast<std::size_t>(n) * kStride + k]; }
};

// sum[n][w] += Σ_k x[n][k]·panel[k][column + w·L], while the panel fetches what is read after it, if it does. A panel
// may give two rows at a time, the first of which is even.
template <int N, int W, typename X, typename Panel>
static inline void multiply(const X& x, const Panel& panel, std::size_t column, std::size_t k0, std::size_t k1,
                            vf (&sum)[N][W]) {
    constexpr std::size_t kColumns = static_cast<std::size_t>(W) * L;
    std::size_t k = k0;
    if constexpr (requires { panel.two_rows(k, column); }) {
        for (; k + 2 <= k1; k += 2) {
            panel.template fetch<kColumns>(k, column);
            TwoRows b[W];
            for (int w = 0; w < W; ++w) b[w] = panel.two_rows(k, column + static_cast<std::size_t>(w) * L);
            for (std::size_t i = 0; i < 2; ++i) {
                for (int n = 0; n < N; ++n) {
                    const vf a = set1(x.at(n, k + i));
                    for (int w = 0; w < W; ++w) sum[n][w] = fma(a, b[w].row[i], sum[n][w]);
                }
            }
        }
    }
    for (; k < k1; ++k) {
        if constexpr (requires { panel.template fetch<kColumns>(k, column); })
            panel.template fetch<kColumns>(k, column);
        vf b[W];
        for (int w = 0; w < W; ++w) b[w] = panel.row(k, column + static_cast<std::size_t>(w) * L);
        for (int n = 0; n < N; ++n) {
            const vf a = set1(x.at(n, k));
            for (int w = 0; w < W; ++w) sum[n][w] = fma(a, b[w], sum[n][w]);
        }
    }
}

// out[n][column] += Σ_k x[n][k]·panel[k][column], over `count` rows of the panel and the columns [first, columns)
template <int N, int W, typename X, typename Panel>
static inline void add_products(const X& x, std::size_t count, const Panel& panel, std::size_t columns, float* out,
                                std::size_t stride, std::size_t first = 0) {
    std::size_t column = first;
    for (; column + W * L <= columns; column += W * L) {
        vf acc[N][W];
        for (int n = 0; n < N; ++n) {
            for (int w = 0; w < W; ++w) acc[n][w] = load(out + n * stride + column + w * L);
        }
        multiply(x, panel, column, 0, count, acc);
        for (int n = 0; n < N; ++n) {
            for (int w = 0; w < W; ++w) store(out + n * stride + column + w * L, acc[n][w]);
        }
    }
    if constexpr (W > 1) add_products<N, W / 2>(x, count, panel, columns, out, stride, column);
}

}  // namespace akunu::cpu::AKUNU_ISA
