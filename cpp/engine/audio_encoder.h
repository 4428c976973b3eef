// AudioEncoder: a loaded encoder of sound. It leaves what a decoder keeps of a sound in the decoder's cache; all of a
// sound is in one step, so its own keys and values are activations like others.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "engine/profile.h"

namespace akunu {

class AudioEncoder : public LoadedModel {
  public:
    // `decoder` is on the same device, and must outlive it.
    AudioEncoder(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
                 Engine& decoder, const Progress& progress);

    // Log-mel frames, [mels, frames] as `config` has them, into a sound that is open. False when it was cancelled.
    bool encode(std::span<const float> mel, std::uint32_t sound, const Poll& poll);

    // The states of the last sound, [positions, dim].
    void states(std::span<float> out) const;

    // The commands of a sound; and run on silence, into a sound that is open, as `profile` of profile.h says.
    std::vector<CommandInfo> commands() const { return describe(*device_, segments()); }
    std::vector<CommandInfo> profile(std::uint32_t sound, std::size_t repeats, const Poll& poll);

    // Frames of a sound.
    std::uint32_t frames() const { return AudioStem::kStride * config_.positions; }

  private:
    std::array<Segment, 2> segments() const;
    void place(std::span<const float> mel, std::uint32_t sound);

    std::unique_ptr<Program> body_, sound_;
    Binding sound_rows_;
};

}  // namespace akunu
