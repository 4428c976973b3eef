#include "core/op_costs.h"

#include <algorithm>

#include "core/dispatch.h"

namespace akunu {

namespace {

// Bytes per element that an activation of these formats takes (int8 blocks carry their scales and sums).
double act_bytes(std::uint32_t formats) {
    return (formats & kActF32 ? 4.0 : 0.0) + (formats & kActQ8 ? 1.5 : 0.0) + (formats & kActF16 ? 2.0 : 0.0);
}

double kv_element(DType t) { return static_cast<double>(row_bytes(t, 32)) / 32; }

double weight_bytes(DType t, double rows, double cols) {
    return rows * static_cast<double>(row_bytes(t, static_cast<std::uint64_t>(cols)));
}

Cost& read_weights(Cost& c, double bytes) {
    c.weights += bytes;
    c.bytes += bytes;
    return c;
}

}  // namespace

Cost per_row(double bytes, double flops) {
    Cost c;
    c.bytes_per_row = bytes;
    c.flops_per_row = flops;
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

Cost advance_cost(const DispatchCmd&) { return per_row(16, 0); }

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

}  // namespace akunu
