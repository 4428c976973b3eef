// GGUF model files, versions 2 and 3, single or split, memory-mapped.
//
// Opening parses the headers and checks every length, offset and count in them; tensor data is not
// touched. docs/formats.md states the limits and what is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "formats/gguf_value.h"
#include "formats/mapped_file.h"
#include "formats/name_index.h"

namespace akunu {

struct MetadataEntry {
    std::string name;
    GgufValue value;
};

struct TensorEntry {
    std::string name;
    DType dtype = DType::F32;
    std::vector<std::uint64_t> shape;  // outermost first: a linear layer is [rows, cols]
    std::uint64_t offset = 0;          // from the start of its file
    std::uint64_t bytes = 0;
    std::uint32_t file = 0;  // which part of a split model
};

class GgufFile {
  public:
    // Opens `path`; for a split model any one part, and all its siblings with it. ModelFileError
    // when a file is missing, damaged or inconsistent, UnsupportedError for what we cannot read.
    static GgufFile open(const std::string& path);

    std::uint32_t version() const { return version_; }

    // The parts in order; one for a single file. Their mappings outlive the GgufFile for as long
    // as somebody keeps the pointer.
    std::span<const std::shared_ptr<const MappedFile>> files() const { return files_; }

    // In file order. A split model's metadata is that of its first part.
    const std::vector<MetadataEntry>& metadata() const { return metadata_; }
    const GgufValue* find(std::string_view key) const;

    const std::vector<TensorEntry>& tensors() const { return tensors_; }
    const TensorEntry* find_tensor(std::string_view name) const;

    // The tensor's data in the mapping. ModelFileError when its file was truncated since.
    std::span<const std::byte> tensor_bytes(const TensorEntry& tensor) const;

  private:
    GgufFile() = default;

    std::uint32_t version_ = 0;
    std::vector<std::shared_ptr<const MappedFile>> files_;
    std::vector<MetadataEntry> metadata_;
    std::vector<TensorEntry> tensors_;
    NameIndex metadata_index_;
    NameIndex tensor_index_;
};

}  // namespace akunu
