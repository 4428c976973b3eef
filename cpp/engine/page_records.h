// PageRecords: which pages have a record besides their own contents, and where it is: what layers with a window keep of
// the page's positions, or a copy of the state of a sequence that ends there. It counts; the records' contents are the
// device's.
//
// A record stays with its page as long as somebody holds it, and after that until another page needs the memory.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace akunu {

class PageRecords {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // Records `first`, `first` + 1, ..., `n` of them, for a pool of so many pages.
    PageRecords(std::uint32_t pages, std::uint32_t n, std::uint32_t first = 0);

    // That of a page; kNone where it has none.
    std::uint32_t find(std::uint32_t page) const { return of_page_[page]; }

    // A record for a page that has none, which only the caller holds; kNone when all are held.
    std::uint32_t acquire(std::uint32_t page);
    void hold(std::uint32_t page);
    // A record that nobody holds makes room in its turn: those that were used longest ago first. `passed`: it is of a
    // sequence that has gone on and needs it no more. Such records make room before all others, the latest first, since
    // sequences share their beginnings more than what comes after.
    void release(std::uint32_t page, bool passed = false);
    bool is_held(std::uint32_t page) const { return entry(page).holders != 0; }
    // Notes that a record that nobody holds was used.
    void touch(std::uint32_t page);
    // These hold and release a record; however often it is pinned, the pins count as one holder.
    void pin(std::uint32_t page);
    void unpin(std::uint32_t page);
    bool is_pinned(std::uint32_t page) const { return entry(page).pins != 0; }

    // The page's record, if it has one, is nobody's.
    void drop(std::uint32_t page);
    // The record, with who holds it, is another page's, which has none.
    void move(std::uint32_t from, std::uint32_t to);

    std::uint32_t records() const { return static_cast<std::uint32_t>(entries_.size()); }
    // Those that pages have, those of them that somebody holds, and those of these that are pinned.
    std::uint32_t used() const { return records() - static_cast<std::uint32_t>(free_.size()); }
    std::uint32_t held() const { return held_; }
    std::uint32_t pinned() const { return pinned_; }
    // Those that no page has.
    std::span<const std::uint32_t> unused() const { return free_; }

  private:
    struct Entry {
        std::uint32_t page = kNone, holders = 0, pins = 0;
        std::int64_t turn = 0;  // who makes room: the smallest first
    };
    const Entry& entry(std::uint32_t page) const { return entries_[of_page_[page] - first_]; }
    Entry& entry(std::uint32_t page) { return entries_[of_page_[page] - first_]; }
    void enqueue(std::uint32_t page, std::int64_t turn);

    std::uint32_t first_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> of_page_, free_;
    std::set<std::pair<std::int64_t, std::uint32_t>> queue_;  // turns, and pages, of those that nobody holds
    std::int64_t clock_ = 0;
    std::uint32_t held_ = 0, pinned_ = 0;
};

}  // namespace akunu
