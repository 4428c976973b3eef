// y = x·Wᵀ for packed weights: one kernel serves decode, batch and prefill.
//
// A tile is one group of L rows times M tokens. Every output element is accumulated in the same order whatever M is, so
// a token's result does not depend on the batch that it is in.

namespace akunu::cpu::AKUNU_ISA {

// A group of rows with one byte an element and its scales as floats. Where many tokens share a group, their tiles read
// this instead of taking the format apart each time.
template <int kSubElems, int kMaxValue, int kOffsetValue, bool kMin, bool kIsSigned>
struct Unpacked {
    static constexpr int kBlock = kSubElems, kSub = kSubElems, kSubs = 1, kMax = kMaxValue, kOffset = kOffsetValue;
    static constexpr bool kSigned = kIsSigned, kHasMin = kMin;
    // Of a sub-block: its quants, then L scales, then L minimums.
    static constexpr std::size_t kQuants = std::size_t{kSub} * L;
    static constexpr std::size_t kBytes = kQuants + L * sizeof(float) * (kMin ? 2 : 1);

    struct Source {
        const std::byte* data;
        Source(const std::byte* from) : data(from) {}
        Source(const std::byte* group, const GroupLayout&) : data(group) {}
    };
    static Source from_block(const Source& group, std::size_t b) { return {opaque(group.data + b * kBytes)}; }
    struct Ahead {
        Ahead(const Source&, const GroupLayout&, std::size_t, std::size_t) {}
    };
    static void scales(const Source& g, vf* d, vf* m) {
        const auto* f = reinterpret_cast<const float*>(g.data + kQuants);
        d[0] = load(f);
        if constexpr (kMin) m[0] = load(f + L);
    }
    template <int kS, int kJ>
    static vb quants(const Source& g) {
        return load_bytes(reinterpret_cast<const std::uint8_t*>(g.data) + kJ * 4 * L);
    }
};

// What a tile reads of a format: the packed fields, or an unpacked group.
template <typename F>
struct Reading : Packing<F> {
    using Source = Fields;
    using Ahead = BlockAhead<F>;
};
template <int kSub, int kMax, int kOffset, bool kMin, bool kSigned>
struct Reading<Unpacked<kSub, kMax, kOffset, kMin, kSigned>> : Unpacked<kSub, kMax, kOffset, kMin, kSigned> {};

template <typename F>
using UnpackedOf = Unpacked<F::kSub, F::kMax, F::kOffset, F::kHasMin, F::kSigned>;

// Dot products of M tokens with the rows of a group over a sub-block of F, each token for itself.
template <typename F, int M>
struct DotEach {
    static constexpr int kSteps = F::kSub / 4;
    static constexpr int kOffset = F::kSigned ? kSignedOffset : F::kOffset;
    std::conditional_t<F::kSigned, DotS<kSteps>, DotU<F::kMax, kSteps>> dots[M];
    // Four elements: `w` of the rows, x[m][at..] of the tokens.
    template <int kStep>
    void step(vb w, const std::int8_t* const* x, std::size_t at) {
        if constexpr (F::kSigned) {
            const SignedBytes sw(w);
            for (int m = 0; m < M; ++m) dots[m].step(sw, x[m] + at);
        } else {
            for (int m = 0; m < M; ++m) dots[m].template step<kStep>(w, x[m] + at);
        }
    }
    vi sum(int m) const { return dots[m].sum(); }
};

// The same by instructions that multiply matrices, where the processor has them.
template <typename F, int M>
struct DotMatrix : DotPairs<M> {
    static constexpr int kOffset = F::kOffset;
};

template <typename F, int M>
using Dots = std::conditional_t<DotPairs<M>::kAvailable, DotMatrix<F, M>, DotEach<F, M>>;

// Integer formats: x is q8. acc[m] = dot products of token m with the group's rows.
template <typename F, int M>
static inline void dot_tile_q8(const std::byte* group, const GroupLayout& layout, std::size_t k, const std::byte* x,
                               const Q8Layout& at, vf* out) {
    const typename Reading<F>::Source fields(group, layout);
    const std::int8_t* row[M];
    vf acc[M];  // local, as the offsets: the compiler must assume that a store to `out` changes what it points to
    for (int m = 0; m < M; ++m) {
        row[m] = reinterpret_cast<const std::int8_t*>(x) + static_cast<std::size_t>(m) * at.stride;
        acc[m] = zero();
    }
    const std::size_t d_at = at.d, s_at = F::kSub == 32 ? at.s : at.s16, blocks = k / F::kBlock;
    constexpr int kSteps = F::kSub / 4;
    for (std::size_t b = 0; b < blocks; ++b) {
        [[maybe_unused]] const typename Reading<F>::Ahead ahead(fields, layout, b, blocks);
        const auto block = Reading<F>::from_block(fields, b);
        vf d[F::kSubs], mins[F::kSubs];
        F::scales(block, d, mins);
        unroll<F::kSubs>([&]<int s>() {
            const std::size_t first = b * F::kBlock + s * F::kSub;
            Dots<F, M> dots;
            unroll<kSteps>([&]<int j>() {
                if constexpr (M == 1) ahead.template fetch<s * kSteps + j, F::kSubs * kSteps>();
                dots.template step<j>(F::template quants<s, j>(block), row, first + 4 * j);
            });
            constexpr int kOffset = Dots<F, M>::kOffset;
            const vf offset = set1(static_cast<float>(-kOffset));
            if constexpr (F::kHasMin) mins[s] = -mins[s];
            for (int m = 0; m < M; ++m) {
                const vf scale = set1(reinterpret_cast<const float*>(row[m] + d_at)[first / 32]);
                const vf sum = set1(reinterpret_cast<const float*>(row[m] + s_at)[first / F::kSub]);
                vf dot = to_float(dots.sum(m)) * scale;
                if constexpr (kOffset != 0) dot = fma(offset, sum, dot);
                acc[m] = fma(dot, d[s], acc[m]);
                if constexpr (F::kHasMin) acc[m] = fma(sum, mins[s], acc[m]);
            }
        });
    }
    for (int m = 0; m < M; ++m) out[m] = acc[m];
}

template <typename F>
static std::size_t unpacked_bytes(std::size_t k) {
    return k / F::kSub * UnpackedOf<F>::kBytes;
}

template <typename F>
static void unpack_group(const std::byte* group, const GroupLayout& layout, std::size_t k, std::byte* out) {
    using U = UnpackedOf<F>;
    constexpr int kSteps = F::kSub / 4;
    const Fields fields(group, layout);
    const std::size_t blocks = k / F::kBlock;
    for (std::size_t b = 0; b < blocks; ++b) {
        const BlockAhead<F> ahead(fields, layout, b, blocks);
        const Fields block = Packing<F>::from_block(fields, b);
        vf d[F::kSubs], mins[F::kSubs];
        F::scales(block, d, mins);
        unroll<F::kSubs>([&]<int s>() {
            std::byte* sub = out + (b * F::kSubs + s) * U::kBytes;
            unroll<kSteps>([&]<int j>() {
                ahead.template fetch<s * kSteps + j, F::kSubs * kSteps>();
                const vb q = F::template quants<s, j>(block);
                std::memcpy(sub + j * 4 * L, &q, sizeof q);
            });
            auto* floats = reinterpret_cast<float*>(sub + U::kQuants);
            store(floats, d[s]);
            if constexpr (F::kHasMin) store(floats + L, mins[s]);
        });
    }
}

// Tiles of a group that are worth taking it apart once.
constexpr std::size_t kUnpackTiles = 3;

// Whether the tiles of [t0, t1) read unpacked groups, of which `n` have to fit into a worker's memory.
template <typename F>
static bool unpacks(std::size_t t0, std::size_t t1, std::size_t n, std::size_t k) {
    return t1 - t0 >= kUnpackTiles * kTokenTile && n * unpacked_bytes<F>(k) <= kWorkerScratch;
}

// Dot products of a group with M tokens; whole tiles read the `unpacked` group where there is one.
template <typename F, int M>
static inline void dot_group_q8(const std::byte* group, const std::byte* unpacked, const GroupLayout& layout,
                                std::size_t k, const std::byte* x, const Q8Layout& at, vf* acc) {
    if constexpr (M == kTokenTile) {
        if (unpacked) return dot_tile_q8<UnpackedOf<F>, M>(unpacked, layout, k, x, at, acc);
    }
    dot_tile_q8<F, M>(group, layout, k, x, at, acc);
}

// Float formats: x is f32. acc[m * G + g] for G neighbouring groups; accumulation runs straight along k.
struct FormatF32 {
    static constexpr int kBytes = 4;
    static vf load_lanes(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};
struct FormatF16 {
    static constexpr int kBytes = 2;
    static vf load_lanes(const std::byte* p) { return load_half(reinterpret_cast<const std::uint16_t*>(p)); }
};
struct FormatBF16 {
    static constexpr int kBytes = 2;
    static vf load_lanes(const std::byte* p) { return load_bf16(reinterpret_cast<const std::uint16_t*>(p)); }
};

template <typename F, int M, int G>
static inline void dot_tile_f32(const std::byte* group, std::size_t group_bytes, std::size_t k0, std::size_t k1,
                                const float* x, std::size_t x_stride, vf* acc) {
    vf sum[M * G];
    for (int i = 0; i < M * G; ++i) sum[i] = acc[i];
    constexpr std::size_t kStride = F::kBytes * L, kPerLine = kStride < 64 ? 64 / kStride : 1;
    constexpr std::size_t kAhead = 8192 / G;  // of each group
    const auto step = [&](std::size_t k) {
        vf w[G];
        for (int g = 0; g < G; ++g)
            w[g] = F::load_lanes(group + static_cast<std::size_t>(g) * group_bytes + k * kStride);
        for (int m = 0; m < M; ++m) {
            const vf xv = set1(x[static_cast<std::size_t>(m) * x_stride + k]);
            for (int g = 0; g < G; ++g) sum[m * G + g] = fma(xv, w[g], sum[m * G + g]);
        }
    };
    std::size_t k = k0;
    for (; k + kPerLine <= k1; k += kPerLine) {
        if constexpr (M == 1) {
            for (int g = 0; g < G; ++g) {
                __builtin_prefetch(group + static_cast<std::size_t>(g) * group_bytes + k * kStride + kAhead);
            }
        }
        unroll<static_cast<int>(kPerLine)>([&]<int i>() { step(k + i); });
    }
    for (; k < k1; ++k) step(k);
    for (int i = 0; i < M * G; ++i) acc[i] = sum[i];
}

// What becomes of a tile's results.
struct Epilogue {
    const MatmulParams& p;
    float* y;
    const float* bias;
    void store(vf v, std::size_t token, std::size_t row0) const {
        const int n = static_cast<int>(std::min<std::size_t>(L, p.n - row0));
        float* out = y + token * p.y_stride + row0;
        if (p.has_bias) v += n == L ? load(bias + row0) : load_first(bias + row0, n);
        if (p.softcap > 0) v = set1(p.softcap) * tanh_(v / set1(p.softcap));
        if (p.accumulate) v += n == L ? load(out) : load_first(out, n);
        if (n == L) {
            AKUNU_ISA::store(out, v);
        } else {
            store_first(out, v, n);
        }
    }
};

// Tokens whose activations stay in a core's cache while its groups of rows pass by.
constexpr std::size_t kTokenBlock = 128;
constexpr std::size_t kCacheBytes = 512 * 1024;

static inline std::size_t token_block(std::size_t bytes_per_token) {
    const std::size_t n = kCacheBytes / bytes_per_token / kTokenTile * kTokenTile;
    return std::clamp<std::size_t>(n, kTokenTile, kTokenBlock);
}

template <typename F>
static void matmul_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const auto* x = cmd.buffers[0].as<std::byte>();
    const auto* w = cmd.buffers[1].as<std::byte>();
    const Epilogue out{p, cmd.buffers[2].as<float>(), cmd.buffers[3].as<float>()};
    const GroupLayout layout(pack_format(cmd.weight), p.k / F::kBlock, L);
    const Q8Layout at(p.k);
    const auto groups = worker.share((p.n + L - 1) / L);
    const std::size_t block = token_block(at.stride);
    for (std::size_t t0 = 0; t0 < p.rows; t0 += block) {
        const std::size_t t1 = std::min<std::size_t>(p.rows, t0 + block);
        for (std::uint64_t g = groups.begin; g < groups.end; ++g) {
            const std::byte* group = w + g * layout.bytes;
            std::byte* unpacked = unpacks<F>(t0, t1, 1, p.k) ? worker.scratch : nullptr;
            if (unpacked) unpack_group<F>(group, layout, p.k, unpacked);
            for_token_tiles<kTokenTile>(t0, t1, [&]<int M>(std::size_t t) {
                vf acc[M];
                dot_group_q8<F, M>(group, unpacked, layout, p.k, x + t * at.stride, at, acc);
                for (int m = 0; m < M; ++m) out.store(acc[m], t + static_cast<std::size_t>(m), g * L);
            });
        }
    }
}

// Neighbouring groups that a float tile takes: for one token they are the independent accumulators.
template <int M>
constexpr int kGroupsPerTile = M == 1   ? 8
                               : M == 2 ? 4
                                        : 2;

template <typename F, int M, int G>
static inline void float_tile(const std::byte* w, std::size_t group_bytes, std::size_t k, const float* x, std::size_t t,
                              std::uint64_t g, const Epilogue& out) {
    vf acc[M * G];
    for (auto& a : acc) a = zero();
    dot_tile_f32<F, M, G>(w + g * group_bytes, group_bytes, 0, k, x + t * k, k, acc);
    for (int m = 0; m < M; ++m) {
        for (int i = 0; i < G; ++i) {
            out.store(acc[m * G + i], t + static_cast<std::size_t>(m), (g + static_cast<std::size_t>(i)) * L);
        }
    }
}

// x·Wᵀ of many tokens and float weights. Strips of kPanel columns, kStrips at a time, are widened kPanelRows of k at a
// time; the tokens' part of k is copied, so that rows of a power-of-two length do not share cache sets.
template <typename F>
class FloatPanels {
  public:
    FloatPanels(const float* x, std::size_t k, const Worker& worker)
        : x_(x),
          k_(k),
          panel_(reinterpret_cast<float*>(worker.scratch)),
          rows_(panel_ + kPanelRows * kPanel),
          sums_(rows_ + kTokenBlock * kStride) {}

    // Calls done(s, sums) for the strips [begin, end), tokens [t0, t1), at most kTokenBlock; sums + kPanel·(t - t0) are
    // the token's. group(s, v) is the packed group of vector v of the strip, or null.
    template <typename Group, typename Done>
    void run(std::size_t t0, std::size_t t1, std::size_t begin, std::size_t end, const Group& group,
             const Done& done) const {
        for (std::size_t s0 = begin; s0 < end; s0 += kStrips) {
            const std::size_t s1 = std::min(end, s0 + kStrips);
            std::memset(sums_, 0, (s1 - s0) * kTokenBlock * kPanel * sizeof(float));
            for (std::size_t k0 = 0; k0 < k_; k0 += kPanelRows) {
                const std::size_t n = std::min(kPanelRows, k_ - k0);
                for (std::size_t t = t0; t < t1; ++t) {
                    std::memcpy(rows_ + (t - t0) * kStride, x_ + t * k_ + k0, n * sizeof(float));
                }
                for (std::size_t s = s0; s < s1; ++s) {
                    for (int v = 0; v < kPanelVectors; ++v) widen(group(s, v), k0, n, panel_ + v * L);
                    for_token_tiles<kTokenTile>(0, t1 - t0, [&]<int M>(std::size_t t) {
                        add_products<M, wide<M, kPanelVectors>()>(Rows<M>(rows_ + t * kStride, kStride), n,
                                                                  WidePanel{panel_}, kPanel, sums(s - s0) + t * kPanel,
                                                                  kPanel);
                    });
                }
            }
            for (std::size_t s = s0; s < s1; ++s) done(s, sums(s - s0));
        }
    }

  private:
    static constexpr std::size_t kPanelRows = 128, kStrips = 32, kStride = kPanelRows + 16;
    static_assert((kPanelRows * kPanel + kTokenBlock * (kStride + kStrips * kPanel)) * sizeof(float) <= kWorkerScratch);

    float* sums(std::size_t strip) const { return sums_ + strip * kTokenBlock * kPanel; }
    static void widen(const std::byte* group, std::size_t k0, std::size_t n, float* to) {
        constexpr std::size_t kBytes = F::kBytes * L;
        for (std::size_t k = 0; k < n; ++k) {
            store(to + k * kPanel, group ? F::load_lanes(group + (k0 + k) * kBytes) : zero());
        }
    }

    const float* x_;
    std::size_t k_;
    float *panel_, *rows_, *sums_;
};

// Tokens that are worth it.
constexpr std::size_t kPanelTokens = 3 * kTokenTile;

template <typename F>
static void matmul_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const auto* x = cmd.buffers[0].as<float>();
    const auto* w = cmd.buffers[1].as<std::byte>();
    const Epilogue out{p, cmd.buffers[2].as<float>(), cmd.buffers[3].as<float>()};
    const GroupLayout layout(pack_format(cmd.weight), p.k, L);
    const auto groups = worker.share((p.n + L - 1) / L);
    if (p.rows >= kPanelTokens) {
        const FloatPanels<F> panels(x, p.k, worker);
        const auto group_of = [&](std::size_t s, int v) { return groups.begin + s * kPanelVectors + v; };
        for (std::size_t t0 = 0; t0 < p.rows; t0 += kTokenBlock) {
            const std::size_t t1 = std::min<std::size_t>(p.rows, t0 + kTokenBlock);
            panels.run(
                t0, t1, 0, (groups.end - groups.begin + kPanelVectors - 1) / kPanelVectors,
                [&](std::size_t s, int v) {
                    const std::uint64_t g = group_of(s, v);
                    return g < groups.end ? w + g * layout.bytes : nullptr;
                },
                [&](std::size_t s, const float* sums) {
                    for (std::size_t t = t0; t < t1; ++t, sums += kPanel) {
                        for (int v = 0; v < kPanelVectors && group_of(s, v) < groups.end; ++v) {
                            out.store(load(sums + v * L), t, group_of(s, v) * L);
                        }
                    }
                });
        }
        return;
    }
    constexpr std::uint64_t kStep = 8;  // groups whose tokens tiles run together
    for (std::uint64_t g0 = groups.begin; g0 < groups.end; g0 += kStep) {
        const std::uint64_t g1 = std::min(groups.end, g0 + kStep);
        for_token_tiles<kTokenTile>(0, p.rows, [&]<int M>(std::size_t t) {
            constexpr int G = kGroupsPerTile<M>;
            std::uint64_t g = g0;
            for (; g + G <= g1; g += G) float_tile<F, M, G>(w, layout.bytes, p.k, x, t, g, out);
            for (; g < g1; ++g) float_tile<F, M, 1>(w, layout.bytes, p.k, x, t, g, out);
        });
    }
}

// What becomes of a gated unit: 32 rows, a whole q8 block.
struct GatedOutput {
    const GateUpParams& p;
    float* f32;
    std::byte* q8;
    Q8Layout at;
    GatedOutput(const DispatchCmd& cmd, const GateUpParams& params)
        : p(params), f32(cmd.buffers[3].as<float>()), q8(cmd.buffers[4].as<std::byte>()), at(params.n) {}
    vf gated(vf gate, vf up) const { return (p.activation == kActSilu ? silu(gate) : gelu_tanh(gate)) * up; }
    void store(const float* values, std::size_t token, std::size_t unit) const {
        const std::size_t first = unit * 32, n = std::min<std::size_t>(32, p.n - first);
        if (p.formats & kActF32) std::memcpy(f32 + token * p.n + first, values, n * sizeof(float));
        if (p.formats & kActQ8) quantize_block({q8 + token * at.stride, at}, unit, values);
    }
};

// act(gate)·up, 32 rows at a time so that a whole q8 block can be written. `prepare(w, g, slot, t0, t1)` comes before
// the tiles of a group, each of a unit's groups having its own slot.
constexpr std::size_t kGateUpSlots = 2 * (32 / L);
template <typename Prepare, typename Dot>
static void gate_up(const DispatchCmd& cmd, const GateUpParams& p, const Worker& worker, std::size_t block,
                    const Prepare& prepare, const Dot& dot) {
    const GatedOutput out(cmd, p);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const auto units = worker.share((p.n + 31) / 32);
    for (std::size_t t0 = 0; t0 < p.rows; t0 += block) {
        const std::size_t t1 = std::min<std::size_t>(p.rows, t0 + block);
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::uint64_t g0 = u * (32 / L), g1 = std::min<std::uint64_t>(g0 + 32 / L, (p.n + L - 1) / L);
            for (std::uint64_t g = g0; g < g1; ++g) {
                prepare(w_gate, g, 2 * (g - g0), t0, t1);
                prepare(w_up, g, 2 * (g - g0) + 1, t0, t1);
            }
            for_token_tiles<kTokenTile>(t0, t1, [&]<int M>(std::size_t t) {
                float values[M][32];
                for (std::uint64_t g = g0; g < g1; ++g) {
                    const std::size_t i = g - g0;
                    vf gate[M], up[M];
                    dot.template operator()<M>(w_gate, g, 2 * i, t, gate);
                    dot.template operator()<M>(w_up, g, 2 * i + 1, t, up);
                    for (int m = 0; m < M; ++m) store(values[m] + i * L, out.gated(gate[m], up[m]));
                }
                for (int m = 0; m < M; ++m) out.store(values[m], t + static_cast<std::size_t>(m), u);
            });
        }
    }
}

template <typename F>
static void gate_up_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const GroupLayout layout(pack_format(cmd.weight), p.k / F::kBlock, L);
    const Q8Layout at(p.k);
    const auto* x = cmd.buffers[0].as<std::byte>();
    const std::size_t slot_bytes = unpacked_bytes<F>(p.k);
    bool unpacked = false;
    gate_up(
        cmd, p, worker, token_block(at.stride),
        [&](const std::byte* w, std::uint64_t g, std::size_t slot, std::size_t t0, std::size_t t1) {
            unpacked = unpacks<F>(t0, t1, kGateUpSlots, p.k);
            if (unpacked) unpack_group<F>(w + g * layout.bytes, layout, p.k, worker.scratch + slot * slot_bytes);
        },
        [&]<int M>(const std::byte* w, std::uint64_t g, std::size_t slot, std::size_t t, vf* acc) {
            const std::byte* from = unpacked ? worker.scratch + slot * slot_bytes : nullptr;
            dot_group_q8<F, M>(w + g * layout.bytes, from, layout, p.k, x + t * at.stride, at, acc);
        });
}

template <typename F>
static void gate_up_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const GroupLayout layout(pack_format(cmd.weight), p.k, L);
    const auto* x = cmd.buffers[0].as<float>();
    if (p.rows < kPanelTokens) {
        gate_up(
            cmd, p, worker, p.rows, [](const std::byte*, std::uint64_t, std::size_t, std::size_t, std::size_t) {},
            [&]<int M>(const std::byte* w, std::uint64_t g, std::size_t, std::size_t t, vf* acc) {
                for (int m = 0; m < M; ++m) acc[m] = zero();
                dot_tile_f32<F, M, 1>(w + g * layout.bytes, layout.bytes, 0, p.k, x + t * p.k, p.k, acc);
            });
        return;
    }
    // A strip is half a unit: 16 rows of gate, then the same of up.
    constexpr int kHalf = kPanelVectors / 2;
    static_assert(kPanel == 32 && kHalf * L == 16);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const GatedOutput out(cmd, p);
    const std::uint64_t groups = (p.n + L - 1) / L;
    const auto units = worker.share((p.n + 31) / 32);
    const FloatPanels<F> panels(x, p.k, worker);
    alignas(64) float values[kTokenBlock][32];
    for (std::size_t t0 = 0; t0 < p.rows; t0 += kTokenBlock) {
        const std::size_t t1 = std::min<std::size_t>(p.rows, t0 + kTokenBlock);
        panels.run(
            t0, t1, 2 * units.begin, 2 * units.end,
            [&](std::size_t s, int v) {
                const std::uint64_t g = s * kHalf + static_cast<std::uint64_t>(v % kHalf);
                return g < groups ? (v < kHalf ? w_gate : w_up) + g * layout.bytes : nullptr;
            },
            [&](std::size_t s, const float* sums) {
                for (std::size_t t = t0; t < t1; ++t, sums += kPanel) {
                    float* to = values[t - t0];
                    for (std::size_t i = 0; i < 16; i += L) {
                        store(to + s % 2 * 16 + i, out.gated(load(sums + i), load(sums + 16 + i)));
                    }
                    if (s % 2 == 1) out.store(to, t, s / 2);
                }
            });
    }
}

template <typename F>
static Kernel q8_kernel(Op op) {
    return op == Op::kMatmul ? matmul_q8<F> : gate_up_q8<F>;
}
template <typename F>
static Kernel f32_kernel(Op op) {
    return op == Op::kMatmul ? matmul_f32<F> : gate_up_f32<F>;
}

// The kernel of kMatmul or kGateUp for a weight type.
static Kernel find_matmul(Op op, DType weight) {
    switch (weight) {
        case DType::F32:
            return f32_kernel<FormatF32>(op);
        case DType::F16:
            return f32_kernel<FormatF16>(op);
        case DType::BF16:
            return f32_kernel<FormatBF16>(op);
        case DType::Q4_0:
            return q8_kernel<FormatQ4_0>(op);
        case DType::Q4_1:
            return q8_kernel<FormatQ4_1>(op);
        case DType::Q5_0:
            return q8_kernel<FormatQ5_0>(op);
        case DType::Q5_1:
            return q8_kernel<FormatQ5_1>(op);
        case DType::Q8_0:
            return q8_kernel<FormatQ8_0>(op);
        case DType::Q2_K:
            return q8_kernel<FormatQ2_K>(op);
        case DType::Q3_K:
            return q8_kernel<FormatQ3_K>(op);
        case DType::Q4_K:
            return q8_kernel<FormatQ4_K>(op);
        case DType::Q5_K:
            return q8_kernel<FormatQ5_K>(op);
        case DType::Q6_K:
            return q8_kernel<FormatQ6_K>(op);
        case DType::IQ4_NL:
            return q8_kernel<FormatIQ4_NL>(op);
        case DType::IQ4_XS:
            return q8_kernel<FormatIQ4_XS>(op);
        case DType::MXFP4:
            return q8_kernel<FormatMXFP4>(op);
        default:
            return nullptr;
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
