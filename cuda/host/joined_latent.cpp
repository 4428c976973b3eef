// Latent attention of one row: what it keeps and its queries, its splits and values.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/joined.h"
#include "cuda/host/program.h"

namespace akunu::cuda {

namespace {

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

}  // namespace

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

}  // namespace akunu::cuda
