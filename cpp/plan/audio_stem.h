// AudioStem: the beginning of an encoder of sound: hidden = gelu(conv2(gelu(conv1(frames)))) + positions.
#pragma once

#include "plan/emitter.h"
#include "plan/loader.h"

namespace akunu {

class AudioStem {
  public:
    // The second convolution takes so many frames for each of the encoder's positions.
    static constexpr u32 kStride = 2;

    // `config` must outlive it.
    AudioStem(const ModelConfig& config, Loader& loader);
    // The vectors of its positions: the file's, or sines and cosines.
    static Vector load_positions(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& activations) const;
    void emit(Emitter& e) const;

  private:
    static constexpr u32 kTaps = 3;  // of both

    struct Convolution {
        Weight weight;
        Vector bias;
    };
    u32 frames() const { return config_.positions * kStride; }
    // out = gelu(W·unfold(x) + bias): `rows` rows of x [frames, channels]
    void convolve(Emitter& e, const std::string& name, const Convolution& c, const Binding& x, u32 channels, u32 stride,
                  const Binding& out) const;

    const ModelConfig& config_;
    Convolution first_, second_;
};

}  // namespace akunu
