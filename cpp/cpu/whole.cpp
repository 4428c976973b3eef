#include "cpu/whole.h"

#include <algorithm>
#include <vector>

#include "core/dequantize.h"

namespace akunu::cpu {

void pack_whole(const WholeFormat& format, DType dtype, std::uint64_t rows, std::uint64_t cols, const std::byte* source,
                std::byte* packed, std::uint64_t first, std::uint64_t last) {
    const std::size_t steps = whole_steps(cols), row_size = row_bytes(dtype, cols),
                      group_size = format.group_bytes(dtype, cols);
    std::vector<float> x(steps * kWholeColumns);
    for (std::uint64_t row = first * kWholeRows; row < last * kWholeRows; ++row) {
        if (row < rows) {
            dequantize_row(dtype, source + row * row_size, x.data(), cols);
        } else {
            std::ranges::fill(x, 0.0f);
        }
        format.store_row(dtype, x.data(), steps, row % kWholeRows, packed + row / kWholeRows * group_size);
    }
}

}  // namespace akunu::cpu
