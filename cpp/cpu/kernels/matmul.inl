// y = x·Wᵀ for packed weights. Few tokens read them as they are, in tiles of a group of L rows times M tokens; many
// share panels (matmul_panels.inl). Either way every output element is summed in the same order, so that a token's
// result does not depend on the batch that it is in.

namespace akunu::cpu::AKUNU_ISA {

// Integer formats: x is q8. out[m] = dot products of token m with the group's rows.
template <typename F, int M>
static inline void dot_tile_q8(const std::byte* group, const GroupLayout& layout, std::size_t k, const std::byte* x,
                               const Q8Layout& at, vf* out) {
    constexpr int kSteps = F::kSub / 4, kParts = 32 / F::kSub;
    using Dot = std::conditional_t<F::kSigned, DotS<kSteps>, DotU<F::kMax, kSteps>>;
    constexpr int kOffset = F::kSigned ? kSignedOffset : F::kOffset;
    const Fields fields(group, layout);
    const std::int8_t* row[M];
    vf acc[M];  // local, as the offsets: the compiler must assume that a store to `out` changes what it points to
    for (int m = 0; m < M; ++m) {
        row[m] = reinterpret_cast<const std::int8_t*>(x) + static_cast<std::size_t>(m) * at.stride;
        acc[m] = zero();
    }
    const std::size_t d_at = at.d, s_at = F::kSub == 32 ? at.s : at.s16, blocks = k / F::kBlock;
    const vf offset = set1(static_cast<float>(-kOffset));
    for (std::size_t b = 0; b < blocks; ++b) {
        const BlockAhead<F> ahead(fields, layout, b, blocks);
        const Fields block = Packing<F>::from_block(fields, b);
        vf d[F::kSubs], mins[F::kSubs], u[M];
        F::scales(block, d, mins);
        unroll<F::kSubs>([&]<int s>() {
            const std::size_t first = b * F::kBlock + s * F::kSub;
            Dots<Dot, M, 1> dots;
            unroll<kSteps>([&]<int j>() {
                ahead.template fetch<s * kSteps + j, F::kSubs * kSteps>();
                dots.template step<j>({F::template quants<s, j>(block)}, row, first + 4 * j);
            });
            vf minus_min = zero();
            if constexpr (F::kHasMin) minus_min = -mins[s];
            for (int m = 0; m < M; ++m) {
                const vf sum = set1(reinterpret_cast<const float*>(row[m] + s_at)[first / F::kSub]);
                vf dot = to_float(dots.sum(m, 0));
                if constexpr (kOffset != 0) dot = fma(offset, sum, dot);  // exact: integers below 2^24
                u[m] = add_sub_block<s % kParts == 0, F::kHasMin>(u[m], dot, d[s], sum, minus_min);
                if constexpr (s % kParts == kParts - 1) {
                    acc[m] = fma(u[m], set1(reinterpret_cast<const float*>(row[m] + d_at)[first / 32]), acc[m]);
                }
            }
        });
    }
    for (int m = 0; m < M; ++m) out[m] = acc[m];
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
    constexpr std::size_t kNear = 2 * kFetchNear / G, kFar = 2 * kFetchFar / G;  // of each group
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
                const std::byte* ahead = group + static_cast<std::size_t>(g) * group_bytes + k * kStride + kNear;
                __builtin_prefetch(ahead);
                if constexpr (kFar != 0) __builtin_prefetch(ahead + kFar, 0, 2);
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

// The kernel for many tokens.
template <typename Form>
static void matmul_panels(const MatmulParams& p, const Form& form, const std::byte* w, std::size_t group_bytes,
                          const Epilogue& out, const Worker& worker) {
    const std::size_t groups = (p.n + L - 1) / L;
    const Panels<Form> panels(form, p.k, worker);
    panels.for_blocks(
        p.rows, (groups + kPanelVectors - 1) / kPanelVectors, 1, worker,
        [&](std::size_t s, int v) {
            const std::size_t g = s * kPanelVectors + static_cast<std::size_t>(v);
            return g < groups ? w + g * group_bytes : nullptr;
        },
        [&](std::size_t t, std::size_t s, const float* sums) {
            for (std::size_t v = 0; v < kPanelVectors && s * kPanelVectors + v < groups; ++v) {
                out.store(load(sums + v * L), t, (s * kPanelVectors + v) * L);
            }
        });
}

// What a packed group costs a tile of tokens, as Worker::claim counts it: its bytes, or, for several tokens, products.
static inline std::uint64_t group_cost(std::size_t group_bytes, std::size_t rows) {
    return group_bytes * std::max<std::size_t>(1, rows / 4);
}

template <typename F>
static void matmul_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const auto* x = cmd.buffers[0].as<std::byte>();
    const auto* w = cmd.buffers[1].as<std::byte>();
    const Epilogue out{p, cmd.buffers[2].as<float>(), cmd.buffers[3].as<float>()};
    const GroupLayout layout(pack_format(cmd.weight), p.k / F::kBlock, L);
    if (p.rows >= kPanelTokens) return matmul_panels(p, ByteForm<F>(x, p.k), w, layout.bytes, out, worker);
    const Q8Layout at(p.k);
    auto groups = worker.claim((p.n + L - 1) / L, group_cost(layout.bytes, p.rows));
    while (groups.next()) {
        for (std::uint64_t g = groups.begin; g < groups.end; ++g) {
            for_token_tiles<kTokenTile>(0, p.rows, [&]<int M>(std::size_t t) {
                vf acc[M];
                dot_tile_q8<F, M>(w + g * layout.bytes, layout, p.k, x + t * at.stride, at, acc);
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

template <typename F>
static void matmul_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<MatmulParams>(params);
    const auto* w = cmd.buffers[1].as<std::byte>();
    const Epilogue out{p, cmd.buffers[2].as<float>(), cmd.buffers[3].as<float>()};
    const GroupLayout layout(pack_format(cmd.weight), p.k, L);
    const auto* x = cmd.buffers[0].as<float>();
    if (p.rows >= kPanelTokens) return matmul_panels(p, FloatForm<F>(x, p.k), w, layout.bytes, out, worker);
    constexpr std::uint64_t kStep = 8;  // groups whose tokens tiles run together
    const std::uint64_t groups = (p.n + L - 1) / L;
    auto steps = worker.claim((groups + kStep - 1) / kStep, kStep * group_cost(layout.bytes, p.rows));
    while (steps.next()) {
        for (std::uint64_t g0 = steps.begin * kStep; g0 < std::min(groups, steps.end * kStep); g0 += kStep) {
            const std::uint64_t g1 = std::min(groups, g0 + kStep);
            for_token_tiles<kTokenTile>(0, p.rows, [&]<int M>(std::size_t t) {
                constexpr int G = kGroupsPerTile<M>;
                std::uint64_t g = g0;
                for (; g + G <= g1; g += G) float_tile<F, M, G>(w, layout.bytes, p.k, x, t, g, out);
                for (; g < g1; ++g) float_tile<F, M, 1>(w, layout.bytes, p.k, x, t, g, out);
            });
        }
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

// act(gate)·up, 32 rows at a time so that a whole q8 block can be written. dot<M>(group, t, acc) is a tile.
template <typename Dot>
static void gate_up(const DispatchCmd& cmd, const GateUpParams& p, std::size_t group_bytes, const Worker& worker,
                    const Dot& dot) {
    const GatedOutput out(cmd, p);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    auto units = worker.claim((p.n + 31) / 32, 2 * (32 / L) * group_cost(group_bytes, p.rows));
    while (units.next()) {
        for (std::uint64_t u = units.begin; u < units.end; ++u) {
            const std::uint64_t g0 = u * (32 / L), g1 = std::min<std::uint64_t>(g0 + 32 / L, (p.n + L - 1) / L);
            for_token_tiles<kTokenTile>(0, p.rows, [&]<int M>(std::size_t t) {
                float values[M][32];
                for (std::uint64_t g = g0; g < g1; ++g) {
                    vf gate[M], up[M];
                    dot.template operator()<M>(w_gate + g * group_bytes, t, gate);
                    dot.template operator()<M>(w_up + g * group_bytes, t, up);
                    for (int m = 0; m < M; ++m) store(values[m] + (g - g0) * L, out.gated(gate[m], up[m]));
                }
                for (int m = 0; m < M; ++m) out.store(values[m], t + static_cast<std::size_t>(m), u);
            });
        }
    }
}

// The kernel for many tokens. A strip is half a unit: 16 rows of gate, then the same of up.
template <typename Form>
static void gate_up_panels(const DispatchCmd& cmd, const GateUpParams& p, const Form& form, std::size_t group_bytes,
                           const Worker& worker) {
    constexpr int kHalf = kPanelVectors / 2;
    static_assert(kPanel == 32 && kHalf * L == 16);
    const auto *w_gate = cmd.buffers[1].as<std::byte>(), *w_up = cmd.buffers[2].as<std::byte>();
    const GatedOutput out(cmd, p);
    const std::uint64_t groups = (p.n + L - 1) / L;
    const Panels<Form> panels(form, p.k, worker);
    alignas(64) float values[32];
    panels.for_blocks(
        p.rows, 2 * ((p.n + 31) / 32), 2, worker,
        [&](std::size_t s, int v) {
            const std::uint64_t g = s * kHalf + static_cast<std::uint64_t>(v % kHalf);
            return g < groups ? (v < kHalf ? w_gate : w_up) + g * group_bytes : nullptr;
        },
        [&](std::size_t t, std::size_t s, const float* sums) {
            for (std::size_t i = 0; i < 16; i += L) {
                store(values + s % 2 * 16 + i, out.gated(load(sums + i), load(sums + 16 + i)));
            }
            if (s % 2 == 1) out.store(values, t, s / 2);
        });
}

template <typename F>
static void gate_up_q8(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const GroupLayout layout(pack_format(cmd.weight), p.k / F::kBlock, L);
    const auto* x = cmd.buffers[0].as<std::byte>();
    if (p.rows >= kPanelTokens) return gate_up_panels(cmd, p, ByteForm<F>(x, p.k), layout.bytes, worker);
    const Q8Layout at(p.k);
    gate_up(cmd, p, layout.bytes, worker, [&]<int M>(const std::byte* group, std::size_t t, vf* acc) {
        dot_tile_q8<F, M>(group, layout, p.k, x + t * at.stride, at, acc);
    });
}

template <typename F>
static void gate_up_f32(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<GateUpParams>(params);
    const GroupLayout layout(pack_format(cmd.weight), p.k, L);
    const auto* x = cmd.buffers[0].as<float>();
    if (p.rows >= kPanelTokens) return gate_up_panels(cmd, p, FloatForm<F>(x, p.k), layout.bytes, worker);
    gate_up(cmd, p, layout.bytes, worker, [&]<int M>(const std::byte* group, std::size_t t, vf* acc) {
        for (int m = 0; m < M; ++m) acc[m] = zero();
        dot_tile_f32<F, M, 1>(group, layout.bytes, 0, p.k, x + t * p.k, p.k, acc);
    });
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
