// Commands that do the work of several: see DecodeAttentionParams.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/program.h"
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

// Whether one of these reads what is there before another one has written it anew.
bool is_read(const Binding& of, std::span<const DispatchCmd> by) {
    for (const DispatchCmd& c : by) {
        bool written = false;
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            if (!of || !is_same_place(c.buffers[i], of)) continue;
            if (access_of(c, i) != Access::kWrite) return true;
            written = true;
        }
        if (written) return false;
    }
    return false;
}

// The same as `route`, which norm_route made, and the products with gates and ups of the experts that are chosen.
std::optional<Command> norm_experts(const Command& route, std::span<const DispatchCmd> c,
                                    std::span<const Command> commands, u32 blocks) {
    if (c.size() < 4 || c[3].op != Op::kExpertsGateUp || covered_by(route).behind != 1) return {};
    const auto& from = reinterpret_cast<const NormRouteParams&>(route.params);
    const u32 reader = commands[3].weights[0].reader;
    Consumed gate_up(c[3]);
    using G = ExpertsGateUpParams;
    gate_up.patched(&G::rows, PatchSource::kRows);
    gate_up.demand(&G::experts, from.route.experts);
    gate_up.demand(&G::chosen, from.route.chosen);
    gate_up.demand(&G::k, from.dim);
    gate_up.demand(&G::formats, u32{kActF16});
    gate_up.demand(&G::gated, 1u);
    NormExpertsParams p{.gate_up = {.rows = 1,
                                    .experts = from.route.experts,
                                    .chosen = from.route.chosen,
                                    .n = gate_up.take(&G::n),
                                    .k = from.dim,
                                    .activation = gate_up.take(&G::activation),
                                    .formats = kActF16,
                                    .has_bias = gate_up.take(&G::has_bias),
                                    .limit = gate_up.take(&G::limit),
                                    .sharpness = gate_up.take(&G::sharpness),
                                    .up_offset = gate_up.take(&G::up_offset),
                                    .gated = 1},
                        .eps = from.eps,
                        .stores_norm = is_read(c[0].buffers[3], c.subspan(4)),
                        .has_bias = from.has_bias,
                        .route = from.route};
    gate_up.demand_buffer(0, c[0].buffers[3]);
    gate_up.weight(1);
    gate_up.weight(2);
    gate_up.demand_buffer(5, c[2].buffers[3]);
    const std::array<Binding, 12> buffers = {c[0].buffers[0],   c[0].buffers[1], c[2].buffers[1], gate_up.buffer(3),
                                             gate_up.buffer(4), c[2].buffers[3], c[1].buffers[1], gate_up.buffer(7),
                                             c[2].buffers[4],   c[2].buffers[2], c[1].buffers[3], c[0].buffers[3]};
    if (!gate_up.whole() || p.gate_up.experts > kStagedRouterRows * blocks) return {};
    if (!takes_norm_experts(reader, from.dim, from.route.experts, from.route.groups)) return {};
    // Norms in F32 and logits are nowhere but in the blocks.
    if (is_read(c[0].buffers[2], c.subspan(3)) || is_read(c[1].buffers[2], c.subspan(3))) return {};
    Command out = commands[3];
    out.op = kOpNormExperts;
    out.barrier = commands[0].barrier;
    out.n_patches = 0;
    std::memcpy(out.params, &p, sizeof p);
    std::ranges::fill(out.buffers, 0);
    set_buffers(out, buffers);
    return out;
}

// A matmul of a row and the sum of what all GPUs have made: its blocks exchange their results as they have them.
std::optional<Command> reduced_matmul(std::span<const DispatchCmd> c, const Command& command) {
    if (c.size() < 2 || c[0].op != Op::kMatmul || c[1].op != Op::kAllReduce) return {};
    if (command.streams != 1 || !command.barrier) return {};
    Consumed matmul(c[0]), sum(c[1]);
    using M = MatmulParams;
    using A = AllReduceParams;
    matmul.patched(&M::rows, PatchSource::kRows);
    const u32 n = matmul.take(&M::n);
    matmul.take(&M::k);
    matmul.take(&M::has_bias);
    matmul.demand(&M::y_stride, n);
    matmul.demand(&M::format, u32{kActF32});
    matmul.buffer(0);
    matmul.weight(1);
    const Binding& parts = matmul.buffer(2);
    matmul.buffer(3);
    sum.patched(&A::rows, PatchSource::kRows);
    sum.demand(&A::dim, n);
    sum.demand(&A::x_stride, n);
    sum.demand(&A::y_stride, n);
    const u32 accumulate = sum.take(&A::accumulate);
    sum.demand_buffer(0, parts);
    const Binding& y = sum.buffer(1);
    if (!matmul.whole() || !sum.whole()) return {};
    Command out = command;
    out.reduces = 1;
    reinterpret_cast<MatmulParams&>(out.params).accumulate = accumulate;
    out.buffers[2] = reinterpret_cast<u64>(y.as());
    return out;
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
        const auto experts = route ? norm_experts(*route, from, commands.subspan(i), blocks) : std::nullopt;
        const auto sum = table.max_rows == 1 ? reduced_matmul(from, commands[i]) : std::nullopt;
        out.push_back(one ? *one : experts ? *experts : route ? *route : sum ? *sum : commands[i]);
        // Barriers among a router's commands were those of what comes behind them, too.
        const u32 before_op = out.size() > 1 ? out[out.size() - 2].op : kNumOps;
        if (before_op == kOpNormRoute || before_op == kOpNormExperts) out.back().barrier = 1;
        const auto [before, behind] = covered_by(out.back());
        i += before + behind;
    }
    const Command* before = nullptr;
    for (Command& c : out) {
        if (c.op != kOpDecodeAttention) continue;
        c.as_before = before && same_shape(c, *before);
        before = &c;
    }
    if (table.max_rows == 1) set_words(out);
    return out;
}

void note_merged(DispatchTable& table, std::span<const Command> fused) {
    for (DispatchCmd& c : table.commands) c.merged = true;
    for (const Command& c : fused) table.commands[c.label].merged = false;
}

}  // namespace akunu::cuda
