// Norms, RoPE tables, activation formats, gates, positions, pooling, states, routers and copies of pages: a threadgroup
// per row, or rows cut into pieces.
#include <algorithm>

#include "metal/choose/kernel_choice.h"
#include "metal/include/delta_sizes.h"
#include "metal/include/expert_tiles.h"
#include "metal/include/lora_sizes.h"
#include "metal/include/relative_sizes.h"

namespace akunu::metal {

namespace {

// A threadgroup per row whose threads take four elements at a time.
KernelChoice norm_kernel(const char* function, std::uint32_t dim) {
    constexpr std::uint32_t kMaxThreads = 512;
    Pass pass;
    pass.function = function;
    pass.x.rows_per = 1;
    pass.threads.x = std::min(ceil_div(ceil_div(dim, 4), kSimdWidth) * kSimdWidth, kMaxThreads);
    return {.passes = {pass}};
}

// `columns` threads for every row.
KernelChoice by_element(const char* function, std::uint32_t columns) {
    constexpr std::uint32_t kThreads = 128;
    Pass pass;
    pass.function = function;
    pass.x.base = ceil_div(columns, kThreads);
    pass.y.rows_per = 1;
    pass.threads.x = kThreads;
    return {.passes = {pass}};
}

// So many threadgroups for every row.
KernelChoice by_state(const char* function, std::uint32_t parts) {
    Pass pass;
    pass.function = function;
    pass.x.base = parts;
    pass.y.rows_per = 1;
    pass.threads.x = kDeltaThreads;
    return {.passes = {pass}};
}

KernelChoice lora_kernel(const char* function, bool vectors, std::uint32_t groups, std::uint32_t threads) {
    Pass pass;
    pass.function = function;
    pass.constants.push_back({Constant::Type::kBool, 0, vectors});  // ROWS_ARE_VECTORS
    pass.x.base = groups;
    pass.y.rows_per = 1;
    pass.threads.x = threads;
    return {.passes = {pass}};
}

// A thread for every channel of all rows; small threadgroups, so that few channels are many cores'.
KernelChoice by_channel(const char* function, std::uint32_t channels) {
    Pass pass;
    pass.function = function;
    pass.x.base = ceil_div(channels, kSimdWidth);
    pass.threads.x = kSimdWidth;
    return {.passes = {pass}};
}

}  // namespace

std::optional<KernelChoice> choose_elementwise(const DispatchCmd& cmd, const Chip& /*chip*/) {
    switch (cmd.op) {
        case Op::kRopeTable:
            return by_element("rope_table", cmd.params_as<RopeTableParams>().half_dim);
        case Op::kNorm:
            return norm_kernel("norm", cmd.params_as<NormParams>().dim);
        case Op::kNormAdd:
            return norm_kernel("norm_add", cmd.params_as<NormParams>().dim);
        case Op::kLayerNorm:
            return norm_kernel("layer_norm", cmd.params_as<LayerNormParams>().dim);
        case Op::kEmbedPosition:
            return by_element("embed_position", cmd.params_as<EmbedPositionParams>().dim);
        case Op::kInsertRows:
            return by_element("insert_rows", cmd.params_as<InsertRowsParams>().dim);
        case Op::kAffine:
            return by_element("affine", cmd.params_as<AffineParams>().dim);
        case Op::kAddRows:
            return norm_kernel("add_rows", cmd.params_as<AddRowsParams>().dim);
        case Op::kAllReduce:
            return by_element("all_reduce", cmd.params_as<AllReduceParams>().dim);
        case Op::kSparsify:
            return norm_kernel("sparsify", cmd.params_as<SparsifyParams>().n);
        case Op::kMixStreams:
            return by_element("mix_streams", cmd.params_as<MixStreamsParams>().dim);
        case Op::kUnfold: {
            const auto p = cmd.params_as<UnfoldParams>();
            return by_element("unfold", p.taps * p.channels);
        }
        case Op::kQuantize:
            return by_element("quantize", ceil_div(cmd.params_as<QuantizeParams>().dim, 4));
        case Op::kGateAct:
            return by_element("gate_act", ceil_div(cmd.params_as<GateActParams>().n, 4));
        case Op::kPool:
            return by_element("pool", cmd.params_as<PoolParams>().dim);
        case Op::kCopyRecords:
            return by_element("copy_records", ceil_div(cmd.params_as<CopyRecordsParams>().record_words, 4));
        case Op::kShortConv: {
            const auto p = cmd.params_as<ShortConvParams>();
            if (p.taps > kMostTaps) return std::nullopt;
            return by_channel("short_conv", p.channels);
        }
        case Op::kDeltaRule: {
            const auto p = cmd.params_as<DeltaRuleParams>();
            if (p.key_dim > kMostKeys || p.value_dim > kMostValues) return std::nullopt;
            return by_state("delta_rule", p.key_heads);
        }
        case Op::kSsmScan: {
            const auto p = cmd.params_as<SsmScanParams>();
            if (p.state_dim > kMostKeys) return std::nullopt;
            return by_state("ssm_scan", p.blocks);
        }
        case Op::kGatedNorm:
            return by_state("gated_norm", cmd.params_as<GatedNormParams>().groups);
        case Op::kRoute: {
            const auto p = cmd.params_as<RouteParams>();
            constexpr std::uint32_t kMostChosen = 32, kMostGroups = 256;
            const std::uint32_t most = p.has_choice_bias || p.groups ? kMostExperts : 2 * kMostExperts;
            if (p.experts > most || p.chosen > kMostChosen || p.groups > kMostGroups) return std::nullopt;
            Pass pass;
            pass.function = "route";
            pass.x.rows_per = 1;
            pass.threads.x = kSimdWidth;
            return KernelChoice{.passes = {pass}};
        }
        case Op::kClusterLogits:
            return by_state("cluster_logits", ceil_div(cmd.params_as<ClusterLogitsParams>().vocab, kClusterColumns));
        case Op::kRelativeAttention: {
            const auto p = cmd.params_as<RelativeAttentionParams>();
            if (p.head_dim > kMostRelativeHead) return std::nullopt;
            Pass pass;
            pass.function = "relative_attention";
            pass.x.base = p.n_heads;
            pass.y.rows_per = 1;
            pass.threads.x = kSimdWidth;
            return KernelChoice{.passes = {pass}};
        }
        case Op::kLoraA: {
            const auto p = cmd.params_as<LoraParams>();
            return lora_kernel(p.format == kActF16 ? "lora_a_f16" : "lora_a_f32", p.k % 4 == 0,
                               ceil_div(p.max_rank, kLoraRanks * kLoraSimdgroups), kLoraSimdgroups * kSimdWidth);
        }
        case Op::kLoraB: {
            const auto p = cmd.params_as<LoraParams>();
            return lora_kernel("lora_b", p.n % 4 == 0, ceil_div(p.n, kLoraColumns * kLoraThreads), kLoraThreads);
        }
        case Op::kRecur:
            return by_channel("recur", cmd.params_as<RecurParams>().dim);
        default:
            return std::nullopt;
    }
}

}  // namespace akunu::metal
