// Rows that an encoder made of something that is no text, such as an image, and where they stand in a text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/params.h"

namespace akunu {

// Nobody changes them once they are made.
struct EncodedRows {
    std::vector<float> values;  // [count, width]
    std::uint32_t count = 0, width = 0;
};

// Rows [first, first + count) of these, in the places of a sequence's tokens from `start` on.
struct PlacedRows {
    std::uint32_t start = 0, first = 0, count = 0;
    std::shared_ptr<const EncodedRows> rows;

    std::uint32_t end() const { return start + count; }
};

// What a sequence has besides tokens.
struct SequenceInputs {
    std::vector<PlacedRows> rows;  // in order, side by side at most
    // By which rotary sets with axes turn, of the first so many places; behind them each is one more than the greatest
    // of these, on all axes.
    std::vector<std::array<u32, kPositionAxes>> positions;
};

// Behind the last of its positions: one more than the greatest.
std::uint32_t next_position(const SequenceInputs& inputs);

}  // namespace akunu
