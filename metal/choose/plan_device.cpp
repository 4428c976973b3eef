#include "metal/choose/plan_device.h"

#include "metal/choose/group_counts.h"
#include "metal/choose/traits.h"

namespace akunu::metal {

PlanDevice::PlanDevice(const Chip& chip) : chip_(chip), traits_(device_traits()) { traits_.reads_weights = false; }

std::string PlanDevice::name() const {
    return "Apple " + std::string(chip_.name) + " (" + std::to_string(chip_.gpu_cores) + " GPU cores), planned";
}

std::string PlanDevice::isa() const { return "apple" + std::to_string(chip_.family); }

std::uint32_t PlanDevice::matmul_input(DType weight) const { return matmul_input_of(weight); }

std::uint64_t PlanDevice::activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const {
    return activation_bytes_of(format, rows, dim);
}

std::uint64_t PlanDevice::kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const {
    return metal::kv_bytes(dtype, n_kv_heads, head_dim);
}

std::uint64_t PlanDevice::attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                  std::uint32_t context) const {
    return metal::attention_partial_bytes(n_heads, head_dim, context, chip_.gpu_cores);
}

bool PlanDevice::supports_kv(const KvTypes& types) const { return has_kernels(types); }

Weight PlanDevice::prepare_weight(const HostTensor& t) {
    const auto view = [](std::span<const std::byte> bytes) {
        auto* p = const_cast<std::byte*>(bytes.data());
        return Binding{{p, p, p, bytes.size()}, 0};
    };
    return {.dtype = t.dtype,
            .rows = t.rows,
            .cols = t.cols,
            .data = view(t.bytes),
            .scales = view(t.scales),
            .biases = view(t.biases),
            .mapped = true};
}

Weight PlanDevice::prepare_experts(std::span<const HostTensor> experts) {
    Weight w = prepare_weight(experts.front());
    w.count = experts.size();
    w.data.buffer.size = w.bytes();
    w.scales = w.biases = {};
    return w;
}

std::unique_ptr<Program> PlanDevice::compile(DispatchTable table) {
    for (DispatchCmd& cmd : table.commands) {
        choices_.push_back(std::make_unique<KernelChoice>(choose_kernels(cmd, chip_)));
        cmd.kernel = choices_.back().get();
    }
    return std::make_unique<Program>(std::move(table));
}

std::optional<std::vector<std::string>> PlanDevice::kernel_names(const DispatchCmd& cmd, const ReplayArgs& args) const {
    return names_of(*static_cast<const KernelChoice*>(cmd.kernel), cmd, args);
}

}  // namespace akunu::metal
