// What the instruction sets of a family share: all kernels but products. A file in family/ names it (AKUNU_ISA),
// includes its simd/ header, and this.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/dequantize.h"
#include "core/head_norm.h"
#include "core/q8.h"
#include "core/sampling.h"
#include "cpu/kernel.h"
#include "cpu/kv_layout.h"
#include "cpu/pack.h"

// Order matters: each file uses the ones before it.
// clang-format off
#include "cpu/kernels/kv_cache.inl"
#include "cpu/kernels/activation.inl"
#include "cpu/kernels/embed.inl"
#include "cpu/kernels/elementwise.inl"
#include "cpu/kernels/encoder.inl"
#include "cpu/kernels/streams.inl"
#include "cpu/kernels/recurrence.inl"
#include "cpu/kernels/short_conv.inl"
#include "cpu/kernels/chunked_states.inl"
#include "cpu/kernels/delta_rule.inl"
#include "cpu/kernels/ssm_scan.inl"
#include "cpu/kernels/route.inl"
#include "cpu/kernels/lora.inl"
#include "cpu/kernels/column_squares.inl"
#include "cpu/kernels/panels.inl"
#include "cpu/kernels/attention_rows.inl"
#include "cpu/kernels/attention_panels.inl"
#include "cpu/kernels/attention_ahead.inl"
#include "cpu/kernels/attention.inl"
#include "cpu/kernels/attention_latent.inl"
#include "cpu/kernels/attention_relative.inl"
#include "cpu/kernels/sampling_scans.inl"
#include "cpu/kernels/sampling_cuts.inl"
#include "cpu/kernels/sampling.inl"
#include "cpu/kernels/speech.inl"
// clang-format on

namespace akunu::cpu::AKUNU_ISA {

Kernel find_kernel(const DispatchCmd& cmd);

Kernel find_kernel(const DispatchCmd& cmd) {
    if (!kv_unit_bytes(cmd.kv.k, 1) || !kv_unit_bytes(cmd.kv.v, 1)) return nullptr;
    switch (cmd.op) {
        case Op::kEmbed:
            return embed;
        case Op::kEmbedPosition:
            return embed_position;
        case Op::kUnfold:
            return unfold;
        case Op::kRopeTable:
            return rope_table;
        case Op::kNorm:
            return norm;
        case Op::kNormAdd:
            return norm_add;
        case Op::kGatedNorm:
            return gated_norm;
        case Op::kLayerNorm:
            return layer_norm;
        case Op::kQuantize:
            return quantize;
        case Op::kGateAct:
            return gate_act;
        case Op::kPrepareHeads:
            return prepare_heads;
        case Op::kLatentKv:
            return latent_kv;
        case Op::kAttention:
            return cmd.params_as<AttentionParams>().latent ? attention_latent : attention;
        case Op::kAttentionSplit:
            return cmd.params_as<AttentionParams>().latent ? attention_latent_split : attention_split;
        case Op::kAttentionWeights:
            return attention_weights;
        case Op::kAttentionMerge:
            return attention_merge;
        case Op::kCopyRecords:
            return copy_records;
        case Op::kSpeechRules:
            return speech_rules;
        case Op::kArgmax:
            return argmax;
        case Op::kSamplePrepare:
            return sample_prepare;
        case Op::kSampleSelect:
            return sample_select;
        case Op::kLogprobs:
            return logprobs;
        case Op::kAccept:
            return accept;
        case Op::kAdvance:
            return advance;
        case Op::kPool:
            return pool;
        case Op::kColumnSquares:
            return column_squares;
        case Op::kRecur:
            return recur;
        case Op::kShortConv:
            return short_conv;
        case Op::kDeltaRule:
            return delta_rule;
        case Op::kSsmScan:
            return ssm_scan;
        case Op::kRoute:
            return route;
        case Op::kClusterLogits:
            return cluster_logits;
        case Op::kInsertRows:
            return insert_rows;
        case Op::kAffine:
            return affine;
        case Op::kLoraA:
            return lora_a;
        case Op::kLoraB:
            return lora_b;
        case Op::kAddRows:
            return add_rows;
        case Op::kAllReduce:
            return all_reduce;
        case Op::kMixStreams:
            return mix_streams;
        case Op::kSparsify:
            return sparsify;
        case Op::kRelativeAttention:
            return find_relative_attention(cmd);
        case Op::kMatmul:  // in isa/
        case Op::kGateUp:
        case Op::kExpertsGateUp:
        case Op::kExpertsDown:
        case Op::kHeadMatmul:
        case Op::kNormQkv:  // the traits do not ask for these
        case Op::kNormGateUp:
        case Op::kCount:
            break;
    }
    return nullptr;
}

}  // namespace akunu::cpu::AKUNU_ISA
