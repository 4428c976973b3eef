#include "engine/page_records.h"

namespace akunu {

PageRecords::PageRecords(std::uint32_t pages, std::uint32_t n, std::uint32_t first)
    : first_(first), entries_(n), of_page_(pages, kNone) {
    free_.reserve(n);
    for (std::uint32_t i = n; i-- > 0;) free_.push_back(first + i);
}

void PageRecords::enqueue(std::uint32_t page, std::int64_t turn) {
    entry(page).turn = turn;
    queue_.insert({turn, page});
}

std::uint32_t PageRecords::acquire(std::uint32_t page) {
    if (free_.empty()) {
        if (queue_.empty()) return kNone;
        drop(queue_.begin()->second);
    }
    const std::uint32_t record = free_.back();
    free_.pop_back();
    of_page_[page] = record;
    entry(page) = {.page = page, .holders = 1};
    ++held_;
    return record;
}

void PageRecords::hold(std::uint32_t page) {
    Entry& e = entry(page);
    if (e.holders++ != 0) return;
    queue_.erase({e.turn, page});
    ++held_;
}

void PageRecords::release(std::uint32_t page, bool passed) {
    if (--entry(page).holders != 0) return;
    --held_;
    ++clock_;
    enqueue(page, passed ? -clock_ : clock_);
}

void PageRecords::touch(std::uint32_t page) {
    queue_.erase({entry(page).turn, page});
    enqueue(page, ++clock_);
}

void PageRecords::pin(std::uint32_t page) {
    if (entry(page).pins++ != 0) return;
    hold(page);
    ++pinned_;
}

void PageRecords::unpin(std::uint32_t page) {
    if (--entry(page).pins != 0) return;
    --pinned_;
    release(page);
}

void PageRecords::drop(std::uint32_t page) {
    const std::uint32_t record = of_page_[page];
    if (record == kNone) return;
    Entry& e = entry(page);
    if (e.holders != 0) {
        --held_;
    } else {
        queue_.erase({e.turn, page});
    }
    e = {};
    of_page_[page] = kNone;
    free_.push_back(record);
}

void PageRecords::move(std::uint32_t from, std::uint32_t to) {
    of_page_[to] = std::exchange(of_page_[from], kNone);
    Entry& e = entry(to);
    if (e.holders == 0) {
        queue_.erase({e.turn, from});
        queue_.insert({e.turn, to});
    }
    e.page = to;
}

}  // namespace akunu
