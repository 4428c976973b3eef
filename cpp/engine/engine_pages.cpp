// Engine: the pages that hold a text's keys and values, those that texts share, and pages that come from outside of it.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace akunu {
namespace {

// Throws unless `ids` are whole pages.
void check_whole(std::span<const std::uint32_t> ids) {
    if (!ids.empty() && ids.size() % kPagePositions == 0) return;
    throw InvalidArgumentError("a page ends at a multiple of " + std::to_string(kPagePositions) + " tokens, not " +
                               std::to_string(ids.size()));
}

// A page that was acquired and is of no text yet: it goes back where something throws before one has it.
class FreshPage {
  public:
    explicit FreshPage(PagePool& pool) : pool_(pool), page_(pool.acquire()) {}
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

void expect_page(bool found) {
    if (!found) throw DeviceError("all pages of the cache are in use");
}

}  // namespace

void Engine::allocate_pages(const EngineOptions& options) {
    const RecordLayout layout(model_->kv_page_bytes(*device_, options.kv_dtype));
    page_bytes_ = std::max<std::uint64_t>(layout.end, 64);
    step_.page_words = static_cast<std::uint32_t>(page_bytes_ / 4);
    const std::uint64_t least = least_pages();
    const std::uint64_t all = checked_product({options.parallel, step_.max_pages}) + options.parallel;
    // Of memory that is shared with the host, the weights have taken theirs.
    const auto own_left = device_->memory_left();
    const std::uint64_t has = own_left.value_or(device_->memory());
    const std::uint64_t memory = own_left ? has / 2 : std::min(has / 2, has - std::min(has, memory_.weights));
    std::uint64_t pages = std::max(least, std::min(all, memory / page_bytes_));
    if (options.kv_memory) {
        pages = options.kv_memory / page_bytes_;
        if (pages < least) {
            throw InvalidArgumentError("kv_memory is " + std::to_string(options.kv_memory) + " bytes; a context of " +
                                       std::to_string(context_) + " tokens needs " +
                                       std::to_string(least * page_bytes_) + "; give as much, or a smaller context");
        }
    }
    if (pages >= PagePool::kNone) {
        throw InvalidArgumentError("the cache would have " + std::to_string(pages) + " pages of " +
                                   std::to_string(page_bytes_) + " bytes, expected fewer than 2^32 - 1");
    }
    step_.cache = own(checked_product({pages, page_bytes_}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    step_.kv = layout.in(step_.cache);
    allocate_states(step_.cache.buffer.size);
    pool_ = std::make_unique<PagePool>(static_cast<std::uint32_t>(pages), checkpoints_.get());
}

void Engine::add_page(std::uint32_t slot, std::uint32_t page) {
    Sequence& s = sequences_[slot];
    step_.pages.host<std::uint32_t>()[std::size_t{slot} * step_.max_pages + s.pages.size()] = page;
    s.pages.push_back(page);
}

void Engine::release_pages(Sequence& s, std::uint32_t from) {
    // Later pages first: of two pages that nobody holds, the later one is then the one used longer ago.
    while (s.pages.size() > from) {
        pool_->release(s.pages.back());
        s.pages.pop_back();
    }
    s.published = std::min(s.published, from);
}

void Engine::drop_pages(std::uint32_t slot) {
    Sequence& s = opened(slot);
    publish(slot, true);
    try {
        if (checkpoints_) keep_checkpoint(slot);
    } catch (const Error&) {
        // A text that ends keeps what can be kept. What ails the device, the next step tells.
    }
    release_pages(s, 0);
    s.length = s.known = s.prompt = s.state_at = 0;
}

void Engine::publish(std::uint32_t slot, bool all) {
    if (config_.sound_positions()) return;
    Sequence& s = sequences_[slot];
    const std::uint32_t full = s.length / kPagePositions, last = all ? pages_for(s.length) : full;
    auto* table = step_.pages.host<std::uint32_t>() + std::size_t{slot} * step_.max_pages;
    for (; s.published < last; ++s.published) {
        const std::uint32_t i = s.published, first = i * kPagePositions;
        const std::span tokens(history(slot) + first, std::min<std::uint32_t>(kPagePositions, s.length - first));
        const std::uint32_t parent = i == 0 ? PagePool::kNone : s.pages[i - 1];
        table[i] = s.pages[i] = pool_->publish(parent, s.pages[i], tokens);
    }
}

void Engine::copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint32_t words,
                         std::uint32_t from, std::uint32_t to) {
    if (!program) program = device_->compile(model_->copies(plan(), records, words));
    auto* pair = step_.copies.host<std::uint32_t>();
    pair[0] = from;
    pair[1] = to;
    const Program* const segment = program.get();
    Control control;
    device_->replay({&segment, 1}, {}, control, {}, {});
}

bool Engine::own_page(std::uint32_t slot, std::uint32_t index) {
    Sequence& s = sequences_[slot];
    if (index >= s.published) return true;  // nobody else has seen it
    const std::uint32_t page = s.pages[index];
    if (!pool_->make_private(page)) {
        FreshPage copy(*pool_);
        if (!copy) return false;
        copy_record(page_copies_, step_.cache, step_.page_words, page, copy.number());
        pool_->release(page);
        s.pages[index] = copy.take();
        step_.pages.host<std::uint32_t>()[std::size_t{slot} * step_.max_pages + index] = s.pages[index];
    }
    s.published = index;
    return true;
}

bool Engine::make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    Sequence& s = sequences_[slot];
    // Writing begins in at most one page that may be known to others: those behind it were released.
    if (from % kPagePositions != 0 && !own_page(slot, from / kPagePositions)) return false;
    while (s.pages.size() < pages_for(to)) {
        const std::uint32_t page = pool_->acquire();
        if (page == PagePool::kNone) return false;
        add_page(slot, page);
    }
    return true;
}

void Engine::take_pages(const Part& part, std::uint32_t steps) { expect_page(reserve(part, steps)); }

void Engine::take_pages(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    expect_page(make_writable(slot, from, to));
}

bool Engine::pin(std::span<const std::uint32_t> ids) {
    check_whole(ids);
    if (checkpoints_)
        throw UnsupportedError("texts of this model have a state, which goes with checkpoints, not pages");
    const std::uint64_t pinned = std::uint64_t{pool_->pinned()} + pool_->unpinned_in(ids);
    if (pinned + least_pages() > pool_->pages()) {
        throw InvalidArgumentError("the cache has " + std::to_string(pool_->pages()) + " pages; with " +
                                   std::to_string(pinned) + " pinned, no text could fill the context, which takes " +
                                   std::to_string(least_pages()) + ": more kv_memory is needed");
    }
    return pool_->pin(ids);
}

void Engine::unpin(std::span<const std::uint32_t> ids) {
    check_whole(ids);
    if (!pool_->unpin(ids)) throw InvalidArgumentError("these pages are not pinned");
}

bool Engine::read_page(std::span<const std::uint32_t> ids, std::span<std::byte> bytes) const {
    check_whole(ids);
    check_page(bytes.size());
    const std::uint32_t page = pool_->find(ids);
    if (page == PagePool::kNone) return false;
    device_->download(page_at(page), bytes);
    return true;
}

bool Engine::restore_page(std::uint32_t slot, std::span<const std::byte> bytes) {
    Sequence& s = opened(slot);
    check_page(bytes.size());
    const std::uint32_t index = s.length / kPagePositions, end = (index + 1) * kPagePositions;
    if (end >= s.known) {
        throw InvalidArgumentError("slot " + std::to_string(slot) + " has " + std::to_string(s.known) +
                                   " tokens: a page that ends at " + std::to_string(end) + " leaves none to run");
    }
    FreshPage page(*pool_);
    if (!page) return false;
    device_->upload(page_at(page.number()), bytes);
    release_pages(s, index);  // one that the cache holds a part of
    add_page(slot, page.take());
    s.length = end;
    publish(slot, false);
    return true;
}

void Engine::check_page(std::size_t bytes) const {
    if (checkpoints_) throw UnsupportedError("texts of this model have a state, which pages outside of it lack");
    if (bytes == page_bytes_) return;
    throw InvalidArgumentError("a page has " + std::to_string(page_bytes_) + " bytes, not " + std::to_string(bytes));
}

}  // namespace akunu
