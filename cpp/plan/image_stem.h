// ImageStem: the beginning of an encoder of images: hidden (+)= pixels·Wᵀ + bias, of the values of each patch. Where
// the model has vectors of positions, they are in `hidden` before; whose they are depends on the picture's size.
#pragma once

#include "plan/emitter.h"
#include "plan/loader.h"

namespace akunu {

class ImageStem {
  public:
    // `config` must outlive it.
    ImageStem(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& activations) const;
    void emit(Emitter& e) const;

  private:
    const ModelConfig& config_;
    Weight weight_;
    Vector bias_;
};

}  // namespace akunu
