// ImageStem: the beginning of an encoder of images: hidden (+)= pixels·Wᵀ + bias, of the values of each patch, which a
// norm may stand before. Where the model has vectors of positions, they are in `hidden` before; whose they are depends
// on the picture's size. Where a norm stands behind the product, they are in `added`, and added to that.
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
    Norm pixel_norm_, norm_;
    Weight weight_;
    Vector bias_;
};

}  // namespace akunu
