// ImageStem: the beginning of an encoder of images: hidden = pixels·Wᵀ + bias, of the values of each patch, before and
// behind which a norm may stand. Vectors of positions are added then, where the model has them; whose they are depends
// on the picture's size.
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
