#include "engine/sounds.h"

#include <algorithm>

#include "engine/records.h"

namespace akunu {

Sounds::Sounds(const EngineContext& context, const EngineOptions& options) : engine_(context) {
    holders_.resize(options.sounds);
    StepBuffers& s = engine_.step;
    s.sound_rows = engine_.own(checked_product({s.max_rows, sizeof(Row)}), &MemoryUse::scratch);
    s.rules = engine_.own(options.parallel * sizeof(SpeechRules), &MemoryUse::scratch);
    s.forbidden =
        engine_.own(checked_product({options.parallel, 2, mask_words(engine_.config.vocab_size), sizeof(u32)}),
                    &MemoryUse::scratch);
}

void Sounds::reserve_aligned() {
    StepBuffers& s = engine_.step;
    if (s.aligned_rows) return;
    s.aligned_rows = std::min(s.max_rows, kLogitsRows);
    for (const BlockConfig& block : engine_.config.blocks) {
        const auto* cross = std::get_if<CrossAttentionConfig>(&block.mixer);
        const std::vector<u32> heads = cross ? cross->aligned : std::vector<u32>{};
        s.heads.push_back(heads.empty() ? Binding{} : engine_.own(heads.size() * sizeof(u32), &MemoryUse::scratch));
        std::ranges::copy(heads, s.heads.back().host<u32>());
    }
    s.aligned = engine_.own(checked_product({engine_.config.aligned_heads(), s.aligned_rows,
                                             engine_.config.sound_positions(), sizeof(float)}),
                            &MemoryUse::scratch);
}

std::optional<std::uint32_t> Sounds::open() {
    const auto free = std::ranges::find(holders_, 0u);
    if (free == holders_.end()) return std::nullopt;
    *free = 1;
    return static_cast<std::uint32_t>(free - holders_.begin());
}

void Sounds::hold(std::uint32_t sound) {
    if (sound >= holders_.size() || holders_[sound] == 0) {
        throw InvalidArgumentError(
            "a sequence of this model is decoded from a sound that was encoded, and there is none");
    }
    ++holders_[sound];
}

void Sounds::release(std::uint32_t sound) { --holders_[sound]; }

void Sounds::close(std::uint32_t sound) {
    if (sound < holders_.size() && holders_[sound] != 0) release(sound);
}

DispatchTable Sounds::table(const Activations& activations, const Binding& rows, std::uint32_t max_rows) const {
    StepBuffers step = engine_.step;
    step.sound_rows = rows;
    step.max_rows = max_rows;
    return engine_.model.sound({engine_.device, engine_.config, activations, step});
}

void Sounds::set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                       std::span<const std::uint32_t> not_first) {
    Sequence& s = engine_.sequences.opened(slot);
    const std::size_t n = mask_words(engine_.config.vocab_size);
    if (never.size() != n || not_first.size() != n) {
        throw InvalidArgumentError("a mask has " + std::to_string(std::min(never.size(), not_first.size())) +
                                   " words, expected " + std::to_string(n));
    }
    engine_.step.rules.host<SpeechRules>()[slot] = rules;
    u32* masks = engine_.step.forbidden.host<u32>() + slot * 2 * n;
    std::ranges::copy(never, masks);
    std::ranges::copy(not_first, masks + n);
    s.ruled = true;
}

}  // namespace akunu
