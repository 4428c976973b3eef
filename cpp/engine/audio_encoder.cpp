#include "engine/audio_encoder.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"

namespace akunu {

namespace {

ModelConfig hearing(ModelConfig config) {
    if (!config.audio) throw InvalidArgumentError("this model hears nothing");
    return config;
}

}  // namespace

AudioEncoder::AudioEncoder(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
                           Engine& decoder, const Progress& progress)
    : LoadedModel(std::move(device), hearing(std::move(config)), std::move(source), 0, progress) {
    if (decoder.config().sound_positions() != config_.positions || decoder.config().dim != config_.dim) {
        throw InvalidArgumentError("the decoder does not attend to what this encoder makes");
    }
    StepBuffers& s = step_;
    s.max_rows = config_.positions;
    s.max_pages = pages_for(config_.positions);
    const Binding table = allocate_kv_of_one_step(s.max_pages, 1);
    std::iota(table.host<u32>(), table.host<u32>() + s.max_pages, 0u);
    decoder.reserve_sound(activations_);
    model_->upload_frequencies(*device_);
    const auto shared = [&](std::uint64_t bytes) { return own(bytes, &MemoryUse::scratch); };
    s.rows = shared(s.max_rows * sizeof(Row));
    sound_rows_ = shared(s.max_rows * sizeof(Row));
    for (u32 i = 0; i < s.max_rows; ++i) s.rows.host<Row>()[i] = {0, i};
    const auto tables = [&](const PlanContext& plan) {
        std::vector<DispatchTable> both;
        both.push_back(model_->body(plan, Phase::kPrefill));
        both.push_back(decoder.sounds().table(plan.activations, sound_rows_, s.max_rows));
        return both;
    };
    allocate_activations(s.max_rows, tables);
    std::vector<DispatchTable> both = tables(plan());
    body_ = device_->compile(std::move(both[0]));
    sound_ = device_->compile(std::move(both[1]));
    prepare_kernels(progress);
}

void AudioEncoder::place(std::span<const float> mel, std::uint32_t sound) {
    const std::size_t mels = config_.audio->mels, n = frames();
    if (mel.size() != mels * n) {
        throw InvalidArgumentError("a sound has " + std::to_string(mel.size()) + " values, expected " +
                                   std::to_string(mels) + " x " + std::to_string(n));
    }
    std::vector<float> rows(mel.size());
    for (std::size_t m = 0; m < mels; ++m) {
        for (std::size_t t = 0; t < n; ++t) rows[t * mels + m] = mel[m * n + t];
    }
    device_->upload(activations_.memory("frames"), std::as_bytes(std::span(rows)));
    for (u32 i = 0; i < step_.max_rows; ++i) sound_rows_.host<Row>()[i] = {sound, i};
}

std::array<Segment, 2> AudioEncoder::segments() const {
    const ReplayArgs args{.rows = step_.max_rows, .logits = 0, .keys = step_.max_rows};
    return {{{body_.get(), args}, {sound_.get(), args}}};
}

bool AudioEncoder::encode(std::span<const float> mel, std::uint32_t sound, const Poll& poll) {
    check_weights();
    place(mel, sound);
    cancelled_ = false;
    const auto stop = [&] { return cancelled_.load() || (poll && poll()); };
    Control control;
    return device_->replay({.segments = segments()}, control, stop, {}) == 1;
}

std::vector<CommandInfo> AudioEncoder::profile(std::uint32_t sound, std::size_t repeats, const Poll& poll) {
    place(std::vector<float>(config_.audio->mels * std::size_t{frames()}), sound);
    return akunu::profile(*device_, segments(), repeats, poll);
}

void AudioEncoder::states(std::span<float> out) const {
    device_->download(activations_.memory("hidden"), std::as_writable_bytes(out));
}

}  // namespace akunu
