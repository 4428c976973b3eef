#include "formats/gguf_value.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace akunu {
namespace {

constexpr std::uint64_t kStringMinSize = 8;  // its length
constexpr std::uint64_t kArrayMinSize = 12;  // its item type and count

void check_bools(const ByteReader& reader, std::span<const std::byte> payload) {
    const auto valid = [](std::byte b) { return b <= std::byte{1}; };
    if (!std::ranges::all_of(payload, valid)) reader.fail("holds a bool that is neither 0 nor 1");
}

GgufValue read_array(ByteReader& reader, int depth) {
    if (depth >= kMaxGgufArrayDepth) {
        reader.fail("nests arrays more than " + std::to_string(kMaxGgufArrayDepth) + " deep");
    }
    GgufValue array{.type = GgufType::Array, .item_type = read_gguf_type(reader), .count = 0, .payload = {}};
    array.count = reader.read<std::uint64_t>();
    if (const std::uint64_t size = gguf_scalar_size(array.item_type); size != 0) {
        reader.check_count(array.count, size);
        array.payload = reader.take(array.count * size);
        if (array.item_type == GgufType::Bool) check_bools(reader, array.payload);
        return array;
    }
    reader.check_count(array.count, array.item_type == GgufType::String ? kStringMinSize : kArrayMinSize);
    ByteReader start = reader;
    if (array.item_type == GgufType::String) {
        for (std::uint64_t i = 0; i < array.count; ++i) reader.read_string();
    } else {
        for (std::uint64_t i = 0; i < array.count; ++i) {
            read_gguf_value(reader, GgufType::Array, depth + 1);
        }
    }
    array.payload = start.take(start.remaining() - reader.remaining());
    return array;
}

template <typename T>
std::optional<std::uint64_t> unsigned_of(const GgufValue& value) {
    T number;
    std::memcpy(&number, value.payload.data(), sizeof number);
    if (number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(number);
}

}  // namespace

std::uint64_t gguf_scalar_size(GgufType type) {
    switch (type) {
        case GgufType::U8:
        case GgufType::I8:
        case GgufType::Bool:
            return 1;
        case GgufType::U16:
        case GgufType::I16:
            return 2;
        case GgufType::U32:
        case GgufType::I32:
        case GgufType::F32:
            return 4;
        case GgufType::U64:
        case GgufType::I64:
        case GgufType::F64:
            return 8;
        case GgufType::String:
        case GgufType::Array:
            break;
    }
    return 0;
}

GgufType read_gguf_type(ByteReader& reader) {
    const auto type = reader.read<std::uint32_t>();
    if (type > static_cast<std::uint32_t>(GgufType::F64)) {
        reader.fail("has value type " + std::to_string(type) + ", which does not exist");
    }
    return static_cast<GgufType>(type);
}

GgufValue read_gguf_value(ByteReader& reader, GgufType type, int depth) {
    if (type == GgufType::Array) return read_array(reader, depth);
    GgufValue value{.type = type, .item_type = type, .count = 1, .payload = {}};
    if (type == GgufType::String) {
        const std::string_view text = reader.read_string();
        value.payload = std::as_bytes(std::span(text));
        return value;
    }
    value.payload = reader.take(gguf_scalar_size(type));
    if (type == GgufType::Bool) check_bools(reader, value.payload);
    return value;
}

std::optional<std::uint64_t> gguf_unsigned(const GgufValue& value) {
    switch (value.type) {
        case GgufType::U8:
            return unsigned_of<std::uint8_t>(value);
        case GgufType::I8:
            return unsigned_of<std::int8_t>(value);
        case GgufType::U16:
            return unsigned_of<std::uint16_t>(value);
        case GgufType::I16:
            return unsigned_of<std::int16_t>(value);
        case GgufType::U32:
            return unsigned_of<std::uint32_t>(value);
        case GgufType::I32:
            return unsigned_of<std::int32_t>(value);
        case GgufType::U64:
            return unsigned_of<std::uint64_t>(value);
        case GgufType::I64:
            return unsigned_of<std::int64_t>(value);
        case GgufType::F32:
        case GgufType::F64:
        case GgufType::Bool:
        case GgufType::String:
        case GgufType::Array:
            break;
    }
    return std::nullopt;
}

}  // namespace akunu
