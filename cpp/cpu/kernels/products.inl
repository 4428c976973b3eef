// The products of one instruction set: matmuls, and attention in integers. How integers are multiplied, and how far
// ahead weights are fetched, is its own. All other kernels are its family's. A file in isa/ names both (AKUNU_ISA,
// AKUNU_FAMILY), includes the set's simd/ header, and this.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/params.h"
#include "core/q8.h"
#include "core/recode.h"
#include "cpu/fixed.h"
#include "cpu/kernel.h"
#include "cpu/kv_layout.h"
#include "cpu/pack.h"
#include "cpu/paged_groups.h"

// Order matters: each file uses the ones before it.
// clang-format off
#include "cpu/kernels/formats.inl"
#include "cpu/kernels/affine.inl"
#include "cpu/kernels/activation.inl"
#include "cpu/kernels/panels.inl"
#include "cpu/kernels/matmul_panels.inl"
#include "cpu/kernels/matmul_output.inl"
#include "cpu/kernels/matmul_pair.inl"
#include "cpu/kernels/matmul_runs.inl"
#include "cpu/kernels/matmul.inl"
#include "cpu/kernels/experts.inl"
#include "cpu/kernels/heads.inl"
#include "cpu/kernels/kv_cache.inl"
#include "cpu/kernels/attention_rows.inl"
#include "cpu/kernels/attention_heads.inl"
#include "cpu/kernels/fixed_point.inl"
#include "cpu/kernels/attention_fixed.inl"
#include "cpu/kernels/embed.inl"
#include "cpu/kernels/matmul_whole.inl"
#include "cpu/kernels/matmul_fixed.inl"
#include "cpu/kernels/probes.inl"
// clang-format on

namespace akunu::cpu::AKUNU_FAMILY {

// In family/, and in quantize/blocks.cpp.
Kernel find_kernel(const DispatchCmd& cmd);
Quantizer find_quantizer(DType type);

}  // namespace akunu::cpu::AKUNU_FAMILY

namespace akunu::cpu::AKUNU_ISA {

static Kernel find_kernel(const DispatchCmd& cmd) {
    if constexpr (kFixedMatmul) {
        if (cmd.whole != Whole::kNone) {
            return cmd.op == Op::kEmbed ? embed_fixed : find_matmul_whole<FixedProducts>(cmd.op);
        }
    }
    if (cmd.op == Op::kMatmul || cmd.op == Op::kGateUp) return find_matmul(cmd.op, cmd.weight);
    if (cmd.op == Op::kExpertsGateUp || cmd.op == Op::kExpertsDown) return find_experts(cmd);
    if (cmd.op == Op::kHeadMatmul) return find_head_matmul(cmd.weight);
    if (can_fix_attention(cmd)) return attention_fixed;
    return AKUNU_FAMILY::find_kernel(cmd);
}

}  // namespace akunu::cpu::AKUNU_ISA
