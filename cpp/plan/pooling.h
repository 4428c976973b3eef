// PoolingHead: the end of an encoder. One vector of each sequence's rows, and the layers that it goes through.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/emitter.h"
#include "plan/loader.h"

namespace akunu {

class PoolingHead {
  public:
    // `config` must outlive it.
    PoolingHead(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& activations) const;
    // StepBuffers::vectors = head(pool(hidden)); the commands' rows are sequences.
    void emit(Emitter& e) const;
    // Elements of a vector.
    std::uint32_t width() const { return width_; }

  private:
    struct Layer {
        Weight weight;
        Vector bias;
        Norm norm;
        std::optional<Activation> activation;
    };
    static std::string input(std::size_t layer) { return "head_input." + std::to_string(layer); }

    const ModelConfig& config_;
    std::vector<Layer> layers_;
    std::uint32_t width_ = 0;
};

}  // namespace akunu
