// What a command that does the work of others takes of them: all that they say, or it may not take their place.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dispatch.h"

namespace akunu::cuda {

// Whether two begin at the same place, or both are none.
inline bool is_same_place(const Binding& a, const Binding& b) {
    return bool(a) == bool(b) && a.buffer.handle == b.buffer.handle && a.offset == b.offset;
}

// One of the commands that are replaced. Each word of its parameters and each buffer that it has is named once: by what
// takes it over, or by what the fused command demands of it. `whole` says that nothing was left out, so that a
// parameter that is added to an op later is refused until somebody takes it, and never dropped.
class Consumed {
  public:
    explicit Consumed(const DispatchCmd& command) : command_(command) {}

    // A parameter's value.
    template <typename P, typename T>
    T take(T P::* field) {
        static_assert(sizeof(T) == sizeof(std::uint32_t));
        T value;
        std::memcpy(&value, command_.params.data() + mark(field), sizeof value);
        return value;
    }
    // A parameter that must have this value.
    template <typename P, typename T>
    void demand(T P::* field, T value) {
        fits_ = take(field) == value && fits_;
    }
    // One that each replay sets, from this source.
    template <typename P, typename T>
    void patched(T P::* field, PatchSource source) {
        const std::size_t offset = mark(field);
        const auto* const end = command_.patches.begin() + command_.n_patches;
        const auto* const patch =
            std::find_if(command_.patches.begin(), end, [&](const Patch& p) { return p.offset == offset; });
        fits_ = patch != end && patch->source == source && patch->times == 1 && fits_;
        ++patches_;
    }
    // A buffer, which may be none.
    const Binding& buffer(std::size_t at) {
        buffers_.set(at);
        return command_.buffers[at];
    }
    // A buffer that must be the same as this one.
    void demand_buffer(std::size_t at, const Binding& same) { fits_ = is_same_place(buffer(at), same) && fits_; }

    // A weight's buffer, whose planes are taken with it.
    const Binding& weight(std::size_t at) {
        weights_ = true;
        for (const WeightPlace& place : weight_places(op_info(command_.op))) {
            if (place.buffer != at || !place.planar()) continue;
            buffers_.set(place.scales);
            buffers_.set(place.biases);
        }
        return buffer(at);
    }

    // Whether all that was demanded holds, and all that the command says was taken. What is 0 says nothing.
    bool whole() const {
        if (!fits_ || patches_ != command_.n_patches) return false;
        for (std::size_t i = 0; i < command_.param_bytes / sizeof(std::uint32_t); ++i) {
            std::uint32_t word = 0;
            std::memcpy(&word, command_.params.data() + i * sizeof word, sizeof word);
            if (word != 0 && !words_[i]) return false;
        }
        for (std::size_t i = 0; i < command_.n_buffers; ++i) {
            if (command_.buffers[i] && !buffers_[i]) return false;
        }
        return command_.n_weights == 0 || weights_;
    }

  private:
    // Its offset, which is noted.
    template <typename P, typename T>
    std::size_t mark(T P::* field) {
        const P params{};
        const std::size_t offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(params.*field)) -
                                                            reinterpret_cast<const std::byte*>(&params));
        words_.set(offset / sizeof(std::uint32_t));
        return offset;
    }

    const DispatchCmd& command_;
    std::bitset<kMaxParamBytes / sizeof(std::uint32_t)> words_;
    std::bitset<kMaxBuffers> buffers_;
    std::size_t patches_ = 0;
    bool fits_ = true, weights_ = false;
};

}  // namespace akunu::cuda
