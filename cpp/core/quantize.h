// Rows of weights from one type to another, on all threads of the processor (cpu/quantize.cpp), whatever device they
// are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/dtype.h"

namespace akunu {

// Whether `quantize_rows` makes this type: every weight type.
bool can_quantize(DType type);

struct QuantizeJob {
    std::string_view tensor;  // as messages name it
    DType from = DType::F32;
    std::span<const std::byte> source;                    // `rows` rows of any alignment; of a planar type its codes
    std::span<const std::byte> scales = {}, biases = {};  // its other planes
    std::uint64_t first_row = 0;                          // of the tensor, for messages
    std::uint64_t rows = 0, columns = 0;
    DType to = DType::F32;
    std::span<std::byte> out;
    // Per column, what a squared error counts; empty: all the same.
    std::span<const float> importance;
};

// Fills `out`. The bytes depend on nothing but the job: not on threads, nor on the processor. ModelFileError, with the
// tensor's name and the place, when a value is NaN or infinite; UnsupportedError when it is too large for the type;
// InvalidArgumentError when rows are no whole blocks, a span has another size, or an importance is negative or NaN.
void quantize_rows(const QuantizeJob& job, int threads);

}  // namespace akunu
