// What suits Apple's GPUs, for the device and for plans that are made without one.
#pragma once

#include "core/device.h"
#include "core/mixed_types.h"
#include "metal/include/kv_layout.h"

namespace akunu::metal {

inline DeviceTraits device_traits() {
    DeviceTraits t;
    t.fused_norms = true;
    t.mixed_qkv = kMixedQkv;
    return t;
}

constexpr std::uint32_t matmul_input_of(DType weight) { return weight == DType::F32 ? kActF32 : kActF16; }

constexpr std::uint64_t activation_bytes_of(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) {
    return rows * dim * (format == kActF16 ? 2 : 4);
}

// Keys and values have one type.
constexpr bool has_kernels(const KvTypes& types) {
    return types.k == types.v && (types.k == DType::F16 || types.k == DType::F32 || types.k == DType::Q8_0);
}

}  // namespace akunu::metal
