// EncodedInputs: rows that an encoder made of something that is no text, where a sequence has them in the place of
// tokens, and the rotary positions of rows.
#pragma once

#include "engine/engine_context.h"

namespace akunu {

class EncodedInputs {
  public:
    explicit EncodedInputs(const EngineContext& context) : engine_(context) {}

    // Throws unless this model can take them, and each has its place, and its hash, in the prefix.
    void check(const Prefix& prefix, const SequenceInputs& inputs) const;
    // Buffers for such rows, when they are needed first.
    void reserve() const;
    // Whether an encoder made some of a sequence's next n rows.
    bool is_encoded(const Sequence& s, std::uint32_t n) const;
    // Throws where the next n rows end within an image whose rows see all of it.
    void check_whole_images(const Sequence& s, std::uint32_t n) const;
    // Rows from `row` on are a sequence's next n.
    void place(std::uint32_t row, const Sequence& s, std::uint32_t n) const;
    // The rotary positions of a row that is at position `at` of a sequence, where sets have axes.
    void place_axes(const StepBuffers& step, std::uint32_t row, const Sequence& s, std::uint32_t at) const;

  private:
    const EngineContext& engine_;
};

}  // namespace akunu
