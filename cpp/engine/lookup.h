// Drafts by lookup: what followed the tokens that a sequence ends with where they stood before, in it or in another
// sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace akunu {

class Lookup {
  public:
    // What may follow a sequence, and how many tokens agreed there; nothing where fewer than `kRun` did.
    struct Proposal {
        std::size_t agree = 0;
        std::vector<std::uint32_t> tokens;
    };
    static constexpr std::size_t kRun = 3;         // tokens that must agree before anything is proposed
    static constexpr std::size_t kEnough = 24;     // beyond which a longer agreement says nothing more
    static constexpr std::size_t kCandidates = 8;  // places of a sequence that are compared, latest first
    static constexpr std::size_t kMost = 16;       // tokens of a proposal

    std::size_t size() const { return tokens_.size(); }
    void extend(std::span<const std::uint32_t> tokens);
    // From the longest match of this sequence's end in it, or, where fewer than `own` tokens agree, in others.
    Proposal propose(std::span<const Lookup* const> others, std::size_t own) const;

  private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    struct Match {
        std::size_t end = 0, length = 0;  // the place behind it
    };

    // Runs that are different may have one key: every place is compared.
    static std::uint64_t key(const std::uint32_t* run);
    // The longest match of a sequence's end among the places from `at` on.
    Match longest(const Lookup& sequence, std::uint32_t at) const;
    std::uint32_t latest(std::uint64_t run) const;

    std::vector<std::uint32_t> tokens_;
    std::unordered_map<std::uint64_t, std::uint32_t> latest_;  // the last token of each run, where it stood last
    std::vector<std::uint32_t> before_;                        // where the run that a token ends stood before that
};

}  // namespace akunu
