#include "cuda/host/needs.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "cuda/host/program.h"
#include "cuda/kernels/kv_layout.h"
#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

namespace {

constexpr std::set<u32> Needs::* kSets[] = {
    &Needs::ops,          &Needs::readers,     &Needs::kv_types,        &Needs::groups,
    &Needs::decode_kinds, &Needs::prompt_dims, &Needs::gate_up_readers, &Needs::down_readers,
    &Needs::expert_kinds, &Needs::activations, &Needs::decode_runs,     &Needs::adapters,
};

bool uses_kv_type(u32 op) {
    return op == kOpPrepareHeads || op == kOpAttention || op == kOpAttentionSplit || op == kOpAttentionWeights ||
           op == kOpLatentKv || op == kOpLatentQueries || op == kOpDecodeAttention;
}

template <typename Names>
std::string list(const char* name, const std::set<u32>& values, Names&& text) {
    std::string out = std::string("#define ") + name;
    for (const u32 v : values) out += " X(" + text(v) + ")";
    return out + "\n";
}

}  // namespace

void Needs::add(const Needs& o) {
    for (const auto set : kSets) (this->*set).insert((o.*set).begin(), (o.*set).end());
}

bool Needs::covers(const Needs& o) const {
    return std::ranges::all_of(kSets, [&](auto set) { return std::ranges::includes(this->*set, o.*set); });
}

std::string Needs::definitions() const {
    const auto number = [](u32 v) { return std::to_string(v); };
    return list("AKUNU_OPS", ops, number) + list("AKUNU_READERS", readers, number) +
           list("AKUNU_KV_TYPES", kv_types, number) + list("AKUNU_GROUPS", groups, number) +
           list("AKUNU_DECODE_KINDS", decode_kinds, number) + list("AKUNU_PROMPT_DIMS", prompt_dims, number) +
           list("AKUNU_GATE_UP_READERS", gate_up_readers, number) + list("AKUNU_DOWN_READERS", down_readers, number) +
           list("AKUNU_EXPERT_KINDS", expert_kinds, number) + list("AKUNU_MATMUL_ACTIVATIONS", activations, number) +
           list("AKUNU_DECODE_RUNS", decode_runs, number) + "#define AKUNU_ADAPTERS " +
           number(static_cast<u32>(adapters.size())) + "\n";
}

Needs needs_of(std::span<const Command> commands, u32 blocks) {
    Needs n;
    for (const Command& c : commands) {
        n.ops.insert(c.op);
        if (shared_expert_of(c)) n.expert_kinds.insert(kWithShared);
        if (c.op == kOpNormExperts) {
            const auto& p = reinterpret_cast<const NormExpertsParams&>(c.params);
            const u32 staged = has_router_norm(c) ? 1 : kStagedRouterRows;
            if (has_router_norm(c)) n.expert_kinds.insert(kWithRouterNorm);
            if (p.route.experts + p.shared_router > staged * blocks) n.expert_kinds.insert(kWithMoreRows);
        }
        if (is_adapted(c)) n.adapters.insert(1);
        if (c.op == kOpMatmul) {
            const u32 activation = reinterpret_cast<const MatmulParams&>(c.params).activation;
            if (activation) n.activations.insert(activation - 1);
        }
        for (const WeightPlanes& w : c.weights) {
            if (!w.codes) continue;
            n.readers.insert(w.reader);
            if (c.op == kOpExpertsGateUp || c.op == kOpNormExperts) n.gate_up_readers.insert(w.reader);
            if (c.op == kOpExpertsDown) n.down_readers.insert(w.reader);
        }
        if (!uses_kv_type(c.op)) continue;
        n.kv_types.insert(c.kv);
        const bool keeps = c.op == kOpPrepareHeads || c.op == kOpLatentKv || c.op == kOpLatentQueries;
        if (keeps || c.op == kOpAttentionWeights) continue;
        if (c.op == kOpDecodeAttention) {
            const auto& p = reinterpret_cast<const DecodeAttentionParams&>(c.params);
            n.decode_kinds.insert(decode_kind(c.kv, p.head_dim));
            if (p.run > 1) n.decode_runs.insert(1);
        } else {
            const auto& p = reinterpret_cast<const AttentionParams&>(c.params);
            n.groups.insert(p.latent ? 0 : std::bit_ceil(group_part(p.n_heads / p.n_kv_heads)));
            const u32 dim = c.op == kOpAttention ? prompt_dim(p.head_dim, p.latent) : 0;
            if (dim) n.prompt_dims.insert(dim);
        }
    }
    // Those that one model uses sooner or later, so that they are compiled together.
    const auto together = [&](std::initializer_list<u32> ops) {
        if (std::ranges::any_of(ops, [&](u32 op) { return n.ops.contains(op); })) n.ops.insert(ops);
    };
    together({kOpArgmax, kOpSamplePrepare, kOpSampleSelect, kOpLogprobs, kOpAccept});
    together({kOpPrepareHeads, kOpCopyRecords});
    together({kOpLatentKv, kOpCopyRecords});
    if (n.ops.contains(kOpLatentQueries)) n.ops.insert({kOpLatentKv, kOpCopyRecords});
    together({kOpUnfold, kOpAttentionWeights, kOpSpeechRules});
    return n;
}

}  // namespace akunu::cuda
