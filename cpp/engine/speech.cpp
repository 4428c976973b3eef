#include "engine/speech.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace akunu {

namespace {

// Steps between two looks at which sequences have ended: those that have are rows of a chain to its end.
constexpr std::uint32_t kChain = 32;

}  // namespace

Speech::Speech(const std::shared_ptr<Device>& device, Stack sound, Stack text, const EngineOptions& options,
               const Progress& progress)
    : text_(device, std::move(text.config), std::move(text.source), options, progress),
      sound_(device, std::move(sound.config), std::move(sound.source), text_, progress) {}

Speech::OpenSound::OpenSound(Engine& engine) : engine_(&engine) {
    const auto sound = engine.sounds().open();
    if (!sound) {
        throw DeviceError("all " + std::to_string(engine.sounds().size()) +
                          " windows that the model was loaded for are in use: release one, or load it for more");
    }
    sound_ = *sound;
}

std::optional<std::uint32_t> Speech::encode(std::span<const float> mel, const Poll& poll) {
    OpenSound sound(text_);
    if (!sound_.encode(mel, sound.number(), poll)) return std::nullopt;
    return sound.keep();
}

std::vector<CommandInfo> Speech::profile(const std::optional<PhaseRun>& run, std::size_t repeats, const Poll& poll) {
    const OpenSound sound(text_);
    // Once, for sequences to be decoded from.
    std::vector<CommandInfo> encoded = sound_.profile(sound.number(), run ? 0 : repeats, poll);
    return run ? Inspector(text_).profile(*run, repeats, poll, sound.number()) : encoded;
}

std::uint32_t Speech::begin(std::uint32_t sound, std::span<const std::uint32_t> ids) {
    text_.check_ids(ids);
    const std::uint32_t slot = text_.take_slot(sound);
    text_.begin(slot, ids, {}, false);
    return slot;
}

bool Speech::generate(std::span<Generation> sequences, float temperature, std::uint32_t limit, std::uint32_t end,
                      const Poll& poll) {
    for (const Generation& d : sequences) {
        SamplerSettings settings;
        settings.state.temperature = temperature;
        settings.state.seed_lo = d.seed;
        settings.state.want_logprobs = 1;
        settings.state.n_end_ids = 1;
        settings.state.end_ids[0] = end;
        text_.configure(d.slot, settings);
        text_.rerun_last(d.slot);
    }
    std::vector<Generation*> live;
    for (Generation& d : sequences) live.push_back(&d);
    for (std::uint32_t ran_in_all = 0; ran_in_all < limit && !live.empty();) {
        std::uint32_t steps = std::min(kChain, limit - ran_in_all), ran = 0;
        // All sequences of a chain have a row in every step.
        for (const Generation* d : live) steps = std::min(steps, text_.context() - text_.sequence(d->slot).length);
        if (steps == 0) throw ContextLengthError("a sequence fills the context before its end");
        std::vector<Part> parts;
        for (const Generation* d : live) {
            parts.push_back({d->slot, 1, true, steps, {}});
            text_.take_pages(parts.back(), steps);
        }
        const std::vector<Produced> produced = text_.step(parts, steps, poll);
        for (std::size_t i = 0; i < live.size(); ++i) {
            Generation& d = *live[i];
            if (produced[i].ids.empty()) return false;
            d.ids.insert(d.ids.end(), produced[i].ids.begin(), produced[i].ids.end());
            for (const LogprobRecord& r : produced[i].logprobs) d.log_p += static_cast<double>(r.chosen);
            d.ended = produced[i].ended;
            ran = std::max(ran, static_cast<std::uint32_t>(produced[i].ids.size()));
        }
        ran_in_all += ran;  // of many sequences a call takes fewer steps
        std::erase_if(live, [](const Generation* d) { return d->ended; });
    }
    return true;
}

bool Speech::rank(std::span<const std::uint32_t> slots, std::uint32_t count, const Poll& poll,
                  const std::function<void(const LogprobRecord&)>& sink) {
    if (count < 1 || count > kMaxLogprobs) {
        throw InvalidArgumentError("count is " + std::to_string(count) + ", expected 1.." +
                                   std::to_string(kMaxLogprobs));
    }
    SamplerSettings settings;
    settings.state.want_logprobs = 1;
    settings.state.n_logprobs = count;
    std::vector<LogitsRequest> asked;
    for (const std::uint32_t slot : slots) {
        text_.configure(slot, settings);
        text_.rerun_last(slot);
        asked.push_back({slot, {text_.sequence(slot).known - 1}});
    }
    return text_.run(asked, {.logits = {}, .ranks = sink, .aligned = {}}, poll);
}

MemoryUse Speech::memory() const {
    const MemoryUse a = text_.memory(), b = sound_.memory();
    return {a.weights + b.weights, a.weights_mapped + b.weights_mapped, a.kv_cache + b.kv_cache,
            a.scratch + b.scratch, a.activations + b.activations,       a.activations_apart + b.activations_apart};
}

void Speech::cancel() {
    text_.cancel();
    sound_.cancel();
}

}  // namespace akunu
