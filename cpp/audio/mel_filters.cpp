#include "audio/mel_filters.h"

#include <algorithm>
#include <cmath>

#include "audio/spectrum.h"

namespace akunu::audio {

namespace {

constexpr double kTop = 8000;  // Hz

// Slaney's scale (Auditory Toolbox, 1998): linear below 1000 Hz, at 200/3 Hz a mel, logarithmic above, 27 mels to a
// factor of 6.4.
constexpr double kLinear = 200.0 / 3, kBreakHz = 1000, kBreakMel = kBreakHz / kLinear;
const double kStep = std::log(6.4) / 27;

double to_mel(double hz) { return hz < kBreakHz ? hz / kLinear : kBreakMel + std::log(hz / kBreakHz) / kStep; }
double to_hz(double mel) { return mel < kBreakMel ? mel * kLinear : kBreakHz * std::exp((mel - kBreakMel) * kStep); }

}  // namespace

std::vector<MelFilter> mel_filters(std::size_t mels) {
    const auto edge = [&](std::size_t i) {
        return to_hz(to_mel(kTop) * static_cast<double>(i) / static_cast<double>(mels + 1));
    };
    std::vector<MelFilter> filters(mels);
    for (std::size_t m = 0; m < mels; ++m) {
        const double low = edge(m), centre = edge(m + 1), high = edge(m + 2);
        MelFilter& filter = filters[m];
        for (std::size_t bin = 0; bin < kBins; ++bin) {
            const double hz = kTop * static_cast<double>(bin) / (kBins - 1);
            const double height = std::min((hz - low) / (centre - low), (high - hz) / (high - centre));
            if (height <= 0) continue;
            if (filter.weights.empty()) filter.first_bin = bin;
            filter.weights.push_back(static_cast<float>(height * 2 / (high - low)));
        }
    }
    return filters;
}

}  // namespace akunu::audio
