#include "formats/gguf_part.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "formats/foreign_file.h"
#include "formats/ggml_tensor.h"
#include "formats/quote.h"

namespace akunu {
namespace {

constexpr std::uint32_t kDefaultAlignment = 32;
// The format asks for a multiple of 8; with a page-aligned mapping it keeps F32 and I64 data
// aligned for direct reads.
constexpr std::uint32_t kMinAlignment = 8;

constexpr std::uint64_t kMinKeySize = 8 + 4 + 1;             // length, type, shortest value
constexpr std::uint64_t kMinTensorSize = 8 + 4 + 8 + 4 + 8;  // length, n_dims, one dim, type, offset

constexpr std::string_view kHeaderTooLong =
    "the file is damaged, or its header is longer than the 128 MiB that are accepted";

void check_magic(const MappedFile& file) {
    const auto bytes = file.bytes();
    if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0) {
        throw ModelFileError(file.path() + ": is not a GGUF file: " + describe_foreign_file(bytes, "'GGUF'"));
    }
}

std::uint32_t read_version(ByteReader& reader, const std::string& path) {
    const auto version = reader.read<std::uint32_t>();
    if (version == 2 || version == 3) return version;
    if (version != 0 && (version & 0xFFFFu) == 0) {
        throw UnsupportedError(path + ": is a big-endian GGUF file; convert it to little-endian " +
                               "(gguf-convert-endian of the gguf package)");
    }
    throw UnsupportedError(path + ": is GGUF version " + std::to_string(version) +
                           "; versions 2 and 3 are supported, convert the model again");
}

std::vector<MetadataEntry> read_metadata(ByteReader& reader, std::uint64_t count) {
    reader.describe("the metadata");
    if (count > kMaxGgufKeys) {
        reader.fail("announces " + std::to_string(count) + " keys; at most " + std::to_string(kMaxGgufKeys) +
                    " are accepted");
    }
    reader.check_count(count, kMinKeySize);
    std::vector<MetadataEntry> metadata;
    metadata.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        reader.describe("the metadata");
        const std::string_view key = reader.read_string();
        if (key.empty() || key.size() > kMaxGgufKeyLength) {
            reader.fail("has a key of " + std::to_string(key.size()) + " bytes; 1 to " +
                        std::to_string(kMaxGgufKeyLength) + " are allowed");
        }
        reader.describe("metadata key", key);
        const GgufType type = read_gguf_type(reader);
        metadata.push_back({std::string(key), read_gguf_value(reader, type)});
    }
    reader.describe("the header");
    return metadata;
}

std::uint32_t read_alignment(const GgufPart& part) {
    const GgufValue* value = part.find("general.alignment");
    if (value == nullptr) return kDefaultAlignment;
    const auto number = gguf_unsigned(*value);
    if (!number || *number < kMinAlignment || !std::has_single_bit(*number) ||
        *number > std::numeric_limits<std::uint32_t>::max()) {
        throw ModelFileError(part.file->path() + ": general.alignment is " +
                             (number ? std::to_string(*number) : std::string("not a non-negative integer")) +
                             "; expected a power of two, at least 8");
    }
    return static_cast<std::uint32_t>(*number);
}

// Dimensions as stored, innermost first.
std::vector<std::uint64_t> read_dims(ByteReader& reader) {
    const auto count = reader.read<std::uint32_t>();
    if (count < 1 || count > kMaxGgufDims) {
        reader.fail("has " + std::to_string(count) + " dimensions; 1 to 4 are allowed");
    }
    std::vector<std::uint64_t> dims(count);
    for (std::uint64_t& dim : dims) dim = reader.read<std::uint64_t>();
    return dims;
}

// One tensor record; its offset stays relative to the data section.
TensorEntry read_tensor(ByteReader& reader, const std::string& path) {
    reader.describe("the tensor list");
    const std::string_view name = reader.read_string();
    if (name.empty() || name.size() > kMaxGgufTensorNameLength) {
        reader.fail("has a tensor name of " + std::to_string(name.size()) + " bytes; 1 to " +
                    std::to_string(kMaxGgufTensorNameLength) + " are allowed");
    }
    reader.describe("tensor", name);
    std::vector<std::uint64_t> dims = read_dims(reader);
    bool paired = false;
    const DTypeInfo& info = read_ggml_type(reader, path, name, &paired);
    const std::uint64_t bytes = ggml_tensor_bytes(reader, info, dims);
    std::ranges::reverse(dims);
    return {.name = std::string(name),
            .dtype = info.id,
            .shape = std::move(dims),
            .offset = reader.read<std::uint64_t>(),
            .bytes = bytes,
            .file = 0,
            .paired = paired};
}

// Makes offsets absolute, and checks that each tensor lies in the file, behind the one before it.
void place_tensors(GgufPart& part, std::uint64_t header_end, std::uint32_t alignment) {
    const std::string& path = part.file->path();
    const std::uint64_t size = part.file->bytes().size();
    // header_end <= size and both fit half the address range, so this cannot overflow.
    const auto aligned = [&](std::uint64_t at) { return (at + alignment - 1) / alignment * alignment; };
    const std::uint64_t data = aligned(header_end);
    for (TensorEntry& tensor : part.tensors) {
        if (tensor.offset % alignment != 0) {
            throw ModelFileError(path + ": tensor " + quoted(tensor.name) + " has offset " +
                                 std::to_string(tensor.offset) + ", not a multiple of the " + "alignment " +
                                 std::to_string(alignment));
        }
        const std::uint64_t room = data <= size ? size - data : 0;
        if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
            throw ModelFileError(path + ": tensor " + quoted(tensor.name) + " has " + std::to_string(tensor.bytes) +
                                 " bytes at offset " + std::to_string(tensor.offset) + " of the " +
                                 std::to_string(room) +
                                 " bytes of tensor data; the file is incomplete, fetch it again");
        }
        tensor.offset += data;
    }
    std::vector<const TensorEntry*> order;
    order.reserve(part.tensors.size());
    for (const TensorEntry& tensor : part.tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, &TensorEntry::offset);
    std::uint64_t end = data;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const TensorEntry& tensor = *order[i];
        if (tensor.offset < end) {
            throw ModelFileError(path + ": tensors " + quoted(order[i - 1]->name) + " and " + quoted(tensor.name) +
                                 " overlap; the file is damaged");
        }
        if (tensor.offset != aligned(end)) {
            throw ModelFileError(path + ": tensor " + quoted(tensor.name) + " has offset " +
                                 std::to_string(tensor.offset - data) + ", where " +
                                 std::to_string(aligned(end) - data) +
                                 " is next: the file is damaged, or has an alignment that it does not say");
        }
        end = tensor.offset + tensor.bytes;
    }
}

}  // namespace

const GgufValue* GgufPart::find(std::string_view key) const {
    const MetadataEntry* entry = metadata_index.find(metadata, key);
    return entry == nullptr ? nullptr : &entry->value;
}

GgufPart parse_gguf_part(const std::string& path) {
    GgufPart part;
    part.file = std::make_shared<const MappedFile>(path);
    check_magic(*part.file);
    const auto bytes = part.file->bytes();
    const bool limited = bytes.size() > kMaxGgufHeaderBytes;
    ByteReader reader(limited ? bytes.first(kMaxGgufHeaderBytes) : bytes, path,
                      limited ? kHeaderTooLong : ByteReader::kDamaged);
    reader.take(4);  // the magic
    part.version = read_version(reader, path);
    const auto tensor_count = reader.read<std::uint64_t>();
    const auto key_count = reader.read<std::uint64_t>();

    part.metadata = read_metadata(reader, key_count);
    if (const std::string* twin = part.metadata_index.build(part.metadata)) {
        throw ModelFileError(path + ": metadata key " + quoted(*twin) + " occurs twice");
    }
    const std::uint32_t alignment = read_alignment(part);

    reader.describe("the tensor list");
    if (tensor_count > kMaxGgufTensors) {
        reader.fail("announces " + std::to_string(tensor_count) + " tensors; at most " +
                    std::to_string(kMaxGgufTensors) + " are accepted");
    }
    reader.check_count(tensor_count, kMinTensorSize);
    part.tensors.reserve(tensor_count);
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
        part.tensors.push_back(read_tensor(reader, path));
    }
    place_tensors(part, reader.offset(), alignment);
    return part;
}

}  // namespace akunu
