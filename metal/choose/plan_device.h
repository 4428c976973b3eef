// PlanDevice: tables for a chip that is not here. It resolves every command as MetalDevice does, so that plans,
// dispatches and costs come from the same code, but holds no memory that is not written, and cannot run anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan_only.h"
#include "metal/choose/kernel_choice.h"

namespace akunu::metal {

class PlanDevice final : public PlanOnly<Device> {
  public:
    explicit PlanDevice(const Chip& chip);

    std::string name() const override;
    std::string isa() const override;
    int threads() const override { return 1; }
    const DeviceTraits& traits() const override { return traits_; }
    std::uint32_t matmul_input(DType weight) const override;
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override;
    std::uint64_t kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const override;
    std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                          std::uint32_t context) const override;
    bool supports_kv(const KvTypes& types) const override;
    // The bytes are neither copied nor read.
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight map_weight(const HostTensor& tensor) override { return prepare_weight(tensor); }
    std::unique_ptr<Program> compile(DispatchTable table) override;
    std::optional<std::vector<std::string>> kernel_names(const DispatchCmd& cmd, const ReplayArgs& args) const override;

  private:
    Chip chip_;
    DeviceTraits traits_;
    std::vector<std::unique_ptr<KernelChoice>> choices_;  // what DispatchCmd::kernel points to
};

}  // namespace akunu::metal
