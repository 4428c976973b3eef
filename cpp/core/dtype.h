// The table of tensor element types: one row of data per format.
//
// A type stores `block_elems` consecutive elements of a row in `block_bytes` bytes. Ids are those
// of GGUF (the ggml_type enumeration); ids of our own start at kFirstInternalDType.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace akunu {

inline constexpr uint32_t kFirstInternalDType = 0x1000;

enum class DType : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ4_NL = 20,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    BF16 = 30,
    MXFP4 = 39,
    // Of SafeTensors.
    Bool = kFirstInternalDType,
    U8,
    U16,
    U32,
    U64,
    F8E4M3,
    F8E5M2,
    F8E8M0,
};

struct DTypeInfo {
    DType id;
    std::string_view name;  // lower case: "q4_0", "q4_k"
    uint32_t block_elems;
    uint32_t block_bytes;
    bool is_weight;  // usable as the weight of a matmul
};

inline constexpr std::array<DTypeInfo, 29> kDTypes{{
    {DType::F32, "f32", 1, 4, true},
    {DType::F16, "f16", 1, 2, true},
    {DType::BF16, "bf16", 1, 2, true},
    {DType::Q4_0, "q4_0", 32, 18, true},
    {DType::Q4_1, "q4_1", 32, 20, true},
    {DType::Q5_0, "q5_0", 32, 22, true},
    {DType::Q5_1, "q5_1", 32, 24, true},
    {DType::Q8_0, "q8_0", 32, 34, true},
    {DType::Q2_K, "q2_k", 256, 84, true},
    {DType::Q3_K, "q3_k", 256, 110, true},
    {DType::Q4_K, "q4_k", 256, 144, true},
    {DType::Q5_K, "q5_k", 256, 176, true},
    {DType::Q6_K, "q6_k", 256, 210, true},
    {DType::IQ4_NL, "iq4_nl", 32, 18, true},
    {DType::IQ4_XS, "iq4_xs", 256, 136, true},
    {DType::MXFP4, "mxfp4", 32, 17, true},
    {DType::I8, "i8", 1, 1, false},
    {DType::I16, "i16", 1, 2, false},
    {DType::I32, "i32", 1, 4, false},
    {DType::I64, "i64", 1, 8, false},
    {DType::F64, "f64", 1, 8, false},
    {DType::Bool, "bool", 1, 1, false},
    {DType::U8, "u8", 1, 1, false},
    {DType::U16, "u16", 1, 2, false},
    {DType::U32, "u32", 1, 4, false},
    {DType::U64, "u64", 1, 8, false},
    {DType::F8E4M3, "f8_e4m3", 1, 1, false},
    {DType::F8E5M2, "f8_e5m2", 1, 1, false},
    {DType::F8E8M0, "f8_e8m0", 1, 1, false},
}};

// The row of `dtype`; InvalidArgumentError for a value outside the enumeration.
const DTypeInfo& dtype_info(DType dtype);

// The row with this GGUF id, or null when we do not support it.
const DTypeInfo* find_dtype(uint32_t gguf_id);

// The row with this lower-case name, or null.
const DTypeInfo* find_dtype(std::string_view name);

// The upper-case name of a GGUF type that exists (or once did) but is not in our table, such as
// "IQ2_XXS"; empty when the id is not known at all.
std::string_view unsupported_dtype_name(uint32_t gguf_id);

// Bytes of one row of `elems` elements. InvalidArgumentError when `elems` is not a whole number of
// blocks or the size does not fit 64 bits.
uint64_t row_bytes(DType dtype, uint64_t elems);

}  // namespace akunu
