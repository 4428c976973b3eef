#include "formats/whisper_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "formats/byte_reader.h"
#include "formats/foreign_file.h"
#include "formats/ggml_tensor.h"

namespace akunu {

namespace {

constexpr std::uint32_t kMagic = 0x67676d6c;
constexpr std::uint32_t kMaxDims = 4;
constexpr std::uint64_t kMaxFilters = 1u << 16;  // and bins of one

// A count of at most `most`.
std::uint32_t read_count(ByteReader& reader, std::string_view what, std::uint64_t most) {
    const auto count = reader.read<std::uint32_t>();
    if (count < 1 || count > most) {
        reader.fail("has " + std::to_string(count) + " " + std::string(what) + "; 1 to " + std::to_string(most) +
                    " are allowed");
    }
    return count;
}

std::string_view read_text(ByteReader& reader, std::uint64_t length) {
    const auto chars = reader.take(length);
    return {reinterpret_cast<const char*>(chars.data()), chars.size()};
}

// The filters are those that cpp/audio computes.
void skip_filters(ByteReader& reader) {
    reader.describe("the mel filters");
    const std::uint64_t filters = read_count(reader, "filters", kMaxFilters);
    const std::uint64_t bins = read_count(reader, "bins", kMaxFilters);
    reader.take(filters * bins * sizeof(float));
}

std::vector<std::string_view> read_tokens(ByteReader& reader) {
    reader.describe("the vocabulary");
    const std::uint32_t count = read_count(reader, "tokens", kMaxWhisperTokens);
    reader.check_count(count, sizeof(std::uint32_t));
    std::vector<std::string_view> tokens(count);
    for (std::string_view& token : tokens) token = read_text(reader, reader.read<std::uint32_t>());
    return tokens;
}

TensorEntry read_record(ByteReader& reader, const std::string& path) {
    reader.describe("the tensor record");
    const std::uint32_t dim_count = read_count(reader, "dimensions", kMaxDims);
    const std::uint32_t name_length = read_count(reader, "bytes of name", kMaxWhisperNameLength);
    // The type comes before the dimensions and the name, but its errors name the tensor.
    ByteReader type_reader = reader;
    reader.take(sizeof(std::uint32_t));
    std::vector<std::uint64_t> dims(dim_count);
    for (std::uint64_t& dim : dims) dim = reader.read<std::uint32_t>();
    const std::string_view name = read_text(reader, name_length);
    reader.describe("tensor", name);
    const DTypeInfo& type = read_ggml_type(type_reader, path, name);
    const std::uint64_t bytes = ggml_tensor_bytes(reader, type, dims);
    const std::uint64_t offset = reader.offset();
    reader.take(bytes);
    std::ranges::reverse(dims);
    return {.name = std::string(name),
            .dtype = type.id,
            .shape = std::move(dims),
            .offset = offset,
            .bytes = bytes,
            .file = 0};
}

}  // namespace

WhisperFile WhisperFile::open(const std::string& path) {
    auto file = std::make_shared<const MappedFile>(path);
    ByteReader reader(file->bytes(), path);
    if (reader.remaining() < sizeof kMagic || reader.read<std::uint32_t>() != kMagic) {
        throw ModelFileError(path +
                             ": is not a file of whisper.cpp: " + describe_foreign_file(file->bytes(), "\"lmgg\""));
    }
    WhisperFile model;
    for (std::uint32_t& size : model.sizes_) size = reader.read<std::uint32_t>();
    skip_filters(reader);
    model.tokens_ = read_tokens(reader);
    std::vector<TensorEntry> tensors;
    while (reader.remaining() > 0) {
        if (tensors.size() == kMaxWhisperTensors) {
            reader.fail("is followed by more than " + std::to_string(kMaxWhisperTensors) + " tensors");
        }
        tensors.push_back(read_record(reader, path));
    }
    model.add_file(std::move(file), std::move(tensors));
    model.index_tensors(path);
    return model;
}

}  // namespace akunu
