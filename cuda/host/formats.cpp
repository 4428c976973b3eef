#include "cuda/host/formats.h"

#include "cuda/host/pack.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

std::optional<u32> kv_type(DType type) {
    switch (type) {
        case DType::F16:
            return kKvF16;
        case DType::F32:
            return kKvF32;
        case DType::Q8_0:
            return kKvQ8;
        case DType::Q4_0:
            return kKvQ4;
        default:
            return std::nullopt;
    }
}

std::uint32_t CudaFormats::matmul_input(DType weight) const { return weight == DType::F32 ? kActF32 : kActF16; }

std::uint64_t CudaFormats::activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const {
    return rows * dim * (format == kActF16 ? 2 : 4);
}

std::uint64_t CudaFormats::kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const {
    return std::uint64_t{n_kv_heads} * kv_unit_bytes(kv_type(dtype).value_or(kKvF16), head_dim);
}

std::uint64_t CudaFormats::attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                   std::uint32_t /*context*/) const {
    return partial_floats(n_heads, head_dim) * sizeof(float);
}

bool CudaFormats::supports_kv(const KvTypes& types) const { return kv_type(types.k) && kv_type(types.v); }

Weight CudaFormats::allocate_experts(std::span<const HostTensor> experts) {
    const HostTensor& first = experts.front();
    const std::uint64_t bytes = expert_layout(first.dtype, first.rows, first.cols).bytes * experts.size();
    return {.dtype = first.dtype,
            .rows = first.rows,
            .cols = first.cols,
            .count = experts.size(),
            .data = {allocate(bytes, MemoryKind::kDevice), 0},
            .packed = true};
}

Weight CudaFormats::allocate_weight(const HostTensor& t) {
    Weight w{.dtype = t.dtype, .rows = t.rows, .cols = t.cols, .packed = true};
    if (t.scales.empty()) {
        w.data = {allocate(packed_bytes(t.dtype, t.rows, t.cols), MemoryKind::kDevice), 0};
        return w;
    }
    // Planes that kernels read one at a time, each aligned.
    constexpr std::uint64_t kAligned = 256;
    const auto padded = [](std::span<const std::byte> b) { return (b.size() + kAligned - 1) / kAligned * kAligned; };
    w.data = {allocate(padded(t.bytes) + padded(t.scales) + padded(t.biases), MemoryKind::kDevice), 0};
    w.scales = {w.data.buffer, padded(t.bytes)};
    if (!t.biases.empty()) w.biases = {w.data.buffer, w.scales.offset + padded(t.scales)};
    return w;
}

}  // namespace akunu::cuda
