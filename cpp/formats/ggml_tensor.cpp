#include "formats/ggml_tensor.h"

#include <limits>

#include "core/error.h"
#include "formats/quote.h"

namespace akunu {

const DTypeInfo& read_ggml_type(ByteReader& reader, const std::string& path, std::string_view tensor, bool* paired) {
    const auto id = reader.read<std::uint32_t>();
    // ggml had a type of this number before there was GGUF.
    constexpr std::uint32_t kPairedMxfp4 = 4;
    if (paired && id == kPairedMxfp4) {
        *paired = true;
        return dtype_info(DType::MXFP4);
    }
    const DTypeInfo* info = id < kFirstInternalDType ? find_dtype(id) : nullptr;
    if (info != nullptr) return *info;
    const std::string_view name = unsupported_dtype_name(id);
    throw UnsupportedError(path + ": tensor " + quoted(tensor) + " has type " +
                           (name.empty() ? "number " + std::to_string(id) + ", which is unknown"
                                         : std::string(name) + ", which is not supported") +
                           "; use a file with another quantization");
}

std::uint64_t ggml_tensor_bytes(const ByteReader& reader, const DTypeInfo& type, std::span<const std::uint64_t> dims) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    std::uint64_t elems = 1;
    for (const std::uint64_t dim : dims) {
        if (dim == 0) reader.fail("has a dimension of 0");
        if (dim > most / elems) reader.fail("has more elements than 64 bits can count");
        elems *= dim;
    }
    if (dims[0] % type.block_elems != 0) {
        reader.fail("has rows of " + std::to_string(dims[0]) + " elements, not whole " + std::string(type.name) +
                    " blocks of " + std::to_string(type.block_elems));
    }
    const std::uint64_t blocks = elems / type.block_elems;
    if (blocks > most / type.block_bytes) reader.fail("has more bytes than 64 bits can count");
    return blocks * type.block_bytes;
}

}  // namespace akunu
