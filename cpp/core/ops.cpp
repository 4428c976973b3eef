#include "core/ops.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/op_costs.h"

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
constexpr FieldInfo kAdvanceFields[] = {FIELD(AdvanceParams, rows), FIELD(AdvanceParams, has_axes),
                                        FIELD(AdvanceParams, has_spans)};
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
constexpr BufferInfo state(std::string_view name, Access access = R, bool optional = false) {
    return {name, access, optional, kState};
}
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
// What the other commands of a step read as an index is a state here: rows, and which of them a head goes on from.
constexpr BufferInfo kAdvanceBuffers[] = {state("rows", RW),        state("positions", RW, kOptional),
                                          state("slots"),           state("records", RW),
                                          state("draft_rows", RW),  state("draft_positions", RW, kOptional),
                                          state("draft_states", W), state("sampled_rows", RW),
                                          state("draft_slots", W),  state("spans", RW, kOptional)};
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
    row<AdvanceParams>("advance", kAdvanceFields, kAdvanceBuffers, advance_cost),
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
