#include "audio/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace akunu::audio {

namespace {

constexpr std::size_t kMargin = kFrame / 2;  // samples of a frame before its centre
constexpr float kLeastPower = 1e-10f;

// The index of sample i of n >= 1 samples that are reflected, without repeating the outer ones, as often as needed.
std::size_t reflected(std::int64_t i, std::size_t n) {
    const auto period = std::max<std::int64_t>(2 * (static_cast<std::int64_t>(n) - 1), 1);
    const std::int64_t folded = ((i % period) + period) % period;
    return static_cast<std::size_t>(std::min(folded, period - folded));
}

}  // namespace

LogMel::LogMel(std::size_t mels) : filters_(mel_filters(mels)) {}

void LogMel::frames(const float* samples, std::size_t count, float* out, std::size_t stride) const {
    std::array<Lanes, kBins> bins;
    for (std::size_t t = 0; t < count; t += kLanes) {
        const std::size_t lanes = std::min(kLanes, count - t);
        std::array<const float*, kLanes> starts;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            starts[lane] = samples + (t + std::min(lane, lanes - 1)) * kHop;
        }
        spectrum_.power(starts, bins);
        for (std::size_t m = 0; m < filters_.size(); ++m) {
            const MelFilter& filter = filters_[m];
            Lanes sum = {};
            for (std::size_t i = 0; i < filter.weights.size(); ++i)
                sum += bins[filter.first_bin + i] * filter.weights[i];
            const Lanes log = log10(sum > kLeastPower ? sum : kLeastPower + Lanes{});
            for (std::size_t lane = 0; lane < lanes; ++lane) out[m * stride + t + lane] = log[lane];
        }
    }
}

// Whoever feeds fewer than a margin of samples before the end gets them reflected at the end.
void LogMelStream::begin() {
    const std::size_t n = pending_.size();
    std::vector<float> margin(kMargin);
    for (std::size_t i = 0; i < kMargin; ++i) {
        margin[i] = pending_[reflected(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(kMargin), n)];
    }
    pending_.insert(pending_.begin(), margin.begin(), margin.end());
    begun_ = true;
}

void LogMelStream::reflect_end() {
    // pending_ holds all samples from frames_ * kHop - kMargin on; at least a margin of them before the last.
    const std::size_t first = frames_ * kHop;  // of the samples, plus the margin
    const auto at = [&](std::size_t sample) { return pending_[sample + kMargin - first]; };
    for (std::size_t i = 0; i < kMargin; ++i)
        pending_.push_back(at(reflected(static_cast<std::int64_t>(samples_ + i), samples_)));
}

std::vector<float> LogMelStream::feed(std::span<const float> samples, bool end) {
    ended_ = end;
    pending_.insert(pending_.end(), samples.begin(), samples.end());
    samples_ += samples.size();
    if (!begun_ && (samples_ > kMargin || (end && samples_ > 0))) begin();
    if (!begun_) return {};
    if (end) reflect_end();
    std::size_t count = pending_.size() < kFrame ? 0 : (pending_.size() - kFrame) / kHop + 1;
    count = std::min(count, samples_ / kHop - frames_);
    std::vector<float> out(mels() * count);
    log_mel_.frames(pending_.data(), count, out.data(), count);
    frames_ += count;
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count * kHop));
    return out;
}

}  // namespace akunu::audio
