// GGUF model files, versions 2 and 3, single or split, memory-mapped.
//
// Opening parses the headers and checks every length, offset and count in them; tensor data is not
// touched. docs/formats.md states the limits and what is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_value.h"
#include "formats/name_index.h"
#include "formats/tensor_files.h"

namespace akunu {

struct MetadataEntry {
    std::string name;
    GgufValue value;
};

class GgufFile final : public TensorFiles {
  public:
    // Opens `path`; for a split model any one part, and all its siblings with it. ModelFileError
    // when a file is missing, damaged or inconsistent, UnsupportedError for what we cannot read.
    static GgufFile open(const std::string& path);

    std::uint32_t version() const { return version_; }

    // In file order. A split model's metadata is that of its first part.
    const std::vector<MetadataEntry>& metadata() const { return metadata_; }
    const GgufValue* find(std::string_view key) const;

  private:
    GgufFile() = default;

    std::uint32_t version_ = 0;
    std::vector<MetadataEntry> metadata_;
    NameIndex metadata_index_;
};

}  // namespace akunu
