#include "metal/choose/kernel_choice.h"

#include "core/error.h"

namespace akunu::metal {

KernelChoice choose_kernels(const DispatchCmd& cmd, const Chip& chip) {
    for (const auto family : {choose_matmul, choose_attention, choose_elementwise, choose_sampling}) {
        if (auto choice = family(cmd, chip)) return *std::move(choice);
    }
    const auto name = [](DType t) { return std::string(dtype_info(t).name); };
    throw UnsupportedError("no Metal kernel for " + std::string(op_name(cmd.op)) + " with weights of type '" +
                           name(cmd.weight) + "' and a KV cache of type '" + kv_name(cmd.kv) + "'");
}

}  // namespace akunu::metal
