// Sounds: what decoders with cross-attention read of the sounds that sequences are decoded from, and the rules of
// transcripts.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_context.h"

namespace akunu {

class Sounds {
  public:
    Sounds(const EngineContext& context, const EngineOptions& options);

    // A place for a sound; nothing when all are taken. It stays as long as a sequence is decoded from it.
    std::optional<std::uint32_t> open();
    void close(std::uint32_t sound);
    // One more, or one less, is decoded from a sound that is open.
    void hold(std::uint32_t sound);
    void release(std::uint32_t sound);
    std::uint32_t size() const { return static_cast<std::uint32_t>(holders_.size()); }

    // What an encoder adds to its own commands: the segment that computes what is kept of a sound, whose rows are those
    // of `rows`, up to `max_rows`.
    DispatchTable table(const Activations& activations, const Binding& rows, std::uint32_t max_rows) const;

    // What may not come next in a transcript, with masks of the tokens that never come and of those that are not first.
    void set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                   std::span<const std::uint32_t> not_first);

    // Room for the weights of the aligned heads.
    void reserve_aligned();

  private:
    const EngineContext& engine_;
    std::vector<std::uint32_t> holders_;  // of each sound: its owner, and sequences
};

}  // namespace akunu
