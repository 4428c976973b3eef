#include "plan/image_stem.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace akunu {

// A film's frames have weights of their own, [dim, channels, frames, values of a channel], or each a tensor. Of a
// picture, whose frames are equal, they are added up.
ImageStem::ImageStem(const ModelConfig& config, Loader& loader)
    : config_(config),
      pixel_norm_(loader.optional_norm("pixel_norm", config.image->values)),
      norm_(loader.optional_norm("patches_norm", config.dim)),
      bias_(loader.optional_vector("patches_bias", config.dim)) {
    const ImageConfig& image = *config.image;
    const std::size_t dim = config.dim, values = image.values, frames = image.frames;
    if (frames == 1) {
        weight_ = loader.matmul("patches", dim, values);
        return;
    }
    std::vector<float> sum(dim * values);
    if (loader.has("patches.1")) {
        for (std::size_t f = 0; f < frames; ++f) {
            const auto own = loader.values(f ? "patches." + std::to_string(f) : "patches", dim * values);
            std::ranges::transform(sum, own, sum.begin(), std::plus<>());
        }
    } else {
        const auto all = loader.values("patches", dim * values * frames);
        const std::size_t n = values / image.channels;
        for (std::size_t c = 0; c < dim * image.channels; ++c) {
            for (std::size_t f = 0; f < frames; ++f) {
                for (std::size_t i = 0; i < n; ++i) sum[c * n + i] += all[(c * frames + f) * n + i];
            }
        }
    }
    weight_ = loader.computed(sum, dim, values);
}

void ImageStem::reserve(const Device& device, Activations& a) const {
    a.reserve("pixels", config_.image->values, kActF32 | device.matmul_input(weight_.dtype));
}

void ImageStem::emit(Emitter& e) const {
    const Act& pixels = e.activations.act("pixels");
    const Binding& hidden = e.activations.f32("hidden");
    const std::uint32_t format = e.input_format(weight_), values = config_.image->values;
    if (pixel_norm_) {
        e.layer_norm("pixel_norm", -1, pixels.f32, pixel_norm_, pixels, values, format);
    } else if (format != kActF32) {
        e.quantize("pixels", -1, pixels, values, format);
    }
    e.matmul("patches", -1, pixels, weight_, hidden, {.bias = bias_});
    if (norm_) e.layer_norm("patches_norm", -1, hidden, norm_, {hidden, {}}, config_.dim, kActF32);
    if (!config_.positions) return;
    e.emit(Op::kInsertRows, "positions")
        .buffer(hidden)
        .buffer(e.step.added)
        .buffer(e.step.sources)
        .shape(std::to_string(config_.dim))
        .params(InsertRowsParams{
            .rows = 0, .step = 0, .dim = config_.dim, .width = config_.dim, .offset = 0, .accumulate = 1});
}

}  // namespace akunu
