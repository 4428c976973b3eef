// The model files of whisper.cpp (ggml-base.bin and its like), memory-mapped.
//
// A magic number, eleven sizes, mel filters, the vocabulary, and the tensors, each with its record before its data.
// Opening parses the records and checks every length in them; the data is not touched. A file may end after the
// vocabulary. All numbers are 32 bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_files.h"

namespace akunu {

inline constexpr std::uint64_t kMaxWhisperTensors = 1u << 14;
inline constexpr std::uint64_t kMaxWhisperNameLength = 128;
inline constexpr std::uint64_t kMaxWhisperTokens = 1u << 20;

class WhisperFile final : public TensorFiles {
  public:
    // In the order of the file.
    static constexpr std::array<std::string_view, 11> kSizes{
        "n_vocab",      "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx",
        "n_text_state", "n_text_head", "n_text_layer",  "n_mels",       "ftype"};

    // ModelFileError when the file is missing, damaged or inconsistent, UnsupportedError for an element type that we do
    // not know.
    static WhisperFile open(const std::string& path);

    const std::array<std::uint32_t, kSizes.size()>& sizes() const { return sizes_; }

    // The bytes of each token, without special ones; in the mapping.
    const std::vector<std::string_view>& tokens() const { return tokens_; }

  private:
    WhisperFile() = default;

    std::array<std::uint32_t, kSizes.size()> sizes_{};
    std::vector<std::string_view> tokens_;
};

}  // namespace akunu
