// Inspector: an engine's programs, looked at from outside: plans, profiles, and what a prefix of a step writes.
#pragma once

#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/profile.h"

namespace akunu {

// Which programs, and on what. The rows are one sequence's, which samples after the last; or, with `each_samples`, each
// is that of a sequence of its own, which samples after it.
struct PhaseRun {
    Phase phase = Phase::kDecode;
    std::uint32_t rows = 1, position = 0;
    bool each_samples = false;
    std::uint32_t sequences() const { return each_samples ? rows : 1; }
};

// A command's buffer, by its name in the op's row, and what it holds.
struct Written {
    std::string_view name;
    std::vector<std::byte> bytes;
};

class Inspector {
  public:
    explicit Inspector(Engine& engine) : engine_(engine) {}

    // The segments of a step of a phase, with the greedy tail.
    std::vector<Segment> segments_of(const PhaseRun& run) const;
    // Their commands.
    std::vector<CommandInfo> commands(const PhaseRun& run) const;
    // These commands, run as `profile` of profile.h says, of sequences that are decoded from `sound` where there is
    // cross-attention.
    std::vector<CommandInfo> profile(const PhaseRun& run, std::size_t repeats = 1, const Poll& poll = {},
                                     std::uint32_t sound = kNoSound) const;
    // Runs the first `commands` commands of the step that would run all of a slot's tokens that are to be run and
    // sample one, and gives what the last of these commands wrote, the cache apart. The sequence is as before. Throws
    // InvalidArgumentError where activations share memory: of those rows that the step has not, something else would be
    // seen.
    std::vector<Written> run_prefix(std::uint32_t slot, std::uint32_t commands) const;

  private:
    Engine& engine_;
};

}  // namespace akunu
