#include "plan/audio_stem.h"

#include <cmath>

namespace akunu {

AudioStem::AudioStem(const ModelConfig& config, Loader& loader) : config_(config) {
    const auto load = [&](const std::string& name, u32 in) {
        return Convolution{loader.convolution(name, config.dim, in, kTaps, config.audio->taps_last),
                           loader.vector(name + "_bias", config.dim)};
    };
    first_ = load("conv1", config.audio->mels);
    second_ = load("conv2", config.dim);
}

// Positions have wavelengths from 2π to 20000π, sines in one half and cosines in the other (Radford et al., 2022,
// "Robust Speech Recognition via Large-Scale Weak Supervision").
Vector AudioStem::load_positions(const ModelConfig& config, Loader& loader) {
    const std::size_t n = config.positions, dim = config.dim, half = dim / 2;
    if (loader.has("positions")) return loader.vector("positions", n * dim);
    std::vector<float> values(n * dim);
    for (std::size_t i = 0; i < half; ++i) {
        const double frequency = std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(half - 1));
        for (std::size_t p = 0; p < n; ++p) {
            values[p * dim + i] = static_cast<float>(std::sin(static_cast<double>(p) * frequency));
            values[p * dim + half + i] = static_cast<float>(std::cos(static_cast<double>(p) * frequency));
        }
    }
    return loader.computed(values);
}

// The first convolution has kStride rows for each of the encoder's: both lie in one of ours.
void AudioStem::reserve(const Device& device, Activations& a) const {
    a.reserve("frames", std::uint64_t{kStride} * config_.audio->mels);
    a.reserve("unfolded", std::uint64_t{kStride} * kTaps * config_.audio->mels,
              device.matmul_input(first_.weight.dtype));
    a.reserve("unfolded", std::uint64_t{kTaps} * config_.dim, device.matmul_input(second_.weight.dtype));
    a.reserve("conv1", std::uint64_t{kStride} * config_.dim);
}

void AudioStem::emit(Emitter& e) const {
    const Binding &frames = e.activations.f32("frames"), &between = e.activations.f32("conv1");
    convolve(e, "conv1", first_, frames, config_.audio->mels, 1, between);
    convolve(e, "conv2", second_, between, config_.dim, kStride, e.activations.f32("hidden"));
}

void AudioStem::convolve(Emitter& e, const std::string& name, const Convolution& c, const Binding& x, u32 channels,
                         u32 stride, const Binding& out) const {
    const u32 rows = frames() / stride, format = e.input_format(c.weight);
    const Act& unfolded = e.activations.act("unfolded");
    e.emit(Op::kUnfold, name + "_inputs")
        .buffer(x)
        .act(unfolded)
        .shape(shape_of(rows, std::uint64_t{kTaps} * channels))
        .fixed_rows(rows)
        .params(UnfoldParams{
            .rows = 0, .channels = channels, .length = frames(), .taps = kTaps, .stride = stride, .formats = format});
    e.matmul(name, -1, unfolded, c.weight, out, {.bias = c.bias, .fixed_rows = rows});
    e.activate(name + "_act", -1, kActGelu, rows_in(out, config_.dim), {}, {out, {}}, kActF32, rows);
}

}  // namespace akunu
