// What adapters add to matmuls whose weights come through the ring, as part of these.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/joined.h"
#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/kernels/few_layout.h"

namespace akunu::cuda {

namespace {

// What a kLoraA, a kMatmul and a kLoraB say that stand one behind the other and give one result.
struct Sum {
    LoraParams adapter;
    Binding part, rows, choices;
    MatmulParams matmul;
    Binding x, y, bias;
    const Command* base;  // the matmul's
};

constexpr std::size_t kOfSum = 3;

// Nothing where these are others, or where the matmul's weights do not come through the ring.
std::optional<Sum> take_sum(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < kOfSum || c[0].op != Op::kLoraA || c[1].op != Op::kMatmul || c[2].op != Op::kLoraB) return {};
    if (commands[1].streams != 1) return {};
    using L = LoraParams;
    using M = MatmulParams;
    Consumed first(c[0]), matmul(c[1]), second(c[2]);
    Sum out{};
    for (Consumed* of : {&first, &second}) {
        of->patched(&L::rows, PatchSource::kRows);
        of->demand(&L::gather, 0u);
        of->demand(&L::format, u32{kActF16});
        out.adapter.n = of->take(&L::n);
        out.adapter.k = of->take(&L::k);
        out.adapter.max_rank = of->take(&L::max_rank);
        out.adapter.slot_words = of->take(&L::slot_words);
        out.adapter.y_stride = of->take(&L::y_stride);
        out.part = of->buffer(1);
        out.rows = of->buffer(3);
        out.choices = of->buffer(4);
    }
    first.demand(&L::n, out.adapter.n);
    first.demand(&L::k, out.adapter.k);
    first.demand(&L::max_rank, out.adapter.max_rank);
    first.demand(&L::slot_words, out.adapter.slot_words);
    first.demand_buffer(1, out.part);
    first.demand_buffer(3, out.rows);
    first.demand_buffer(4, out.choices);
    second.demand_buffer(0, first.buffer(2));
    matmul.patched(&M::rows, PatchSource::kRows);
    matmul.demand(&M::format, u32{kActF32});
    matmul.demand(&M::n, out.adapter.n);
    matmul.demand(&M::k, out.adapter.k);
    out.matmul.n = out.adapter.n;
    out.matmul.k = out.adapter.k;
    out.matmul.y_stride = matmul.take(&M::y_stride);
    out.matmul.accumulate = matmul.take(&M::accumulate);
    out.matmul.has_bias = matmul.take(&M::has_bias);
    out.x = matmul.buffer(0);
    first.demand_buffer(0, out.x);
    matmul.weight(1);
    out.y = matmul.buffer(2);
    second.demand_buffer(2, out.y);
    second.demand(&L::y_stride, out.matmul.y_stride);
    out.bias = matmul.buffer(3);
    out.base = &commands[1];
    if (!first.whole() || !matmul.whole() || !second.whole()) return {};
    return out;
}

// Several of the same input.
template <std::size_t kSums>
std::optional<std::array<Sum, kSums>> take_sums(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    std::array<Sum, kSums> out;
    for (std::size_t i = 0; i < kSums; ++i) {
        if (c.size() < (i + 1) * kOfSum) return {};
        const auto sum = take_sum(c.subspan(i * kOfSum), commands.subspan(i * kOfSum));
        if (!sum || !is_same_place(sum->x, (i ? out[0] : *sum).x) || sum->adapter.k != (i ? out[0] : *sum).adapter.k) {
            return {};
        }
        out[i] = *sum;
    }
    return out;
}

struct RowNorm {
    Binding x, weight;
    float eps;
};
// The norm of a row that only so many commands behind it read, as F16.
std::optional<RowNorm> take_norm(std::span<const DispatchCmd> c, std::size_t readers, const Binding& normed, u32 dim) {
    Consumed norm(c[0]);
    using N = NormParams;
    norm.patched(&N::rows, PatchSource::kRows);
    norm.demand(&N::dim, dim);
    norm.demand(&N::formats, u32{kActF16});
    norm.demand(&N::gather, 0u);
    norm.take(&N::sum_scale);  // kNormAdd's alone
    const RowNorm out{norm.buffer(0), norm.buffer(1), norm.take(&N::eps)};
    norm.buffer(2);
    norm.demand_buffer(3, normed);
    const bool aligned = begin_of(out.x) % 16 == 0 && begin_of(out.weight) % 16 == 0;
    if (!norm.whole() || !aligned || is_read(normed, c.subspan(1 + readers))) return {};
    return out;
}

// The activation of gate and up, whose results nobody else reads.
std::optional<GateUpParams> take_activation(std::span<const DispatchCmd> c, const Sum& gate, const Sum& up) {
    if (c.empty() || c[0].op != Op::kGateAct) return {};
    Consumed act(c[0]);
    using A = GateActParams;
    const u32 n = gate.adapter.n;
    act.patched(&A::rows, PatchSource::kRows);
    act.demand(&A::n, n);
    act.demand(&A::gated, 1u);
    act.demand(&A::up_stride, n);
    GateUpParams out{};
    out.n = n;
    out.k = gate.adapter.k;
    out.activation = act.take(&A::activation);
    out.formats = act.take(&A::formats);
    act.demand_buffer(0, gate.y);
    act.demand_buffer(1, up.y);
    const auto is_alone = [&](const Sum& s) {
        return s.matmul.y_stride == n && !s.matmul.accumulate && !s.matmul.has_bias && !is_read(s.y, c.subspan(1));
    };
    // Blocks write what they have while others read the input.
    const auto meets = [&](const Binding& b) {
        return b && begin_of(b) < end_of(gate.x) && begin_of(gate.x) < end_of(b);
    };
    if (meets(act.buffer(2)) || meets(act.buffer(3))) return {};
    const WeightPlanes &a = gate.base->weights[0], &b = up.base->weights[0];
    const bool alike = up.adapter.n == n && a.reader == b.reader && a.spec == b.spec;
    if (!act.whole() || !alike || !is_alone(gate) || !is_alone(up)) return {};
    return out;
}

// The command's words and buffers that say where adapters are; nothing where there is no room for what they give.
// `results`: words that the command may leave besides.
std::optional<Command> adapted(Command out, std::span<const Sum> sums, const Geometry& g, u32 max_rows, u32 results) {
    AdaptedParams p{.slot_words = sums[0].adapter.slot_words, .max_rank = {}};
    std::array<Binding, 12> buffers;
    u32 ranks = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        p.max_rank[i] = sums[i].adapter.max_rank;
        ranks += p.max_rank[i];
        buffers[kAdapterParts + i] = sums[i].part;
        if (sums[i].adapter.slot_words != p.slot_words || !is_same_place(sums[i].rows, sums[0].rows) ||
            !is_same_place(sums[i].choices, sums[0].choices)) {
            return {};
        }
    }
    buffers[kAdaptedRows] = sums[0].rows;
    buffers[kAdapterChoices] = sums[0].choices;
    std::memcpy(out.params + kAdaptedWord, &p, sizeof p);
    set_buffers(out, buffers);
    // Steps of a table of several rows may have one.
    const auto has_room = [&](u32 rows) {
        const std::uint64_t tiles =
            rows == 1 ? tile_op_bytes(out, sums[0].adapter.k) : few_bytes(g.sizes(), g.sizes().pass_tiles);
        return results + rank_words(ranks, rows) <= kMostWords && (rows == 1 || rows * ranks <= kMostRankSums) &&
               tiles + rank_bytes(ranks, rows) <= op_room(g);
    };
    return has_room(1) && has_room(max_rows) ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<Command> adapted_qkv(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                   const Geometry& g) {
    if (c.empty() || c[0].op != Op::kNorm) return {};
    const auto sums = take_sums<3>(c.subspan(1), commands.subspan(1));
    if (!sums) return {};
    const auto& [q, k, v] = *sums;
    const auto norm = take_norm(c, 3 * kOfSum, q.x, q.adapter.k);
    const u32 n_q = q.adapter.n, n_kv = k.adapter.n;
    if (!norm || v.adapter.n != n_kv) return {};
    // Results are floats from q's on, biases one behind the other.
    const auto is_at = [](const Binding& b, const Binding& from, std::uint64_t floats) {
        return b.buffer.handle == from.buffer.handle && b.offset == from.offset + floats * sizeof(float);
    };
    const auto apart = [&](const Binding& b) { return (b.offset - q.y.offset) / sizeof(float); };
    const bool side_by_side = k.y.buffer.handle == q.y.buffer.handle && v.y.buffer.handle == q.y.buffer.handle &&
                              k.y.offset > q.y.offset && v.y.offset > q.y.offset;
    const u32 bias = q.matmul.has_bias;
    const bool biases = k.matmul.has_bias == bias && v.matmul.has_bias == bias &&
                        (!bias || (is_at(k.bias, q.bias, n_q) && is_at(v.bias, q.bias, n_q + n_kv)));
    const auto is_plain = [](const Sum& s) { return s.matmul.y_stride == s.adapter.n && !s.matmul.accumulate; };
    if (!side_by_side || !biases || !std::ranges::all_of(*sums, is_plain)) return {};
    const NormQkvParams p{.n_q = n_q,
                          .n_kv = n_kv,
                          .k = q.adapter.k,
                          .k_offset = static_cast<u32>(apart(k.y)),
                          .v_offset = static_cast<u32>(apart(v.y)),
                          .has_bias = bias,
                          .eps = norm->eps};
    Command out{};
    out.op = kOpNormQkv;
    out.barrier = commands[0].barrier;
    out.label = q.base->label;
    for (std::size_t i = 0; i < 3; ++i) out.weights[i] = (*sums)[i].base->weights[0];
    const u32 reader = out.weights[0].reader;
    if (out.weights[1].reader != reader || input_parts(out.weights[2].reader) != input_parts(reader)) return {};
    out.streams = out.weights[2].reader == reader ? 1 : 2;
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, std::array<Binding, 7>{norm->x, norm->weight, c[2].buffers[1], c[5].buffers[1], c[8].buffers[1],
                                            q.y, q.bias});
    return adapted(out, *sums, g, 1, n_q + 2 * n_kv);
}

std::optional<Command> adapted_gate_up(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                       const Geometry& g, u32 max_rows) {
    const std::size_t normed = !c.empty() && c[0].op == Op::kNorm ? 1 : 0;
    if (c.size() < normed || (normed && max_rows != 1)) return {};
    const auto sums = take_sums<2>(c.subspan(normed), commands.subspan(normed));
    if (!sums) return {};
    const auto& [gate, up] = *sums;
    const std::size_t at = normed + 2 * kOfSum;  // of the activation
    const auto p = take_activation(c.subspan(std::min(at, c.size())), gate, up);
    if (!p) return {};
    Command out = *gate.base;
    out.barrier = commands[0].barrier;
    out.weights[1] = up.base->weights[0];
    std::ranges::fill(out.params, 0);
    std::ranges::fill(out.buffers, 0);
    const Binding &f32 = c[at].buffers[2], &compact = c[at].buffers[3];
    const Binding &first = c[normed + 1].buffers[1], &second = c[normed + kOfSum + 1].buffers[1];
    if (normed) {
        const auto norm = take_norm(c, 2 * kOfSum, gate.x, p->k);
        if (!norm) return {};
        const NormGateUpParams of{
            .n = p->n, .k = p->k, .activation = p->activation, .formats = p->formats, .eps = norm->eps};
        out.op = kOpNormGateUp;
        out.half_input = 0;
        out.n_patches = 0;
        std::memcpy(out.params, &of, sizeof of);
        set_buffers(out, std::array<Binding, 6>{norm->x, norm->weight, first, second, f32, compact});
    } else {
        out.op = kOpGateUp;
        std::memcpy(out.params, &*p, sizeof *p);
        set_buffers(out, std::array<Binding, 5>{gate.x, first, second, f32, compact});
    }
    return adapted(out, *sums, g, max_rows, p->n / 2);
}

std::optional<Command> adapted_matmul(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                      const Geometry& g, u32 max_rows) {
    const auto sum = take_sum(c, commands);
    if (!sum) return {};
    Command out = *sum->base;
    out.barrier = commands[0].barrier;
    std::fill(std::begin(out.buffers) + 4, std::end(out.buffers), 0);
    return adapted(out, {&*sum, 1}, g, max_rows, sum->adapter.n);
}

}  // namespace akunu::cuda
