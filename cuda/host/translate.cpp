// A command of the core's as the interpreter's.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "cuda/host/formats.h"
#include "cuda/host/pack.h"
#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

namespace {

// The ops that the interpreter knows.
constexpr std::pair<Op, OpCode> kOpCodes[] = {
    {Op::kEmbed, kOpEmbed},
    {Op::kEmbedPosition, kOpEmbedPosition},
    {Op::kUnfold, kOpUnfold},
    {Op::kRopeTable, kOpRopeTable},
    {Op::kNorm, kOpNorm},
    {Op::kNormAdd, kOpNormAdd},
    {Op::kLayerNorm, kOpLayerNorm},
    {Op::kQuantize, kOpQuantize},
    {Op::kMatmul, kOpMatmul},
    {Op::kGateUp, kOpGateUp},
    {Op::kNormQkv, kOpNormQkv},
    {Op::kNormGateUp, kOpNormGateUp},
    {Op::kGateAct, kOpGateAct},
    {Op::kPrepareHeads, kOpPrepareHeads},
    {Op::kAttention, kOpAttention},
    {Op::kAttentionSplit, kOpAttentionSplit},
    {Op::kAttentionMerge, kOpAttentionMerge},
    {Op::kAttentionWeights, kOpAttentionWeights},
    {Op::kCopyRecords, kOpCopyRecords},
    {Op::kSpeechRules, kOpSpeechRules},
    {Op::kArgmax, kOpArgmax},
    {Op::kSamplePrepare, kOpSamplePrepare},
    {Op::kSampleSelect, kOpSampleSelect},
    {Op::kLogprobs, kOpLogprobs},
    {Op::kAccept, kOpAccept},
    {Op::kPool, kOpPool},
    {Op::kRecur, kOpRecur},
    {Op::kColumnSquares, kOpColumnSquares},
    {Op::kShortConv, kOpShortConv},
    {Op::kDeltaRule, kOpDeltaRule},
    {Op::kSsmScan, kOpSsmScan},
    {Op::kGatedNorm, kOpGatedNorm},
    {Op::kRoute, kOpRoute},
    {Op::kExpertsGateUp, kOpExpertsGateUp},
    {Op::kExpertsDown, kOpExpertsDown},
    {Op::kClusterLogits, kOpClusterLogits},
    {Op::kInsertRows, kOpInsertRows},
    {Op::kAffine, kOpAffine},
    {Op::kLatentKv, kOpLatentKv},
    {Op::kHeadMatmul, kOpHeadMatmul},
    {Op::kAddRows, kOpAddRows},
    {Op::kMixStreams, kOpMixStreams},
    {Op::kSparsify, kOpSparsify},
    {Op::kRelativeAttention, kOpRelativeAttention},
    {Op::kLoraA, kOpLoraA},
    {Op::kLoraB, kOpLoraB},
    {Op::kAllReduce, kOpAllReduce},
    {Op::kAdvance, kOpAdvance},
};

static_assert(sizeof(Command::params) >= kMaxParamBytes && std::extent_v<decltype(Command::buffers)> >= kMaxBuffers);
static_assert(std::extent_v<decltype(Command::patch_field)> == kMaxPatches);
static_assert(u32(PatchSource::kLogits) == u32(kPatchLogits) && u32(PatchSource::kKeys) == u32(kPatchKeys));

[[noreturn]] void refuse(const DispatchCmd& c, const std::string& why) {
    throw UnsupportedError("no CUDA kernel for " + std::string(op_name(c.op)) + ": " + why);
}

u32 kv_types(const DispatchCmd& c) {
    const auto keys = kv_type(c.kv.k), values = kv_type(c.kv.v);
    if (!keys || !values) refuse(c, "KV cache type '" + kv_name(c.kv) + "'");
    return kv_pair(*keys, *values);
}

}  // namespace

std::optional<OpCode> op_code(Op op) {
    const auto* code = std::ranges::find(kOpCodes, op, &std::pair<Op, OpCode>::first);
    return code == std::end(kOpCodes) ? std::nullopt : std::optional(code->second);
}

namespace {

bool of_experts(Op op) { return op == Op::kExpertsGateUp || op == Op::kExpertsDown || op == Op::kHeadMatmul; }

void set_weights(const DispatchCmd& c, Command& out, const Geometry& g) {
    const auto places = weights_in(c);
    for (const WeightPlace& w : places) {
        if (w.weight >= std::size(out.weights)) refuse(c, "more than three weights");
        const DType dtype = &w == &places.back() ? c.last_weight : c.weight;
        const auto reader = reader_of(dtype);
        if (!reader) refuse(c, "weights of type '" + std::string(dtype_info(dtype).name) + "'");
        const bool planar = dtype_info(dtype).planar(), experts = of_experts(c.op);
        if (planar && !w.planar() && !experts) refuse(c, "weights of a planar type");
        if (dtype != c.weight && std::ranges::find(kMixedQkv, MixedQkv{c.weight, dtype}) == std::end(kMixedQkv)) {
            refuse(c, std::string(dtype_info(c.weight).name) + " beside " + std::string(dtype_info(dtype).name));
        }
        if (c.op != Op::kEmbed && staged_bytes(w.cols) + kSharedHead > g.shared_bytes) {
            refuse(c, "rows of " + std::to_string(w.cols) + " inputs do not fit a block's memory of " +
                          std::to_string(g.shared_bytes) + " bytes");
        }
        const Binding& at = c.buffers[w.buffer];
        WeightPlanes& planes = out.weights[w.weight];
        planes.reader = reader->reader;
        planes.spec = reader->spec;
        planes.codes = reinterpret_cast<u64>(at.as());
        if (experts) {
            const ExpertLayout layout = expert_layout(dtype, w.rows, w.cols);
            planes.extras = planes.codes + layout.extras;
            if (layout.biases != 0) planes.biases = planes.codes + layout.biases;
            out.params[kApartWord + w.weight] = static_cast<u32>(layout.bytes / kExpertAlign);
            continue;
        }
        planes.extras = planar ? out.buffers[w.scales] : planes.codes + plane_offset(dtype, w.rows, w.cols);
        if (planar) planes.biases = out.buffers[w.biases];  // 0: the type has none
    }
    set_streams(c, places, out, g);
}

void check_most(const DispatchCmd& c, const char* what, u32 n, u32 most) {
    if (n > most) refuse(c, std::to_string(n) + " " + what + "; at most " + std::to_string(most) + " are known");
}

void check_experts(const DispatchCmd& c, u32 experts, u32 chosen, u32 most = kMostExperts) {
    check_most(c, "experts", experts, most);
    check_most(c, "experts of a row", chosen, kMostChosen);
}

void check_heads(const DispatchCmd& c, u32 heads, u32 kv_heads, u32 head_dim) {
    if (kv_heads == 0 || heads == 0 || heads % kv_heads != 0) {
        refuse(c, std::to_string(heads) + " heads over " + std::to_string(kv_heads) + " KV heads");
    }
    if (head_dim == 0) refuse(c, "heads without elements");
    check_most(c, "elements of a head", head_dim, kMaxHeadDim);
}

Command compiled(const DispatchCmd& c, const Geometry& geometry) {
    Command out{};
    const auto code = op_code(c.op);
    if (!code) throw UnsupportedError("no CUDA kernel for " + std::string(op_name(c.op)));
    out.op = *code;
    out.barrier = c.barrier;
    out.kv = kv_types(c);
    out.half_input = c.input_format == kActF16;
    out.n_patches = c.n_patches;
    for (std::size_t i = 0; i < c.n_patches; ++i) {
        out.patch_field[i] = c.patches[i].offset / 4;
        out.patch_value[i] = static_cast<u32>(c.patches[i].source) | (c.patches[i].times - 1u) << kPatchTimesShift;
    }
    std::memcpy(out.params, c.params.data(), c.param_bytes);
    for (std::size_t i = 0; i < c.n_buffers; ++i) {
        if (c.buffers[i]) out.buffers[i] = reinterpret_cast<u64>(c.buffers[i].as());
    }
    if (c.op == Op::kNormQkv || c.op == Op::kNormGateUp) out.params[kNormedRowsWord] = 1;
    set_weights(c, out, geometry);
    if (c.op == Op::kPrepareHeads) {
        const auto p = c.params_as<PrepareHeadsParams>();
        // Keys and values that another layer keeps: queries alone, of which each is its own group.
        check_heads(c, p.n_kv_heads && p.n_heads ? p.n_heads : 1, p.n_kv_heads && p.n_heads ? p.n_kv_heads : 1,
                    p.head_dim);
    } else if (c.op == Op::kAttention || c.op == Op::kAttentionSplit || c.op == Op::kAttentionMerge) {
        const auto p = c.params_as<AttentionParams>();
        if (p.latent) {
            const bool plain = !p.window && !p.fixed_keys && !p.bidirectional && p.softcap == 0;
            if (!plain || p.n_kv_heads != 1 || p.latent > p.head_dim) refuse(c, "latent attention of its kind");
            check_most(c, "elements of a key", p.head_dim, kMaxLatentKey);
            return out;
        }
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    } else if (c.op == Op::kLatentKv) {
        const auto p = c.params_as<LatentKvParams>();
        check_most(c, "elements of a key", p.latent + p.rope_dim, kMaxLatentKey);
    } else if (c.op == Op::kRelativeAttention) {
        check_most(c, "elements of a head", c.params_as<RelativeAttentionParams>().head_dim, kMaxHeadDim);
    } else if (c.op == Op::kShortConv) {
        check_most(c, "taps", c.params_as<ShortConvParams>().taps, 8);
    } else if (c.op == Op::kDeltaRule) {
        const auto p = c.params_as<DeltaRuleParams>();
        check_most(c, "elements of a key", p.key_dim, 256);
        check_most(c, "heads of a state", p.key_heads + p.value_heads, kMostStateHeads);
    } else if (c.op == Op::kSsmScan) {
        check_most(c, "elements of a state", c.params_as<SsmScanParams>().state_dim, 256);
    } else if (c.op == Op::kRoute) {
        const auto p = c.params_as<RouteParams>();
        check_experts(c, p.experts, p.chosen, p.has_choice_bias || p.groups ? kMostExperts : kMostClusters);
        check_most(c, "groups of experts", p.groups, 256);
    } else if (c.op == Op::kExpertsGateUp) {
        const auto p = c.params_as<ExpertsGateUpParams>();
        check_experts(c, p.experts, p.chosen, kMostClusters);
    } else if (c.op == Op::kExpertsDown) {
        const auto p = c.params_as<ExpertsDownParams>();
        check_experts(c, p.experts, p.chosen);
    } else if (c.op == Op::kAttentionWeights) {
        const auto p = c.params_as<AttentionWeightsParams>();
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    }
    return out;
}

}  // namespace

std::vector<Command> compile_commands(const DispatchTable& table, const Geometry& geometry) {
    std::vector<Command> out;
    for (const DispatchCmd& c : table.commands) {
        out.push_back(compiled(c, geometry));
        out.back().label = static_cast<u32>(out.size() - 1);
    }
    return out;
}

}  // namespace akunu::cuda
