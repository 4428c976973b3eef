#include "engine/image_patches.h"

#include <algorithm>
#include <cstddef>

namespace akunu {

void cut_patches(const Picture& picture, std::span<float> out) {
    const std::size_t side = picture.side, merge = picture.merge, line = std::size_t{picture.width} * 3;
    const std::size_t plane = side * side;
    float* to = out.data();
    const auto cut = [&](const std::uint8_t* first) {
        for (std::size_t channel = 0; channel < 3; ++channel) {
            const float* const values = picture.values[channel].data();
            for (std::size_t y = 0; y < side; ++y) {
                const std::uint8_t* const from = first + y * line + channel;
                for (std::size_t x = 0; x < side; ++x) to[y * side + x] = values[from[3 * x]];
            }
            for (std::size_t frame = 1; frame < picture.frames; ++frame) std::copy_n(to, plane, to + frame * plane);
            to += picture.frames * plane;
        }
    };
    for (std::size_t row = 0; row < picture.rows(); row += merge) {
        for (std::size_t column = 0; column < picture.columns(); column += merge) {
            for (std::size_t i = 0; i < merge * merge; ++i) {
                const std::size_t y = (row + i / merge) * side, x = (column + i % merge) * side;
                cut(picture.pixels.data() + y * line + x * 3);
            }
        }
    }
}

}  // namespace akunu
