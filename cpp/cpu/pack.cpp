#include "cpu/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/recode.h"
#include "cpu/code_stream.h"

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

// The planes of a weight, as fields of its blocks.
class Source {
  public:
    Source(const DTypeInfo& info, std::size_t blocks, const WeightPlanes& at, std::size_t first_row) {
        const std::size_t codes = at.scales ? info.planes.codes : info.block_bytes;
        const std::size_t sizes[3] = {codes, info.planes.scales, info.planes.biases};
        const std::byte* const from[3] = {at.codes, at.scales, at.biases};
        for (std::size_t i = 0, begin = 0; i < 3; begin += sizes[i++]) {
            planes_[i] = {from[i] + first_row * blocks * sizes[i], begin, sizes[i], blocks * sizes[i]};
        }
    }
    struct Plane {
        const std::byte* rows;
        std::size_t begin, block_bytes, row_stride;  // where it begins in a block
    };
    const Plane& plane(std::size_t offset) const {
        return planes_[offset < planes_[1].begin ? 0 : offset < planes_[2].begin ? 1 : 2];
    }

  private:
    Plane planes_[3];
};

template <typename Unit>
void pack_field(const PackField& f, const Source& source, std::size_t blocks, std::size_t n_rows, std::size_t lanes,
                std::byte* to, std::size_t stride) {
    for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t u = 0; u < f.count; ++u) {
            const std::size_t offset = f.offset + u * sizeof(Unit);
            const Source::Plane& plane = source.plane(offset);
            const std::byte* in = plane.rows + b * plane.block_bytes + (offset - plane.begin);
            std::byte* out = to + b * stride + u * lanes * sizeof(Unit);
            for (std::size_t r = 0; r < n_rows; ++r) {
                Unit v;
                std::memcpy(&v, in + r * plane.row_stride, sizeof v);
                if constexpr (sizeof v == 4) {
                    if (f.spread_bits) v = spread(v);
                }
                std::memcpy(out + r * sizeof v, &v, sizeof v);
            }
        }
    }
}

void pack_code_field(const PackField& f, const Source& source, std::size_t blocks, std::size_t n_rows,
                     std::size_t lanes, std::byte* to, std::size_t stride) {
    const Source::Plane& plane = source.plane(f.offset);
    for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t u = 0; u < f.count; u += f.code_bits) {
            const std::byte* in = plane.rows + b * plane.block_bytes + u * 4;
            for (std::size_t r = 0; r < n_rows; ++r) {
                std::uint32_t stream[8], packed[8];
                std::memcpy(stream, in + r * plane.row_stride, f.code_bits * std::size_t{4});
                pack_codes(stream, f.code_bits, packed);
                std::byte* out = to + b * stride + (u * lanes + r) * 4;
                for (std::size_t i = 0; i < f.code_bits; ++i) std::memcpy(out + i * lanes * 4, &packed[i], 4);
            }
        }
    }
}

}  // namespace

DType packed_type(DType dtype) { return dtype == DType::Q1_0 ? dtype : recoded_type(dtype); }

const PackFormat& pack_format(DType dtype) {
    for (const PackFormat& f : kPackFormats) {
        if (f.dtype == dtype) return f;
    }
    throw UnsupportedError("type '" + std::string(dtype_info(dtype).name) + "' cannot be a matmul weight");
}

GroupLayout::GroupLayout(const PackFormat& format, std::size_t blocks, std::size_t lanes) {
    if (const DTypeInfo& info = dtype_info(format.dtype); info.planar()) {
        scale_type = info.scale_type;
        runs = static_cast<unsigned>(std::countr_zero(info.block_elems / 32));
    }
    levels = levels_of(format.dtype);
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
    if (format.dtype == DType::MlxNvfp4) {
        factors = bytes;
        bytes = pack_align(bytes + lanes * sizeof(float));
    }
}

std::uint64_t packed_bytes(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes) {
    dtype = packed_type(dtype);
    const GroupLayout layout(pack_format(dtype), cols / dtype_info(dtype).block_elems, lanes);
    return (rows + lanes - 1) / lanes * layout.bytes;
}

void pack_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, std::size_t lanes, const WeightPlanes& source,
                 std::byte* packed, std::uint64_t first, std::uint64_t last) {
    const DType to = packed_type(dtype);
    const PackFormat& format = pack_format(to);
    const DTypeInfo& info = dtype_info(to);
    const std::size_t blocks = cols / info.block_elems;
    const GroupLayout layout(format, blocks, lanes);
    const std::uint64_t row = row_bytes(to, cols), file_row = row_bytes(dtype, cols);
    std::vector<std::byte> recoded(to == dtype ? 0 : lanes * row);  // the rows of a group
    for (std::uint64_t g = first; g < last; ++g) {
        const std::size_t n_rows = std::min<std::size_t>(lanes, rows - g * lanes);
        std::byte* group = packed + g * layout.bytes;
        for (std::size_t r = 0; r < n_rows && to != dtype; ++r) {
            recode_row(dtype, source.codes + (g * lanes + r) * file_row, recoded.data() + r * row, cols);
        }
        const Source in = to == dtype ? Source(info, blocks, source, g * lanes)
                                      : Source(info, blocks, {recoded.data(), nullptr, nullptr, 1}, 0);
        if (layout.factors) {
            const std::vector<float> halves(lanes, source.factor / 2);
            std::memcpy(group + layout.factors, halves.data(), lanes * sizeof(float));
        }
        for (std::size_t i = 0; i < format.n_fields; ++i) {
            const PackField& f = format.fields[i];
            const auto pack = f.code_bits   ? pack_code_field
                              : f.unit == 1 ? pack_field<std::uint8_t>
                              : f.unit == 2 ? pack_field<std::uint16_t>
                                            : pack_field<std::uint32_t>;
            pack(f, in, blocks, n_rows, lanes, group + layout.field[i], layout.stride[i]);
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
            std::byte* at = out + b * info.block_bytes + f.offset;
            for (std::size_t u = 0; u < f.count; ++u) std::memcpy(at + u * f.unit, in + u * lanes * f.unit, f.unit);
            for (std::size_t u = 0; f.spread_bits && u < f.count; ++u) {
                std::uint32_t v;
                std::memcpy(&v, at + u * 4, 4);
                v = gather(v);
                std::memcpy(at + u * 4, &v, 4);
            }
            for (std::size_t u = 0; f.code_bits && u < f.count; u += f.code_bits) {
                std::uint32_t words[8], stream[8];
                std::memcpy(words, at + u * 4, f.code_bits * std::size_t{4});
                unpack_codes(words, f.code_bits, stream);
                std::memcpy(at + u * 4, stream, f.code_bits * std::size_t{4});
            }
        }
    }
}

void join_row(DType dtype, std::uint64_t cols, const WeightPlanes& source, std::uint64_t row, std::byte* out) {
    const DTypeInfo& info = dtype_info(dtype);
    const std::size_t blocks = cols / info.block_elems;
    const Source from(info, blocks, source, row);
    for (const std::size_t offset :
         {std::size_t{0}, std::size_t{info.planes.codes}, std::size_t{info.planes.codes} + info.planes.scales}) {
        if (offset == info.block_bytes) break;  // no biases
        const Source::Plane& plane = from.plane(offset);
        for (std::size_t b = 0; b < blocks; ++b) {
            std::memcpy(out + b * info.block_bytes + offset, plane.rows + b * plane.block_bytes, plane.block_bytes);
        }
    }
}

}  // namespace akunu::cpu
