// Engine: what texts have besides pages where blocks keep a state. It advances with every row, so going back means a
// copy of it from before: a checkpoint, at the end of a page.
#include <algorithm>

#include "core/error.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace akunu {

namespace {

// Positions from one checkpoint of a text to the next.
constexpr std::uint32_t kCheckpointEvery = 16 * kPagePositions;

// The last page's end that a text with the same prompt can use: at least the last token always runs.
std::uint32_t prompt_checkpoint(const Sequence& s) {
    return s.prompt ? (s.prompt - 1) / kPagePositions * kPagePositions : 0;
}

}  // namespace

void Engine::allocate_states(std::uint64_t kv_bytes) {
    const RecordLayout layout(model_->state_bytes());
    if (layout.end == 0) return;
    state_bytes_ = layout.end;
    step_.state_words = static_cast<std::uint32_t>(state_bytes_ / 4);
    // Beside each slot's own: what it began with and what it leaves, or more where there is room beside the pages.
    constexpr std::uint64_t kShare = 4, kMost = std::uint64_t{1} << 16;
    const auto slots = static_cast<std::uint32_t>(sequences_.size());
    const std::uint64_t n = std::clamp<std::uint64_t>(kv_bytes / kShare / state_bytes_, 2ull * slots, kMost);
    checkpoints_ = std::make_unique<Checkpoints>(slots, static_cast<std::uint32_t>(n));
    step_.states = own(checked_product({slots + n, state_bytes_}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    step_.state = layout.in(step_.states);
    step_.state_spans = own(slots * sizeof(StateSpan), &MemoryUse::scratch);
}

std::uint32_t Engine::next_checkpoint(const Sequence& s) const {
    const std::uint32_t next = (s.length / kCheckpointEvery + 1) * kCheckpointEvery, of_prompt = prompt_checkpoint(s);
    return of_prompt > s.length ? std::min(next, of_prompt) : next;
}

std::uint32_t Engine::shorten(Part& part, std::uint32_t steps) const {
    const Sequence& s = sequences_.at(part.slot);
    if (s.state_at == kLostState) {
        throw InvalidArgumentError("the last step of slot " + std::to_string(part.slot) +
                                   " failed: truncate its text, or begin it anew");
    }
    if (part.drafts.size() > kStashRows) {
        throw InvalidArgumentError("slot " + std::to_string(part.slot) + " has " + std::to_string(part.drafts.size()) +
                                   " drafts, this model takes " + std::to_string(kStashRows));
    }
    const std::uint32_t room = next_checkpoint(s) - s.length;
    part.sample = part.sample && part.rows <= room;
    part.rows = std::min(part.rows, room);
    part.drafts.resize(std::min<std::size_t>(part.drafts.size(), part.sample ? room - part.rows : 0));
    return std::min(steps, room);
}

void Engine::settle_state(const Part& part, bool whole) {
    Sequence& s = sequences_[part.slot];
    if (!whole) return go_back(part.slot, s.length);
    // Drafts that held are stashed yet.
    const StateSpan& span = step_.state_spans.host<StateSpan>()[part.slot];
    s.state_at = part.drafts.empty() ? s.length : span.to;
    if (s.length % kCheckpointEvery == 0 || s.length == prompt_checkpoint(s)) keep_checkpoint(part.slot);
}

void Engine::keep_checkpoint(std::uint32_t slot) {
    const Sequence& s = sequences_[slot];
    if (s.length == 0 || s.state_at > s.length || s.published < pages_for(s.length)) return;
    const std::uint32_t last = pages_for(s.length) - 1, page = s.pages[last];
    // Others may know more of the page than a text that went back within it.
    if (pool_->tokens_in(page) != s.length - last * kPagePositions) return;
    if (checkpoints_->find(page)) return checkpoints_->touch(page);
    checkpoints_->add(page, s.state_at, [&](std::uint32_t record) { copy_state(slot, record); });
}

void Engine::go_back(std::uint32_t slot, std::uint32_t n) {
    Sequence& s = sequences_[slot];
    publish(slot, false);
    std::uint32_t restored = PagePool::kNone;
    if (checkpoints_ && s.state_at > n) {
        std::uint32_t pages = std::min(n / kPagePositions, s.published);
        while (pages > 0 && !checkpoints_->find(s.pages[pages - 1])) --pages;
        s.state_at = pages > 0 ? kLostState : 0;
        if (pages > 0) restored = s.pages[pages - 1];
        n = pages * kPagePositions;
    }
    s.length = n;
    release_pages(s, pages_for(n));
    if (restored != PagePool::kNone) restore_state(slot, restored);
}

void Engine::restore_state(std::uint32_t slot, std::uint32_t page) {
    const Checkpoint& c = *checkpoints_->find(page);
    checkpoints_->touch(page);
    Sequence& s = sequences_[slot];
    s.state_at = kLostState;
    copy_state(c.record, slot);
    s.state_at = c.state_at;
}

void Engine::copy_state(std::uint32_t from, std::uint32_t to) {
    copy_record(state_copies_, step_.states, step_.state_words, from, to);
}

}  // namespace akunu
