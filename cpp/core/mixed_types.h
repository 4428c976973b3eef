// The pairs of mixed_qkv.h as data: what DeviceTraits::mixed_qkv is of devices that have kernels for them.
#pragma once

#include "core/device.h"
#include "core/mixed_qkv.h"

namespace akunu {

#define AKUNU_PAIR(qk, QK, v, V) {DType::QK, DType::V},
inline constexpr MixedQkv kMixedQkv[] = {AKUNU_MIXED_QKV(AKUNU_PAIR)};
#undef AKUNU_PAIR

}  // namespace akunu
