// What adapters add to matmuls whose weights come through the ring, as part of these.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "cuda/host/consumed.h"
#include "cuda/host/joined.h"
#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/kernels/few_layout.h"

namespace akunu::cuda {

namespace {

// What a kLoraA, a kMatmul and a kLoraB say that stand one behind the other and give one result, or the matmul alone.
struct Sum {
    std::size_t size;    // of the table's commands
    LoraParams adapter;  // of rank 0: there is none
    Binding part, rows, choices;
    MatmulParams matmul;
    Binding x, weight, y, bias;
    const Command* base;  // the matmul's
};

// The matmul of a sum; false where it does what a sum does not, or its weights do not come through the ring.
bool take_matmul(const DispatchCmd& c, const Command& command, Sum& out) {
    if (command.streams != 1) return false;
    using M = MatmulParams;
    Consumed matmul(c);
    matmul.patched(&M::rows, PatchSource::kRows);
    matmul.demand(&M::format, u32{kActF32});
    out.matmul.n = matmul.take(&M::n);
    out.matmul.k = matmul.take(&M::k);
    out.matmul.y_stride = matmul.take(&M::y_stride);
    out.matmul.accumulate = matmul.take(&M::accumulate);
    out.matmul.has_bias = matmul.take(&M::has_bias);
    out.x = matmul.buffer(0);
    out.weight = matmul.weight(1);
    out.y = matmul.buffer(2);
    out.bias = matmul.buffer(3);
    out.base = &command;
    return matmul.whole();
}

// Nothing where these are others.
std::optional<Sum> take_sum(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    Sum out{};
    if (!c.empty() && c[0].op == Op::kMatmul) {
        out.size = 1;
        return take_matmul(c[0], commands[0], out) ? std::optional(out) : std::nullopt;
    }
    if (c.size() < 3 || c[0].op != Op::kLoraA || c[1].op != Op::kMatmul || c[2].op != Op::kLoraB) return {};
    if (!take_matmul(c[1], commands[1], out)) return {};
    using L = LoraParams;
    Consumed first(c[0]), second(c[2]);
    out.size = 3;
    for (Consumed* of : {&first, &second}) {
        of->patched(&L::rows, PatchSource::kRows);
        of->demand(&L::gather, 0u);
        of->demand(&L::format, u32{kActF16});
        of->demand(&L::n, out.matmul.n);
        of->demand(&L::k, out.matmul.k);
        out.adapter.max_rank = of->take(&L::max_rank);
        out.adapter.slot_words = of->take(&L::slot_words);
        of->demand(&L::y_stride, out.matmul.y_stride);
        out.part = of->buffer(1);
        out.rows = of->buffer(3);
        out.choices = of->buffer(4);
    }
    first.demand(&L::max_rank, out.adapter.max_rank);
    first.demand(&L::slot_words, out.adapter.slot_words);
    first.demand_buffer(1, out.part);
    first.demand_buffer(3, out.rows);
    first.demand_buffer(4, out.choices);
    second.demand_buffer(0, first.buffer(2));
    first.demand_buffer(0, out.x);
    second.demand_buffer(2, out.y);
    if (!first.whole() || !second.whole()) return {};
    return out;
}

// Several of the same input, some of which have adapters.
template <std::size_t kSums>
struct Sums {
    std::array<Sum, kSums> of;
    std::size_t size = 0;  // of the table's commands
};
template <std::size_t kSums>
std::optional<Sums<kSums>> take_sums(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    Sums<kSums> out;
    for (Sum& of : out.of) {
        const auto sum = take_sum(c.subspan(out.size), commands.subspan(out.size));
        if (!sum) return {};
        of = *sum;
        out.size += of.size;
        if (!is_same_place(of.x, out.of[0].x) || of.matmul.k != out.of[0].matmul.k) return {};
    }
    return out;
}
template <std::size_t kSums>
bool any_adapted(const Sums<kSums>& sums) {
    return std::ranges::any_of(sums.of, [](const Sum& s) { return s.adapter.max_rank != 0; });
}

struct RowNorm {
    Binding x, weight;
    float eps;
};
// The norm of rows that only so many commands behind it read, as F16.
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
    const u32 n = gate.matmul.n;
    act.patched(&A::rows, PatchSource::kRows);
    act.demand(&A::n, n);
    act.demand(&A::gated, 1u);
    act.demand(&A::up_stride, n);
    GateUpParams out{};
    out.n = n;
    out.k = gate.matmul.k;
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
    const bool alike = up.matmul.n == n && a.reader == b.reader && a.spec == b.spec;
    if (!act.whole() || !alike || !is_alone(gate) || !is_alone(up)) return {};
    return out;
}

// The command's words and buffers that say where adapters are; nothing where there is no room for what they give.
// `results`: words that the command may leave besides.
std::optional<Command> adapted(Command out, std::span<const Sum> sums, const Geometry& g, u32 max_rows, u32 results) {
    AdaptedParams p{.slot_words = 0, .max_rank = {}};
    std::array<Binding, std::extent_v<decltype(Command::buffers)>> buffers;
    u32 ranks = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const Sum& s = sums[i];
        if (s.adapter.max_rank == 0) continue;
        p.max_rank[i] = s.adapter.max_rank;
        buffers[kAdapterParts + i] = s.part;
        if (ranks == 0) {
            p.slot_words = s.adapter.slot_words;
            buffers[kAdaptedRows] = s.rows;
            buffers[kAdapterChoices] = s.choices;
        }
        ranks += p.max_rank[i];
        if (s.adapter.slot_words != p.slot_words || !is_same_place(s.rows, buffers[kAdaptedRows]) ||
            !is_same_place(s.choices, buffers[kAdapterChoices])) {
            return {};
        }
    }
    std::memcpy(out.params + kAdaptedWord, &p, sizeof p);
    set_buffers(out, buffers);
    // Steps of a table of several rows may have one.
    const auto has_room = [&](u32 rows) {
        const std::uint64_t tiles =
            rows == 1 ? tile_op_bytes(out, sums[0].matmul.k) : few_bytes(g.sizes(), g.sizes().pass_tiles);
        return results + rank_words(ranks, rows) <= kMostWords && (rows == 1 || rows * ranks <= kMostRankSums) &&
               tiles + rank_bytes(ranks, rows) <= op_room(g);
    };
    return has_room(1) && has_room(max_rows) ? std::optional(out) : std::nullopt;
}

// q, k and v of a norm as one command, but for what adapters add to them.
std::optional<Command> norm_qkv(std::span<const DispatchCmd> c, const Sums<3>& sums) {
    const auto& [q, k, v] = sums.of;
    const auto norm = take_norm(c, sums.size, q.x, q.matmul.k);
    const u32 n_q = q.matmul.n, n_kv = k.matmul.n;
    if (!norm || v.matmul.n != n_kv) return {};
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
    const auto is_plain = [](const Sum& s) { return s.matmul.y_stride == s.matmul.n && !s.matmul.accumulate; };
    if (!side_by_side || !biases || !std::ranges::all_of(sums.of, is_plain)) return {};
    const NormQkvParams p{.n_q = n_q,
                          .n_kv = n_kv,
                          .k = q.matmul.k,
                          .k_offset = static_cast<u32>(apart(k.y)),
                          .v_offset = static_cast<u32>(apart(v.y)),
                          .has_bias = bias,
                          .eps = norm->eps};
    Command out{};
    out.op = kOpNormQkv;
    out.label = q.base->label;
    for (std::size_t i = 0; i < 3; ++i) out.weights[i] = sums.of[i].base->weights[0];
    const u32 reader = out.weights[0].reader;
    if (out.weights[1].reader != reader || !serves(reader, out.weights[2].reader)) return {};
    out.streams = out.weights[2].reader == reader ? 1 : 2;
    std::memcpy(out.params, &p, sizeof p);
    out.params[kNormedRowsWord] = 1;
    set_buffers(out, std::array<Binding, 7>{norm->x, norm->weight, q.weight, k.weight, v.weight, q.y, q.bias});
    return out;
}

}  // namespace

std::optional<Command> adapted_qkv(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                   const Geometry& g) {
    if (c.empty() || c[0].op != Op::kNorm) return {};
    const auto sums = take_sums<3>(c.subspan(1), commands.subspan(1));
    if (!sums || !any_adapted(*sums)) return {};
    auto out = norm_qkv(c, *sums);
    if (!out) return {};
    out->barrier = commands[0].barrier;
    return adapted(*out, sums->of, g, 1, sums->of[0].matmul.n + 2 * sums->of[1].matmul.n);
}

std::optional<Command> adapted_gate_up(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                       const Geometry& g, u32 max_rows) {
    const std::size_t normed = !c.empty() && c[0].op == Op::kNorm ? 1 : 0;
    if (c.size() < normed || (normed && max_rows != 1)) return {};
    const auto sums = take_sums<2>(c.subspan(normed), commands.subspan(normed));
    if (!sums || !any_adapted(*sums)) return {};
    const auto& [gate, up] = sums->of;
    const std::size_t at = normed + sums->size;  // of the activation
    const auto p = take_activation(c.subspan(std::min(at, c.size())), gate, up);
    if (!p) return {};
    Command out = *gate.base;
    out.barrier = commands[0].barrier;
    out.weights[1] = up.base->weights[0];
    std::ranges::fill(out.params, 0);
    std::ranges::fill(out.buffers, 0);
    const Binding &f32 = c[at].buffers[2], &compact = c[at].buffers[3];
    if (normed) {
        const auto norm = take_norm(c, sums->size, gate.x, p->k);
        if (!norm) return {};
        const NormGateUpParams of{
            .n = p->n, .k = p->k, .activation = p->activation, .formats = p->formats, .eps = norm->eps};
        out.op = kOpNormGateUp;
        out.half_input = 0;
        out.n_patches = 0;
        std::memcpy(out.params, &of, sizeof of);
        out.params[kNormedRowsWord] = 1;
        set_buffers(out, std::array<Binding, 6>{norm->x, norm->weight, gate.weight, up.weight, f32, compact});
    } else {
        out.op = kOpGateUp;
        std::memcpy(out.params, &*p, sizeof *p);
        set_buffers(out, std::array<Binding, 5>{gate.x, gate.weight, up.weight, f32, compact});
    }
    return adapted(out, sums->of, g, max_rows, p->n / 2);
}

std::optional<Command> adapted_matmul(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                      const Geometry& g, u32 max_rows) {
    const auto sum = take_sum(c, commands);
    if (!sum || sum->adapter.max_rank == 0) return {};
    Command out = *sum->base;
    out.barrier = commands[0].barrier;
    std::fill(std::begin(out.buffers) + 4, std::end(out.buffers), 0);
    return adapted(out, {&*sum, 1}, g, max_rows, sum->matmul.n);
}

namespace {

// The same of rows that a replay counts.
Command of_rows(Command out, const Command& norm) {
    out.barrier = norm.barrier;
    out.half_input = 0;
    out.n_patches = 1;
    out.patch_field[0] = kNormedRowsWord;
    out.patch_value[0] = kPatchRows;
    out.params[kNormedRowsWord] = kByteRows;
    return out;
}

// Gate and up of a norm, which are one command of the table.
std::optional<Command> norm_gate_up(std::span<const DispatchCmd> c, const Command& gate_up) {
    if (gate_up.streams != 1) return {};
    Consumed both(c[1]);
    using G = GateUpParams;
    both.patched(&G::rows, PatchSource::kRows);
    NormGateUpParams p{.n = both.take(&G::n),
                       .k = both.take(&G::k),
                       .activation = both.take(&G::activation),
                       .formats = both.take(&G::formats),
                       .eps = 0};
    const auto norm = take_norm(c, 1, both.buffer(0), p.k);
    if (!norm) return {};
    p.eps = norm->eps;
    const std::array<Binding, 6> buffers = {norm->x,        norm->weight,   both.weight(1),
                                            both.weight(2), both.buffer(3), both.buffer(4)};
    if (!both.whole()) return {};
    Command out = gate_up;
    out.op = kOpNormGateUp;
    std::ranges::fill(out.params, 0);
    std::ranges::fill(out.buffers, 0);
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

}  // namespace

std::optional<Command> norm_of_rows(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 2 || c[0].op != Op::kNorm || commands[1].streams == 0) return {};
    std::optional<Command> out;
    if (c[1].op == Op::kGateUp) {
        out = norm_gate_up(c, commands[1]);
    } else if (const auto sums = take_sums<3>(c.subspan(1), commands.subspan(1)); sums && !any_adapted(*sums)) {
        out = norm_qkv(c, *sums);
    }
    const auto are_codes = [](const WeightPlanes& w) { return !w.codes || input_parts(w.reader) == 1; };
    if (!out || !std::ranges::all_of(out->weights, are_codes)) return {};
    return of_rows(*out, commands[0]);
}

}  // namespace akunu::cuda
