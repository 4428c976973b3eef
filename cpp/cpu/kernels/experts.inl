// Products of rows with the weights of the experts that they were sent to. Rows are sorted by expert: whatever their
// number, an expert's weights are read once, and the kernels that multiply are those of other matmuls. A row's result
// is a sum over its experts by their numbers, and so does not depend on the rows beside it.

namespace akunu::cpu::AKUNU_ISA {

// The rows of a step by their experts, in a worker's scratch. A choice is a row and a place among its experts.
class ExpertRows {
  public:
    struct Expert {
        std::size_t id, n;
        const u32 *choices, *rows;  // n of each
    };

    ExpertRows(const u32* ids, std::size_t rows, std::size_t chosen, std::size_t experts, std::byte* scratch)
        : ends_(reinterpret_cast<u32*>(scratch)),
          used_(ends_ + experts),
          choices_(used_ + experts),
          rows_(choices_ + rows * chosen),
          rest_(scratch + bytes(rows, chosen, experts)) {
        std::fill_n(ends_, experts, 0u);
        for (std::size_t i = 0; i < rows * chosen; ++i) ++ends_[ids[i]];
        u32 begin = 0;
        for (std::size_t e = 0; e < experts; ++e) {
            const u32 n = ends_[e];
            if (n > 0) used_[n_used_++] = static_cast<u32>(e);
            ends_[e] = begin;  // until its choices are there
            begin += n;
        }
        for (std::size_t r = 0, i = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < chosen; ++c, ++i) {
                const u32 at = ends_[ids[i]]++;
                choices_[at] = static_cast<u32>(i);
                rows_[at] = static_cast<u32>(r);
            }
        }
    }

    static std::size_t bytes(std::size_t rows, std::size_t chosen, std::size_t experts) {
        return pack_align((2 * experts + 2 * rows * chosen) * sizeof(u32));
    }
    std::size_t used() const { return n_used_; }
    // The i-th of those that are used.
    Expert operator[](std::size_t i) const {
        const std::size_t id = used_[i], begin = id == 0 ? 0 : ends_[id - 1];
        return {id, ends_[id] - begin, choices_ + begin, rows_ + begin};
    }
    // The scratch behind it.
    std::byte* rest() const { return rest_; }

  private:
    u32 *ends_, *used_, *choices_, *rows_;
    std::byte* rest_;
    std::size_t n_used_ = 0;
};

// What is left of a worker's scratch, at least: see check_scratch.
constexpr std::size_t kExpertScratch = kWorkerScratch - kMostChoiceBytes;

// Products with weights of integer formats, of rows that lie anywhere.
struct IntegerExperts {
    using Form = ByteForm;
    static constexpr std::size_t kFromPanels = kBytePanelTokens;
    const IntegerFormat& format;
    GroupLayout layout;
    std::size_t k;
    const std::byte* x;
    Q8Layout at{k};

    IntegerExperts(const DispatchCmd& cmd, std::size_t n)
        : format(*find_format(kIntegerFormats, cmd.weight)),
          layout(layout_of(cmd, n)),
          k(n),
          x(cmd.buffers[0].as<std::byte>()) {}
    std::size_t row_bytes() const { return at.stride; }
    const std::byte* row(std::size_t i) const { return x + i * at.stride; }
    Form form(const u32* rows) const { return {format.bytes, layout, x, k, rows}; }
    IntegerTiles tiles(const std::byte* of, std::size_t tokens, std::byte* scratch, std::size_t room) const {
        IntegerTiles t{format, layout, k, tokens, of, at, format.runs.share(k, tokens, room)};
        t.copy_tokens(scratch);
        return t;
    }
};

// Products of experts in float formats.
struct FloatExperts {
    using Form = FloatForm;
    static constexpr std::size_t kFromPanels = kPanelTokens;
    const FloatFormat& format;
    GroupLayout layout;
    std::size_t k;
    const float* x;

    FloatExperts(const DispatchCmd& cmd, std::size_t n)
        : format(*find_format(kFloatFormats, cmd.weight)),
          layout(layout_of(cmd, n)),
          k(n),
          x(cmd.buffers[0].as<float>()) {}
    std::size_t row_bytes() const { return k * sizeof(float); }
    const std::byte* row(std::size_t i) const { return reinterpret_cast<const std::byte*>(x + i * k); }
    Form form(const u32* rows) const { return {format.fill, layout, x, k, rows}; }
    NarrowTiles tiles(const std::byte* of, std::size_t tokens, std::byte*, std::size_t) const {
        return {format, layout, k, tokens, reinterpret_cast<const float*>(of)};
    }
};

// Strips of panels that share their tokens' copies.
constexpr std::size_t kExpertStrips = 8;

// Calls many(panels, first, n) for blocks of an expert's rows where panels are worth it, else few(tiles, first), whose
// rows are copied side by side.
template <typename Products, typename Many, typename Few>
static void for_expert_rows(const Products& products, const u32* rows, std::size_t n, std::byte* scratch,
                            const Worker& worker, const Many& many, const Few& few) {
    using Form = typename Products::Form;
    static_assert(Panels<Form>::kScratch <= kExpertScratch && Panels<Form>::kStrips == kExpertStrips);
    if (n >= Products::kFromPanels) {
        Worker rest = worker;
        rest.scratch = scratch;
        constexpr std::size_t kMost = Form::kTokenBlock, kTile = Form::kTile;
        const std::size_t parts = (n + kMost - 1) / kMost;
        const std::size_t block = ((n + parts - 1) / parts + kTile - 1) / kTile * kTile;
        for (std::size_t t = 0; t < n; t += block) {
            const Form form = products.form(rows + t);
            many(Panels<Form>(form, products.k, rest), t, std::min(block, n - t));
        }
        return;
    }
    const std::size_t bytes = pack_align(products.row_bytes());
    if (n == 1) return few(products.tiles(products.row(rows[0]), 1, scratch, 0), 0);
    const std::size_t most = std::max<std::size_t>(1, kExpertScratch / bytes);
    for (std::size_t t = 0; t < n; t += most) {
        const std::size_t m = std::min(most, n - t), copied = pack_align(m * products.row_bytes());
        for (std::size_t i = 0; i < m; ++i) {
            std::memcpy(scratch + i * products.row_bytes(), products.row(rows[t + i]), products.row_bytes());
        }
        few(products.tiles(scratch, m, scratch + copied, kExpertScratch - copied), t);
    }
}

// What becomes of experts' gates and ups: 32 rows of a weight, a whole q8 block.
struct ExpertsGatedOutput {
    const ExpertsGateUpParams& p;
    const float *gate_bias, *up_bias;
    float* f32;
    std::byte* q8;
    Q8Layout at;
    ExpertsGatedOutput(const DispatchCmd& cmd, const ExpertsGateUpParams& params)
        : p(params),
          gate_bias(cmd.buffers[3].as<float>()),
          up_bias(cmd.buffers[4].as<float>()),
          f32(cmd.buffers[6].as<float>()),
          q8(cmd.buffers[7].as<std::byte>()),
          at(params.n) {}

    // act(gate)·up, or without ups act(gate), of a tile: [token][group], rows from row0 on, to [token][32].
    [[gnu::noinline]] void gated(const vf* gate, const vf* up, int tokens, int groups, std::size_t expert,
                                 std::size_t row0, float* out) const {
        constexpr int kMost = L < 16 ? 16 / L : 2;
        vf bias[2][kMost];
        for (int g = 0; g < groups; ++g) {
            const std::size_t row = row0 + static_cast<std::size_t>(g) * L;
            const int n = row < p.n ? static_cast<int>(std::min<std::size_t>(L, p.n - row)) : 0;
            bias[0][g] = p.has_bias ? load_first(gate_bias + expert * p.n + row, n) : zero();
            bias[1][g] = p.has_bias && up ? load_first(up_bias + expert * p.n + row, n) : zero();
        }
        const vf limit = set1(p.limit > 0 ? p.limit : std::numeric_limits<float>::infinity()),
                 offset = set1(p.up_offset);
        const auto all = [&](const auto& activated) {
            for (int m = 0; m < tokens; ++m, out += 32) {
                for (int g = 0; g < groups; ++g) {
                    const vf a = min_(limit, *gate++ + bias[0][g]);
                    if (!up) {
                        store_group(out + g * L, activated(a));
                        continue;
                    }
                    const vf b = *up++ + bias[1][g];
                    store_group(out + g * L, activated(a) * (max_(-limit, min_(limit, b)) + offset));
                }
            }
        };
        if (p.sharpness == 1) return with_activation(p.activation, all);
        const vf sharpness = set1(p.sharpness);
        all([&](vf x) { return x * sigmoid(sharpness * x); });
    }
    void store(const float* values, std::size_t choice, std::size_t unit) const {
        const std::size_t first = unit * 32, n = std::min<std::size_t>(32, p.n - first);
        if (p.formats & kActF32) std::memcpy(f32 + choice * p.n + first, values, n * sizeof(float));
        if (p.formats & kActQ8) quantize_block({q8 + choice * at.stride, at}, unit, values);
    }

  private:
    static void store_group(float* to, vf v) { AKUNU_ISA::store(to, v); }
};

// Calls run(weights, first, last) for units of an expert, with the addresses of its weights in `buffers`: at once, or,
// of an expert that stays in its file and is not held, for so many units as a thread has room for.
template <std::size_t kWeights, typename Run>
static void for_weights(const DispatchCmd& cmd, const Worker& worker, std::size_t expert, std::size_t expert_bytes,
                        std::size_t groups, std::size_t first, std::size_t last, const Run& run) {
    std::array<const std::byte*, kWeights> weights;
    if (!cmd.paged) {
        for (std::size_t i = 0; i < kWeights; ++i) {
            weights[i] = cmd.buffers[1 + i].as<std::byte>() + expert * expert_bytes;
        }
        return run(weights, first, last);
    }
    bool held = true;
    for (std::size_t i = 0; i < kWeights; ++i) held = held && is_held(*cmd.buffers[1 + i].as<ExpertPages>(), expert);
    const std::size_t step = held ? last - first : kPagedRows / 32;
    for (std::size_t u = first; u < last; u += step) {
        const std::size_t end = std::min(last, u + step), g1 = std::min(end * (32 / L), groups);
        for (std::size_t i = 0; i < kWeights; ++i) {
            weights[i] = groups_of(*cmd.buffers[1 + i].as<ExpertPages>(), expert, u * (32 / L), g1, worker.index,
                                   static_cast<int>(i));
        }
        run(weights, u, end);
    }
}

template <typename Products>
static void experts_gate_up(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ExpertsGateUpParams>(params);
    const Products products(cmd, p.k);
    const ExpertsGatedOutput out(cmd, p);
    const std::size_t group_bytes = products.layout.bytes, groups = (p.n + L - 1) / L, units = (p.n + 31) / 32;
    const std::size_t choices = std::size_t{p.rows} * p.chosen, most = std::min<std::size_t>(choices, p.experts);
    // Items are of one expert: so many as may be used. Those behind the ones that are, are empty.
    const std::size_t together = choices >= 2 * most ? kExpertStrips / 2 : 1, parts = (units + together - 1) / together;
    auto items =
        worker.claim(most * parts, (p.gated ? 2 : 1) * together * (32 / L) * group_cost(group_bytes, choices / most));
    if (!items.next()) return;
    const ExpertRows by(cmd.buffers[5].as<u32>(), p.rows, p.chosen, p.experts, worker.scratch);

    const auto run = [&](const ExpertRows::Expert& expert, const std::byte* w_gate, const std::byte* w_up,
                         std::size_t u0, std::size_t u1) {
        // Strips of one matrix, of which one is a unit.
        const auto plain = [&](const auto& panels, std::size_t first, std::size_t n) {
            alignas(64) float values[32];
            const auto group = [&](std::size_t s, int v) {
                return w_gate + std::min(s * kPanelVectors + static_cast<std::size_t>(v), groups - 1) * group_bytes;
            };
            const auto done = [&](std::size_t t, std::size_t m, std::size_t s, const float* sums) {
                for (std::size_t i = 0; i < m; ++i, sums += kPanel) {
                    for (std::size_t half = 0; half < 2; ++half) {
                        out.gated(reinterpret_cast<const vf*>(sums + half * 16), nullptr, 1, kPanelVectors / 2,
                                  expert.id, s * kPanel + half * 16, values + half * 16);
                    }
                    out.store(values, expert.choices[first + t + i], s);
                }
            };
            for (std::size_t u = u0; u < u1; u += kExpertStrips) {
                panels.run(0, n, u, std::min(u1, u + kExpertStrips), 1, group, done);
            }
        };
        const auto many = [&](const auto& panels, std::size_t first, std::size_t n) {
            if (!p.gated) return plain(panels, first, n);
            using Form = typename Products::Form;
            constexpr int kHalf = kPanelVectors / 2;
            alignas(64) float values[32];
            const auto group = [&](std::size_t s, int v) {
                const std::size_t g = std::min(s * kHalf + static_cast<std::size_t>(v % kHalf), groups - 1);
                return (v < kHalf ? w_gate : w_up) + g * group_bytes;
            };
            const auto done = [&](std::size_t t, std::size_t m, std::size_t s, const float* sums) {
                for (std::size_t i = 0; i < m; ++i, sums += kPanel) {
                    for (std::size_t half = 0; half < 2; ++half) {
                        const auto* strip = reinterpret_cast<const vf*>(sums + half * Form::kTokenBlock * kPanel);
                        out.gated(strip, strip + kHalf, 1, kHalf, expert.id, (s + half) * 16, values + half * 16);
                    }
                    out.store(values, expert.choices[first + t + i], s / 2);
                }
            };
            for (std::size_t u = u0; u < u1; u += kExpertStrips / 2) {
                panels.run(0, n, 2 * u, 2 * std::min(u1, u + kExpertStrips / 2), 2, group, done);
            }
        };
        const auto few = [&](const auto& tiles, std::size_t first) {
            for (std::size_t u = u0; u < u1; ++u) {
                const std::uint64_t g0 = u * (32 / L), g1 = std::min<std::uint64_t>(g0 + 32 / L, groups);
                tiles.for_tiles([&](std::size_t t, std::size_t m) {
                    float values[kMostTokens][32];
                    for (std::uint64_t g = g0; g < g1;) {
                        const int n = tiles.together(m, g1 - g);
                        vf gate[2 * kMostTokens], up[2 * kMostTokens];
                        tiles.run(n, w_gate + g * group_bytes, t, m, gate);
                        if (p.gated) tiles.run(n, w_up + g * group_bytes, t, m, up);
                        out.gated(gate, p.gated ? up : nullptr, static_cast<int>(m), n, expert.id, g * L,
                                  values[0] + (g - g0) * L);
                        g += static_cast<std::uint64_t>(n);
                    }
                    for (std::size_t i = 0; i < m; ++i) out.store(values[i], expert.choices[first + t + i], u);
                });
            }
        };
        for_expert_rows(products, expert.rows, expert.n, by.rest(), worker, many, few);
    };
    do {
        for (std::uint64_t i = items.begin; i < items.end && i / parts < by.used();) {
            const std::uint64_t e = i / parts, end = std::min(items.end, (e + 1) * parts);
            const ExpertRows::Expert expert = by[e];
            const std::size_t first = i % parts * together;
            const std::size_t last = std::min<std::size_t>(units, (end - e * parts) * together);
            const auto each = [&](const auto& w, std::size_t u0, std::size_t u1) {
                run(expert, w.front(), w.back(), u0, u1);
            };
            if (p.gated) {
                for_weights<2>(cmd, worker, expert.id, groups * group_bytes, groups, first, last, each);
            } else {
                for_weights<1>(cmd, worker, expert.id, groups * group_bytes, groups, first, last, each);
            }
            i = end;
        }
    } while (items.next());
}

template <typename Products>
static void experts_down(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<ExpertsDownParams>(params);
    const Products products(cmd, p.k);
    auto* y = cmd.buffers[2].as<float>();
    const auto *bias = cmd.buffers[3].as<float>(), *weights = cmd.buffers[5].as<float>();
    const std::size_t group_bytes = products.layout.bytes, groups = (p.n + L - 1) / L, strips = (p.n + 31) / 32;
    const std::size_t choices = std::size_t{p.rows} * p.chosen, most = std::min<std::size_t>(choices, p.experts);
    // Rows of the output are added to by one expert after the other, so that workers share the columns.
    std::size_t together = choices >= 2 * most ? kExpertStrips : 1;
    while (together > 1 && strips / together < 2 * static_cast<std::size_t>(worker.count)) together /= 2;
    const std::size_t n_items = (strips + together - 1) / together;
    auto items = worker.claim(n_items, together * (32 / L) * most * group_cost(group_bytes, choices / most));
    if (!items.next()) return;
    const ExpertRows by(cmd.buffers[4].as<u32>(), p.rows, p.chosen, p.experts, worker.scratch);

    // y (+)= weight · (acc[token][group] + bias), of `width` groups a token.
    const auto add = [&](const ExpertRows::Expert& expert, const vf* acc, std::size_t first, std::size_t tokens,
                         int width, std::size_t row0) {
        for (std::size_t i = first; i < first + tokens; ++i) {
            const vf weight = set1(weights[expert.choices[i]]);
            for (int g = 0; g < width; ++g, ++acc) {
                const std::size_t row = row0 + static_cast<std::size_t>(g) * L;
                if (row >= p.n) continue;
                const int n = static_cast<int>(std::min<std::size_t>(L, p.n - row));
                float* to = y + std::size_t{expert.rows[i]} * p.n + row;
                vf v = *acc;
                if (p.has_bias) v += load_first(bias + expert.id * p.n + row, n);
                if (n == L) {
                    store(to, fma(weight, v, load(to)));
                } else {
                    store_first(to, fma(weight, v, load_first(to, n)), n);
                }
            }
        }
    };
    const auto run = [&](const ExpertRows::Expert& expert, const std::byte* w, std::size_t s0, std::size_t s1) {
        const auto many = [&](const auto& panels, std::size_t first, std::size_t n) {
            const auto group = [&](std::size_t s, int v) {
                return w + std::min(s * kPanelVectors + static_cast<std::size_t>(v), groups - 1) * group_bytes;
            };
            const auto done = [&](std::size_t t, std::size_t m, std::size_t s, const float* sums) {
                add(expert, reinterpret_cast<const vf*>(sums), first + t, m, kPanelVectors, s * kPanel);
            };
            for (std::size_t s = s0; s < s1; s += kExpertStrips) {
                panels.run(0, n, s, std::min(s1, s + kExpertStrips), 1, group, done);
            }
        };
        const auto few = [&](const auto& tiles, std::size_t first) {
            const std::uint64_t end = std::min<std::uint64_t>(s1 * (32 / L), groups);
            tiles.for_tiles([&](std::size_t t, std::size_t m) {
                for (std::uint64_t g = s0 * (32 / L); g < end;) {
                    const int n = tiles.together(m, end - g);
                    vf acc[2 * kMostTokens];
                    tiles.run(n, w + g * group_bytes, t, m, acc);
                    add(expert, acc, first + t, m, n, g * L);
                    g += static_cast<std::uint64_t>(n);
                }
            });
        };
        // A row of x is a choice.
        for_expert_rows(products, expert.choices, expert.n, by.rest(), worker, many, few);
    };
    do {
        const std::size_t s0 = items.begin * together, s1 = std::min<std::size_t>(strips, items.end * together);
        const std::size_t first = s0 * 32, n = std::min<std::size_t>(p.n, s1 * 32) - first;
        for (std::size_t r = 0; r < p.rows && !p.accumulate; ++r) {
            std::memset(y + r * p.n + first, 0, n * sizeof(float));
        }
        for (std::size_t e = 0; e < by.used(); ++e) {
            const ExpertRows::Expert expert = by[e];
            for_weights<1>(
                cmd, worker, expert.id, groups * group_bytes, groups, s0, s1,
                [&](const auto& weights, std::size_t u0, std::size_t u1) { run(expert, weights[0], u0, u1); });
        }
    } while (items.next());
}

// The kernel of kExpertsGateUp or kExpertsDown.
static Kernel find_experts(const DispatchCmd& cmd) {
    if (cmd.weight != cmd.last_weight) return nullptr;
    const bool down = cmd.op == Op::kExpertsDown;
    if (find_format(kIntegerFormats, cmd.weight)) {
        return down ? experts_down<IntegerExperts> : experts_gate_up<IntegerExperts>;
    }
    if (find_format(kFloatFormats, cmd.weight)) {
        return down ? experts_down<FloatExperts> : experts_gate_up<FloatExperts>;
    }
    return nullptr;
}

}  // namespace akunu::cpu::AKUNU_ISA
