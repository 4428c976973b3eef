// Float weights in a format of which a set of kernels sums up more products at a time than of F32 (`Whole`): one for
// those of whole sequences, and one for F16 and BF16 weights of all others, with which one row costs no more than their
// bytes.
//
// Rows lie in groups of kWholeRows, columns in steps of kWholeColumns. Rows and columns past the end are zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace akunu::cpu {

constexpr std::size_t kWholeRows = 16, kWholeColumns = 32;
// More do not fit in a worker's memory.
constexpr std::uint64_t kMostWholeColumns = 16384;

// Whether weights of that type, with so many columns, may be in such a format.
constexpr bool can_be_whole(DType dtype, std::uint64_t cols) {
    return (dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16) && cols <= kMostWholeColumns;
}
constexpr std::size_t whole_steps(std::size_t cols) { return (cols + kWholeColumns - 1) / kWholeColumns; }

struct WholeFormat {
    std::size_t (*group_bytes)(DType dtype, std::size_t cols);
    // A row of a group, whole steps of `dtype`'s numbers.
    void (*store_row)(DType dtype, const float* x, std::size_t steps, std::size_t row, std::byte* group);
};

// Packs groups [first, last) of a row-major weight.
void pack_whole(const WholeFormat& format, DType dtype, std::uint64_t rows, std::uint64_t cols, const std::byte* source,
                std::byte* packed, std::uint64_t first, std::uint64_t last);

}  // namespace akunu::cpu
