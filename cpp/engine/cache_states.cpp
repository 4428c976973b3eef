// Cache: what sequences have besides pages where blocks keep a state. It advances with every row, so going back means a
// copy of it from before: a checkpoint, at the end of a page.
#include <algorithm>

#include "engine/cache.h"

namespace akunu {

namespace {

// Positions from one checkpoint of a sequence to the next.
constexpr std::uint32_t kCheckpointEvery = 16 * kPagePositions;

// A prompt's last tokens open the answer: a role, a channel, a mark of reasoning. The next turn of a conversation may
// have others in their places, where its template leaves reasoning out.
constexpr std::uint32_t kAnswerOpening = 8;

// Whether a checkpoint is kept of a prompt at the end of a page: of the last one that a sequence with the same prompt
// can use, as at least the last token always runs, and, where this is within what opens the answer, of the one before.
bool is_prompt_checkpoint(const Sequence& s, std::uint32_t end) {
    if (s.prompt == 0 || end % kPagePositions != 0) return false;
    const std::uint32_t last = (s.prompt - 1) / kPagePositions * kPagePositions;
    return end == last || (end + kPagePositions == last && s.prompt - 1 - last < kAnswerOpening);
}

}  // namespace

std::uint32_t Cache::next_checkpoint(const Sequence& s) const {
    const std::uint32_t next = (s.length / kCheckpointEvery + 1) * kCheckpointEvery;
    if (s.length >= s.prompt) return next;
    const std::uint32_t last = (s.prompt - 1) / kPagePositions * kPagePositions;
    for (std::uint32_t end = last > kPagePositions ? last - kPagePositions : last; end <= last; end += kPagePositions) {
        if (end > s.length && is_prompt_checkpoint(s, end)) return std::min(next, end);
    }
    return next;
}

std::uint32_t Cache::shorten(Part& part, std::uint32_t steps) const {
    const Sequence& s = sequences_.at(part.slot);
    if (s.state_at == kLostState) {
        throw InvalidArgumentError("the last step of slot " + std::to_string(part.slot) +
                                   " failed: truncate its sequence, or begin it anew");
    }
    if (part.drafts.size() > kStashRows) {
        throw InvalidArgumentError("slot " + std::to_string(part.slot) + " has " + std::to_string(part.drafts.size()) +
                                   " drafts, this model takes " + std::to_string(kStashRows));
    }
    const std::uint32_t room = next_checkpoint(s) - s.length;
    part.sample = part.sample && part.rows <= room;
    part.rows = std::min(part.rows, room);
    part.drafts.resize(std::min<std::size_t>(part.drafts.size(), part.sample ? room - part.rows : 0));
    return std::clamp(room / (1 + static_cast<std::uint32_t>(part.drafts.size())), 1u, steps);
}

void Cache::begin_rows(std::uint32_t slot, std::uint32_t n, std::uint32_t drafts) {
    if (!checkpoints_) return;
    Sequence& s = sequences_[slot];
    step_.state_spans.host<StateSpan>()[slot] = {s.state_at, s.length + n - drafts};
    s.state_at = kLostState;
}

void Cache::settle(std::uint32_t slot, bool whole, std::uint32_t state_at) {
    if (!checkpoints_) return;
    Sequence& s = sequences_[slot];
    if (!whole) return go_back(slot, s.length);
    s.state_at = state_at;
    if (s.length % kCheckpointEvery == 0 || is_prompt_checkpoint(s, s.length)) keep_checkpoint(slot);
}

void Cache::keep_checkpoint(std::uint32_t slot) {
    const Sequence& s = sequences_[slot];
    if (s.length == 0 || s.state_at > s.length || s.published < pages_for(s.length)) return;
    const std::uint32_t last = pages_for(s.length) - 1, page = s.pages[last];
    // Others may know more of the page than a sequence that went back within it.
    if (pool_->keys_in(page) != s.length - last * kPagePositions) return;
    if (checkpoints_->find(page) != PageRecords::kNone) return checkpoints_->touch(page);
    add_checkpoint(page, s.state_at, [&](std::uint32_t record) { copy_state(slot, record); });
}

void Cache::add_checkpoint(std::uint32_t page, std::uint32_t state_at, const std::function<void(std::uint32_t)>& copy) {
    if (checkpoints_->find(page) != PageRecords::kNone) return;
    const std::uint32_t record = checkpoints_->acquire(page);
    try {
        copy(record);
    } catch (...) {
        checkpoints_->drop(page);
        throw;
    }
    checkpoint_at_[record] = state_at;
    checkpoints_->release(page);
}

void Cache::go_back(std::uint32_t slot, std::uint32_t n) {
    Sequence& s = sequences_[slot];
    s.last_row = kNoRow;
    publish(slot, false);
    const auto page_before = [&](std::uint32_t end) { return s.pages[end / kPagePositions - 1]; };
    const auto has_state = [&](std::uint32_t end) {
        return !checkpoints_ || s.state_at <= end ||
               (end % kPagePositions == 0 && checkpoints_->find(page_before(end)) != PageRecords::kNone);
    };
    const auto can_go_on = [&](std::uint32_t end) {
        return end == 0 || (has_state(end) && pool_->windows_reach(std::span(s.pages).first(pages_for(end)), end));
    };
    while (!can_go_on(n)) n = (n - 1) / kPagePositions * kPagePositions;
    std::uint32_t restored = PagePool::kNone;
    if (checkpoints_ && s.state_at > n) {
        s.state_at = n > 0 ? kLostState : 0;
        if (n > 0) restored = page_before(n);
    }
    s.length = n;
    release_pages(s, pages_for(n));
    hold_windows(s);
    if (restored != PagePool::kNone) restore_state(slot, restored);
}

void Cache::restore_state(std::uint32_t slot, std::uint32_t page) {
    const std::uint32_t record = checkpoints_->find(page);
    checkpoints_->touch(page);
    Sequence& s = sequences_[slot];
    s.state_at = kLostState;
    copy_state(record, slot);
    s.state_at = checkpoint_at_[record];
}

void Cache::copy_state(std::uint32_t from, std::uint32_t to) {
    copy_record(state_copies_, step_.states, state_bytes_, from, to);
}

}  // namespace akunu
