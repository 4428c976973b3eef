// The types of a KV cache: keys have one, and values may have another.
#pragma once

#include <string>

#include "core/dtype.h"

namespace akunu {

struct KvTypes {
    DType k = DType::F16, v = DType::F16;
    bool operator==(const KvTypes&) const = default;
};

// As options name them: "q8_0", or "q8_0,q4_0" where values have another type than keys.
inline std::string kv_name(const KvTypes& types) {
    std::string name(dtype_info(types.k).name);
    if (types.v != types.k) name.append(",").append(dtype_info(types.v).name);
    return name;
}

}  // namespace akunu
