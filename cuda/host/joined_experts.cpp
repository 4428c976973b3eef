// Experts of one row: their norm, router and choice, gates and ups, last matrix; and the norms behind them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/joined.h"
#include "cuda/host/program.h"
#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

namespace {

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

}  // namespace

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

std::optional<Command> shared_down(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 2 || c[0].op != Op::kExpertsDown) return {};
    const bool is_plain = c[1].op == Op::kMatmul;  // without a router
    if (!is_plain && c[1].op != Op::kExpertsDown) return {};
    Consumed down(c[0]), shared(c[1]);
    using D = ExpertsDownParams;
    using M = MatmulParams;
    down.patched(&D::rows, PatchSource::kRows);
    RowDownParams p{.experts = {.rows = 1,
                                .experts = down.take(&D::experts),
                                .chosen = down.take(&D::chosen),
                                .n = down.take(&D::n),
                                .k = down.take(&D::k),
                                .accumulate = down.take(&D::accumulate),
                                .has_bias = down.take(&D::has_bias)},
                    .shared = 0};
    std::array<Binding, 8> buffers;
    for (std::size_t i = 0; i < 6; ++i) buffers[i] = i == 1 ? down.weight(i) : down.buffer(i);
    shared.weight(1);
    shared.demand_buffer(2, buffers[2]);
    buffers[kSharedInputs] = shared.buffer(0);
    if (is_plain) {
        shared.patched(&M::rows, PatchSource::kRows);
        shared.demand(&M::n, p.experts.n);
        shared.demand(&M::y_stride, p.experts.n);
        shared.demand(&M::accumulate, 1u);
        shared.demand(&M::format, u32{kActF32});
        p.shared = shared.take(&M::k);
    } else {
        shared.patched(&D::rows, PatchSource::kRows);
        shared.demand(&D::experts, 1u);
        shared.demand(&D::chosen, 1u);
        shared.demand(&D::n, p.experts.n);
        shared.demand(&D::accumulate, 1u);
        p.shared = shared.take(&D::k);
        shared.buffer(4);  // one number, which is that of the only expert
        buffers[kSharedFactor] = shared.buffer(5);
    }
    const u32 reader = commands[0].weights[0].reader;
    const bool in_rows = takes_expert_rows(reader, p.experts.k, p.experts.chosen, p.shared);
    if (!down.whole() || !shared.whole() || !in_rows || p.experts.chosen >= kMostChosen) return {};
    if (commands[1].weights[0].reader != reader || !in_tiles(reader, p.shared)) return {};
    Command out = commands[0];
    out.barrier |= commands[1].barrier;
    out.n_patches = 0;
    std::memcpy(out.params, &p, sizeof p);
    out.weights[1] = commands[1].weights[0];
    set_buffers(out, buffers);
    return out;
}

namespace {

// Takes gates and ups of a row's experts, or of one that stands beside them, of whose input this is the norm.
ExpertsGateUpParams take_plain_gate_up(Consumed& of, const Binding& input) {
    using G = GateUpParams;
    of.patched(&G::rows, PatchSource::kRows);
    of.demand(&G::formats, u32{kActF16});
    of.demand_buffer(0, input);
    of.weight(1);
    of.weight(2);
    return {.rows = 1,
            .experts = 1,
            .chosen = 1,
            .n = of.take(&G::n),
            .k = of.take(&G::k),
            .activation = of.take(&G::activation),
            .formats = kActF16,
            .has_bias = 0,
            .limit = 0,
            .sharpness = 1,
            .up_offset = 0,
            .gated = 1};
}

ExpertsGateUpParams take_gate_up(Consumed& of, const Binding& input) {
    using G = ExpertsGateUpParams;
    of.patched(&G::rows, PatchSource::kRows);
    of.demand(&G::formats, u32{kActF16});
    of.demand(&G::gated, 1u);
    of.demand_buffer(0, input);
    of.weight(1);
    of.weight(2);
    return {.rows = 1,
            .experts = of.take(&G::experts),
            .chosen = of.take(&G::chosen),
            .n = of.take(&G::n),
            .k = of.take(&G::k),
            .activation = of.take(&G::activation),
            .formats = kActF16,
            .has_bias = of.take(&G::has_bias),
            .limit = of.take(&G::limit),
            .sharpness = of.take(&G::sharpness),
            .up_offset = of.take(&G::up_offset),
            .gated = 1};
}

// A shared expert that stands beside a row's, from whose gates and ups on `c` are: how many rows its gate has, and
// where its results are.
struct SharedExpert {
    u32 rows;
    Binding results;
};

// Nothing where it is not like them, or not part of their last matrix' command, or somebody else reads the norm.
std::optional<SharedExpert> shared_gate_up(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                           ExpertsGateUpParams experts, bool has_router) {
    if (c.size() < 4 || c[1].op != (has_router ? Op::kExpertsGateUp : Op::kGateUp)) return {};
    if (c[3].op != (has_router ? Op::kExpertsDown : Op::kMatmul)) return {};
    const Binding& normed = c[0].buffers[0];
    Consumed shared(c[1]);
    const ExpertsGateUpParams own = has_router ? take_gate_up(shared, normed) : take_plain_gate_up(shared, normed);
    if (has_router) shared.buffer(5);  // one number, which is that of the only expert
    const SharedExpert out{own.n, shared.buffer(has_router ? 7 : 4)};
    experts.experts = experts.chosen = 1;
    experts.n = own.n;
    const bool alike = std::memcmp(&own, &experts, sizeof own) == 0 && !own.has_bias &&
                       commands[0].weights[0].reader == commands[1].weights[0].reader;
    if (!shared.whole() || !alike || is_read(normed, c.subspan(2))) return {};
    return shared_down(c.subspan(2), commands.subspan(2)) ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<Command> norm_experts(const Command& route, std::span<const DispatchCmd> c,
                                    std::span<const Command> commands) {
    const bool has_router = covered_by(route).behind == 3;                              // of a shared expert
    const bool own_norm = !has_router && c.size() > 3 && c[3].op == Op::kNorm;          // of the router
    const std::size_t at = has_router ? 5 : own_norm ? 4 : 3, norm = own_norm ? 3 : 0;  // of the table's commands
    if (c.size() <= at || c[at].op != Op::kExpertsGateUp) return {};
    const auto& from = reinterpret_cast<const NormRouteParams&>(route.params);
    const u32 reader = commands[at].weights[0].reader;
    const Binding& normed = c[norm].buffers[3];
    Consumed gate_up(c[at]);
    NormExpertsParams p{.gate_up = take_gate_up(gate_up, normed),
                        .eps = from.eps,
                        .stores_norm = 0,
                        .has_bias = from.has_bias,
                        .route = from.route,
                        .shared = 0,
                        .shared_router = has_router};
    gate_up.demand_buffer(5, c[2].buffers[3]);
    std::array<Binding, 12> buffers = {c[0].buffers[0],   c[norm].buffers[1], c[2].buffers[1], gate_up.buffer(3),
                                       gate_up.buffer(4), c[2].buffers[3],    c[1].buffers[1], gate_up.buffer(7),
                                       c[2].buffers[4],   c[2].buffers[2],    c[1].buffers[3], normed};
    if (own_norm) {
        Consumed experts(c[3]);
        using N = NormParams;
        experts.patched(&N::rows, PatchSource::kRows);
        experts.demand(&N::dim, from.dim);
        experts.demand(&N::eps, from.eps);
        experts.demand(&N::gather, 0u);
        experts.take(&N::sum_scale);  // kNormAdd's alone
        experts.demand(&N::formats, u32{kActF16});
        experts.demand_buffer(0, buffers[0]);
        experts.buffer(1);
        experts.buffer(3);
        const bool aligned = reinterpret_cast<u64>(buffers[1].as()) % 16 == 0;
        // Nobody else reads what the router reads.
        const bool alone = !is_read(c[0].buffers[2], c.subspan(2)) && !is_read(c[0].buffers[3], c.subspan(1));
        if (!experts.whole() || !aligned || !alone || buffers[kRouterNorm] || from.route.has_choice_bias) return {};
        buffers[kRouterNorm] = c[0].buffers[1];
    } else if (const auto shared = shared_gate_up(c.subspan(at), commands.subspan(at), p.gate_up, has_router)) {
        p.shared = shared->rows;
        buffers[kSharedGate] = c[at + 1].buffers[1];
        buffers[kSharedUp] = c[at + 1].buffers[2];
        buffers[kSharedResults] = shared->results;
    }
    if (has_router) {
        const bool has_others = buffers[kSharedWeight] || buffers[kSharedRouter];
        if (p.shared == 0 || has_others || is_read(c[3].buffers[2], c.subspan(5))) return {};
        if (is_read(c[4].buffers[3], c.subspan(at + 4))) return {};
        buffers[kSharedWeight] = c[4].buffers[4];
        buffers[kSharedRouter] = c[3].buffers[1];
    }
    p.stores_norm = is_read(normed, c.subspan(at + (p.shared ? 2 : 1)));
    const auto& g = p.gate_up;
    const bool same = g.experts == from.route.experts && g.chosen == from.route.chosen && g.k == from.dim;
    if (!gate_up.whole() || !same) return {};
    if (!takes_norm_experts(reader, from.dim, g.experts, from.route.groups)) return {};
    // Norms in F32 and logits are nowhere but in the blocks.
    const std::size_t routed = has_router ? 4 : own_norm ? 2 : 3;
    if (is_read(c[0].buffers[2], c.subspan(routed)) || is_read(c[1].buffers[2], c.subspan(3))) return {};
    Command out = commands[at];
    out.op = kOpNormExperts;
    out.barrier = commands[0].barrier;
    out.n_patches = 0;
    std::memcpy(out.params, &p, sizeof p);
    std::ranges::fill(out.buffers, 0);
    set_buffers(out, buffers);
    return out;
}

std::optional<Command> norm_sums(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 3 || c[0].op != Op::kNorm || c[1].op != Op::kNormAdd || c[2].op != Op::kNormAdd) return {};
    Consumed of[] = {Consumed(c[0]), Consumed(c[1]), Consumed(c[2])};
    using N = NormParams;
    NormSumsParams p{.dim = of[0].take(&N::dim), .eps = {}, .sum_scale = {}};
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
    if (!whole || p.dim > kMostNormSums || is_read(buffers[0], c.subspan(3))) return {};
    Command out{};
    out.op = kOpNormSums;
    out.barrier = commands[0].barrier | commands[1].barrier;
    out.label = commands[1].label;
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

}  // namespace akunu::cuda
