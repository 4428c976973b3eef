// Engine: the sounds that texts are decoded from, where blocks have cross-attention, and the rules of transcripts.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace akunu {

void Engine::allocate_sounds(const EngineOptions& options) {
    if (options.sounds < 1 || options.sounds > kMaxParallel) {
        throw InvalidArgumentError("sounds is " + std::to_string(options.sounds) + ", expected 1.." +
                                   std::to_string(kMaxParallel));
    }
    sounds_.resize(options.sounds);
    StepBuffers& s = step_;
    std::vector<std::uint64_t> bytes;
    for (const Kept& kept : model_->keeps(*device_, s.kv_types)) bytes.push_back(kept.sound_page_bytes);
    const RecordLayout layout(bytes);
    const std::uint32_t max_pages = pages_for(config_.sound_positions());
    const std::uint64_t pages = checked_product({options.sounds, max_pages});
    const Binding cache = own(checked_product({pages, layout.end}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    const Binding tables = own(pages * sizeof(u32), &MemoryUse::scratch);
    std::iota(tables.host<u32>(), tables.host<u32>() + pages, 0u);
    for (const Binding& kv : layout.in(cache)) {
        s.sound_kv.push_back({kv, tables, max_pages, static_cast<std::uint32_t>(layout.end / 4)});
    }
    s.sound_rows = own(checked_product({s.max_rows, sizeof(Row)}), &MemoryUse::scratch);
    s.rules = own(options.parallel * sizeof(SpeechRules), &MemoryUse::scratch);
    s.forbidden =
        own(checked_product({options.parallel, 2, mask_words(config_.vocab_size), sizeof(u32)}), &MemoryUse::scratch);
}

void Engine::allocate_aligned() {
    StepBuffers& s = step_;
    if (s.aligned_rows) return;
    s.aligned_rows = std::min(s.max_rows, kLogitsRows);
    for (const BlockConfig& block : config_.blocks) {
        const auto* cross = std::get_if<CrossAttentionConfig>(&block.mixer);
        const std::vector<u32> heads = cross ? cross->aligned : std::vector<u32>{};
        s.heads.push_back(heads.empty() ? Binding{} : own(heads.size() * sizeof(u32), &MemoryUse::scratch));
        std::ranges::copy(heads, s.heads.back().host<u32>());
    }
    s.aligned =
        own(checked_product({config_.aligned_heads(), s.aligned_rows, config_.sound_positions(), sizeof(float)}),
            &MemoryUse::scratch);
}

std::optional<std::uint32_t> Engine::open_sound() {
    const auto free = std::ranges::find(sounds_, 0u);
    if (free == sounds_.end()) return std::nullopt;
    *free = 1;
    return static_cast<std::uint32_t>(free - sounds_.begin());
}

void Engine::hold_sound(std::uint32_t sound) {
    if (sound >= sounds_.size() || sounds_[sound] == 0) {
        throw InvalidArgumentError("a text of this model is decoded from a sound that was encoded, and there is none");
    }
    ++sounds_[sound];
}

void Engine::release_sound(std::uint32_t sound) { --sounds_[sound]; }

void Engine::close_sound(std::uint32_t sound) {
    if (sound < sounds_.size() && sounds_[sound] != 0) release_sound(sound);
}

std::unique_ptr<Program> Engine::compile_sound(const Activations& activations, const Binding& rows,
                                               std::uint32_t max_rows) const {
    StepBuffers step = step_;
    step.sound_rows = rows;
    step.max_rows = max_rows;
    return device_->compile(model_->sound({*device_, config_, activations, step}));
}

void Engine::set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                       std::span<const std::uint32_t> not_first) {
    Sequence& s = opened(slot);
    const std::size_t n = mask_words(config_.vocab_size);
    if (!config_.sound_positions())
        throw UnsupportedError("only transcripts have such rules, and this model hears nothing");
    if (never.size() != n || not_first.size() != n) {
        throw InvalidArgumentError("a mask has " + std::to_string(std::min(never.size(), not_first.size())) +
                                   " words, expected " + std::to_string(n));
    }
    step_.rules.host<SpeechRules>()[slot] = rules;
    u32* masks = step_.forbidden.host<u32>() + slot * 2 * n;
    std::ranges::copy(never, masks);
    std::ranges::copy(not_first, masks + n);
    s.ruled = true;
}

}  // namespace akunu
