// What suits Apple's GPUs, for the device and for plans that are made without one.
#pragma once

#include <optional>

#include "core/device.h"
#include "core/mixed_types.h"
#include "metal/include/kv_layout.h"

namespace akunu::metal {

inline DeviceTraits device_traits() {
    DeviceTraits t;
    t.fused_norms = true;
    t.mixed_qkv = kMixedQkv;
    t.unsplit_keys = kUnsplitKeys;
    return t;
}

constexpr std::uint32_t matmul_input_of(DType weight) { return weight == DType::F32 ? kActF32 : kActF16; }

constexpr std::uint64_t activation_bytes_of(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) {
    return rows * dim * (format == kActF16 ? 2 : 4);
}

// The number of a type of keys or of values; none: the cache has no such type.
constexpr std::optional<KvType> kv_type(DType type) {
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
constexpr bool has_kernels(const KvTypes& types) { return kv_type(types.k) && kv_type(types.v); }

}  // namespace akunu::metal
