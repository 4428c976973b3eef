// Metadata values of a GGUF file, as views into its mapping; nothing is decoded until asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/byte_reader.h"

namespace akunu {

enum class GgufType : std::uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};

// Arrays may hold arrays; no known writer goes beyond one level.
inline constexpr int kMaxGgufArrayDepth = 4;

struct GgufValue {
    GgufType type = GgufType::U8;
    GgufType item_type = GgufType::U8;   // of an array
    std::uint64_t count = 1;             // items of an array
    std::span<const std::byte> payload;  // a scalar's or string's bytes, or an array's items
};

// Bytes of a number or bool; 0 for strings and arrays.
std::uint64_t gguf_scalar_size(GgufType type);

// The type that the next four bytes name; ModelFileError when there is none.
GgufType read_gguf_type(ByteReader& reader);

// Reads past one value and checks everything in it: lengths, counts, item types, nesting, bools.
// The same function walks an array's payload (`depth` 1 for its items).
GgufValue read_gguf_value(ByteReader& reader, GgufType type, int depth = 0);

// The value of an integer of any width; empty for other types and for negative numbers.
std::optional<std::uint64_t> gguf_unsigned(const GgufValue& value);

}  // namespace akunu
