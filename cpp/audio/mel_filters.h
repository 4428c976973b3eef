// The mel filters of Whisper: triangles on Slaney's scale, each of area 1 in Hz (librosa's defaults), from 0 to 8000
// Hz.
#pragma once

#include <cstddef>
#include <vector>

namespace akunu::audio {

struct MelFilter {
    std::size_t first_bin = 0;
    std::vector<float> weights;  // of the bins from first_bin on; the others are 0
};

// `mels` filters over the bins of Spectrum.
std::vector<MelFilter> mel_filters(std::size_t mels);

}  // namespace akunu::audio
