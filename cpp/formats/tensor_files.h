// The tensors of a model's files, memory-mapped: what GGUF and SafeTensors have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "formats/mapped_file.h"
#include "formats/name_index.h"

namespace akunu {

// The bytes of a tensor that no file has as they are used. They may be asked for by several threads.
class MadeTensor {
  public:
    virtual ~MadeTensor() = default;
    // They are made where nobody holds them.
    virtual std::shared_ptr<const std::vector<std::byte>> bytes() = 0;
};

struct TensorEntry {
    std::string name;
    DType dtype = DType::F32;
    std::vector<std::uint64_t> shape;  // outermost first: a linear layer is [rows, cols]
    std::uint64_t offset = 0;          // from the start of its file
    std::uint64_t bytes = 0;
    std::uint32_t file = 0;  // which of the files
    // A byte of MXFP4 has two neighbours, the first one low, as in gpt-oss's own files and Ollama's.
    bool paired = false;
    // Null for those that lie in their file. Others lie nowhere; `offset` is 0, and `file` has what they are made of.
    std::shared_ptr<MadeTensor> made = nullptr;
};

// The bytes of a tensor, and what keeps them where they do not lie in a mapping.
struct TensorBytes {
    std::span<const std::byte> span;
    std::shared_ptr<const void> owner = nullptr;
};

class TensorFiles {
  public:
    virtual ~TensorFiles() = default;

    // The parts or shards in order; one for a single file. Their mappings outlive this object for as long as somebody
    // keeps the pointer.
    std::span<const std::shared_ptr<const MappedFile>> files() const { return files_; }

    // In the order of the files.
    const std::vector<TensorEntry>& tensors() const { return tensors_; }
    const TensorEntry* find_tensor(std::string_view name) const;

    // The tensor's data. ModelFileError when its file was truncated since.
    TensorBytes tensor_bytes(const TensorEntry& tensor) const;

  protected:
    TensorFiles() = default;
    TensorFiles(TensorFiles&&) = default;
    TensorFiles& operator=(TensorFiles&&) = default;

    // Adds one file with its tensors, whose bytes lie inside it.
    void add_file(std::shared_ptr<const MappedFile> file, std::vector<TensorEntry> tensors);
    // After the last file. ModelFileError, beginning with `path`, when two tensors have the same name.
    void index_tensors(const std::string& path);

  private:
    std::vector<std::shared_ptr<const MappedFile>> files_;
    std::vector<TensorEntry> tensors_;
    NameIndex tensor_index_;
};

// The tensors of two models' files: all of the first, and of the second those whose names begin with `prefix`, with
// `added` before them.
class JoinedFiles : public TensorFiles {
  public:
    JoinedFiles(const TensorFiles& first, const TensorFiles& second, std::string_view prefix, const std::string& added);
};

}  // namespace akunu
