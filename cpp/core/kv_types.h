// The types of a KV cache: keys have one, and values may have another.
#pragma once

#include <string>

#include "core/dtype.h"

namespace akunu {

struct KvTypes {
    DType k = DType::F16, v = DType::F16;
    bool operator==(const KvTypes&) const = default;
};

// The name by which options ask for them: "q8_0", or "q8_0,q4_0" where values have another type than keys.
inline std::string kv_name(const KvTypes& types) {
    std::string name(dtype_info(types.k).name);
    if (types.v != types.k) name.append(",").append(dtype_info(types.v).name);
    return name;
}

// The types that `kv_name` would name so; `find` tells the type of one name.
template <typename Find>
KvTypes kv_named(const std::string& names, Find&& find) {
    const std::size_t comma = names.find(',');
    const DType keys = find(names.substr(0, comma));
    return {keys, comma == std::string::npos ? keys : find(names.substr(comma + 1))};
}

}  // namespace akunu
