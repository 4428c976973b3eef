// What each op's commands must move and compute (see Cost): one function for each row of the ops' table.
#pragma once

#include "core/ops.h"

namespace akunu {

// The cost of a command whose rows each move so many bytes and do so many operations.
Cost per_row(double bytes, double flops);

Cost embed_cost(const DispatchCmd& c);
Cost embed_position_cost(const DispatchCmd& c);
Cost unfold_cost(const DispatchCmd& c);
Cost rope_table_cost(const DispatchCmd& c);
Cost insert_rows_cost(const DispatchCmd& c);
Cost affine_cost(const DispatchCmd& c);
Cost norm_cost(const DispatchCmd& c);
Cost gated_norm_cost(const DispatchCmd& c);
Cost norm_add_cost(const DispatchCmd& c);
Cost layer_norm_cost(const DispatchCmd& c);
Cost quantize_cost(const DispatchCmd& c);
Cost matmul_cost(const DispatchCmd& c);
Cost gate_up_cost(const DispatchCmd& c);
Cost norm_qkv_cost(const DispatchCmd& c);
Cost norm_gate_up_cost(const DispatchCmd& c);
Cost gate_act_cost(const DispatchCmd& c);
Cost prepare_heads_cost(const DispatchCmd& c);
Cost attention_cost(const DispatchCmd& c);
Cost attention_merge_cost(const DispatchCmd& c);
Cost attention_weights_cost(const DispatchCmd& c);
Cost copy_records_cost(const DispatchCmd& c);
Cost recur_cost(const DispatchCmd& c);
Cost short_conv_cost(const DispatchCmd& c);
Cost delta_rule_cost(const DispatchCmd& c);
Cost ssm_scan_cost(const DispatchCmd& c);
Cost sample_cost(const DispatchCmd& c);
Cost accept_cost(const DispatchCmd& c);
Cost advance_cost(const DispatchCmd& c);
Cost pool_cost(const DispatchCmd& c);
Cost column_squares_cost(const DispatchCmd& c);
Cost route_cost(const DispatchCmd& c);
Cost experts_gate_up_cost(const DispatchCmd& c);
Cost experts_down_cost(const DispatchCmd& c);
Cost cluster_logits_cost(const DispatchCmd& c);
Cost latent_kv_cost(const DispatchCmd& c);
Cost head_matmul_cost(const DispatchCmd& c);
Cost lora_a_cost(const DispatchCmd& c);
Cost lora_b_cost(const DispatchCmd& c);
Cost add_rows_cost(const DispatchCmd& c);
Cost all_reduce_cost(const DispatchCmd& c);
Cost mix_streams_cost(const DispatchCmd& c);
Cost sparsify_cost(const DispatchCmd& c);
Cost relative_attention_cost(const DispatchCmd& c);

}  // namespace akunu
