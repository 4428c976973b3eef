#include "cpu/split.h"

#include <algorithm>
#include <vector>

#include "core/dequantize.h"
#include "core/half.h"

namespace akunu::cpu {

void split_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, const std::byte* source, std::byte* split,
                  std::uint64_t first, std::uint64_t last) {
    const std::size_t steps = split_steps(cols), step_bytes = split_step_bytes(dtype),
                      row_size = row_bytes(dtype, cols);
    std::vector<float> x(steps * kSplitColumns);
    for (std::uint64_t g = first; g < last; ++g) {
        for (std::size_t r = 0; r < kSplitRows; ++r) {
            const std::uint64_t row = g * kSplitRows + r;
            if (row < rows) {
                dequantize_row(dtype, source + row * row_size, x.data(), cols);
            } else {
                std::ranges::fill(x, 0.0f);
            }
            for (std::size_t c = 0; c < x.size(); ++c) {
                std::byte* step = split + (g * steps + c / kSplitColumns) * step_bytes;
                auto* high =
                    reinterpret_cast<std::uint16_t*>(step) + (c % kSplitColumns / 2 * kSplitRows + r) * 2 + c % 2;
                *high = float_to_bf16(x[c]);
                if (step_bytes > kSplitTile) high[kSplitTile / 2] = float_to_bf16(x[c] - bf16_to_float(*high));
            }
        }
    }
}

}  // namespace akunu::cpu
