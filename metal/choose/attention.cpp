// RoPE with the cache write, and attention: functions by cache type and by how long a head and how large a group may
// be.
#include <algorithm>

#include "core/error.h"
#include "metal/choose/kernel_choice.h"
#include "metal/choose/traits.h"
#include "metal/include/kv_layout.h"

namespace akunu::metal {

namespace {

// Query heads that a threadgroup has at most, by their size: a larger group has several, each with a part of it.
constexpr std::uint32_t most_heads(std::uint32_t dim) { return dim > 256 ? 8 : 16; }

// How functions of a cache's types are called; empty when there are none. Usual types have functions of their own,
// those of the others are told the types.
constexpr std::string_view kPair = "pair";
std::string_view type_name(const KvTypes& types) {
    if (!has_kernels(types)) return {};
    if (types.k != types.v || types.k == DType::Q4_0) return kPair;
    return types.k == DType::F16 ? "f16" : types.k == DType::F32 ? "f32" : "q8_0";
}

constexpr std::size_t kBatchedIndex = 2;

// The function constants of metal/include/attention_kv.h, in their order.
std::vector<Constant> constants(std::uint32_t head_dim, std::uint32_t group, std::uint32_t splits, bool sinks) {
    using enum Constant::Type;
    return {{kUint, 0, head_dim}, {kUint, 1, group}, {kBool, kBatchedIndex, 0}, {kUint, 3, splits}, {kBool, 4, sinks}};
}

struct Heads {
    std::uint32_t n, n_kv, dim;
    bool sinks = false;  // they have a score that has no value
    std::uint32_t group() const { return n_kv ? n / n_kv : 0; }
    // Parts of a group, which are equal.
    std::uint32_t parts() const {
        std::uint32_t n_parts = 1;
        while (group() % n_parts != 0 || group() / n_parts > most_heads(dim)) ++n_parts;
        return n_parts;
    }
    std::uint32_t in_part() const { return group() / parts(); }
    bool supported() const { return dim > 0 && n_kv > 0 && n % n_kv == 0 && group() > 0; }
    // UnsupportedError for those that are larger than any kernel takes.
    void check(Op op) const {
        const auto refuse = [&](const std::string& what, std::uint32_t most) {
            throw UnsupportedError("no Metal kernel for " + std::string(op_name(op)) + ": " + what + " (" +
                                   std::to_string(most) + " at most); the CPU runs such models");
        };
        if (dim > kMaxHeadDim) refuse("heads have " + std::to_string(dim) + " elements", kMaxHeadDim);
    }
    // The same of latent attention, whose heads all share a key.
    void check_latent(Op op) const {
        if (dim <= kMaxLatentKey) return;
        throw UnsupportedError("no Metal kernel for " + std::string(op_name(op)) + ": keys have " +
                               std::to_string(dim) + " elements (" + std::to_string(kMaxLatentKey) +
                               " at most); the CPU runs such models");
    }
};

// `splits`: of decode attention, at most.
KernelChoice choice(std::string function, const Heads& heads, GroupCount x, GroupCount y, std::uint32_t splits = 1) {
    Pass pass;
    pass.function = std::move(function);
    pass.constants = constants(heads.dim, heads.in_part(), splits, heads.sinks);
    pass.x = x;
    pass.y = y;
    pass.threads.x = kAttentionThreads;
    return {.passes = {std::move(pass)}};
}

// A threadgroup for every `each` keys that are seen, at most so many.
GroupCount splits_of(const AttentionParams& p, std::uint32_t each, std::uint32_t most = UINT32_MAX) {
    if (p.fixed_keys) return {.base = std::min(ceil_div(p.fixed_keys, each), most)};
    return {.keys_per = each, .keys_most = most};
}

// How many splits decode attention has: one up to kUnsplitKeys keys.
GroupCount decode_splits_of(const AttentionParams& p, std::uint32_t most) {
    const std::uint32_t blocks = ceil_div(p.fixed_keys, kSplitKeys);
    if (p.fixed_keys) return {.base = p.fixed_keys <= kUnsplitKeys ? 1 : split_count(blocks, most)};
    return {.keys_per = kSplitKeys, .keys_most = most, .few_keys = kUnsplitKeys, .few = 1, .splits = 1};
}
// How many threadgroups join the splits: one for each head, where there are several splits.
GroupCount merges_of(const AttentionParams& p) {
    if (p.fixed_keys) return {.base = p.fixed_keys <= kUnsplitKeys ? 0 : p.n_heads};
    return {.base = p.n_heads, .few_keys = kUnsplitKeys, .few = 0};
}

// Whether it has outputs, which it writes where nothing is split.
bool has_outputs(const DispatchCmd& split) { return split.buffers[6] || split.buffers[7]; }

// Rows x groups: a threadgroup has 32 queries, 16 or 8 where heads are long, whole rows of the heads of a group, or of
// a part of one. With few rows that is one threadgroup per group, so that a long cache is split over several, whose
// results a second pass joins.
KernelChoice many_rows(const std::string& type, const Heads& heads, const AttentionParams& p) {
    const std::uint32_t dim = heads.dim, queries = dim > 256 ? 8 : dim > 128 ? 16 : 32;
    const char* size = dim > 256 ? "_hd512" : dim > 128 ? "_hd256" : dim > 64 ? "_hd128" : "_hd64";
    KernelChoice one = choice("attention_" + type + size, heads, {.rows_per = queries / heads.in_part()},
                              {.base = heads.n_kv * heads.parts()});
    constexpr std::uint32_t kLongContext = 1024;
    const std::uint32_t context = p.max_pages * kPagePositions;
    if (p.rows > kMaxBatchRows || context < kLongContext || p.bidirectional) return one;
    one.passes[0].constants[kBatchedIndex].value = 1;
    one.passes[0].z = splits_of(p, batch_split_keys(context));
    KernelChoice merge = choice("attention_merge_rows", heads, {.base = heads.n}, {.rows_per = 1});
    return {.passes = {one.passes[0], merge.passes[0]},
            .scratch_bytes = batch_partial_bytes(p.rows, heads.n, heads.dim, context)};
}

// Splits of the keys x groups.
KernelChoice one_row(const std::string& type, const Heads& heads, const AttentionParams& p, std::uint32_t splits) {
    const std::uint32_t group = heads.in_part();
    const char* size = group == 1 ? "_g1" : group <= 4 ? "_g4" : group <= 8 ? "_g8" : "_g16";
    const char* dim = heads.dim > 256 ? "_hd512" : heads.dim > 128 ? "_hd256" : "_hd128";
    return choice("attention_split_" + type + size + dim, heads, decode_splits_of(p, splits),
                  {.base = heads.n_kv * heads.parts()}, splits);
}

// Rows x heads, or splits of the keys x heads.
std::optional<KernelChoice> latent(Op op, const std::string& type, const AttentionParams& p, std::uint32_t splits) {
    const Heads heads{p.n_heads, p.n_kv_heads, p.head_dim};
    heads.check_latent(op);
    const bool plain = !p.window && !p.fixed_keys && !p.bidirectional && p.softcap == 0;
    if (!plain || p.n_kv_heads != 1 || p.latent > p.head_dim) return std::nullopt;
    if (op == Op::kAttention) return choice("attention_latent_" + type, heads, {.rows_per = 1}, {.base = p.n_heads});
    if (op == Op::kAttentionMerge) return choice("attention_latent_merge", heads, merges_of(p), {}, splits);
    return choice("attention_latent_split_" + type, heads, splits_of(p, kLatentSplitKeys, splits), {.base = p.n_heads},
                  splits);
}

std::optional<KernelChoice> of_type(const DispatchCmd& cmd, const Chip& chip, const std::string& type) {
    switch (cmd.op) {
        case Op::kPrepareHeads: {
            const auto p = cmd.params_as<PrepareHeadsParams>();
            // Of a sound there are keys and values alone, and queries alone where another layer keeps these.
            const bool both = p.n_heads != 0 && p.n_kv_heads != 0;
            const Heads heads{both ? p.n_heads : 1, both ? p.n_kv_heads : 1, p.head_dim};
            heads.check(cmd.op);
            if (!heads.supported() || p.rope_dim > p.head_dim || p.rope_dim % 2) return std::nullopt;
            return choice("prepare_heads_" + type, heads,
                          {.base = ceil_div(p.n_heads + 2 * p.n_kv_heads, kAttentionSimdgroups)}, {.rows_per = 1});
        }
        case Op::kLatentKv: {
            const auto p = cmd.params_as<LatentKvParams>();
            const Heads heads{std::max(p.n_heads, 1u), 1, p.latent + p.rope_dim};  // of keys alone there are none
            heads.check_latent(cmd.op);
            if (p.rope_dim % 2) return std::nullopt;
            return choice("latent_kv_" + type, heads, {.base = ceil_div(p.n_heads + 1, kAttentionSimdgroups)},
                          {.rows_per = 1});
        }
        case Op::kAttention:
        case Op::kAttentionSplit:
        case Op::kAttentionMerge: {
            const auto p = cmd.params_as<AttentionParams>();
            if (cmd.op == Op::kAttentionSplit && !has_outputs(cmd)) return std::nullopt;
            if (p.latent) return latent(cmd.op, type, p, most_splits(chip.gpu_cores));
            const bool sinks{cmd.buffers[cmd.op == Op::kAttentionMerge ? 4 : 5]};
            const Heads heads{p.n_heads, p.n_kv_heads, p.head_dim, sinks};
            heads.check(cmd.op);
            if (!heads.supported() || (p.fixed_keys && p.window)) return std::nullopt;
            if (cmd.op == Op::kAttention) return many_rows(type, heads, p);
            if (p.bidirectional) return std::nullopt;  // a row alone, which has no rows to see
            const std::uint32_t splits = most_splits(chip.gpu_cores);
            if (cmd.op == Op::kAttentionSplit) return one_row(type, heads, p, splits);
            return choice("attention_merge", heads, merges_of(p), {}, splits);
        }
        case Op::kAttentionWeights: {
            const auto p = cmd.params_as<AttentionWeightsParams>();
            const Heads heads{p.n_heads, p.n_kv_heads, p.head_dim};
            heads.check(cmd.op);
            if (!heads.supported()) return std::nullopt;
            return choice("attention_weights_" + type, heads, {.rows_per = 1}, {.base = p.chosen});
        }
        default:
            return std::nullopt;
    }
}

}  // namespace

std::optional<KernelChoice> choose_attention(const DispatchCmd& cmd, const Chip& chip) {
    const std::string_view type = type_name(cmd.kv);
    if (type.empty()) return std::nullopt;
    auto chosen = of_type(cmd, chip, std::string(type));
    if (!chosen || type != kPair) return chosen;
    using enum Constant::Type;
    for (Pass& pass : chosen->passes) {
        pass.constants.push_back({kUint, 5, *kv_type(cmd.kv.k)});
        pass.constants.push_back({kUint, 6, *kv_type(cmd.kv.v)});
    }
    return chosen;
}

}  // namespace akunu::metal
