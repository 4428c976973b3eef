// SafeTensors files: the weights of a Hugging Face or MLX model, in one file or in shards, memory-mapped.
//
// A file is a u64 header length, a JSON object that gives each tensor's type, shape and place, and the data. Opening
// parses the headers and checks every length and offset in them; the data is not touched. docs/formats.md states the
// limits and what is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/tensor_files.h"

namespace akunu {

// The limit of the format's reference implementation.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::uint64_t kMaxSafetensorsTensors = 1u << 18;
inline constexpr std::uint64_t kMaxSafetensorsNameLength = 1024;
inline constexpr std::uint64_t kMaxSafetensorsDims = 8;

class SafetensorsFiles final : public TensorFiles {
  public:
    // Opens all shards of a model; at least one. ModelFileError when one is missing, damaged or inconsistent, or a
    // tensor is in two of them; UnsupportedError for an element type that we do not know. The names of a file's tensors
    // get its prefix, where there are prefixes.
    static SafetensorsFiles open(const std::vector<std::string>& paths, const std::vector<std::string>& prefixes = {});

  private:
    SafetensorsFiles() = default;
};

}  // namespace akunu
