// PlanDevice: tables for a GPU that is not here. It compiles and checks every table as CudaDevice does, so that plans
// and costs come from the same code, but takes no memory that is not written, and cannot run anything.
#pragma once

#include "cuda/host/chip.h"
#include "cuda/host/formats.h"

namespace akunu::cuda {

class PlanDevice final : public CudaFormats {
  public:
    explicit PlanDevice(const Chip& chip) : chip_(chip) {}

    std::string name() const override;
    std::string isa() const override { return std::string(chip_.arch); }
    std::uint64_t memory() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    // Nothing is kept.
    void upload(const Binding&, std::span<const std::byte>) override {}
    void download(const Binding&, std::span<std::byte>) override {}
    Weight prepare_weight(const HostTensor& tensor) override { return allocate_weight(tensor); }
    Weight map_weight(const HostTensor& tensor) override { return allocate_weight(tensor); }
    std::unique_ptr<Program> compile(DispatchTable table) override;
    // Both throw UnsupportedError.
    std::uint32_t replay(Segments segments, const ReplayArgs& args, Control& control, const Poll& poll,
                         const Meanwhile& meanwhile) override;
    void profile(Segments segments, const ReplayArgs& args, std::span<double> seconds) override;

  private:
    const Chip& chip_;
};

}  // namespace akunu::cuda
