#include "cpu/pack.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"

namespace akunu::cpu {

namespace {

std::uint32_t spread(std::uint32_t v) {
    std::uint32_t r = 0;
    for (int b = 0; b < 32; ++b) r |= ((v >> b) & 1u) << ((b % 4) * 8 + b / 4);
    return r;
}

std::uint32_t gather(std::uint32_t v) {
    std::uint32_t r = 0;
    for (int b = 0; b < 32; ++b) r |= ((v >> ((b % 4) * 8 + b / 4)) & 1u) << b;
    return r;
}

template <typename Unit>
void pack_field(const PackField& f, const std::byte* rows, std::size_t row_stride, std::size_t block_bytes,
                std::size_t blocks, std::size_t n_rows, std::size_t lanes, std::byte* to, std::size_t stride) {
    for (std::size_t b = 0; b < blocks; ++b) {
        const std::byte* block = rows + b * block_bytes + f.offset;
        for (std::size_t u = 0; u < f.count; ++u) {
            std::byte* out = to + b * stride + u * lanes * sizeof(Unit);
            const std::byte* in = block + u * sizeof(Unit);
            for (std::size_t r = 0; r < n_rows; ++r) {
                Unit v;
                std::memcpy(&v, in + r * row_stride, sizeof v);
                if constexpr (sizeof v == 4) {
                    if (f.spread_bits) v = spread(v);
                }
                std::memcpy(out + r * sizeof v, &v, sizeof v);
            }
        }
    }
}

}  // namespace

const PackFormat& pack_format(DType dtype) {
    for (const PackFormat& f : kPackFormats) {
        if (f.dtype == dtype) return f;
    }
    throw UnsupportedError("type '" + std::string(dtype_info(dtype).name) + "' cannot be a matmul weight");
}

GroupLayout::GroupLayout(const PackFormat& format, std::size_t blocks, std::size_t lanes) {
    bytes = pack_align(blocks * format.record_bytes(lanes));
    for (std::size_t i = 0; i < format.n_fields; ++i) {
        if (format.in_record(i)) {
            field[i] = format.record_offset(i, lanes);
            stride[i] = format.record_bytes(lanes);
        } else {
            field[i] = bytes;
            stride[i] = format.field_bytes(i, lanes);
            bytes = pack_align(bytes + blocks * stride[i]);
        }
    }
}

std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes) {
    const GroupLayout layout(pack_format(dtype), cols / dtype_info(dtype).block_elems, lanes);
    return (rows + lanes - 1) / lanes * layout.bytes;
}

void pack_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes,
                 std::span<const std::byte> source, std::byte* packed, std::uint64_t first, std::uint64_t last) {
    const PackFormat& format = pack_format(dtype);
    const DTypeInfo& info = dtype_info(dtype);
    const std::size_t blocks = cols / info.block_elems, stride = blocks * info.block_bytes;
    const GroupLayout layout(format, blocks, lanes);
    for (std::uint64_t g = first; g < last; ++g) {
        const std::size_t n_rows = std::min<std::size_t>(lanes, rows - g * lanes);
        std::byte* group = packed + g * layout.bytes;
        const std::byte* in = source.data() + g * lanes * stride;
        for (std::size_t i = 0; i < format.n_fields; ++i) {
            const PackField& f = format.fields[i];
            std::byte* to = group + layout.field[i];
            switch (f.unit) {
                case 1:
                    pack_field<std::uint8_t>(f, in, stride, info.block_bytes, blocks, n_rows, lanes, to,
                                             layout.stride[i]);
                    break;
                case 2:
                    pack_field<std::uint16_t>(f, in, stride, info.block_bytes, blocks, n_rows, lanes, to,
                                              layout.stride[i]);
                    break;
                default:
                    pack_field<std::uint32_t>(f, in, stride, info.block_bytes, blocks, n_rows, lanes, to,
                                              layout.stride[i]);
            }
        }
    }
}

void unpack_row(DType dtype, std::uint64_t cols, std::size_t lanes, const std::byte* packed, std::uint64_t row,
                std::byte* out) {
    const PackFormat& format = pack_format(dtype);
    const DTypeInfo& info = dtype_info(dtype);
    const std::size_t blocks = cols / info.block_elems;
    const GroupLayout layout(format, blocks, lanes);
    const std::byte* group = packed + row / lanes * layout.bytes;
    const std::size_t lane = row % lanes;
    for (std::size_t i = 0; i < format.n_fields; ++i) {
        const PackField& f = format.fields[i];
        for (std::size_t b = 0; b < blocks; ++b) {
            const std::byte* in = group + layout.field[i] + b * layout.stride[i] + lane * f.unit;
            for (std::size_t u = 0; u < f.count; ++u, in += lanes * f.unit) {
                std::byte* at = out + b * info.block_bytes + f.offset + u * f.unit;
                std::memcpy(at, in, f.unit);
                if (!f.spread_bits) continue;
                std::uint32_t v;
                std::memcpy(&v, at, 4);
                v = gather(v);
                std::memcpy(at, &v, 4);
            }
        }
    }
}

}  // namespace akunu::cpu
