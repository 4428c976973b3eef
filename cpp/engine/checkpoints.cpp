#include "engine/checkpoints.h"

namespace akunu {

Checkpoints::Checkpoints(std::uint32_t first, std::uint32_t n) {
    for (std::uint32_t i = n; i-- > 0;) free_.push_back(first + i);
}

const Checkpoint* Checkpoints::find(std::uint32_t page) const {
    const auto at = places_.find(page);
    return at == places_.end() ? nullptr : &at->second->checkpoint;
}

void Checkpoints::touch(std::uint32_t page) { entries_.splice(entries_.begin(), entries_, places_.at(page)); }

std::uint32_t Checkpoints::add(std::uint32_t page, std::uint32_t state_at) {
    if (free_.empty()) drop(entries_.back().page);
    entries_.push_front({page, {free_.back(), state_at}});
    free_.pop_back();
    places_[page] = entries_.begin();
    return entries_.front().checkpoint.record;
}

void Checkpoints::drop(std::uint32_t page) {
    const auto at = places_.find(page);
    if (at == places_.end()) return;
    free_.push_back(at->second->checkpoint.record);
    entries_.erase(at->second);
    places_.erase(at);
}

}  // namespace akunu
