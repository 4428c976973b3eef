// Encoder: a loaded model that makes a vector of each text. Texts of any length run together, without padding; all of a
// text is in one step, so keys and values are activations like others, and nothing outlives the step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/profile.h"

namespace akunu {

struct EncoderText {
    std::span<const std::uint32_t> ids;
    std::uint32_t second = 0;  // from this row on its rows are of kind 1; 0: none are
};

class Encoder : public LoadedModel {
  public:
    // `context`: tokens of a text at most; 0: the model's, at most kDefaultContext.
    Encoder(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
            std::uint32_t context, const Progress& progress);

    // Writes [texts, width] floats, and calls `done(n)` when the first n are made. Returns how many are: all, unless
    // `poll` or `cancel` stopped it. No two calls may overlap.
    std::size_t encode(std::span<const EncoderText> texts, float* out, const Poll& poll,
                       const std::function<void(std::size_t)>& done);
    std::uint32_t width() const { return model_->width(); }

    // The commands of a step of `texts` texts of `tokens` tokens each; and run, as `profile` of profile.h says.
    std::vector<CommandInfo> commands(std::uint32_t tokens, std::uint32_t texts) const {
        return describe(*device_, segments_of(tokens, texts));
    }
    std::vector<CommandInfo> profile(std::uint32_t tokens, std::uint32_t texts, std::size_t repeats, const Poll& poll);

  private:
    void allocate();
    // Rows of as many texts as a step takes, from the first on; returns how many.
    std::size_t fill(std::span<const EncoderText> texts, ReplayArgs& args);
    void check(std::span<const EncoderText> texts) const;
    std::vector<Segment> segments_of(std::uint32_t tokens, std::uint32_t texts) const;

    Binding tables_;  // of pages, one for each text of a step
    std::unique_ptr<Program> body_, vectors_;
};

}  // namespace akunu
