// Checkpoints: which pages have a copy of the state after their last token. It counts; the copies are the device's.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace akunu {

// A copy of a text's record: where it is, and the position that its state is before. What the text ran since is
// stashed in it.
struct Checkpoint {
    std::uint32_t record = 0, state_at = 0;
};

class Checkpoints {
  public:
    // Of records `first`, `first` + 1, ..., `n` of them.
    Checkpoints(std::uint32_t first, std::uint32_t n);

    // That of a page, or null.
    const Checkpoint* find(std::uint32_t page) const;
    // Notes that it is of use.
    void touch(std::uint32_t page);
    // Keeps a state, that before `state_at`, for a page that has none: `copy(record)` copies it. What was used longest
    // ago makes room. Where the copy throws the page has none, as before.
    template <typename Copy>
    void add(std::uint32_t page, std::uint32_t state_at, Copy&& copy) {
        if (free_.empty()) drop(entries_.back().page);
        const std::uint32_t record = free_.back();
        std::list<Entry> entry;
        entry.push_front({page, {record, state_at}});
        copy(record);
        places_[page] = entry.begin();
        entries_.splice(entries_.begin(), entry);
        free_.pop_back();
    }
    // The page's contents or tokens are others from now on.
    void drop(std::uint32_t page);

    std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }

  private:
    struct Entry {
        std::uint32_t page;
        Checkpoint checkpoint;
    };
    std::list<Entry> entries_;  // the latest first
    std::unordered_map<std::uint32_t, std::list<Entry>::iterator> places_;
    std::vector<std::uint32_t> free_;
};

}  // namespace akunu
