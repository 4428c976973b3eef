#include "cuda/host/pack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "core/dequantize.h"
#include "core/half.h"

namespace akunu::cuda {

namespace {

// A type of one piece: its reader, where its codes lie in a block, and what is behind them.
struct Row {
    DType dtype;
    Reader reader;
    std::uint32_t begin, bytes, behind;
};

constexpr Row kRows[] = {
    {DType::F32, kReadF32, 0, 4, 0},      {DType::F16, kReadF16, 0, 2, 0},       {DType::BF16, kReadBf16, 0, 2, 0},
    {DType::Q4_0, kReadQ4_0, 2, 16, 0},   {DType::Q4_1, kReadQ4_1, 4, 16, 0},    {DType::Q5_0, kReadQ5_0, 6, 16, 0},
    {DType::Q5_1, kReadQ5_1, 8, 16, 0},   {DType::Q8_0, kReadQ8_0, 2, 32, 0},    {DType::Q2_K, kReadQ2_K, 16, 64, 4},
    {DType::Q3_K, kReadQ3_K, 0, 96, 14},  {DType::Q4_K, kReadQ4_K, 16, 128, 0},  {DType::Q5_K, kReadQ5_K, 48, 128, 0},
    {DType::Q6_K, kReadQ6_K, 0, 192, 18}, {DType::IQ4_NL, kReadIq4Nl, 2, 16, 0}, {DType::IQ4_XS, kReadIq4Xs, 8, 128, 0},
    {DType::MXFP4, kReadMxfp4, 1, 16, 0},
};

constexpr const Row* find_row(DType dtype) {
    for (const Row& row : kRows) {
        if (row.dtype == dtype) return &row;
    }
    return nullptr;
}

ScaleType scale_type(DType dtype) {
    switch (dtype) {
        case DType::F32:
            return kScaleF32;
        case DType::F16:
            return kScaleF16;
        case DType::BF16:
            return kScaleBf16;
        case DType::F8E8M0:
            return kScaleE8M0;
        default:
            return kScaleE4M3;
    }
}

constexpr std::uint64_t kPlaneAlign = kExpertAlign;

// What a block of K-quants has, in the order of kernels; see tile_layout.h. In place.
void order_scales(std::byte* extras) {
    std::uint32_t words[4];
    for (u32 i = 0; i < 4; ++i) {  // a byte of d and dmin, which are in front of the scales
        const ScaleMin even = scale_min(extras + 4, 2 * i), odd = scale_min(extras + 4, 2 * i + 1);
        words[i] = even.scale | odd.scale << 6 | even.min << 12 | odd.min << 18 | std::to_integer<u32>(extras[i]) << 24;
    }
    std::memcpy(extras, words, sizeof words);
}
// Fifth bits as they lie in tiles. In a file those of Q5_0 and Q5_1 are a word at the end of what a block has besides
// its codes, with element i's at bit i; those of Q5_K are 32 bytes, of which byte i has those of element i of each
// group of 32.
void order_fifth_bits(std::byte* bits) {
    constexpr std::uint32_t kSpread = 0x00204081, kOfBytes = 0x01010101;  // four bits to the lowest of four bytes
    std::uint32_t from, to = 0;
    std::memcpy(&from, bits, sizeof from);
    for (u32 word = 0; word < 8; ++word) to |= ((from >> 4 * word & 15) * kSpread & kOfBytes) << word;
    std::memcpy(bits, &to, sizeof to);
}
void order_k_fifth_bits(std::byte* bits) {
    constexpr std::uint32_t kOfBytes = 0x01010101;
    std::uint32_t from[8], to[8] = {};
    std::memcpy(from, bits, sizeof from);
    for (u32 piece = 0; piece < 8; ++piece) {
        for (u32 word = 0; word < 8; ++word) {  // of four low nibbles, or of four high ones
            const u32 group = piece / 2 * 2 + word / 4;
            to[piece] |= (from[piece % 2 * 4 + word % 4] >> group & kOfBytes) << word;
        }
    }
    std::memcpy(bits, to, sizeof to);
}
// A block's scales of IQ4_XS: behind d two high bits each, then four low ones.
void order_iq4_xs_scales(std::byte* extras) {
    std::uint16_t high;
    std::uint32_t low, words[2];
    std::memcpy(&high, extras + 2, sizeof high);
    std::memcpy(&low, extras + 4, sizeof low);
    for (u32 i = 0; i < 2; ++i) words[i] = std::to_integer<u32>(extras[i]) << 24;
    for (u32 j = 0; j < 8; ++j) words[j / 4] |= ((low >> 4 * j & 15) | (high >> 2 * j & 3) << 4) << (6 * (j % 4));
    std::memcpy(extras, words, sizeof words);
}
void order_six_bits(std::byte* codes) {
    std::uint32_t from[48], to[48] = {};
    std::memcpy(from, codes, sizeof from);
    for (u32 word = 0; word < 32; ++word) {  // of four codes' low nibbles and four others' high ones
        const u32 half = word / 16, pair = 32 + word / 2, shift = 2 * (word / 8 % 2);
        const u32 tops = from[32 + 8 * half + word % 8] >> shift, q = from[word], odd = word % 2;
        const u32 low_tops = tops & 0x03030303u, high = (q >> 4 & 0x0F0F0F0Fu) | (tops & 0x30303030u);
        to[word] = (q & 0x0F0F0F0Fu) | (high << 2 & 0xF0F0F0F0u);
        to[pair] |= low_tops << (odd ? 4 : 6) | (high & 0x03030303u) << (odd ? 0 : 2);
    }
    std::memcpy(codes, to, sizeof to);
}

// Sizes that the compiler knows: copies of a few bytes are then no calls.
template <std::size_t kRow>
void pack_row(const std::byte* from, std::uint64_t blocks, std::byte* codes, std::byte* rest) {
    constexpr std::uint32_t kBegin = kRows[kRow].begin, kBytes = kRows[kRow].bytes, kBehind = kRows[kRow].behind;
    if constexpr (kBegin + kBehind == 0) {
        std::memcpy(codes, from, blocks * kBytes);
        return;
    }
    for (std::uint64_t i = 0; i < blocks; ++i, from += kBegin + kBytes + kBehind) {
        std::memcpy(codes, from + kBegin, kBytes);
        std::memcpy(rest, from, kBegin);
        std::memcpy(rest + kBegin, from + kBegin + kBytes, kBehind);
        constexpr DType kType = kRows[kRow].dtype;
        if constexpr (kType == DType::Q4_K || kType == DType::Q5_K) order_scales(rest);
        if constexpr (kType == DType::Q5_K) order_k_fifth_bits(rest + 16);
        if constexpr (kType == DType::Q6_K) order_six_bits(codes);
        if constexpr (kType == DType::IQ4_XS) order_iq4_xs_scales(rest);
        if constexpr (kType == DType::Q5_0 || kType == DType::Q5_1) order_fifth_bits(rest + kBegin - 4);
        codes += kBytes;
        rest += kBegin + kBehind;
    }
}
constexpr auto kPackers = []<std::size_t... kRow>(std::index_sequence<kRow...>) {
    return std::array{&pack_row<kRow>...};
}(std::make_index_sequence<std::size(kRows)>());

// What a unit's four blocks have besides their codes: the fifth bits of all of them, then the rest.
void gather_fifth_bits(const BlockExtras& of, std::byte* extras) {
    if (!of.fifth) return;
    std::byte blocks[4 * 8];
    std::memcpy(blocks, extras, std::size_t{4} * of.bytes());
    for (u32 i = 0; i < 4; ++i) {
        std::memcpy(extras + std::size_t{i} * 4, blocks + std::size_t{i} * of.bytes() + of.scale, 4);
        std::memcpy(extras + of.scale_at(i), blocks + std::size_t{i} * of.bytes(), of.scale);
    }
}

std::uint64_t tiles_of(std::uint64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// In place.
void scale_bfloats(std::span<std::byte> bfloats, float scale) {
    for (std::size_t i = 0; i < bfloats.size(); i += 2) {
        std::uint16_t bits;
        std::memcpy(&bits, &bfloats[i], 2);
        bits = float_to_half(bf16_to_float(bits) * scale);
        std::memcpy(&bfloats[i], &bits, 2);
    }
}

}  // namespace

std::optional<ReaderChoice> reader_of(DType dtype) {
    if (const Row* row = find_row(dtype)) return ReaderChoice{row->reader, 0};
    if (const auto affine = affine_type(dtype)) {
        return ReaderChoice{kReadAffine, reader_spec(affine->bits, affine->group, scale_type(affine->scales))};
    }
    const DTypeInfo& info = dtype_info(dtype);
    if (!info.planar()) return std::nullopt;
    const std::uint32_t scales = info.planes.scales / dtype_info(info.scale_type).block_bytes;
    return ReaderChoice{kReadFloatCodes, reader_spec(info.planes.codes * 8u / info.block_elems,
                                                     info.block_elems / scales, scale_type(info.scale_type))};
}

BlockSplit split_of(DType dtype) {
    const DTypeInfo& info = dtype_info(dtype);
    if (const Row* row = find_row(dtype)) return {row->begin, row->bytes, row->begin + row->bytes + row->behind};
    return {0, info.planes.codes, info.planes.codes};
}

std::uint64_t plane_offset(DType dtype, std::uint64_t rows, std::uint64_t cols) {
    const BlockSplit split = split_of(dtype);
    const std::uint64_t codes = packed_in_tiles(dtype, cols)
                                    ? tiles_of(rows) * bytes_of_tile(dtype, cols)
                                    : rows * cols / dtype_info(dtype).block_elems * split.bytes;
    return (codes + kPlaneAlign - 1) / kPlaneAlign * kPlaneAlign;
}

bool packed_in_tiles(DType dtype, std::uint64_t cols) {
    const Row* row = find_row(dtype);
    return row && in_tiles(row->reader, cols);
}

int exponent_of(std::span<const std::byte> bfloats) {
    std::uint16_t most = 0;
    for (std::size_t i = 0; i < bfloats.size(); i += 2) {
        std::uint16_t bits;
        std::memcpy(&bits, &bfloats[i], 2);
        const auto exponent = static_cast<std::uint16_t>(bits >> 7 & 255);
        if (exponent != 255) most = std::max(most, exponent);
    }
    return std::min(14 + 127 - most, 126);
}

std::uint64_t bytes_of_tile(DType dtype, std::uint64_t cols) { return tile_bytes(find_row(dtype)->reader, cols); }

void pack_tiles(DType dtype, std::uint64_t cols, const std::byte* from, std::uint64_t rows, std::byte* tiles,
                int exponent) {
    const Row& type = *find_row(dtype);
    const TileLayout layout = tile_layout(type.reader);
    const std::uint64_t blocks = layout.inputs / dtype_info(dtype).block_elems;  // of a row in a unit
    const bool floats = dtype == DType::F16 || dtype == DType::BF16;
    const float scale = std::ldexp(1.0f, exponent);
    if (rows % kTileRows != 0) {
        const std::uint64_t bytes = tile_bytes(type.reader, cols);
        std::memset(tiles + rows / kTileRows * bytes, 0, bytes);
    }
    std::vector<std::byte> codes(layout.code_bytes);
    for (std::uint64_t r = 0; r < rows; ++r) {
        const auto row = static_cast<u32>(r % kTileRows);
        std::byte* unit = tiles + unit_at(type.reader, cols, r, 0);
        for (std::uint64_t col = 0; col < cols; col += layout.inputs, unit += layout.unit_bytes()) {
            const std::uint64_t inputs = std::min<std::uint64_t>(layout.inputs, cols - col);
            if (inputs < layout.inputs) {
                std::ranges::fill(codes, std::byte{});
                std::memset(unit + extras_at(layout, row), 0, layout.extra_bytes);
            }
            pack_blocks(dtype, from, blocks * inputs / layout.inputs, codes.data(), unit + extras_at(layout, row));
            gather_fifth_bits(block_extras(type.reader), unit + extras_at(layout, row));
            from += row_bytes(dtype, inputs);
            if (has_factor(dtype)) scale_bfloats(codes, scale);
            for (u32 i = 0; i < layout.code_bytes / kPiece; ++i) {
                std::memcpy(unit + (floats ? float_piece_at(row, i) : piece_at(row, i)), codes.data() + i * kPiece,
                            kPiece);
            }
        }
    }
}

std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols) {
    if (packed_in_tiles(dtype, cols)) {
        return has_factor(dtype) ? plane_offset(dtype, rows, cols) + sizeof(float)
                                 : tiles_of(rows) * bytes_of_tile(dtype, cols);
    }
    return plane_offset(dtype, rows, cols) + rows * cols / dtype_info(dtype).block_elems * split_of(dtype).rest();
}

ExpertLayout expert_layout(DType dtype, std::uint64_t rows, std::uint64_t cols) {
    const auto padded = [](std::uint64_t bytes) { return (bytes + kPlaneAlign - 1) / kPlaneAlign * kPlaneAlign; };
    const DTypeInfo& info = dtype_info(dtype);
    if (!info.planar()) return {plane_offset(dtype, rows, cols), 0, padded(packed_bytes(dtype, rows, cols))};
    const std::uint64_t blocks = rows * (cols / info.block_elems), extras = padded(blocks * info.planes.codes),
                        biases = extras + padded(blocks * info.planes.scales);
    return {extras, info.planes.biases ? biases : 0, biases + padded(blocks * info.planes.biases)};
}

void pack_blocks(DType dtype, const std::byte* from, std::uint64_t blocks, std::byte* codes, std::byte* rest) {
    kPackers[static_cast<std::size_t>(find_row(dtype) - kRows)](from, blocks, codes, rest);
}

}  // namespace akunu::cuda
