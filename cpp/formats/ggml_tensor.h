// What the tensor records of GGUF and of whisper.cpp's files have in common: ggml's types and sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "formats/byte_reader.h"

namespace akunu {

// A u32 type id. UnsupportedError, naming the type, when it is not one of ours. `paired`: where given, Ollama's MXFP4,
// whose bytes are pairs of neighbours, is one, and is told there.
const DTypeInfo& read_ggml_type(ByteReader& reader, const std::string& path, std::string_view tensor,
                                bool* paired = nullptr);

// Bytes of a tensor of these dimensions, innermost first; the reader names the tensor in a ModelFileError when they are
// not whole blocks, one of them is 0, or their product does not fit.
std::uint64_t ggml_tensor_bytes(const ByteReader& reader, const DTypeInfo& type, std::span<const std::uint64_t> dims);

}  // namespace akunu
