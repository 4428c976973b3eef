#include "core/dtype.h"

#include <limits>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

struct KnownType {
    uint32_t id;
    std::string_view name;
};

// Ids of the ggml_type enumeration that are not in kDTypes: formats without a kernel here, types
// that only ever hold activations (Q8_1, Q8_K), and retired ids (4, 5, 31-33, 36-38).
constexpr std::array<KnownType, 10> kUnsupportedTypes{{
    {4, "Q4_2"},
    {5, "Q4_3"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},
    {36, "IQ4_NL_4_4"},
    {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"},
}};

// GGUF's ids, and those of our own behind them, as indices of one array: of the row in kDTypes that has the id.
constexpr uint32_t kGgufIds = 64;
constexpr uint32_t place_of(uint32_t id) {
    if (id < kFirstInternalDType) return id < kGgufIds ? id : UINT32_MAX;
    return kGgufIds + (id - kFirstInternalDType);
}

constexpr uint8_t kNoType = 255;
constexpr auto kRowAt = [] {
    std::array<uint8_t, kGgufIds + (kFirstAffineDType - kFirstInternalDType) + kAffineTypes> rows{};
    rows.fill(kNoType);
    for (std::size_t i = 0; i < kDTypes.size(); ++i)
        rows[place_of(static_cast<uint32_t>(kDTypes[i].id))] = static_cast<uint8_t>(i);
    return rows;
}();
static_assert(kDTypes.size() < kNoType);

}  // namespace

const DTypeInfo* find_dtype(uint32_t id) {
    const uint32_t place = place_of(id);
    return place < kRowAt.size() && kRowAt[place] != kNoType ? &kDTypes[kRowAt[place]] : nullptr;
}

const DTypeInfo* find_dtype(std::string_view name) {
    for (const DTypeInfo& info : kDTypes) {
        if (info.name == name) return &info;
    }
    return nullptr;
}

const DTypeInfo& dtype_info(DType dtype) {
    const DTypeInfo* info = find_dtype(static_cast<uint32_t>(dtype));
    if (info == nullptr) {
        throw InvalidArgumentError("dtype " + std::to_string(static_cast<uint32_t>(dtype)) +
                                   " is not in the dtype table");
    }
    return *info;
}

std::string_view unsupported_dtype_name(uint32_t gguf_id) {
    for (const KnownType& type : kUnsupportedTypes) {
        if (type.id == gguf_id) return type.name;
    }
    return {};
}

uint64_t row_bytes(DType dtype, uint64_t elems) {
    const DTypeInfo& info = dtype_info(dtype);
    if (elems % info.block_elems != 0) {
        throw InvalidArgumentError("a row of " + std::to_string(elems) + " elements is not whole " +
                                   std::string(info.name) + " blocks of " + std::to_string(info.block_elems));
    }
    const uint64_t blocks = elems / info.block_elems;
    if (blocks > std::numeric_limits<uint64_t>::max() / info.block_bytes) {
        throw InvalidArgumentError("a row of " + std::to_string(elems) + " " + std::string(info.name) +
                                   " elements does not fit 64 bits");
    }
    return blocks * info.block_bytes;
}

}  // namespace akunu
