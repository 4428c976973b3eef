// One GGUF file, parsed: a whole model, or one part of a split one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

namespace akunu {

// Limits that bound what a hostile header can make us allocate. The largest published models stay
// below a tenth of each.
inline constexpr std::uint64_t kMaxGgufHeaderBytes = 128ull << 20;
inline constexpr std::uint64_t kMaxGgufKeys = 1u << 16;
inline constexpr std::uint64_t kMaxGgufTensors = 1u << 18;
inline constexpr std::uint64_t kMaxGgufKeyLength = 65535;  // the format's own limit
inline constexpr std::uint64_t kMaxGgufTensorNameLength = 255;
inline constexpr std::uint32_t kMaxGgufDims = 4;

struct GgufPart {
    std::shared_ptr<const MappedFile> file;
    std::uint32_t version = 0;
    std::vector<MetadataEntry> metadata;
    NameIndex metadata_index;
    std::vector<TensorEntry> tensors;

    const GgufValue* find(std::string_view key) const;
};

GgufPart parse_gguf_part(const std::string& path);

}  // namespace akunu
