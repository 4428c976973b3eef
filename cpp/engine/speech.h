// Speech: an encoder of sound and a decoder of text on one device, and what is asked of the two together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/audio_encoder.h"
#include "engine/engine.h"
#include "engine/inspector.h"

namespace akunu {

// A stack of a model and where its weights are.
struct Stack {
    ModelConfig config;
    std::shared_ptr<WeightSource> source;
};

class Speech {
  public:
    Speech(const std::shared_ptr<Device>& device, Stack sound, Stack text, const EngineOptions& options,
           const Progress& progress);

    // A sound from log-mel frames [mels, frames]; nothing when it was cancelled.
    std::optional<std::uint32_t> encode(std::span<const float> mel, const Poll& poll);
    void close_sound(std::uint32_t sound) { text_.sounds().close(sound); }

    // A sequence that is decoded from a sound, with its first tokens, which are not run yet; and a copy of one.
    std::uint32_t begin(std::uint32_t sound, std::span<const std::uint32_t> ids);
    std::uint32_t fork(std::uint32_t slot) { return text_.fork(slot); }

    // What each sequence generates, `limit` tokens at most, its end among them, with log p under its rules.
    struct Generation {
        std::uint32_t slot = 0, seed = 0;
        std::vector<std::uint32_t> ids;
        double log_p = 0;
        bool ended = false;
    };
    // False when it was cancelled.
    bool generate(std::span<Generation> sequences, float temperature, std::uint32_t limit, std::uint32_t end,
                  const Poll& poll);

    // The `count` most probable tokens after what each sequence holds, under its rules.
    bool rank(std::span<const std::uint32_t> slots, std::uint32_t count, const Poll& poll,
              const std::function<void(const LogprobRecord&)>& sink);

    // The commands that encode a sound, or, of a `run`, those that decode sequences from one; and run on silence, as
    // `profile` of profile.h says.
    std::vector<CommandInfo> commands(const std::optional<PhaseRun>& run) {
        return run ? Inspector(text_).commands(*run) : sound_.commands();
    }
    std::vector<CommandInfo> profile(const std::optional<PhaseRun>& run, std::size_t repeats, const Poll& poll);

    Engine& text() { return text_; }
    AudioEncoder& sound() { return sound_; }
    MemoryUse memory() const;
    void cancel();

  private:
    // A sound that is open until this is gone, or `keep` is called.
    class OpenSound {
      public:
        explicit OpenSound(Engine& engine);
        ~OpenSound() {
            if (engine_) engine_->sounds().close(sound_);
        }
        OpenSound(const OpenSound&) = delete;
        OpenSound& operator=(const OpenSound&) = delete;
        std::uint32_t number() const { return sound_; }
        std::uint32_t keep() {
            engine_ = nullptr;
            return sound_;
        }

      private:
        Engine* engine_;
        std::uint32_t sound_;
    };

    Engine text_;
    AudioEncoder sound_;
};

}  // namespace akunu
