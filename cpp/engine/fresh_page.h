// A page with its records between the pool and the sequence that gets it.
#pragma once

#include <utility>

#include "engine/cache.h"

namespace akunu {

// A page, with records, that was acquired and that no sequence has yet: it goes back where something throws first.
class Cache::FreshPage {
  public:
    // With a record of each window that `wants(group)`. It is none when all of some kind are held.
    template <typename Wants>
    FreshPage(Cache& cache, Wants&& wants) : pool_(*cache.pool_), page_(pool_.acquire()) {
        for (std::size_t g = 1; g < cache.groups_.size() && *this; ++g) {
            if (!wants(g) || cache.groups_[g].records->acquire(page_) != PageRecords::kNone) continue;
            pool_.release(take());
        }
    }
    ~FreshPage() {
        if (*this) pool_.release(page_);
    }
    FreshPage(const FreshPage&) = delete;
    FreshPage& operator=(const FreshPage&) = delete;
    explicit operator bool() const { return page_ != PagePool::kNone; }
    std::uint32_t number() const { return page_; }
    std::uint32_t take() { return std::exchange(page_, PagePool::kNone); }

  private:
    PagePool& pool_;
    std::uint32_t page_;
};

}  // namespace akunu
