// What of the device follows from the kernels alone, whatever GPU there is: how activations, caches and weights lie.
// The device and plans that are made without one share it.
#pragma once

#include <optional>

#include "core/device.h"
#include "core/mixed_types.h"
#include "cuda/kernels/command.h"

namespace akunu::cuda {

// Types whose matmuls take in what adapters add (joined_adapters.cpp): those in tiles.
inline constexpr DType kAdaptedMatmuls[] = {DType::F16,    DType::BF16,   DType::Q4_0, DType::Q4_1, DType::Q5_0,
                                            DType::Q5_1,   DType::Q8_0,   DType::Q4_K, DType::Q5_K, DType::Q6_K,
                                            DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4};

// On an H200 a prompt of 4,096 tokens is a quarter (8B) to a third (1B) faster with 1,024 rows a step than with 512,
// and another 3 to 18 % with 2,048. Where other sequences are being written, it gets fewer: planning.py.
inline DeviceTraits device_traits() {
    DeviceTraits t;
    t.max_batch_rows = kFewRows;
    t.prompt_rows = 2048;
    t.encoder_rows = 2048;
    t.fused_norms = true;
    t.activated_matmuls = ActivatedMatmuls::kOfPrompts;
    t.mixed_qkv = kMixedQkv;
    t.adapted_matmuls = kAdaptedMatmuls;
    return t;
}

// That of a cache's keys or values; none: the cache has no such type.
std::optional<u32> kv_type(DType type);

class CudaFormats : public Device {
  public:
    int threads() const override { return 1; }
    const DeviceTraits& traits() const override { return traits_; }
    std::uint32_t matmul_input(DType weight) const override;
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override;
    std::uint64_t kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const override;
    std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                          std::uint32_t context) const override;
    bool supports_kv(const KvTypes& types) const override;

  protected:
    // Memory for a weight, of which nothing is uploaded.
    Weight allocate_weight(const HostTensor& tensor);
    Weight allocate_experts(std::span<const HostTensor> experts);

    DeviceTraits traits_ = device_traits();
};

}  // namespace akunu::cuda
