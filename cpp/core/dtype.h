// The table of tensor element types: one row of data per format.
//
// A type stores `block_elems` consecutive elements of a row in `block_bytes` bytes. Ids are those
// of GGUF (the ggml_type enumeration); ids of our own start at kFirstInternalDType.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42,
    // Types that only SafeTensors have.
    Bool = kFirstInternalDType,
    U8,
    U16,
    U32,
    U64,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    // E2M1 codes with a scale for each 32 (E8M0), for each 16 (E4M3); E4M3 codes with a scale for each 32 (E8M0).
    MlxMxfp4,
    MlxNvfp4,
    MlxMxfp8,
    // E4M3 codes with F32 scales.
    F8Group32,
    F8Group128,
    // What weights of types with codebooks become at load, see core/recode.h.
    Iq1Levels,
    Iq2Levels,
    Iq3XxsLevels,
    Iq3SLevels,
    // The affine ones of MLX follow: see affine_dtype.
};

// What lies together of a block. Most types' blocks lie in one piece. In a planar type codes, scales and biases are
// tensors of their own, and a block is what belongs together of them, in this order; some have no biases.
struct Planes {
    uint16_t codes = 0, scales = 0, biases = 0;  // bytes
};

struct DTypeInfo {
    DType id;
    std::string_view name;  // lower case: "q4_0", "q4_k"
    uint32_t block_elems;
    uint32_t block_bytes;
    bool is_weight;  // usable as the weight of a matmul
    // Planar types have planes. Codes that are no floats of their own are in words of U32.
    Planes planes = {};
    DType scale_type = DType::F32;
    DType code_type = DType::U32;
    bool planar() const { return planes.scales != 0; }
    // Whether products are those of floats.
    bool has_float_codes() const { return block_elems == 1 || code_type == DType::F8E4M3; }
};

// MLX's affine quantisation: value = scale·code + bias, with one scale and bias for each group of a row. The codes of a
// group are a dense stream, least significant bits first.
struct AffineType {
    uint32_t bits, group;
    DType scales;  // of scales and biases
    bool operator==(const AffineType&) const = default;
};

inline constexpr std::array<uint32_t, 6> kAffineBits{2, 3, 4, 5, 6, 8};
inline constexpr std::array<uint32_t, 3> kAffineGroups{32, 64, 128};
inline constexpr std::array<DType, 3> kAffineScales{DType::F32, DType::F16, DType::BF16};
inline constexpr std::size_t kAffineTypes = kAffineBits.size() * kAffineGroups.size() * kAffineScales.size();
inline constexpr uint32_t kFirstAffineDType = kFirstInternalDType + 0x100;

constexpr AffineType affine_at(std::size_t index) {
    return {kAffineBits[index / 9], kAffineGroups[index / 3 % 3], kAffineScales[index % 3]};
}

// The type's id; that of `index` 0 for what is no such type.
constexpr DType affine_dtype(const AffineType& type) {
    uint32_t index = 0;
    for (uint32_t i = 0; i < kAffineTypes; ++i) {
        if (affine_at(i) == type) index = i;
    }
    return static_cast<DType>(kFirstAffineDType + index);
}

// The type of this id, if it is an affine one.
constexpr std::optional<AffineType> affine_type(DType dtype) {
    const uint32_t index = static_cast<uint32_t>(dtype) - kFirstAffineDType;
    if (index >= kAffineTypes) return std::nullopt;
    return affine_at(index);
}

// "mlx_q4_g64_bf16"
inline constexpr auto kAffineNames = [] {
    std::array<std::array<char, 20>, kAffineTypes> names{};
    for (std::size_t i = 0; i < kAffineTypes; ++i) {
        const AffineType t = affine_at(i);
        std::size_t n = 0;
        const auto add = [&](std::string_view text) {
            for (const char c : text) names[i][n++] = c;
        };
        add("mlx_q");
        names[i][n++] = static_cast<char>('0' + t.bits);
        add(t.group == 32 ? "_g32" : t.group == 64 ? "_g64" : "_g128");
        add(t.scales == DType::F32 ? "_f32" : t.scales == DType::F16 ? "_f16" : "_bf16");
    }
    return names;
}();

constexpr DTypeInfo affine_row(std::size_t index) {
    const AffineType t = affine_at(index);
    const auto scale = static_cast<uint16_t>(t.scales == DType::F32 ? 4 : 2);
    const auto codes = static_cast<uint16_t>(t.group * t.bits / 8);
    return {affine_dtype(t), kAffineNames[index].data(), t.group, codes + 2u * scale, true, {codes, scale, scale},
            t.scales};
}

inline constexpr std::array<DTypeInfo, 50> kPlainDTypes{{
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
    {DType::IQ1_S, "iq1_s", 256, 50, true},
    {DType::IQ1_M, "iq1_m", 256, 56, true},
    {DType::IQ2_XXS, "iq2_xxs", 256, 66, true},
    {DType::IQ2_XS, "iq2_xs", 256, 74, true},
    {DType::IQ2_S, "iq2_s", 256, 82, true},
    {DType::IQ3_XXS, "iq3_xxs", 256, 98, true},
    {DType::IQ3_S, "iq3_s", 256, 110, true},
    {DType::TQ1_0, "tq1_0", 256, 54, true},
    {DType::TQ2_0, "tq2_0", 256, 66, true},
    {DType::NVFP4, "nvfp4", 64, 36, true},
    {DType::Q1_0, "q1_0", 128, 18, true},
    {DType::Q2_0, "q2_0", 64, 18, true},
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
    {DType::MlxMxfp4, "mlx_mxfp4", 32, 17, true, {16, 1, 0}, DType::F8E8M0},
    {DType::MlxNvfp4, "mlx_nvfp4", 32, 18, true, {16, 2, 0}, DType::F8E4M3},
    {DType::MlxMxfp8, "mlx_mxfp8", 32, 33, true, {32, 1, 0}, DType::F8E8M0, DType::F8E4M3},
    {DType::F8Group32, "f8_e4m3_g32", 32, 36, true, {32, 4, 0}, DType::F32, DType::F8E4M3},
    {DType::F8Group128, "f8_e4m3_g128", 128, 132, true, {128, 4, 0}, DType::F32, DType::F8E4M3},
    {DType::Iq1Levels, "iq1_levels", 256, 106, true},
    {DType::Iq2Levels, "iq2_levels", 256, 106, true},
    {DType::Iq3XxsLevels, "iq3_xxs_levels", 256, 134, true},
    {DType::Iq3SLevels, "iq3_s_levels", 256, 134, true},
}};

inline constexpr auto kDTypes = [] {
    std::array<DTypeInfo, kPlainDTypes.size() + kAffineTypes> rows{};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = i < kPlainDTypes.size() ? kPlainDTypes[i] : affine_row(i - kPlainDTypes.size());
    }
    return rows;
}();

// The row of `dtype`; InvalidArgumentError for a value outside the enumeration.
const DTypeInfo& dtype_info(DType dtype);

// The row with this GGUF id, or null when we do not support it.
const DTypeInfo* find_dtype(uint32_t gguf_id);

// The row with this lower-case name, or null.
const DTypeInfo* find_dtype(std::string_view name);

// The upper-case name of a GGUF type that exists (or once did) but is not in our table, such as
// "Q8_1"; empty when the id is not known at all.
std::string_view unsupported_dtype_name(uint32_t gguf_id);

// Bytes of one row of `elems` elements. InvalidArgumentError when `elems` is not a whole number of
// blocks or the size does not fit 64 bits.
uint64_t row_bytes(DType dtype, uint64_t elems);

}  // namespace akunu
