// Engine: the pages that hold a text's keys and values, those that texts share, and pages that come from outside of it.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {
namespace {

PageKey key_of(std::uint32_t id, std::span<const std::uint64_t> contents, std::size_t position) {
    return position < contents.size() && contents[position] != 0 ? content_key(contents[position]) : id;
}

// Throws unless it has whole pages.
void check_whole(const Prefix& text) {
    if (!text.ids.empty() && text.ids.size() % kPagePositions == 0) return;
    throw InvalidArgumentError("a page ends at a multiple of " + std::to_string(kPagePositions) + " tokens, not " +
                               std::to_string(text.ids.size()));
}

void expect_page(bool found) {
    if (!found) throw DeviceError("all pages of the cache are in use");
}

// Throws where a text that fills the context would have no page left.
void expect_room(std::uint64_t pages, std::uint64_t pinned, std::uint64_t least, const std::string& of) {
    if (pinned + least <= pages) return;
    throw InvalidArgumentError("the cache has " + std::to_string(pages) + " pages" + of + "; with " +
                               std::to_string(pinned) + " pinned, no text could fill the context, which takes " +
                               std::to_string(least) + ": more kv_memory is needed");
}

}  // namespace

// A page, with records, that was acquired and is of no text yet: it goes back where something throws before one has it.
class Engine::FreshPage {
  public:
    // With a record of each window that `wants(group)`. It is none when all of some kind are held.
    template <typename Wants>
    FreshPage(Engine& engine, Wants&& wants) : pool_(*engine.pool_), page_(pool_.acquire()) {
        for (std::size_t g = 1; g < engine.groups_.size() && *this; ++g) {
            if (!wants(g) || engine.groups_[g].records->acquire(page_) != PageRecords::kNone) continue;
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

void Engine::place_pages(std::uint32_t slot, std::uint32_t from) {
    const Sequence& s = sequences_[slot];
    for (const PageGroup& group : groups_) {
        std::uint32_t* table = group.table(slot, step_.max_pages);
        for (std::size_t i = from; i < s.pages.size(); ++i) {
            const std::uint32_t record = group.record(s.pages[i]);
            // Before a window there is none, and nobody reads it: a table's entries are of pages all the same.
            table[i] = record == PageRecords::kNone ? 0 : record;
        }
    }
}

void Engine::release_pages(Sequence& s, std::uint32_t from) {
    // Later pages first: of two pages that nobody holds, the later one is then the one used longer ago.
    while (s.pages.size() > from) {
        const std::uint32_t page = s.pages.back();
        s.pages.pop_back();
        for (std::size_t g = 1; g < groups_.size(); ++g) {
            if (s.pages.size() >= s.kept_from[g]) groups_[g].records->release(page);
        }
        pool_->release(page);
    }
    s.published = std::min(s.published, from);
    for (std::uint32_t& first : s.kept_from) first = std::min(first, from);
}

void Engine::pass_pages(std::uint32_t slot) {
    Sequence& s = sequences_[slot];
    const std::uint32_t back = s.length - std::min<std::uint32_t>(s.length, kGoesBack);
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        const std::uint32_t first = first_page_seen(groups_[g].window, back);
        for (std::uint32_t& i = s.kept_from[g]; i < first; ++i) groups_[g].records->release(s.pages[i], true);
    }
}

void Engine::hold_windows(Sequence& s) {
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        std::uint32_t& first = s.kept_from[g];
        const std::uint32_t seen = first_page_seen(groups_[g].window, s.length);
        for (; first > seen; --first) groups_[g].records->hold(s.pages[first - 1]);
    }
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
    for (; s.published < last; ++s.published) {
        const std::uint32_t i = s.published, first = i * kPagePositions;
        const std::uint32_t n = std::min<std::uint32_t>(kPagePositions, s.length - first);
        std::array<PageKey, kPagePositions> keys;
        for (std::uint32_t k = 0; k < n; ++k) keys[k] = key_of(history(slot)[first + k], s.contents, first + k);
        const std::uint32_t parent = i == 0 ? PagePool::kNone : s.pages[i - 1];
        const std::uint32_t page = pool_->publish(parent, s.pages[i], {s.root, std::span(keys).first(n)});
        if (page == std::exchange(s.pages[i], page)) continue;
        for (const PageGroup& group : groups_) {
            const std::uint32_t record = group.record(page);
            group.table(slot, step_.max_pages)[i] = record == PageRecords::kNone ? 0 : record;
        }
    }
}

void Engine::copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint64_t bytes,
                         std::uint32_t from, std::uint32_t to) {
    if (bytes == 0) return;
    if (!program) program = device_->compile(model_->copies(plan(), records, static_cast<std::uint32_t>(bytes / 4)));
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
        FreshPage copy(*this, [&](std::size_t g) { return index >= s.kept_from[g]; });
        if (!copy) return false;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            PageGroup& group = groups_[g];
            if (index < s.kept_from[g]) continue;
            copy_record(group.copies, group.cache, group.page_bytes, group.record(page), group.record(copy.number()));
        }
        for (PageGroup& group : windows()) {
            if (group.record(copy.number()) != PageRecords::kNone) group.records->release(page);
        }
        pool_->release(page);
        s.pages[index] = copy.take();
        place_pages(slot, index);
    }
    s.published = index;
    return true;
}

bool Engine::make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    Sequence& s = sequences_[slot];
    // Writing begins in at most one page that may be known to others: those behind it were released.
    if (from % kPagePositions != 0 && !own_page(slot, from / kPagePositions)) return false;
    while (s.pages.size() < pages_for(to)) {
        const auto index = static_cast<std::uint32_t>(s.pages.size());
        FreshPage page(*this, [&](std::size_t g) { return index >= s.kept_from[g]; });
        if (!page) return false;
        s.pages.push_back(page.take());
        place_pages(slot, index);
    }
    return true;
}

void Engine::take_pages(const Part& part, std::uint32_t steps) { expect_page(reserve(part, steps)); }

void Engine::take_pages(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    expect_page(make_writable(slot, from, to));
}

std::vector<PageKey> keys_of(const Prefix& text) {
    std::vector<PageKey> keys;
    keys.reserve(text.ids.size());
    for (const std::uint32_t id : text.ids) keys.push_back(key_of(id, text.contents, keys.size()));
    return keys;
}

bool Engine::pin(const Prefix& text) {
    check_whole(text);
    const auto keys = keys_of(text);
    const Beginning beginning{text.root, keys};
    if (checkpoints_)
        throw UnsupportedError("texts of this model have a state, which goes with checkpoints, not pages");
    expect_room(pool_->pages(), std::uint64_t{pool_->pinned()} + pool_->unpinned_in(beginning), least_pages(), "");
    const auto more = pool_->unpinned_records_in(beginning);
    for (std::size_t i = 0; i < more.size(); ++i) {
        const PageGroup& group = windows()[i];
        expect_room(group.records->records(), std::uint64_t{group.records->pinned()} + more[i], group.most_held,
                    " of the window of " + std::to_string(group.window) + " positions");
    }
    return pool_->pin(beginning);
}

void Engine::unpin(const Prefix& text) {
    check_whole(text);
    if (!pool_->unpin({text.root, keys_of(text)})) throw InvalidArgumentError("these pages are not pinned");
}

std::vector<std::uint64_t> Engine::part_bytes() const {
    std::vector<std::uint64_t> bytes;
    for (const PageGroup& group : groups_) bytes.push_back(group.page_bytes);
    if (checkpoints_) bytes.push_back(state_bytes_ + sizeof(std::uint32_t));
    return bytes;
}

std::optional<PageParts> Engine::read_page(const Prefix& text, const std::function<bool(std::size_t)>& wanted) const {
    check_whole(text);
    const std::uint32_t page = pool_->find({text.root, keys_of(text)});
    if (page == PagePool::kNone) return std::nullopt;
    PageParts parts;
    const auto read = [&](const Binding& from, std::uint64_t bytes) -> std::vector<std::byte>& {
        auto& part = parts.back().emplace(bytes);
        if (bytes) device_->download(from, part);
        return part;
    };
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::uint32_t record = groups_[g].record(page);
        parts.emplace_back();
        if (record != PageRecords::kNone && (!wanted || wanted(g))) {
            read(groups_[g].at(record), groups_[g].page_bytes);
        }
    }
    if (!checkpoints_) return parts;
    const std::uint32_t record = checkpoints_->find(page);
    parts.emplace_back();
    if (record != PageRecords::kNone && (!wanted || wanted(groups_.size()))) {
        auto& part = read(state_of(record), state_bytes_);
        const auto at = std::as_bytes(std::span(&checkpoint_at_[record], 1));
        part.insert(part.end(), at.begin(), at.end());
    }
    return parts;
}

void Engine::check_parts(PartsView parts) const {
    const auto bytes = part_bytes();
    if (parts.size() != bytes.size()) {
        throw InvalidArgumentError("a page has " + std::to_string(bytes.size()) + " parts, not " +
                                   std::to_string(parts.size()));
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (parts[i] ? parts[i]->size() == bytes[i] : i != 0) continue;
        throw InvalidArgumentError("part " + std::to_string(i) + " of a page has " + std::to_string(bytes[i]) +
                                   " bytes, not " + (parts[i] ? std::to_string(parts[i]->size()) : "none"));
    }
}

bool Engine::restore_page(std::uint32_t slot, PartsView parts) {
    Sequence& s = opened(slot);
    check_parts(parts);
    const std::uint32_t index = s.length / kPagePositions, end = (index + 1) * kPagePositions;
    if (end >= s.known) {
        throw InvalidArgumentError("slot " + std::to_string(slot) + " has " + std::to_string(s.known) +
                                   " tokens: a page that ends at " + std::to_string(end) + " leaves none to run");
    }
    const auto has = [&](std::size_t g) { return parts[g].has_value(); };
    FreshPage page(*this, has);
    if (!page) return false;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (has(g) && groups_[g].page_bytes) {
            device_->upload(groups_[g].at(groups_[g].record(page.number())), *parts[g]);
        }
    }
    release_pages(s, index);  // one that the cache holds a part of
    s.pages.push_back(page.take());
    place_pages(slot, index);
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        if (has(g)) continue;
        for (std::uint32_t& i = s.kept_from[g]; i <= index; ++i) {
            if (i < index) groups_[g].records->release(s.pages[i], true);
        }
    }
    s.length = end;
    if (checkpoints_) s.state_at = kLostState;
    publish(slot, false);
    if (checkpoints_ && parts.back()) {
        const auto state = parts.back()->first(state_bytes_);
        std::uint32_t at = 0;
        std::memcpy(&at, state.data() + state_bytes_, sizeof at);
        add_checkpoint(s.pages[index], at, [&](std::uint32_t record) { device_->upload(state_of(record), state); });
    }
    return true;
}

std::uint32_t Engine::finish_restoring(std::uint32_t slot) {
    go_back(slot, opened(slot).length);
    return sequences_[slot].length;
}

void Engine::discard_unused() {
    for (const PageGroup& group : groups_) {
        if (group.page_bytes == 0) continue;
        // Pages side by side in one go: the system takes whole pages of its own, which are larger.
        const auto unused = group.records ? group.records->unused() : pool_->unused();
        std::vector<std::uint32_t> pages(unused.begin(), unused.end());
        std::ranges::sort(pages);
        for (std::size_t first = 0, end = 0; first < pages.size(); first = end) {
            while (end < pages.size() && pages[end] == pages[first] + (end - first)) ++end;
            device_->discard({group.cache.buffer, pages[first] * group.page_bytes, (end - first) * group.page_bytes});
        }
    }
}

PageUse Engine::page_use() const {
    PageUse use;
    use.pages = pool_->pages();
    use.held = pool_->held();
    use.pinned = pool_->pinned();
    use.cached = pool_->cached();
    use.checkpoints = checkpoints_ ? checkpoints_->used() : 0;
    use.state_bytes = state_bytes_;
    for (const PageGroup& group : groups_) {
        use.page_bytes += group.page_bytes;
        if (!group.records) continue;
        const PageRecords& r = *group.records;
        use.windows.push_back({.positions = group.window,
                               .pages = r.records(),
                               .held = r.held(),
                               .pinned = r.pinned(),
                               .cached = r.used() - r.held(),
                               .most_held = group.most_held,
                               .page_bytes = group.page_bytes});
    }
    return use;
}

}  // namespace akunu
