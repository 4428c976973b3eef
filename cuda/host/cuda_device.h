// CudaDevice: an NVIDIA GPU whose interpreter kernel walks the compiled tables.
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "cuda/host/formats.h"

namespace akunu::cuda {

// The first GPU, as the registry lists it.
struct Gpu {
    std::string name, isa;
    std::uint64_t memory = 0;
};
// Empty where there is none that can be used; `why` then says so.
std::optional<Gpu> find_gpu(std::string& why);

// The first GPU's context, or null where there is none, opened in a thread of its own: a device that is made while
// somebody has it is made at once.
std::future<std::shared_ptr<void>> open_ahead();

class CudaDevice final : public CudaFormats {
  public:
    CudaDevice();
    ~CudaDevice() override;

    std::string name() const override;
    std::string isa() const override;
    std::uint64_t memory() const override;
    std::optional<std::uint64_t> memory_left() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight map_weight(const HostTensor& tensor) override;
    std::unique_ptr<Program> compile(DispatchTable table) override;
    void prepare_kernels(const Report& report) override;
    std::uint32_t replay(Segments segments, const ReplayArgs& args, Control& control, const Poll& poll,
                         const Meanwhile& meanwhile) override;
    void profile(Segments segments, const ReplayArgs& args, std::span<double> seconds) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace akunu::cuda
