// Whisper's input: the logarithm of the mel spectrum, 100 frames a second.
//
// Frame t is centred on sample 160 t; at both ends the samples are reflected. n samples have n / 160 frames: OpenAI's
// code drops the last one of a centred transform.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "audio/mel_filters.h"
#include "audio/spectrum.h"

namespace akunu::audio {

inline constexpr std::size_t kHop = 160;  // samples from frame to frame

class LogMel {
  public:
    // `mels`: filters, 80 or 128 in the published models.
    explicit LogMel(std::size_t mels);

    std::size_t mels() const { return filters_.size(); }

    // log10 of the mel power, at least -10, of `count` frames that begin at samples + kHop t, into out[mel * stride +
    // t]. The last frame ends at samples[(count - 1) * kHop + kFrame - 1].
    void frames(const float* samples, std::size_t count, float* out, std::size_t stride) const;

  private:
    Spectrum spectrum_;
    std::vector<MelFilter> filters_;
};

// Frames of samples that come in pieces: those of the whole, bit for bit.
class LogMelStream {
  public:
    explicit LogMelStream(std::size_t mels) : log_mel_(mels) {}

    std::size_t mels() const { return log_mel_.mels(); }

    // Adds samples, the last ones with `end`. The frames that are complete now: [mels, frames], log10 of the power.
    std::vector<float> feed(std::span<const float> samples, bool end);

    bool ended() const { return ended_; }

  private:
    void begin();
    void reflect_end();

    LogMel log_mel_;
    std::vector<float> pending_;  // from the beginning of the next frame on
    std::size_t samples_ = 0;     // that were fed
    std::size_t frames_ = 0;      // that were returned
    bool begun_ = false;          // pending_ begins with the reflected samples
    bool ended_ = false;
};

}  // namespace akunu::audio
