// MetalDevice: replays tables on the GPU of an Apple chip. Plain C++: nothing outside this folder sees Objective-C.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/device.h"
#include "metal/choose/chip.h"

namespace akunu::metal {

class MetalDevice final : public Device {
  public:
    // DeviceError where there is no Metal.
    MetalDevice();
    ~MetalDevice() override;

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
    std::uint64_t memory() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight map_weight(const HostTensor& tensor) override;
    std::unique_ptr<Program> compile(DispatchTable table) override;
    std::optional<std::vector<std::string>> kernel_names(const DispatchCmd& cmd, const ReplayArgs& args) const override;
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) override;
    void profile(Segments segments, std::span<double> seconds) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    DeviceTraits traits_;
};

// The system's GPU, for the list of devices.
struct Gpu {
    std::string name;  // "Apple M4 Max (40 GPU cores)"
    std::string isa;   // "apple9"
    int cores = 0;
    std::uint64_t memory = 0;  // that the system recommends to use
};
std::optional<Gpu> find_gpu();

}  // namespace akunu::metal
