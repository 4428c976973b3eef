// The power spectrum of Whisper's frames: a discrete Fourier transform of 400 samples, that is bins of 40 Hz at 16 kHz.
//
// 400 real samples are 200 complex ones, transformed by radices 5, 5, 4 and 2 (Stockham's order, which needs no
// reversal), and one pass that takes the two halves apart.
#pragma once

#include <array>
#include <cstddef>

#include "audio/lanes.h"

namespace akunu::audio {

inline constexpr std::size_t kFrame = 400;            // samples of a frame
inline constexpr std::size_t kBins = kFrame / 2 + 1;  // 0, 40, … 8000 Hz at 16 kHz

class Spectrum {
  public:
    Spectrum();

    // |DFT(hann * frame)|^2 of four frames; frames[i] points to kFrame samples.
    void power(const std::array<const float*, kLanes>& frames, std::array<Lanes, kBins>& bins) const;

  private:
    static constexpr std::size_t kHalf = kFrame / 2;
    struct Root {
        float re, im;
    };

    std::array<float, kFrame> window_;    // periodic Hann
    std::array<Root, kHalf> roots_;       // exp(-2 pi i k / 200)
    std::array<Root, kBins> half_roots_;  // exp(-2 pi i k / 400)

    template <std::size_t R>
    void pass(const Complex* from, Complex* to, std::size_t length, std::size_t stride) const;
};

}  // namespace akunu::audio
