// CudaDevice: an NVIDIA GPU whose interpreter kernel walks the compiled tables.
#pragma once

#include <memory>
#include <optional>

#include "core/device.h"

namespace akunu::cuda {

// The first GPU, as the registry lists it.
struct Gpu {
    std::string name, isa;
    std::uint64_t memory = 0;
};
// Empty where there is none that can be used; `why` then says so.
std::optional<Gpu> find_gpu(std::string& why);

class CudaDevice final : public Device {
  public:
    CudaDevice();
    ~CudaDevice() override;

    std::string name() const override;
    std::string isa() const override;
    int threads() const override { return 1; }
    const DeviceTraits& traits() const override { return traits_; }
    std::uint32_t matmul_input(DType weight) const override;
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override;
    std::uint64_t kv_page_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const override;
    std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                          std::uint32_t context) const override;
    bool supports_kv(DType dtype) const override;
    std::uint64_t memory() const override;
    std::optional<std::uint64_t> memory_left() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight map_weight(const HostTensor& tensor) override;
    std::unique_ptr<Program> compile(DispatchTable table) override;
    std::uint32_t replay(Segments segments, const ReplayArgs& args, Control& control, const Poll& poll,
                         const Meanwhile& meanwhile) override;
    void profile(Segments segments, const ReplayArgs& args, std::span<double> seconds) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    DeviceTraits traits_;
};

}  // namespace akunu::cuda
