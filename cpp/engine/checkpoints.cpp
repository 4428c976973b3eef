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

void Checkpoints::drop(std::uint32_t page) {
    const auto at = places_.find(page);
    if (at == places_.end()) return;
    free_.push_back(at->second->checkpoint.record);
    entries_.erase(at->second);
    places_.erase(at);
}

}  // namespace akunu
