#include "engine/lookup.h"

#include <algorithm>

namespace akunu {

std::uint64_t Lookup::key(const std::uint32_t* run) {
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < kRun; ++i) key = (key ^ run[i]) * 0x9E3779B97F4A7C15;
    return key ^ key >> 32;
}

std::uint32_t Lookup::latest(std::uint64_t run) const {
    const auto found = latest_.find(run);
    return found == latest_.end() ? kNone : found->second;
}

void Lookup::extend(std::span<const std::uint32_t> tokens) {
    for (const std::uint32_t token : tokens) {
        tokens_.push_back(token);
        before_.push_back(kNone);
        if (tokens_.size() < kRun) continue;
        const auto last = static_cast<std::uint32_t>(tokens_.size() - 1);
        const auto [place, is_new] = latest_.try_emplace(key(&tokens_[last + 1 - kRun]), last);
        if (is_new) continue;
        before_.back() = place->second;
        place->second = last;
    }
}

Lookup::Match Lookup::longest(const Lookup& sequence, std::uint32_t at) const {
    Match found;
    for (std::size_t n = 0; n < kCandidates && at != kNone && found.length < kEnough; ++n, at = before_[at]) {
        const std::size_t end = at + std::size_t{1};
        if (end == size()) continue;  // nothing follows yet
        const std::size_t most = std::min({kEnough, end, sequence.size()});
        std::size_t length = 0;
        while (length < most && tokens_[at - length] == sequence.tokens_[sequence.size() - 1 - length]) ++length;
        if (length >= kRun && length > found.length) found = {end, length};
    }
    return found;
}

Lookup::Proposal Lookup::propose(std::span<const Lookup* const> others, std::size_t own) const {
    if (size() < kRun) return {};
    const Lookup* sequence = this;
    Match match = longest(*this, before_.back());
    if (match.length < own) {
        const std::uint64_t run = key(&tokens_[size() - kRun]);
        for (const Lookup* other : others) {
            if (other == this) continue;
            const Match there = other->longest(*this, other->latest(run));
            if (there.length > match.length) match = there, sequence = other;
        }
    }
    Proposal out{match.length, {}};
    if (match.length == 0) return out;
    const std::size_t follow = sequence->size() - match.end;
    // A sequence that repeats itself up to its end goes on so.
    const std::size_t n = sequence == this ? kMost : std::min(kMost, follow);
    for (std::size_t i = 0; i < n; ++i) out.tokens.push_back(sequence->tokens_[match.end + i % follow]);
    return out;
}

}  // namespace akunu
