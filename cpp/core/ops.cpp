#include "core/ops.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "core/dispatch.h"
#include "core/error.h"

namespace akunu {

namespace {

constexpr auto R = Access::kRead, W = Access::kWrite, RW = Access::kReadWrite;
constexpr bool kOptional = true;

#define FIELD(Struct, field) \
    FieldInfo { #field, offsetof(Struct, field), std::is_same_v<decltype(Struct::field), float> }

constexpr FieldInfo kEmbedFields[] = {
    FIELD(EmbedParams, rows),      FIELD(EmbedParams, step),           FIELD(EmbedParams, dim),
    FIELD(EmbedParams, vocab),     FIELD(EmbedParams, history_stride), FIELD(EmbedParams, scale),
    FIELD(EmbedParams, accumulate)};
constexpr FieldInfo kEmbedPositionFields[] = {FIELD(EmbedPositionParams, rows), FIELD(EmbedPositionParams, step),
                                              FIELD(EmbedPositionParams, dim), FIELD(EmbedPositionParams, positions),
                                              FIELD(EmbedPositionParams, kinds)};
constexpr FieldInfo kUnfoldFields[] = {FIELD(UnfoldParams, rows),   FIELD(UnfoldParams, channels),
                                       FIELD(UnfoldParams, length), FIELD(UnfoldParams, taps),
                                       FIELD(UnfoldParams, stride), FIELD(UnfoldParams, formats)};
constexpr FieldInfo kRopeTableFields[] = {
    FIELD(RopeTableParams, rows),  FIELD(RopeTableParams, step),        FIELD(RopeTableParams, half_dim),
    FIELD(RopeTableParams, scale), FIELD(RopeTableParams, temperature), FIELD(RopeTableParams, temperature_length),
    FIELD(RopeTableParams, axes)};
constexpr FieldInfo kInsertRowsFields[] = {FIELD(InsertRowsParams, rows),   FIELD(InsertRowsParams, step),
                                           FIELD(InsertRowsParams, dim),    FIELD(InsertRowsParams, width),
                                           FIELD(InsertRowsParams, offset), FIELD(InsertRowsParams, accumulate)};
constexpr FieldInfo kAffineFields[] = {FIELD(AffineParams, rows),      FIELD(AffineParams, dim),
                                       FIELD(AffineParams, has_scale), FIELD(AffineParams, has_bias),
                                       FIELD(AffineParams, low),       FIELD(AffineParams, high)};
constexpr FieldInfo kNormFields[] = {FIELD(NormParams, rows),   FIELD(NormParams, dim),
                                     FIELD(NormParams, eps),    FIELD(NormParams, formats),
                                     FIELD(NormParams, gather), FIELD(NormParams, sum_scale)};
constexpr FieldInfo kLayerNormFields[] = {FIELD(LayerNormParams, rows),     FIELD(LayerNormParams, dim),
                                          FIELD(LayerNormParams, eps),      FIELD(LayerNormParams, formats),
                                          FIELD(LayerNormParams, has_bias), FIELD(LayerNormParams, gather)};
constexpr FieldInfo kQuantizeFields[] = {FIELD(QuantizeParams, rows), FIELD(QuantizeParams, dim),
                                         FIELD(QuantizeParams, formats)};
constexpr FieldInfo kMatmulFields[] = {
    FIELD(MatmulParams, rows),     FIELD(MatmulParams, n),          FIELD(MatmulParams, k),
    FIELD(MatmulParams, y_stride), FIELD(MatmulParams, accumulate), FIELD(MatmulParams, has_bias),
    FIELD(MatmulParams, softcap),  FIELD(MatmulParams, activation), FIELD(MatmulParams, format)};
constexpr FieldInfo kGateUpFields[] = {FIELD(GateUpParams, rows), FIELD(GateUpParams, n), FIELD(GateUpParams, k),
                                       FIELD(GateUpParams, activation), FIELD(GateUpParams, formats)};
constexpr FieldInfo kNormQkvFields[] = {FIELD(NormQkvParams, n_q),      FIELD(NormQkvParams, n_kv),
                                        FIELD(NormQkvParams, k),        FIELD(NormQkvParams, k_offset),
                                        FIELD(NormQkvParams, v_offset), FIELD(NormQkvParams, has_bias),
                                        FIELD(NormQkvParams, eps)};
constexpr FieldInfo kNormGateUpFields[] = {FIELD(NormGateUpParams, n), FIELD(NormGateUpParams, k),
                                           FIELD(NormGateUpParams, activation), FIELD(NormGateUpParams, formats),
                                           FIELD(NormGateUpParams, eps)};
constexpr FieldInfo kGateActFields[] = {FIELD(GateActParams, rows),       FIELD(GateActParams, n),
                                        FIELD(GateActParams, activation), FIELD(GateActParams, formats),
                                        FIELD(GateActParams, gated),      FIELD(GateActParams, up_stride)};
constexpr FieldInfo kPrepareHeadsFields[] = {
    FIELD(PrepareHeadsParams, rows),       FIELD(PrepareHeadsParams, step),      FIELD(PrepareHeadsParams, n_heads),
    FIELD(PrepareHeadsParams, n_kv_heads), FIELD(PrepareHeadsParams, head_dim),  FIELD(PrepareHeadsParams, rope_dim),
    FIELD(PrepareHeadsParams, style),      FIELD(PrepareHeadsParams, qk_norm),   FIELD(PrepareHeadsParams, eps),
    FIELD(PrepareHeadsParams, max_pages),  FIELD(PrepareHeadsParams, page_words)};
constexpr FieldInfo kAttentionFields[] = {
    FIELD(AttentionParams, rows),          FIELD(AttentionParams, step),       FIELD(AttentionParams, keys),
    FIELD(AttentionParams, n_heads),       FIELD(AttentionParams, n_kv_heads), FIELD(AttentionParams, head_dim),
    FIELD(AttentionParams, window),        FIELD(AttentionParams, max_pages),  FIELD(AttentionParams, page_words),
    FIELD(AttentionParams, scale),         FIELD(AttentionParams, softcap),    FIELD(AttentionParams, formats),
    FIELD(AttentionParams, bidirectional), FIELD(AttentionParams, fixed_keys), FIELD(AttentionParams, row_ends),
    FIELD(AttentionParams, latent)};
constexpr FieldInfo kAttentionWeightsFields[] = {
    FIELD(AttentionWeightsParams, rows),       FIELD(AttentionWeightsParams, n_heads),
    FIELD(AttentionWeightsParams, n_kv_heads), FIELD(AttentionWeightsParams, head_dim),
    FIELD(AttentionWeightsParams, max_pages),  FIELD(AttentionWeightsParams, page_words),
    FIELD(AttentionWeightsParams, scale),      FIELD(AttentionWeightsParams, fixed_keys),
    FIELD(AttentionWeightsParams, chosen),     FIELD(AttentionWeightsParams, out_rows)};
constexpr FieldInfo kCopyRecordsFields[] = {FIELD(CopyRecordsParams, rows), FIELD(CopyRecordsParams, record_words)};
constexpr FieldInfo kRecurFields[] = {FIELD(RecurParams, rows), FIELD(RecurParams, step), FIELD(RecurParams, dim),
                                      FIELD(RecurParams, formats), FIELD(RecurParams, state_words)};
constexpr FieldInfo kShortConvFields[] = {FIELD(ShortConvParams, rows),        FIELD(ShortConvParams, step),
                                          FIELD(ShortConvParams, channels),    FIELD(ShortConvParams, taps),
                                          FIELD(ShortConvParams, has_bias),    FIELD(ShortConvParams, activation),
                                          FIELD(ShortConvParams, state_words), FIELD(ShortConvParams, gated)};
constexpr FieldInfo kDeltaRuleFields[] = {
    FIELD(DeltaRuleParams, rows),        FIELD(DeltaRuleParams, step),    FIELD(DeltaRuleParams, key_heads),
    FIELD(DeltaRuleParams, value_heads), FIELD(DeltaRuleParams, key_dim), FIELD(DeltaRuleParams, value_dim),
    FIELD(DeltaRuleParams, grouped),     FIELD(DeltaRuleParams, formats), FIELD(DeltaRuleParams, state_words),
    FIELD(DeltaRuleParams, scale),       FIELD(DeltaRuleParams, l2_eps),  FIELD(DeltaRuleParams, norm_eps)};
constexpr FieldInfo kSsmScanFields[] = {FIELD(SsmScanParams, rows),     FIELD(SsmScanParams, step),
                                        FIELD(SsmScanParams, groups),   FIELD(SsmScanParams, blocks),
                                        FIELD(SsmScanParams, heads),    FIELD(SsmScanParams, state_dim),
                                        FIELD(SsmScanParams, head_dim), FIELD(SsmScanParams, state_words)};
constexpr FieldInfo kGatedNormFields[] = {FIELD(GatedNormParams, rows), FIELD(GatedNormParams, groups),
                                          FIELD(GatedNormParams, dim), FIELD(GatedNormParams, eps),
                                          FIELD(GatedNormParams, formats)};
constexpr FieldInfo kSampleFields[] = {FIELD(SampleParams, rows), FIELD(SampleParams, step), FIELD(SampleParams, vocab),
                                       FIELD(SampleParams, history_stride)};
constexpr FieldInfo kPoolFields[] = {FIELD(PoolParams, rows), FIELD(PoolParams, dim), FIELD(PoolParams, pooling)};
constexpr FieldInfo kColumnSquaresFields[] = {FIELD(ColumnSquaresParams, rows),   FIELD(ColumnSquaresParams, dim),
                                              FIELD(ColumnSquaresParams, format), FIELD(ColumnSquaresParams, experts),
                                              FIELD(ColumnSquaresParams, chosen), FIELD(ColumnSquaresParams, apart)};

constexpr FieldInfo kRouteFields[] = {FIELD(RouteParams, rows),
                                      FIELD(RouteParams, experts),
                                      FIELD(RouteParams, chosen),
                                      FIELD(RouteParams, gating),
                                      FIELD(RouteParams, groups),
                                      FIELD(RouteParams, groups_used),
                                      FIELD(RouteParams, group_top),
                                      FIELD(RouteParams, renormalise),
                                      FIELD(RouteParams, sum_eps),
                                      FIELD(RouteParams, sum_min),
                                      FIELD(RouteParams, scale),
                                      FIELD(RouteParams, has_choice_bias),
                                      FIELD(RouteParams, has_expert_scale)};
constexpr FieldInfo kExpertsGateUpFields[] = {
    FIELD(ExpertsGateUpParams, rows),      FIELD(ExpertsGateUpParams, experts),
    FIELD(ExpertsGateUpParams, chosen),    FIELD(ExpertsGateUpParams, n),
    FIELD(ExpertsGateUpParams, k),         FIELD(ExpertsGateUpParams, activation),
    FIELD(ExpertsGateUpParams, formats),   FIELD(ExpertsGateUpParams, has_bias),
    FIELD(ExpertsGateUpParams, limit),     FIELD(ExpertsGateUpParams, sharpness),
    FIELD(ExpertsGateUpParams, up_offset), FIELD(ExpertsGateUpParams, gated)};
constexpr FieldInfo kExpertsDownFields[] = {FIELD(ExpertsDownParams, rows),    FIELD(ExpertsDownParams, experts),
                                            FIELD(ExpertsDownParams, chosen),  FIELD(ExpertsDownParams, n),
                                            FIELD(ExpertsDownParams, k),       FIELD(ExpertsDownParams, accumulate),
                                            FIELD(ExpertsDownParams, has_bias)};
constexpr FieldInfo kClusterLogitsFields[] = {FIELD(ClusterLogitsParams, rows), FIELD(ClusterLogitsParams, vocab),
                                              FIELD(ClusterLogitsParams, chosen), FIELD(ClusterLogitsParams, n)};
constexpr FieldInfo kLatentKvFields[] = {FIELD(LatentKvParams, rows),        FIELD(LatentKvParams, step),
                                         FIELD(LatentKvParams, n_heads),     FIELD(LatentKvParams, nope_dim),
                                         FIELD(LatentKvParams, rope_dim),    FIELD(LatentKvParams, latent),
                                         FIELD(LatentKvParams, style),       FIELD(LatentKvParams, eps),
                                         FIELD(LatentKvParams, temperature), FIELD(LatentKvParams, temperature_length),
                                         FIELD(LatentKvParams, max_pages),   FIELD(LatentKvParams, page_words)};
constexpr FieldInfo kHeadMatmulFields[] = {FIELD(HeadMatmulParams, rows),     FIELD(HeadMatmulParams, heads),
                                           FIELD(HeadMatmulParams, n),        FIELD(HeadMatmulParams, k),
                                           FIELD(HeadMatmulParams, x_stride), FIELD(HeadMatmulParams, copied)};
constexpr FieldInfo kLoraFields[] = {
    FIELD(LoraParams, rows),       FIELD(LoraParams, n),        FIELD(LoraParams, k),      FIELD(LoraParams, max_rank),
    FIELD(LoraParams, slot_words), FIELD(LoraParams, y_stride), FIELD(LoraParams, gather), FIELD(LoraParams, format)};
constexpr FieldInfo kAllReduceFields[] = {FIELD(AllReduceParams, rows),       FIELD(AllReduceParams, dim),
                                          FIELD(AllReduceParams, accumulate), FIELD(AllReduceParams, gather),
                                          FIELD(AllReduceParams, x_stride),   FIELD(AllReduceParams, y_stride)};
constexpr FieldInfo kAddRowsFields[] = {FIELD(AddRowsParams, rows),       FIELD(AddRowsParams, dim),
                                        FIELD(AddRowsParams, accumulate), FIELD(AddRowsParams, matched),
                                        FIELD(AddRowsParams, scale),      FIELD(AddRowsParams, floor)};
constexpr FieldInfo kMixStreamsFields[] = {FIELD(MixStreamsParams, rows),    FIELD(MixStreamsParams, dim),
                                           FIELD(MixStreamsParams, streams), FIELD(MixStreamsParams, stride),
                                           FIELD(MixStreamsParams, active),  FIELD(MixStreamsParams, correct),
                                           FIELD(MixStreamsParams, scaled)};
constexpr FieldInfo kSparsifyFields[] = {FIELD(SparsifyParams, rows), FIELD(SparsifyParams, n),
                                         FIELD(SparsifyParams, deviations)};

constexpr FieldInfo kRelativeAttentionFields[] = {
    FIELD(RelativeAttentionParams, rows),     FIELD(RelativeAttentionParams, n_heads),
    FIELD(RelativeAttentionParams, head_dim), FIELD(RelativeAttentionParams, reach),
    FIELD(RelativeAttentionParams, scale),    FIELD(RelativeAttentionParams, has_bias),
    FIELD(RelativeAttentionParams, has_keys), FIELD(RelativeAttentionParams, has_queries)};

#undef FIELD

using enum BufferKind;

constexpr BufferInfo weight(std::string_view name, std::string_view rows, std::string_view cols,
                            std::string_view input = {}, bool optional = false) {
    return {name, R, optional, kWeight, rows, cols, input};
}
constexpr BufferInfo constant(std::string_view name, bool optional = false) { return {name, R, optional, kConstant}; }
constexpr BufferInfo index(std::string_view name, bool optional = false) { return {name, R, optional, kIndex}; }
constexpr BufferInfo cache(std::string_view name, Access access = R, bool optional = false) {
    return {name, access, optional, kCache};
}
constexpr BufferInfo state(std::string_view name, Access access = R) { return {name, access, false, kState}; }
constexpr BufferInfo sum(std::string_view name) { return {.name = name, .access = RW, .adds = "accumulate"}; }

// Weights of a planar type have more planes than their codes, which are `weight`.
constexpr BufferInfo kPlaneOfScales = {"scales", R, kOptional, kScales};
constexpr BufferInfo kPlaneOfBiases = {"biases", R, kOptional, kBiases};

constexpr BufferInfo kEmbedBuffers[] = {
    state("history"), weight("weight", "vocab", "dim"), sum("hidden"), index("rows"), kPlaneOfScales, kPlaneOfBiases};
constexpr BufferInfo kEmbedPositionBuffers[] = {constant("positions", kOptional),
                                                constant("kinds", kOptional),
                                                {"hidden", RW},
                                                index("rows"),
                                                index("row_kinds", kOptional)};
constexpr BufferInfo kUnfoldBuffers[] = {{"x", R}, {"out_f32", W, kOptional}, {"out_compact", W, kOptional}};
constexpr BufferInfo kRopeTableBuffers[] = {
    constant("inv_freq"), {"table", W}, index("rows"), constant("axes", kOptional), index("positions", kOptional)};
constexpr BufferInfo kInsertRowsBuffers[] = {{"hidden", RW}, {"encoded", R}, index("sources")};
constexpr BufferInfo kAffineBuffers[] = {{"x", R}, constant("scale", kOptional), constant("bias", kOptional), {"y", W}};
constexpr BufferInfo kNormBuffers[] = {{"x", R},
                                       constant("weight"),
                                       {"out_f32", W, kOptional},
                                       {"out_compact", W, kOptional},
                                       index("logit_rows", kOptional)};
constexpr BufferInfo kNormAddBuffers[] = {{"x", R}, constant("weight"), {"hidden", RW}};
constexpr BufferInfo kGatedNormBuffers[] = {
    {"x", R}, {"gate", R}, constant("weight"), {"out_f32", W, kOptional}, {"out_compact", W, kOptional}};
constexpr BufferInfo kLayerNormBuffers[] = {{"x", R},
                                            constant("weight"),
                                            constant("bias", kOptional),
                                            {"out_f32", W, kOptional},
                                            {"out_compact", W, kOptional},
                                            index("logit_rows", kOptional)};
constexpr BufferInfo kQuantizeBuffers[] = {{"x", R}, {"out_f32", W, kOptional}, {"out_compact", W, kOptional}};
constexpr BufferInfo kMatmulBuffers[] = {
    {"x", R}, weight("weight", "n", "k", "x"), sum("y"), constant("bias", kOptional), kPlaneOfScales, kPlaneOfBiases};
constexpr BufferInfo kGateUpBuffers[] = {{"x", R},
                                         weight("gate", "n", "k", "x"),
                                         weight("up", "n", "k", "x"),
                                         {"out_f32", W, kOptional},
                                         {"out_compact", W, kOptional}};
constexpr BufferInfo kNormQkvBuffers[] = {{"hidden", R},
                                          constant("norm"),
                                          weight("q", "n_q", "k"),
                                          weight("k", "n_kv", "k", {}, kOptional),
                                          weight("v", "n_kv", "k", {}, kOptional),
                                          {"y", W},
                                          constant("bias", kOptional)};
constexpr BufferInfo kNormGateUpBuffers[] = {
    {"hidden", R},          constant("norm"),          weight("gate", "n", "k"),
    weight("up", "n", "k"), {"out_f32", W, kOptional}, {"out_compact", W, kOptional}};
constexpr BufferInfo kGateActBuffers[] = {
    {"gate", R}, {"up", R, kOptional}, {"out_f32", W, kOptional}, {"out_compact", W, kOptional}};
constexpr BufferInfo kPrepareHeadsBuffers[] = {
    {"q", RW, kOptional},       {"k", RW, kOptional},           {"v", R, kOptional}, {"table", R, kOptional},
    cache("kv", RW, kOptional), constant("qk_norm", kOptional), index("rows"),       index("pages")};
// Sinks are a logit for each head, which has no value.
constexpr BufferInfo kAttentionBuffers[] = {{"q", R},
                                            cache("kv"),
                                            {"out", W},
                                            index("rows"),
                                            index("pages"),
                                            constant("sinks", kOptional),
                                            index("ends", kOptional)};
// The last three are for a device that writes the result itself where it splits nothing: DeviceTraits::unsplit_keys.
constexpr BufferInfo kAttentionSplitBuffers[] = {{"q", R},
                                                 cache("kv"),
                                                 {"partials", W},
                                                 index("rows"),
                                                 index("pages"),
                                                 constant("sinks", kOptional),
                                                 {"out_f32", W, kOptional},
                                                 {"out_compact", W, kOptional}};
constexpr BufferInfo kAttentionMergeBuffers[] = {{"partials", R},
                                                 {"out_f32", W, kOptional},
                                                 {"out_compact", W, kOptional},
                                                 index("rows"),
                                                 constant("sinks", kOptional)};
constexpr BufferInfo kAttentionWeightsBuffers[] = {{"q", R},   cache("kv"),   constant("heads"),
                                                   {"out", W}, index("rows"), index("pages")};
constexpr BufferInfo kCopyRecordsBuffers[] = {index("pairs"), state("records", RW)};
constexpr BufferInfo kRecurBuffers[] = {
    {"x", R},      {"gate", R},    state("state", RW), {"out_f32", W, kOptional}, {"out_compact", W, kOptional},
    index("rows"), index("spans"), state("slots")};
constexpr BufferInfo kShortConvBuffers[] = {{"x", R}, constant("weights"), state("state", RW),
                                            {"y", W}, index("rows"),       state("slots")};
// Its values' part of qkv may be overwritten.
constexpr BufferInfo kDeltaRuleBuffers[] = {{"qkv", RW},
                                            {"gates", R},
                                            {"z", R},
                                            constant("constants"),
                                            state("state", RW),
                                            {"out_f32", W, kOptional},
                                            {"out_compact", W, kOptional},
                                            index("rows"),
                                            index("spans"),
                                            state("slots")};
constexpr BufferInfo kSsmScanBuffers[] = {{"xbc", R}, {"dt", R},     constant("constants"), state("state", RW),
                                          {"y", W},   index("rows"), index("spans"),        state("slots")};
constexpr BufferInfo kSpeechRulesBuffers[] = {{"logits", RW},     state("history"), state("rules"),
                                              state("forbidden"), index("rows"),    index("logit_rows")};
constexpr BufferInfo kArgmaxBuffers[] = {{"logits", R}, {"sampled", W}};
constexpr BufferInfo kSamplePrepareBuffers[] = {{"logits", R}, state("history"),    state("state"),
                                                state("bias"), state("mask"),       {"scaled", RW},
                                                index("rows"), index("logit_rows"), state("breakers")};
constexpr BufferInfo kSampleSelectBuffers[] = {
    {"scaled", RW}, state("state"), {"sampled", W}, index("rows"), index("logit_rows")};
constexpr BufferInfo kLogprobsBuffers[] = {{"logits", R},  {"sampled", R}, state("state"),
                                           {"records", W}, index("rows"),  index("logit_rows")};
constexpr BufferInfo kAcceptBuffers[] = {{"sampled", R},     state("history", RW), state("state"),
                                         state("slots", RW), state("control", RW), index("rows"),
                                         index("logit_rows")};
constexpr BufferInfo kPoolBuffers[] = {{"x", R}, index("rows"), index("last_rows"), {"out", W}};
constexpr BufferInfo kColumnSquaresBuffers[] = {{"x", R}, state("sums", W), {"ids", R, kOptional}};
constexpr BufferInfo kRouteBuffers[] = {
    {"logits", R}, constant("choice_bias", kOptional), constant("expert_scale", kOptional), {"ids", W}, {"weights", W}};
constexpr BufferInfo kExpertsGateUpBuffers[] = {{"x", R},
                                                weight("gate", "n", "k"),
                                                weight("up", "n", "k", {}, kOptional),
                                                constant("gate_bias", kOptional),
                                                constant("up_bias", kOptional),
                                                {"ids", R},
                                                {"out_f32", W, kOptional},
                                                {"out_compact", W, kOptional}};
constexpr BufferInfo kExpertsDownBuffers[] = {
    {"x", R}, weight("weight", "n", "k"), sum("y"), constant("bias", kOptional), {"ids", R}, {"weights", R}};
constexpr BufferInfo kClusterLogitsBuffers[] = {{"x", R}, {"ids", R}, constant("order"), {"y", W}};
constexpr BufferInfo kLatentKvBuffers[] = {{"kv", R},          {"q", RW},     {"table", R},  constant("norm"),
                                           cache("cache", RW), index("rows"), index("pages")};
constexpr BufferInfo kHeadMatmulBuffers[] = {{"x", R}, weight("weight", "n", "k"), {"y", W}};
constexpr BufferInfo kLoraABuffers[] = {{"x", R},      constant("adapters"), {"t", W},
                                        index("rows"), index("choices"),     index("logit_rows", kOptional)};
constexpr BufferInfo kLoraBBuffers[] = {{"t", R},      constant("adapters"), {"y", RW},
                                        index("rows"), index("choices"),     index("logit_rows", kOptional)};
constexpr BufferInfo kAllReduceBuffers[] = {{"x", R}, sum("y")};
constexpr BufferInfo kAddRowsBuffers[] = {{"x", R}, {"like", R, kOptional}, sum("y")};
constexpr BufferInfo kMixStreamsBuffers[] = {
    {"streams", RW}, {"hidden", RW}, {"gates", R}, constant("weights"), constant("scales", kOptional)};
constexpr BufferInfo kSparsifyBuffers[] = {{"x", RW}};

constexpr BufferInfo kRelativeAttentionBuffers[] = {{"q", R},
                                                    {"k", R},
                                                    {"v", R},
                                                    constant("columns"),
                                                    constant("bias", kOptional),
                                                    constant("distance_keys", kOptional),
                                                    constant("distance_queries", kOptional),
                                                    {"out", W},
                                                    index("rows")};

// Bytes per element that an activation of these formats takes (int8 blocks carry their scales and sums).
double act_bytes(std::uint32_t formats) {
    return (formats & kActF32 ? 4.0 : 0.0) + (formats & kActQ8 ? 1.5 : 0.0) + (formats & kActF16 ? 2.0 : 0.0);
}

double kv_element(DType t) { return static_cast<double>(row_bytes(t, 32)) / 32; }

double weight_bytes(DType t, double rows, double cols) {
    return rows * static_cast<double>(row_bytes(t, static_cast<std::uint64_t>(cols)));
}

Cost per_row(double bytes, double flops) {
    Cost c;
    c.bytes_per_row = bytes;
    c.flops_per_row = flops;
    return c;
}

Cost& read_weights(Cost& c, double bytes) {
    c.weights += bytes;
    c.bytes += bytes;
    return c;
}

// One row of the table, not all of it.
Cost embed_cost(const DispatchCmd& c) {
    const auto p = c.params_as<EmbedParams>();
    return per_row(weight_bytes(c.weight, 1, p.dim) + (p.accumulate ? 8.0 : 4.0) * p.dim, p.dim);
}

Cost embed_position_cost(const DispatchCmd& c) {
    const double dim = c.params_as<EmbedPositionParams>().dim;
    return per_row(16.0 * dim, 2.0 * dim);
}

Cost unfold_cost(const DispatchCmd& c) {
    const auto p = c.params_as<UnfoldParams>();
    return per_row((4.0 + act_bytes(p.formats)) * p.channels * p.taps, 0);
}

Cost rope_table_cost(const DispatchCmd& c) {
    const auto p = c.params_as<RopeTableParams>();
    return per_row(8.0 * p.half_dim, 2.0 * p.half_dim);
}

Cost insert_rows_cost(const DispatchCmd& c) {
    const auto p = c.params_as<InsertRowsParams>();
    return per_row((p.accumulate ? 12.0 : 8.0) * p.dim, p.accumulate ? p.dim : 0.0);
}

Cost affine_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AffineParams>();
    return per_row(8.0 * p.dim, 4.0 * p.dim);
}

Cost norm_cost(const DispatchCmd& c) {
    const auto p = c.params_as<NormParams>();
    Cost cost = per_row(p.dim * (4.0 + act_bytes(p.formats)), 4.0 * p.dim);
    cost.bytes = 4.0 * p.dim;
    return cost;
}

Cost gated_norm_cost(const DispatchCmd& c) {
    const auto p = c.params_as<GatedNormParams>();
    const double n = static_cast<double>(p.groups) * p.dim;
    Cost cost = per_row(n * (8.0 + act_bytes(p.formats)), 10.0 * n);
    cost.bytes = 4.0 * n;
    return cost;
}

Cost norm_add_cost(const DispatchCmd& c) {
    const auto p = c.params_as<NormParams>();
    return per_row(12.0 * p.dim, 5.0 * p.dim);
}

Cost layer_norm_cost(const DispatchCmd& c) {
    const auto p = c.params_as<LayerNormParams>();
    Cost cost = per_row(p.dim * (4.0 + act_bytes(p.formats)), 7.0 * p.dim);
    cost.bytes = (p.has_bias ? 8.0 : 4.0) * p.dim;
    return cost;
}

Cost quantize_cost(const DispatchCmd& c) {
    const auto p = c.params_as<QuantizeParams>();
    return per_row((4.0 + act_bytes(p.formats)) * p.dim, 2.0 * p.dim);
}

Cost matmul_cost(const DispatchCmd& c) {
    const auto p = c.params_as<MatmulParams>();
    Cost cost =
        per_row(act_bytes(c.input_format) * p.k + act_bytes(p.format) * p.n * (p.accumulate ? 2 : 1), 2.0 * p.n * p.k);
    return read_weights(cost, weight_bytes(c.weight, p.n, p.k));
}

Cost gate_up_cost(const DispatchCmd& c) {
    const auto p = c.params_as<GateUpParams>();
    Cost cost = per_row(act_bytes(c.input_format) * p.k + act_bytes(p.formats) * p.n, 4.0 * p.n * p.k);
    return read_weights(cost, 2 * weight_bytes(c.weight, p.n, p.k));
}

Cost norm_qkv_cost(const DispatchCmd& c) {
    const auto p = c.params_as<NormQkvParams>();
    const bool k = bool(c.buffers[3]), v = bool(c.buffers[4]);
    const double n = p.n_q + (k ? 1.0 : 0.0) * p.n_kv + (v ? 1.0 : 0.0) * p.n_kv;
    Cost cost;
    cost.bytes = 8.0 * p.k + 4.0 * n;
    cost.flops = 2.0 * n * p.k + 4.0 * p.k;
    read_weights(cost, weight_bytes(c.weight, p.n_q + (k ? 1.0 : 0.0) * p.n_kv, p.k));
    return read_weights(cost, v ? weight_bytes(c.last_weight, p.n_kv, p.k) : 0);
}

Cost norm_gate_up_cost(const DispatchCmd& c) {
    const auto p = c.params_as<NormGateUpParams>();
    Cost cost;
    cost.bytes = 8.0 * p.k + act_bytes(p.formats) * p.n;
    cost.flops = 4.0 * p.n * p.k + 4.0 * p.k;
    return read_weights(cost, 2 * weight_bytes(c.weight, p.n, p.k));
}

Cost gate_act_cost(const DispatchCmd& c) {
    const auto p = c.params_as<GateActParams>();
    return per_row(((p.gated ? 8.0 : 4.0) + act_bytes(p.formats)) * p.n, 5.0 * p.n);
}

Cost prepare_heads_cost(const DispatchCmd& c) {
    const auto p = c.params_as<PrepareHeadsParams>();
    const double q = static_cast<double>(p.n_heads) * p.head_dim, kv = static_cast<double>(p.n_kv_heads) * p.head_dim;
    return per_row(8.0 * q + (8.0 + kv_element(c.kv.k) + kv_element(c.kv.v)) * kv, 6.0 * (q + kv));
}

// The partial results of a split are the device's to add.
Cost attention_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AttentionParams>();
    const double q = static_cast<double>(p.n_heads) * p.head_dim,
                 out = static_cast<double>(p.n_heads) * value_dim(p.head_dim, p.latent);
    Cost cost = per_row(c.op == Op::kAttentionSplit ? 4.0 * q : 4.0 * (q + out), 0);
    const double kv = (kv_element(c.kv.k) + (p.latent ? 0 : kv_element(c.kv.v))) * p.n_kv_heads * p.head_dim;
    if (p.fixed_keys) {
        cost.bytes += kv * p.fixed_keys;
        cost.flops_per_row += 2.0 * (q + out) * p.fixed_keys;
        return cost;
    }
    cost.window = p.window;
    cost.bidirectional = p.bidirectional != 0;
    cost.kv_per_key = cost.bytes_per_key = kv;
    cost.flops_per_row_key = 2.0 * (q + out);
    return cost;
}

Cost attention_merge_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AttentionParams>();
    const double out = static_cast<double>(p.n_heads) * value_dim(p.head_dim, p.latent);
    Cost cost = per_row(act_bytes(p.formats) * out, 2.0 * out);
    cost.window = p.window;
    return cost;
}

Cost attention_weights_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AttentionWeightsParams>();
    const double heads = p.chosen, keys = p.fixed_keys;
    Cost cost = per_row(4.0 * heads * (p.head_dim + keys), 2.0 * heads * keys * p.head_dim);
    cost.bytes = kv_element(c.kv.k) * heads * keys * p.head_dim;
    return cost;
}

Cost copy_records_cost(const DispatchCmd& c) { return per_row(8.0 * c.params_as<CopyRecordsParams>().record_words, 0); }

// Each sequence's state is read and written once.
Cost recur_cost(const DispatchCmd& c) {
    const auto p = c.params_as<RecurParams>();
    Cost cost = per_row((8.0 + act_bytes(p.formats)) * p.dim, 8.0 * p.dim);
    cost.bytes_per_sequence = 8.0 * p.dim;
    return cost;
}

Cost short_conv_cost(const DispatchCmd& c) {
    const auto p = c.params_as<ShortConvParams>();
    Cost cost = per_row((p.gated ? 20.0 : 12.0) * p.channels, (2.0 * p.taps + 5.0) * p.channels);
    cost.bytes = 4.0 * (2 * p.taps - 1 + p.has_bias) * p.channels;
    return cost;
}

// The state, read once, counts as that of one sequence; it is written once in a chunk's rows. Three products with it,
// and those among the rows of a chunk, of which half have been before.
Cost delta_rule_cost(const DispatchCmd& c) {
    const auto p = c.params_as<DeltaRuleParams>();
    const double keys = static_cast<double>(p.key_heads) * p.key_dim,
                 values = static_cast<double>(p.value_heads) * p.value_dim, state = values * p.key_dim,
                 chunk = kChunkRows;
    Cost cost = per_row(
        4.0 * (2 * keys + 2 * values + 2.0 * p.value_heads) + act_bytes(p.formats) * values + 8.0 * state / chunk,
        6.0 * state + 2.0 * chunk * (keys + values) + 12.0 * values);
    cost.bytes = 4.0 * state + 2.0 * chunk * (keys + values);
    return cost;
}

// A scan costs what a delta rule does, less one product; rows of a chunk matter to one another in the outputs alone.
Cost ssm_scan_cost(const DispatchCmd& c) {
    const auto p = c.params_as<SsmScanParams>();
    const double values = static_cast<double>(p.heads) * p.head_dim, keys = static_cast<double>(p.groups) * p.state_dim,
                 state = values * p.state_dim, chunk = kChunkRows;
    Cost cost = per_row(4.0 * (2 * keys + 2 * values + p.heads) + 8.0 * state / chunk,
                        4.0 * state + chunk * (keys + values) + 6.0 * values);
    cost.bytes = 4.0 * state + 2.0 * chunk * (p.blocks * p.state_dim + values);
    return cost;
}

Cost sample_cost(const DispatchCmd& c) {
    const double v = c.params_as<SampleParams>().vocab;
    return per_row(c.op == Op::kSamplePrepare ? 8 * v : 4 * v, v);
}

Cost accept_cost(const DispatchCmd&) { return per_row(16, 0); }

// This counts the vectors that are made; how many rows they are made of differs from sequence to sequence.
Cost pool_cost(const DispatchCmd& c) { return per_row(8.0 * c.params_as<PoolParams>().dim, 0); }

Cost column_squares_cost(const DispatchCmd& c) {
    const auto p = c.params_as<ColumnSquaresParams>();
    const double reads = p.apart ? p.chosen : 1, sums = p.experts ? p.chosen : 1;
    return per_row(reads * act_bytes(p.format) * p.dim + (p.experts ? 4.0 * p.chosen : 0.0), 2.0 * sums * p.dim);
}

Cost route_cost(const DispatchCmd& c) {
    const auto p = c.params_as<RouteParams>();
    return per_row(4.0 * p.experts + 8.0 * p.chosen, 4.0 * p.experts);
}

Cost experts_gate_up_cost(const DispatchCmd& c) {
    const auto p = c.params_as<ExpertsGateUpParams>();
    Cost cost = per_row(act_bytes(c.input_format) * p.k + act_bytes(p.formats) * p.n * p.chosen,
                        (p.gated ? 4.0 : 2.0) * p.n * p.k * p.chosen);
    cost.bytes_per_expert = weight_bytes(c.weight, p.n, p.k) + (p.gated ? weight_bytes(c.last_weight, p.n, p.k) : 0);
    cost.experts = p.experts;
    cost.chosen = p.chosen;
    return cost;
}

Cost experts_down_cost(const DispatchCmd& c) {
    const auto p = c.params_as<ExpertsDownParams>();
    Cost cost = per_row(act_bytes(c.input_format) * p.k * p.chosen + (p.accumulate ? 8.0 : 4.0) * p.n,
                        2.0 * p.n * p.k * p.chosen);
    cost.bytes_per_expert = weight_bytes(c.weight, p.n, p.k);
    cost.experts = p.experts;
    cost.chosen = p.chosen;
    return cost;
}

Cost cluster_logits_cost(const DispatchCmd& c) {
    const auto p = c.params_as<ClusterLogitsParams>();
    return per_row(4.0 * p.vocab + 8.0 * p.chosen * p.n, 0);
}

Cost latent_kv_cost(const DispatchCmd& c) {
    const auto p = c.params_as<LatentKvParams>();
    const double q = static_cast<double>(p.n_heads) * (p.temperature_length ? p.nope_dim + p.rope_dim : p.rope_dim),
                 kv = static_cast<double>(p.latent) + p.rope_dim;
    return per_row(8.0 * q + (4.0 + kv_element(c.kv.k)) * kv, 4.0 * (q + kv));
}

Cost head_matmul_cost(const DispatchCmd& c) {
    const auto p = c.params_as<HeadMatmulParams>();
    const double heads = p.heads;
    Cost cost = per_row(4.0 * heads * (p.k + p.n + 2.0 * p.copied), 2.0 * heads * p.n * p.k);
    return read_weights(cost, heads * weight_bytes(c.weight, p.n, p.k));
}

// The cost is that of rows which all have one adapter, of the highest rank.
Cost lora_a_cost(const DispatchCmd& c) {
    const auto p = c.params_as<LoraParams>();
    Cost cost = per_row(act_bytes(p.format) * p.k + 4.0 * p.max_rank, 2.0 * p.max_rank * p.k);
    return read_weights(cost, 2.0 * p.max_rank * p.k);
}

Cost lora_b_cost(const DispatchCmd& c) {
    const auto p = c.params_as<LoraParams>();
    Cost cost = per_row(8.0 * p.n + 4.0 * p.max_rank, 2.0 * p.max_rank * p.n);
    return read_weights(cost, 2.0 * p.max_rank * p.n);
}

Cost add_rows_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AddRowsParams>();
    return per_row((8.0 + (p.matched ? 4.0 : 0.0) + (p.accumulate ? 4.0 : 0.0)) * p.dim,
                   (p.matched ? 6.0 : 2.0) * p.dim);
}

Cost all_reduce_cost(const DispatchCmd& c) {
    const auto p = c.params_as<AllReduceParams>();
    return per_row((8.0 + (p.accumulate ? 4.0 : 0.0)) * p.dim, p.dim);
}

Cost mix_streams_cost(const DispatchCmd& c) {
    const auto p = c.params_as<MixStreamsParams>();
    const double streams = p.streams;
    return per_row(8.0 * (streams + 1) * p.dim, 2.0 * streams * (p.correct ? 1.0 : streams) * p.dim);
}

Cost sparsify_cost(const DispatchCmd& c) {
    const auto p = c.params_as<SparsifyParams>();
    return per_row(8.0 * p.n, 6.0 * p.n);
}

Cost relative_attention_cost(const DispatchCmd& c) {
    const auto p = c.params_as<RelativeAttentionParams>();
    const double dim = static_cast<double>(p.n_heads) * p.head_dim;
    Cost cost = per_row(16.0 * dim, 0);
    cost.bidirectional = true;
    cost.flops_per_row_key = 2.0 * dim * (2 + p.has_keys + p.has_queries);
    return cost;
}

template <typename P>
constexpr OpInfo row(std::string_view name, std::span<const FieldInfo> fields, std::span<const BufferInfo> buffers,
                     Cost (*cost)(const DispatchCmd&)) {
    static_assert(sizeof(P) <= kMaxParamBytes && sizeof(P) % 4 == 0);
    return {name, sizeof(P), fields, buffers, cost};
}

constexpr OpInfo kOps[] = {
    row<EmbedParams>("embed", kEmbedFields, kEmbedBuffers, embed_cost),
    row<EmbedPositionParams>("embed_position", kEmbedPositionFields, kEmbedPositionBuffers, embed_position_cost),
    row<UnfoldParams>("unfold", kUnfoldFields, kUnfoldBuffers, unfold_cost),
    row<RopeTableParams>("rope_table", kRopeTableFields, kRopeTableBuffers, rope_table_cost),
    row<NormParams>("norm", kNormFields, kNormBuffers, norm_cost),
    row<NormParams>("norm_add", kNormFields, kNormAddBuffers, norm_add_cost),
    row<GatedNormParams>("gated_norm", kGatedNormFields, kGatedNormBuffers, gated_norm_cost),
    row<LayerNormParams>("layer_norm", kLayerNormFields, kLayerNormBuffers, layer_norm_cost),
    row<QuantizeParams>("quantize", kQuantizeFields, kQuantizeBuffers, quantize_cost),
    row<MatmulParams>("matmul", kMatmulFields, kMatmulBuffers, matmul_cost),
    row<GateUpParams>("gate_up", kGateUpFields, kGateUpBuffers, gate_up_cost),
    row<NormQkvParams>("norm_qkv", kNormQkvFields, kNormQkvBuffers, norm_qkv_cost),
    row<NormGateUpParams>("norm_gate_up", kNormGateUpFields, kNormGateUpBuffers, norm_gate_up_cost),
    row<GateActParams>("gate_act", kGateActFields, kGateActBuffers, gate_act_cost),
    row<PrepareHeadsParams>("prepare_heads", kPrepareHeadsFields, kPrepareHeadsBuffers, prepare_heads_cost),
    row<AttentionParams>("attention", kAttentionFields, kAttentionBuffers, attention_cost),
    row<AttentionParams>("attention_split", kAttentionFields, kAttentionSplitBuffers, attention_cost),
    row<AttentionParams>("attention_merge", kAttentionFields, kAttentionMergeBuffers, attention_merge_cost),
    row<AttentionWeightsParams>("attention_weights", kAttentionWeightsFields, kAttentionWeightsBuffers,
                                attention_weights_cost),
    row<CopyRecordsParams>("copy_records", kCopyRecordsFields, kCopyRecordsBuffers, copy_records_cost),
    row<SampleParams>("speech_rules", kSampleFields, kSpeechRulesBuffers, sample_cost),
    row<SampleParams>("argmax", kSampleFields, kArgmaxBuffers, sample_cost),
    row<SampleParams>("sample_prepare", kSampleFields, kSamplePrepareBuffers, sample_cost),
    row<SampleParams>("sample_select", kSampleFields, kSampleSelectBuffers, sample_cost),
    row<SampleParams>("logprobs", kSampleFields, kLogprobsBuffers, sample_cost),
    row<SampleParams>("accept", kSampleFields, kAcceptBuffers, accept_cost),
    row<PoolParams>("pool", kPoolFields, kPoolBuffers, pool_cost),
    row<ColumnSquaresParams>("column_squares", kColumnSquaresFields, kColumnSquaresBuffers, column_squares_cost),
    row<RecurParams>("recur", kRecurFields, kRecurBuffers, recur_cost),
    row<ShortConvParams>("short_conv", kShortConvFields, kShortConvBuffers, short_conv_cost),
    row<DeltaRuleParams>("delta_rule", kDeltaRuleFields, kDeltaRuleBuffers, delta_rule_cost),
    row<SsmScanParams>("ssm_scan", kSsmScanFields, kSsmScanBuffers, ssm_scan_cost),
    row<RouteParams>("route", kRouteFields, kRouteBuffers, route_cost),
    row<ExpertsGateUpParams>("experts_gate_up", kExpertsGateUpFields, kExpertsGateUpBuffers, experts_gate_up_cost),
    row<ExpertsDownParams>("experts_down", kExpertsDownFields, kExpertsDownBuffers, experts_down_cost),
    row<ClusterLogitsParams>("cluster_logits", kClusterLogitsFields, kClusterLogitsBuffers, cluster_logits_cost),
    row<InsertRowsParams>("insert_rows", kInsertRowsFields, kInsertRowsBuffers, insert_rows_cost),
    row<AffineParams>("affine", kAffineFields, kAffineBuffers, affine_cost),
    row<LatentKvParams>("latent_kv", kLatentKvFields, kLatentKvBuffers, latent_kv_cost),
    row<HeadMatmulParams>("head_matmul", kHeadMatmulFields, kHeadMatmulBuffers, head_matmul_cost),
    row<LoraParams>("lora_a", kLoraFields, kLoraABuffers, lora_a_cost),
    row<LoraParams>("lora_b", kLoraFields, kLoraBBuffers, lora_b_cost),
    row<AddRowsParams>("add_rows", kAddRowsFields, kAddRowsBuffers, add_rows_cost),
    row<MixStreamsParams>("mix_streams", kMixStreamsFields, kMixStreamsBuffers, mix_streams_cost),
    row<SparsifyParams>("sparsify", kSparsifyFields, kSparsifyBuffers, sparsify_cost),
    row<RelativeAttentionParams>("relative_attention", kRelativeAttentionFields, kRelativeAttentionBuffers,
                                 relative_attention_cost),
    row<AllReduceParams>("all_reduce", kAllReduceFields, kAllReduceBuffers, all_reduce_cost),
};

consteval bool has_field(const OpInfo& op, std::string_view name) {
    for (const FieldInfo& f : op.fields) {
        if (f.name == name) return !f.is_float;
    }
    return false;
}

// A weight's size is known, and its input is an activation; planes stand behind their weight; what may be added to has
// the parameter that says so; and no command writes what the model has, or the host tells.
consteval bool complete(const OpInfo& op) {
    bool any_weight = false;
    for (const BufferInfo& b : op.buffers) {
        if (b.kind == kWeight) {
            any_weight = true;
            if (!has_field(op, b.rows) || !has_field(op, b.cols)) return false;
            bool found = b.input.empty();
            for (const BufferInfo& x : op.buffers) found = found || (x.name == b.input && x.kind == kActivation);
            if (!found) return false;
        } else if (!b.rows.empty() || !b.cols.empty() || !b.input.empty()) {
            return false;
        }
        if (!b.adds.empty() && (b.access != RW || !has_field(op, b.adds))) return false;
        const bool plane = b.kind == kScales || b.kind == kBiases;
        if (plane && !any_weight) return false;
        if ((plane || b.kind == kWeight || b.kind == kConstant || b.kind == kIndex) && b.access != R) return false;
    }
    return true;
}

// Every op has a row, which names all of its parameters.
consteval bool complete() {
    if (std::size(kOps) != static_cast<std::size_t>(Op::kCount)) return false;
    for (const OpInfo& op : kOps) {
        if (op.name.empty() || op.fields.size() * 4 != op.param_bytes || op.buffers.size() > kMaxBuffers) return false;
        for (std::size_t i = 0; i < op.fields.size(); ++i) {
            if (op.fields[i].offset != 4 * i) return false;
        }
        if (!complete(op)) return false;
    }
    return true;
}
static_assert(complete());

}  // namespace

const OpInfo& op_info(Op op) { return kOps[static_cast<std::size_t>(op)]; }

Op op_named(std::string_view name) {
    for (std::size_t i = 0; i < std::size(kOps); ++i) {
        if (kOps[i].name == name) return static_cast<Op>(i);
    }
    throw InvalidArgumentError("unknown op '" + std::string(name) + "'");
}

bool has_buffer(const OpInfo& op, BufferKind kind) {
    return std::ranges::find(op.buffers, kind, &BufferInfo::kind) != op.buffers.end();
}

const FieldInfo* find_field(const OpInfo& op, std::string_view name) {
    for (const FieldInfo& f : op.fields) {
        if (f.name == name) return &f;
    }
    return nullptr;
}

}  // namespace akunu
