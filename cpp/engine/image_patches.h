// The patches of a picture, as an encoder of images takes them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace akunu {

// A picture of bytes [height, width, 3], and how it is cut: a patch has `side` pixels on a side, and `merge` patches on
// a side become one row. Pixels behind the last whole patch belong to none.
struct Picture {
    std::span<const std::uint8_t> pixels;
    std::uint32_t height = 0, width = 0;
    std::uint32_t side = 0, merge = 1;
    std::uint32_t frames = 1;                        // of a film, which are all this picture
    std::array<std::array<float, 256>, 3> values{};  // of each channel's bytes

    std::uint64_t rows() const { return height / side / merge * merge; }
    std::uint64_t columns() const { return width / side / merge * merge; }
    std::uint64_t floats() const { return rows() * columns() * 3 * frames * side * side; }
};

// Writes all patches [channel, frame, y, x] to `out`, which has `floats()`. Those that become one row stand together,
// row-major in it.
void cut_patches(const Picture& picture, std::span<float> out);

}  // namespace akunu
