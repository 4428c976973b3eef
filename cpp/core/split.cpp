#include "core/split.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "core/dequantize.h"
#include "core/error.h"
#include "core/half.h"

namespace akunu {

namespace {

using Bytes = std::span<const std::byte>;

// Part i of n of each row of a plane that has so many.
Bytes columns_of(Bytes plane, std::uint64_t rows, std::uint64_t i, std::uint64_t n, std::vector<std::byte>& memory) {
    if (plane.empty()) return {};
    const std::uint64_t row = plane.size() / rows, part = row / n;
    memory.resize(rows * part);
    for (std::uint64_t r = 0; r < rows; ++r)
        std::copy_n(plane.data() + r * row + i * part, part, memory.data() + r * part);
    return memory;
}

}  // namespace

TensorPart::TensorPart(const HostTensor& whole, std::uint32_t part, std::uint32_t parts) : tensor_(whole) {
    tensor_.split = Split::kNone;
    if (whole.split == Split::kNone || parts == 1) return;
    tensor_.mapping = {};
    const DTypeInfo& type = dtype_info(whole.dtype);
    if (whole.split == Split::kRows) {
        tensor_.rows = whole.rows / parts;
        const auto own = [&](Bytes plane) { return plane.subspan(plane.size() / parts * part, plane.size() / parts); };
        tensor_.bytes = own(whole.bytes);
        tensor_.scales = own(whole.scales);
        tensor_.biases = own(whole.biases);
        return;
    }
    tensor_.cols = whole.cols / parts;
    if (tensor_.cols % type.block_elems == 0) {
        tensor_.bytes = columns_of(whole.bytes, whole.rows, part, parts, memory_[0]);
        tensor_.scales = columns_of(whole.scales, whole.rows, part, parts, memory_[1]);
        tensor_.biases = columns_of(whole.biases, whole.rows, part, parts, memory_[2]);
        return;
    }
    if (type.planar() || !whole.factors.empty()) {
        throw UnsupportedError("weights of type '" + std::string(type.name) + "' with rows of " +
                               std::to_string(whole.cols) + " are not split over " + std::to_string(parts) +
                               " GPUs, since that would cut groups of " + std::to_string(type.block_elems) +
                               "; they run on one GPU");
    }
    std::vector<float> row(whole.cols);
    memory_[0].resize(whole.rows * tensor_.cols * sizeof(std::uint16_t));
    for (std::uint64_t r = 0; r < whole.rows; ++r) {
        dequantize_row(whole.dtype, whole.bytes.data() + r * row_bytes(whole.dtype, whole.cols), row.data(),
                       whole.cols);
        for (std::uint64_t c = 0; c < tensor_.cols; ++c) {
            const std::uint16_t half = float_to_half(row[part * tensor_.cols + c]);
            std::memcpy(memory_[0].data() + (r * tensor_.cols + c) * sizeof half, &half, sizeof half);
        }
    }
    tensor_.dtype = DType::F16;
    tensor_.bytes = memory_[0];
}

}  // namespace akunu
