// Commands that do the work of several: see DecodeAttentionParams.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/host/words.h"
#include "cuda/kernels/kv_layout.h"
#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

namespace {

void set_buffers(Command& out, std::span<const Binding> buffers) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i]) out.buffers[i] = reinterpret_cast<u64>(buffers[i].as());
    }
}

std::optional<Command> decode_attention(std::span<const DispatchCmd> c, std::span<const Command> commands, u32 max_rows,
                                        u32 blocks) {
    if (c.size() < 3 || c[0].op != Op::kPrepareHeads) return {};
    const bool split = c[1].op == Op::kAttentionSplit && c[2].op == Op::kAttentionMerge;
    if (!split && (c[1].op != Op::kAttention || c[2].op != Op::kQuantize)) return {};
    Consumed rope(c[0]), attention(c[1]), last(c[2]);
    using A = AttentionParams;
    using Q = QuantizeParams;
    const DecodeAttentionParams p{.rows = 0,
                                  .step = 0,
                                  .keys = 0,
                                  .n_heads = rope.take(&PrepareHeadsParams::n_heads),
                                  .n_kv_heads = rope.take(&PrepareHeadsParams::n_kv_heads),
                                  .head_dim = rope.take(&PrepareHeadsParams::head_dim),
                                  .rope_dim = rope.take(&PrepareHeadsParams::rope_dim),
                                  .style = rope.take(&PrepareHeadsParams::style),
                                  .qk_norm = rope.take(&PrepareHeadsParams::qk_norm),
                                  .eps = rope.take(&PrepareHeadsParams::eps),
                                  .window = attention.take(&A::window),
                                  .max_pages = rope.take(&PrepareHeadsParams::max_pages),
                                  .page_words = rope.take(&PrepareHeadsParams::page_words),
                                  .scale = attention.take(&A::scale),
                                  .softcap = attention.take(&A::softcap),
                                  .formats = split ? last.take(&A::formats) : last.take(&Q::formats)};
    rope.patched(&PrepareHeadsParams::rows, PatchSource::kRows);
    rope.patched(&PrepareHeadsParams::step, PatchSource::kStep);
    const auto same_attention = [&](Consumed& of) {
        of.patched(&A::rows, PatchSource::kRows);
        of.patched(&A::step, PatchSource::kStep);
        of.patched(&A::keys, PatchSource::kKeys);
        of.demand(&A::n_heads, p.n_heads);
        of.demand(&A::n_kv_heads, p.n_kv_heads);
        of.demand(&A::head_dim, p.head_dim);
        of.demand(&A::window, p.window);
        of.demand(&A::max_pages, p.max_pages);
        of.demand(&A::page_words, p.page_words);
        of.demand(&A::row_ends, 0u);
        of.demand(&A::scale, p.scale);
        of.demand(&A::softcap, p.softcap);
        of.demand(&A::formats, p.formats);
    };
    same_attention(attention);
    if (split) {
        same_attention(last);
    } else {
        last.patched(&Q::rows, PatchSource::kRows);
        last.demand(&Q::dim, p.n_heads * p.head_dim);
    }
    // Its own buffers are those of kPrepareHeads, then partial results, and outputs.
    std::array<Binding, 12> buffers;
    for (std::size_t i = 0; i < 8; ++i) buffers[i] = rope.buffer(i);
    const Binding &q = buffers[0], &kv = buffers[4], &rows = buffers[6], &pages = buffers[7];
    attention.demand_buffer(0, q);
    attention.demand_buffer(1, kv);
    attention.demand_buffer(3, rows);
    attention.demand_buffer(4, pages);
    buffers[8] = attention.buffer(2);
    last.demand_buffer(0, buffers[8]);
    buffers[9] = last.buffer(1);
    buffers[10] = last.buffer(2);
    buffers[11] = split ? last.buffer(4) : attention.buffer(5);
    if (split) last.demand_buffer(3, rows);
    const bool whole = rope.whole() && attention.whole() && last.whole() && c[0].kv == c[1].kv;
    if (!whole || !q || !buffers[1] || !buffers[2] || p.head_dim % 4 != 0 || p.head_dim > kMaxFusedDim) return {};
    // Where keys are split, units are no more than blocks.
    const u32 heads = group_part(p.n_heads / p.n_kv_heads);
    const std::uint64_t units = std::min(blocks, kMaxSplits * max_rows * (p.n_heads / heads));
    const std::uint64_t bytes = units * heads * (p.head_dim + 2) * sizeof(float);
    if (blocks > kMaxTickets || bytes > buffers[8].end() - buffers[8].offset) return {};
    Command out{};
    out.op = kOpDecodeAttention;
    out.barrier = commands[0].barrier;
    out.kv = commands[1].kv;
    out.n_patches = 3;
    for (u32 i = 0; i < 3; ++i) out.patch_field[i] = i;
    out.patch_value[0] = kPatchRows;
    out.patch_value[1] = kPatchStep;
    out.patch_value[2] = kPatchKeys;
    out.label = commands[1].label;
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

// The matmul that gives the logits of so many experts.
void take_router(Consumed& router, u32 experts, const Binding& input) {
    using M = MatmulParams;
    router.patched(&M::rows, PatchSource::kRows);
    router.demand(&M::n, experts);
    router.demand(&M::y_stride, experts);
    router.demand(&M::format, u32{kActF32});
    router.demand_buffer(0, input);
    router.weight(1);
}
// Whether threads may load the router's weights four at a time.
bool loads_by_fours(const WeightPlanes& w) { return w.reader == kReadF32 && w.codes % 16 == 0; }

// The router of a shared expert, which has a row of weights, and its choice, whose weight is a sigmoid: where both of
// its results are.
std::optional<std::array<Binding, 2>> shared_route(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                                   const Binding& input) {
    if (c.size() < 2 || c[0].op != Op::kMatmul || c[1].op != Op::kRoute) return {};
    Consumed router(c[0]), route(c[1]);
    using R = RouteParams;
    take_router(router, 1, input);
    router.take(&MatmulParams::k);  // the input's
    route.patched(&R::rows, PatchSource::kRows);
    route.demand(&R::experts, 1u);
    route.demand(&R::chosen, 1u);
    route.demand(&R::gating, u32{kGateSigmoid});
    route.demand(&R::scale, 1.0f);
    route.demand_buffer(0, router.buffer(2));
    const std::array<Binding, 2> results = {route.buffer(3), route.buffer(4)};
    if (!router.whole() || !route.whole() || !loads_by_fours(commands[0].weights[0])) return {};
    return results;
}

// The norm before experts, their router and its choice, of one row; and those of a shared expert.
std::optional<Command> norm_route(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 3 || c[0].op != Op::kNorm || c[1].op != Op::kMatmul || c[2].op != Op::kRoute) return {};
    Consumed norm(c[0]), router(c[1]), route(c[2]);
    using N = NormParams;
    using R = RouteParams;
    norm.patched(&N::rows, PatchSource::kRows);
    norm.demand(&N::gather, 0u);
    norm.take(&N::sum_scale);  // kNormAdd's alone
    NormRouteParams p{.dim = norm.take(&N::dim),
                      .eps = norm.take(&N::eps),
                      .formats = norm.take(&N::formats),
                      .has_bias = router.take(&MatmulParams::has_bias),
                      .shared = 0,
                      .route = {.rows = 1,
                                .experts = route.take(&R::experts),
                                .chosen = route.take(&R::chosen),
                                .gating = route.take(&R::gating),
                                .groups = route.take(&R::groups),
                                .groups_used = route.take(&R::groups_used),
                                .group_top = route.take(&R::group_top),
                                .renormalise = route.take(&R::renormalise),
                                .sum_eps = route.take(&R::sum_eps),
                                .sum_min = route.take(&R::sum_min),
                                .scale = route.take(&R::scale),
                                .has_choice_bias = route.take(&R::has_choice_bias),
                                .has_expert_scale = route.take(&R::has_expert_scale)}};
    router.demand(&MatmulParams::k, p.dim);
    route.patched(&R::rows, PatchSource::kRows);
    std::array<Binding, 12> buffers;
    for (std::size_t i = 0; i < 4; ++i) buffers[i] = norm.buffer(i);
    take_router(router, p.route.experts, buffers[2]);
    buffers[4] = router.buffer(2);
    buffers[5] = router.buffer(3);
    route.demand_buffer(0, buffers[4]);
    for (std::size_t i = 1; i < 5; ++i) buffers[5 + i] = route.buffer(i);
    const bool aligned = reinterpret_cast<u64>(buffers[0].as()) % 16 == 0 &&
                         reinterpret_cast<u64>(buffers[1].as()) % 16 == 0 && loads_by_fours(commands[1].weights[0]);
    if (!norm.whole() || !router.whole() || !route.whole() || !aligned || (p.formats & kActF32) == 0) return {};
    if (p.dim % 4 != 0 || p.dim > kRouterInputs) return {};
    Command out{};
    out.op = kOpNormRoute;
    out.barrier = commands[0].barrier;
    out.label = commands[1].label;
    out.weights[0] = commands[1].weights[0];
    if (const auto shared = shared_route(c.subspan(3), commands.subspan(3), buffers[2])) {
        p.shared = 1;
        out.weights[1] = commands[3].weights[0];
        std::ranges::copy(*shared, buffers.end() - 2);
    }
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

// Norms of a sum, of what is added to it, and of both, which goes to the residual stream, of one row.
std::optional<Command> norm_sums(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 3 || c[0].op != Op::kNorm || c[1].op != Op::kNormAdd || c[2].op != Op::kNormAdd) return {};
    Consumed of[] = {Consumed(c[0]), Consumed(c[1]), Consumed(c[2])};
    using N = NormParams;
    NormSumsParams p{.dim = of[0].take(&N::dim)};
    std::array<Binding, 6> buffers;
    for (std::size_t i = 0; i < 3; ++i) {
        of[i].patched(&N::rows, PatchSource::kRows);
        of[i].demand(&N::dim, p.dim);
        of[i].demand(&N::gather, 0u);
        of[i].demand(&N::formats, u32{kActF32});
        p.eps[i] = of[i].take(&N::eps);
        const float scale = of[i].take(&N::sum_scale);  // kNormAdd's
        if (i != 0) p.sum_scale[i - 1] = scale;
        buffers[2 * i] = of[i].buffer(i == 2 ? 2 : 0);
        buffers[2 * i + 1] = of[i].buffer(1);
    }
    of[0].demand_buffer(2, buffers[0]);
    of[1].demand_buffer(2, buffers[0]);
    of[2].demand_buffer(0, buffers[0]);
    const bool whole = std::ranges::all_of(of, [](const Consumed& x) { return x.whole(); });
    if (!whole || p.dim > kMostNormSums) return {};
    Command out{};
    out.op = kOpNormSums;
    out.barrier = commands[0].barrier;
    out.label = commands[1].label;
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

// Experts of a row and a shared one that has their shape: one more choice.
std::optional<Command> shared_experts(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 2 || c[0].op != c[1].op) return {};
    Command out = commands[0];
    const auto same = [&]<typename P>(P of_one, P shared) {  // but for their number
        of_one.experts = of_one.chosen = 1;
        return std::memcmp(&of_one, &shared, sizeof of_one) == 0 && !shared.has_bias &&
               in_tiles(commands[0].weights[0].reader, shared.k) &&
               commands[0].weights[0].reader == commands[1].weights[0].reader;
    };
    if (c[0].op == Op::kExpertsGateUp) {
        const auto p = c[0].params_as<ExpertsGateUpParams>();
        const bool rows = p.gated && p.formats == kActF16 && p.experts <= kMostExperts;
        if (!same(p, c[1].params_as<ExpertsGateUpParams>()) || !rows) return {};
        if (commands[0].buffers[0] != commands[1].buffers[0] || tile_op_bytes(out, p.k) > kOpBytes) return {};
        out.buffers[kSharedGate] = commands[1].weights[0].codes;
        out.buffers[kSharedUp] = commands[1].weights[1].codes;
        out.buffers[kSharedResults] = commands[1].buffers[7];
    } else if (c[0].op == Op::kExpertsDown) {
        auto p = c[0].params_as<ExpertsDownParams>();
        p.accumulate = 1;  // the shared one's is
        if (!same(p, c[1].params_as<ExpertsDownParams>()) || p.chosen >= kMostChosen) return {};
        const std::uint64_t inputs = (p.chosen + 1) * std::uint64_t{padded_inputs(p.k)};
        if (commands[0].buffers[2] != commands[1].buffers[2] || tile_op_bytes(out, inputs) > kOpBytes) return {};
        out.weights[1] = commands[1].weights[0];
        out.buffers[kSharedInputs] = commands[1].buffers[0];
        out.buffers[kSharedFactor] = commands[1].buffers[5];
    } else {
        return {};
    }
    out.params[kSharedWord] = 1;
    return out;
}

// A matmul of a row and the sum of what all GPUs have made: its blocks exchange their results as they have them.
std::optional<Command> reduced_matmul(std::span<const DispatchCmd> c, const Command& command) {
    if (c.size() < 2 || c[0].op != Op::kMatmul || c[1].op != Op::kAllReduce) return {};
    if (command.streams != 1 || !command.barrier) return {};
    const auto m = c[0].params_as<MatmulParams>();
    const bool plain = !m.accumulate && m.softcap == 0 && !m.activation && m.format == kActF32 && m.y_stride == m.n;
    using A = AllReduceParams;
    Consumed sum(c[1]);
    sum.patched(&A::rows, PatchSource::kRows);
    sum.demand(&A::dim, m.n);
    sum.demand(&A::x_stride, m.n);
    sum.demand(&A::y_stride, m.n);
    sum.demand(&A::gather, 0u);
    const u32 accumulate = sum.take(&A::accumulate);
    sum.demand_buffer(0, c[0].buffers[2]);
    const Binding& y = sum.buffer(1);
    if (!plain || !sum.whole()) return {};
    Command out = command;
    out.reduces = 1;
    reinterpret_cast<MatmulParams&>(out.params).accumulate = accumulate;
    out.buffers[2] = reinterpret_cast<u64>(y.as());
    return out;
}

// Whether a command uses what one before it writes, or writes what that one uses.
bool depends(const DispatchTable& table, const Command& now, const Command& before) {
    const auto of = [&](const Command& c) {
        const auto [first, behind] = covered_by(c);
        return std::span(table.commands).subspan(c.label - first, first + 1 + behind);
    };
    const auto meet = [](const Binding& a, const Binding& b) {
        const auto at = [](const Binding& x) { return reinterpret_cast<u64>(x.as()); };
        return a && b && at(a) < at(b) + (b.end() - b.offset) && at(b) < at(a) + (a.end() - a.offset);
    };
    for (const DispatchCmd& c : of(now)) {
        for (const DispatchCmd& d : of(before)) {
            for (std::size_t i = 0; i < c.n_buffers; ++i) {
                for (std::size_t j = 0; j < d.n_buffers; ++j) {
                    const bool reads = access_of(c, i) == Access::kRead && access_of(d, j) == Access::kRead;
                    if (!reads && meet(c.buffers[i], d.buffers[j])) return true;
                }
            }
        }
    }
    return false;
}

// Barriers among commands that are one now were those of what comes behind them, too, and others were for what has one
// now.
void set_barriers(const DispatchTable& table, std::span<Command> commands) {
    std::size_t stage = 0;
    for (std::size_t i = 1; i < commands.size(); ++i) {
        const auto since = commands.subspan(stage, i - stage);
        commands[i].barrier =
            std::ranges::any_of(since, [&](const Command& c) { return depends(table, commands[i], c); });
        if (commands[i].barrier) stage = i;
    }
}

// Gates and ups of a row have the last matrix of the same experts fetched to the cache meanwhile.
void set_fetched(std::span<Command> commands) {
    constexpr std::size_t kMostBetween = 8;  // commands
    for (std::size_t i = 0; i < commands.size(); ++i) {
        Command& c = commands[i];
        if (c.op != kOpExpertsGateUp) continue;
        const auto behind = commands.subspan(i + 1, std::min(kMostBetween, commands.size() - i - 1));
        const auto down = std::ranges::find_if(
            behind, [&](const Command& d) { return d.op == kOpExpertsDown && d.buffers[4] == c.buffers[5]; });
        if (down == behind.end()) continue;
        const auto& p = reinterpret_cast<const ExpertsDownParams&>(down->params);
        if (p.k != reinterpret_cast<const ExpertsGateUpParams&>(c.params).n) continue;
        if (!in_tiles(down->weights[0].reader, p.k)) continue;
        c.weights[kFetchedWeight] = down->weights[0];
        c.params[kApartWord + kFetchedWeight] = down->params[kApartWord];
        c.params[kFetchedRowsWord] = p.n;
    }
}

}  // namespace

bool same_shape(const Command& a, const Command& b) {
    const auto& p = reinterpret_cast<const DecodeAttentionParams&>(a.params);
    const auto& q = reinterpret_cast<const DecodeAttentionParams&>(b.params);
    return a.kv == b.kv && a.buffers[6] == b.buffers[6] && a.buffers[7] == b.buffers[7] && p.window == q.window &&
           p.n_heads == q.n_heads && p.n_kv_heads == q.n_kv_heads && p.head_dim == q.head_dim;
}

std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands, u32 blocks) {
    const bool of_sequences = table.max_rows == 1 || table.phase == "batch";  // those of prompts are of one
    std::vector<Command> out;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const auto from = std::span(table.commands).subspan(i);
        const auto one =
            of_sequences ? decode_attention(from, commands.subspan(i), table.max_rows, blocks) : std::nullopt;
        const auto route = table.max_rows == 1 ? norm_route(from, commands.subspan(i)) : std::nullopt;
        const auto norms = table.max_rows == 1 ? norm_sums(from, commands.subspan(i)) : std::nullopt;
        const auto experts = table.max_rows == 1 ? shared_experts(from, commands.subspan(i)) : std::nullopt;
        const auto sum = table.max_rows == 1 ? reduced_matmul(from, commands[i]) : std::nullopt;
        out.push_back(one ? *one : route ? *route : norms ? *norms : experts ? *experts : sum ? *sum : commands[i]);
        const auto [before, behind] = covered_by(out.back());
        i += before + behind;
    }
    const auto joins = [](const Command& c) {
        const bool experts = c.op == kOpExpertsGateUp || c.op == kOpExpertsDown;
        return c.op == kOpNormRoute || c.op == kOpNormSums || (experts && c.params[kSharedWord] != 0);
    };
    if (std::ranges::any_of(out, joins)) set_barriers(table, out);
    const Command* before = nullptr;
    for (Command& c : out) {
        if (c.op != kOpDecodeAttention) continue;
        c.as_before = before && same_shape(c, *before);
        before = &c;
    }
    if (table.max_rows == 1) {
        set_words(out);
        set_fetched(out);
    }
    return out;
}

void note_merged(DispatchTable& table, std::span<const Command> fused) {
    for (DispatchCmd& c : table.commands) c.merged = true;
    for (const Command& c : fused) table.commands[c.label].merged = false;
}

}  // namespace akunu::cuda
