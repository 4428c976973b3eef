// Encoder: a loaded model that makes a vector of each text. Texts of any length run together, without padding; all of a
// text is in one step, so keys and values are activations like others, and nothing outlives the step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/model.h"
#include "core/weight_source.h"
#include "engine/engine.h"
#include "plan/model.h"

namespace akunu {

struct EncoderText {
    std::span<const std::uint32_t> ids;
    std::uint32_t second = 0;  // from this row on its rows are of kind 1; 0: none are
};

class Encoder {
  public:
    // `context`: tokens of a text at most; 0: the model's, at most kDefaultContext.
    Encoder(std::unique_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
            std::uint32_t context, const Progress& progress);

    // Writes [texts, width] floats, and calls `done(n)` when the first n are made. Returns how many are: all, unless
    // `poll` or `cancel` stopped it. No two calls may overlap; `cancel` may be called at any time.
    std::size_t encode(std::span<const EncoderText> texts, float* out, const Poll& poll,
                       const std::function<void(std::size_t)>& done);
    void cancel() { cancelled_ = true; }

    const ModelConfig& config() const { return config_; }
    const Device& device() const { return *device_; }
    std::uint32_t context() const { return context_; }
    std::uint32_t width() const { return model_->width(); }
    MemoryUse memory() const { return memory_; }

  private:
    void allocate();
    Binding own(std::uint64_t bytes, MemoryKind kind = MemoryKind::kShared);
    // Rows of as many texts as a step takes, from the first on; returns how many.
    std::size_t fill(std::span<const EncoderText> texts, ReplayArgs& args);
    void check(std::span<const EncoderText> texts) const;

    std::shared_ptr<WeightSource> source_;  // kept while weights are used from the mapping, longer than the device
    std::unique_ptr<Device> device_;
    ModelConfig config_;
    std::vector<DeviceBuffer> owned_;
    std::unique_ptr<Model> model_;
    Activations activations_;
    StepBuffers step_;
    std::unique_ptr<Program> body_, vectors_;
    MemoryUse memory_;
    std::uint32_t context_ = 0, pages_ = 0;
    std::atomic<bool> cancelled_{false};
};

}  // namespace akunu
