// PlanDevice: tables for a GPU that is not here. It compiles and checks every table as CudaDevice does, so that plans
// and costs come from the same code, but takes no memory that is not written, and cannot run anything.
#pragma once

#include "core/plan_only.h"
#include "core/split.h"
#include "cuda/host/chip.h"
#include "cuda/host/formats.h"

namespace akunu::cuda {

class PlanDevice final : public PlanOnly<CudaFormats> {
  public:
    // One of so many that share a model.
    explicit PlanDevice(const Chip& chip, std::uint32_t cards = 1) : chip_(chip) {
        traits_.reads_weights = false;
        traits_.cards = cards;
    }

    std::string name() const override;
    std::string isa() const override { return std::string(chip_.arch); }
    Weight prepare_weight(const HostTensor& tensor) override {
        return allocate_weight(TensorPart(tensor, 0, traits_.cards).tensor());
    }
    Weight prepare_experts(std::span<const HostTensor> experts) override { return allocate_experts(experts); }
    Weight map_weight(const HostTensor& tensor) override { return allocate_weight(tensor); }
    std::unique_ptr<Program> compile(DispatchTable table) override;

  private:
    const Chip& chip_;
};

}  // namespace akunu::cuda
