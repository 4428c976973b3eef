#include "cpu/split.h"

#include "core/half.h"

namespace akunu::cpu {

static void store_split_row(DType dtype, const float* x, std::size_t steps, std::size_t row, std::byte* group) {
    const std::size_t step_bytes = split_step_bytes(dtype);
    for (std::size_t c = 0; c < steps * kWholeColumns; ++c) {
        std::byte* step = group + c / kWholeColumns * step_bytes;
        auto* high = reinterpret_cast<std::uint16_t*>(step) + (c % kWholeColumns / 2 * kWholeRows + row) * 2 + c % 2;
        *high = float_to_bf16(x[c]);
        if (step_bytes > kSplitTile) high[kSplitTile / 2] = float_to_bf16(x[c] - bf16_to_float(*high));
    }
}

const WholeFormat kSplitFormat{split_group_bytes, store_split_row};

}  // namespace akunu::cpu
