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

// The last matrix of a row's experts, and that of a shared expert as one more choice.
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

// The same as `route`, which norm_route made, and the products with gates and ups of the experts that are chosen, and
// of a shared expert. Where another norm of the same row stands before these, that of `route` is the router's own.
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

// Takes the products of a row's parts with the weights of heads.
HeadMatmulParams take_heads(Consumed& of) {
    using H = HeadMatmulParams;
    of.patched(&H::rows, PatchSource::kRows);
    of.weight(1);
    return {.rows = 1,
            .heads = of.take(&H::heads),
            .n = of.take(&H::n),
            .k = of.take(&H::k),
            .x_stride = of.take(&H::x_stride),
            .copied = of.take(&H::copied)};
}
// The same command as `product` with the patches of the one before it.
Command joined_heads(const Command& product, OpCode op, const Command& before) {
    Command out = product;
    out.op = op;
    out.barrier = before.barrier;
    out.kv = before.kv;
    out.n_patches = before.n_patches;
    std::ranges::copy(before.patch_field, out.patch_field);
    std::ranges::copy(before.patch_value, out.patch_value);
    std::ranges::fill(out.buffers, 0);
    return out;
}

// What latent attention keeps of a row, and its queries times their heads' weights.
std::optional<Command> latent_queries(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 2 || c[0].op != Op::kLatentKv || c[1].op != Op::kHeadMatmul) return {};
    Consumed kept(c[0]), product(c[1]);
    using K = LatentKvParams;
    kept.patched(&K::rows, PatchSource::kRows);
    kept.patched(&K::step, PatchSource::kStep);
    kept.demand(&K::temperature_length, 0u);
    const LatentQueriesParams p{.kept = {.rows = 1,
                                         .step = 0,
                                         .n_heads = kept.take(&K::n_heads),
                                         .nope_dim = kept.take(&K::nope_dim),
                                         .rope_dim = kept.take(&K::rope_dim),
                                         .latent = kept.take(&K::latent),
                                         .style = kept.take(&K::style),
                                         .eps = kept.take(&K::eps),
                                         .temperature = kept.take(&K::temperature),
                                         .temperature_length = 0,
                                         .max_pages = kept.take(&K::max_pages),
                                         .page_words = kept.take(&K::page_words)},
                                .product = take_heads(product)};
    std::array<Binding, 8> buffers;
    for (std::size_t i = 0; i < 7; ++i) buffers[i] = kept.buffer(i);
    product.demand_buffer(0, buffers[1]);
    buffers[7] = product.buffer(2);
    const auto& h = p.product;
    const bool same = h.heads == p.kept.n_heads && h.k == p.kept.nope_dim && h.copied == p.kept.rope_dim &&
                      h.x_stride == h.k + h.copied;
    if (!kept.whole() || !product.whole() || !same || is_read(buffers[1], c.subspan(2))) return {};
    Command out = joined_heads(commands[1], kOpLatentQueries, commands[0]);
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

u64 begin_of(const Binding& b) { return reinterpret_cast<u64>(b.as()); }
u64 end_of(const Binding& b) { return begin_of(b) + (b.end() - b.offset); }

// What latent attention's splits have found of a row, joined, times the heads' weights, as the next matmul reads it.
std::optional<Command> latent_values(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 3 || c[0].op != Op::kAttentionMerge || c[1].op != Op::kHeadMatmul || c[2].op != Op::kQuantize) {
        return {};
    }
    Consumed merge(c[0]), product(c[1]), halves(c[2]);
    using A = AttentionParams;
    using Q = QuantizeParams;
    merge.patched(&A::rows, PatchSource::kRows);
    merge.patched(&A::step, PatchSource::kStep);
    merge.patched(&A::keys, PatchSource::kKeys);
    merge.demand(&A::formats, u32{kActF32});
    LatentValuesParams p{.attention = c[0].params_as<A>(), .product = take_heads(product)};
    for (const auto field : {&A::n_heads, &A::n_kv_heads, &A::head_dim, &A::max_pages, &A::page_words}) {
        merge.take(field);  // those of the attention before it
    }
    merge.take(&A::scale);
    merge.demand(&A::latent, p.product.k);
    merge.demand(&A::n_heads, p.product.heads);
    product.demand_buffer(0, merge.buffer(1));
    halves.patched(&Q::rows, PatchSource::kRows);
    halves.demand(&Q::dim, p.product.heads * p.product.n);
    halves.demand(&Q::formats, u32{kActF16});
    halves.demand_buffer(0, product.buffer(2));
    const std::array<Binding, 3> buffers = {merge.buffer(0), merge.buffer(3), halves.buffer(2)};
    // Results may not take the place of what other blocks still read.
    const bool apart = begin_of(buffers[2]) >= end_of(buffers[0]) || begin_of(buffers[0]) >= end_of(buffers[2]);
    const bool whole = merge.whole() && product.whole() && halves.whole() && p.product.copied == 0 && apart;
    if (!whole || p.product.k % 32 != 0 || p.product.x_stride != p.product.k) return {};
    if (is_read(c[0].buffers[1], c.subspan(2)) || is_read(c[1].buffers[2], c.subspan(3))) return {};
    Command out = joined_heads(commands[1], kOpLatentValues, commands[0]);
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

// Norms of a sum, of what is added to it, and of both, which goes to the residual stream, of one row.
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

namespace {

// Whether a command uses what one before it writes, or writes what that one uses.
bool depends(const DispatchTable& table, const Command& now, const Command& before) {
    const auto of = [&](const Command& c) {
        const auto [first, behind] = covered_by(c);
        return std::span(table.commands).subspan(c.label - first, first + 1 + behind);
    };
    const auto meet = [](const Binding& a, const Binding& b) {
        return a && b && begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
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

// One command that does the work of several from the i-th on; nothing where that one stands alone.
std::optional<Command> joined(const DispatchTable& table, std::size_t i, std::span<const Command> commands,
                              u32 blocks) {
    const auto from = std::span(table.commands).subspan(i);
    commands = commands.subspan(i);
    const bool of_sequences = table.max_rows == 1 || table.phase == "batch";  // those of prompts are of one
    if (of_sequences) {
        if (auto one = decode_attention(from, commands, table.max_rows, blocks)) return one;
    }
    if (table.max_rows != 1) return {};
    if (auto route = norm_route(from, commands)) {
        const auto experts = norm_experts(*route, from, commands);
        return experts ? experts : route;
    }
    if (auto down = shared_down(from, commands)) return down;
    if (auto norms = norm_sums(from, commands)) return norms;
    if (auto queries = latent_queries(from, commands)) return queries;
    if (auto values = latent_values(from, commands)) return values;
    return reduced_matmul(from, commands[0]);
}

}  // namespace

std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands, u32 blocks) {
    std::vector<Command> out;
    std::size_t stage = 0;       // begins at this command
    bool joins_several = false;  // that does the work of several, or one behind it
    for (std::size_t i = 0; i < commands.size(); ++i) {
        out.push_back(joined(table, i, commands, blocks).value_or(commands[i]));
        // Barriers among commands that are one now were those of what comes behind them, too.
        const auto since = std::span(out).subspan(stage, out.size() - 1 - stage);
        const auto meets = [&](const Command& c) { return depends(table, out.back(), c); };
        if (joins_several && !out.back().barrier) out.back().barrier = std::ranges::any_of(since, meets);
        if (out.back().barrier) {
            stage = out.size() - 1;
            joins_several = false;
        }
        const auto [before, behind] = covered_by(out.back());
        joins_several |= before + behind != 0;
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
