// Cache: the pages that hold a sequence's keys and values, and those that sequences share.
#include "engine/cache.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/fresh_page.h"

namespace akunu {
namespace {

PageKey key_of(std::uint32_t id, std::span<const std::uint64_t> contents, std::size_t position) {
    return position < contents.size() && contents[position] != 0 ? content_key(contents[position]) : id;
}

}  // namespace

std::vector<PageKey> keys_of(const Prefix& prefix) {
    std::vector<PageKey> keys;
    keys.reserve(prefix.ids.size());
    for (const std::uint32_t id : prefix.ids) keys.push_back(key_of(id, prefix.contents, keys.size()));
    return keys;
}

void Cache::open(Sequence& s) const {
    s.pages.reserve(step_.max_pages);  // that no page is lost for want of memory
    s.kept_from.assign(groups_.size(), 0);
}

void Cache::place_page(std::uint32_t slot, std::uint32_t index) {
    for (const PageGroup& group : groups_) {
        const std::uint32_t record = group.record(sequences_[slot].pages[index]);
        // Before a window there is none, and nobody reads it: a table's entries are of pages all the same.
        group.table(slot, step_.max_pages)[index] = record == PageRecords::kNone ? 0 : record;
    }
}

void Cache::place_pages(std::uint32_t slot, std::uint32_t from) {
    for (std::uint32_t i = from; i < sequences_[slot].pages.size(); ++i) place_page(slot, i);
}

void Cache::release_pages(Sequence& s, std::uint32_t from) {
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

void Cache::pass(std::uint32_t slot) {
    Sequence& s = sequences_[slot];
    const std::uint32_t back = s.length - std::min<std::uint32_t>(s.length, kGoesBack);
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        const std::uint32_t first = first_page_seen(groups_[g].window, back);
        for (std::uint32_t& i = s.kept_from[g]; i < first; ++i) groups_[g].records->release(s.pages[i], true);
    }
}

void Cache::hold_windows(Sequence& s) {
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        std::uint32_t& first = s.kept_from[g];
        const std::uint32_t seen = first_page_seen(groups_[g].window, s.length);
        for (; first > seen; --first) groups_[g].records->hold(s.pages[first - 1]);
    }
}

void Cache::drop(std::uint32_t slot) {
    Sequence& s = sequences_.opened(slot);
    publish(slot, true);
    try {
        if (checkpoints_) keep_checkpoint(slot);
    } catch (const Error&) {
        // A sequence that ends keeps what can be kept. The next step tells what ails the device.
    }
    release_pages(s, 0);
    s.length = s.known = s.prompt = s.state_at = 0;
}

void Cache::publish(std::uint32_t slot, bool all) {
    if (engine_.config.sound_positions()) return;
    Sequence& s = sequences_[slot];
    const std::uint32_t full = s.length / kPagePositions, last = all ? pages_for(s.length) : full;
    for (; s.published < last; ++s.published) {
        const std::uint32_t i = s.published, first = i * kPagePositions;
        const std::uint32_t n = std::min<std::uint32_t>(kPagePositions, s.length - first);
        std::array<PageKey, kPagePositions> keys;
        for (std::uint32_t k = 0; k < n; ++k) keys[k] = key_of(engine_.history(slot)[first + k], s.contents, first + k);
        const std::uint32_t parent = i == 0 ? PagePool::kNone : s.pages[i - 1];
        const std::uint32_t page = pool_->publish(parent, s.pages[i], {s.root, std::span(keys).first(n)});
        if (page != std::exchange(s.pages[i], page)) place_page(slot, i);
    }
}

void Cache::copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint64_t bytes,
                        std::uint32_t from, std::uint32_t to) {
    if (bytes == 0) return;
    if (!program)
        program =
            device_.compile(engine_.model.copies(engine_.plan(step_), records, static_cast<std::uint32_t>(bytes / 4)));
    auto* pair = step_.copies.host<std::uint32_t>();
    pair[0] = from;
    pair[1] = to;
    const Segment segment{program.get()};
    Control control;
    device_.replay({.segments = {&segment, 1}}, control, {}, {});
}

bool Cache::own_page(std::uint32_t slot, std::uint32_t index) {
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
        place_page(slot, index);
    }
    s.published = index;
    return true;
}

bool Cache::make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    Sequence& s = sequences_[slot];
    // Writing begins in at most one page that may be known to others: those behind it were released.
    if (from % kPagePositions != 0 && !own_page(slot, from / kPagePositions)) return false;
    while (s.pages.size() < pages_for(to)) {
        const auto index = static_cast<std::uint32_t>(s.pages.size());
        FreshPage page(*this, [&](std::size_t g) { return index >= s.kept_from[g]; });
        if (!page) return false;
        s.pages.push_back(page.take());
        place_page(slot, index);
    }
    return true;
}

void Cache::take(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    if (!make_writable(slot, from, to)) throw DeviceError("all pages of the cache are in use");
}

void Cache::take_cached(std::uint32_t slot, std::span<const PageKey> keys) {
    Sequence& s = sequences_[slot];
    const PagePool::Match m = pool_->match({s.root, keys});
    s.pages = m.pages;
    s.length = static_cast<std::uint32_t>(s.pages.size() * kPagePositions);
    if (m.partial != PagePool::kNone) {
        s.pages.push_back(m.partial);
        s.length += m.partial_keys;
    }
    s.published = static_cast<std::uint32_t>(s.pages.size());
    std::ranges::fill(std::span(s.kept_from).subspan(1), s.published);
    hold_windows(s);
    place_pages(slot, 0);
    if (checkpoints_ && s.length != 0) restore_state(slot, s.pages.back());
}

void Cache::share(std::uint32_t from, std::uint32_t to) {
    publish(from, true);
    Sequence &source = sequences_[from], &fresh = sequences_[to];
    // Pages beyond its tokens are those of one sequence alone.
    const std::uint32_t shared = pages_for(source.length);
    for (std::uint32_t i = 0; i < shared; ++i) {
        pool_->hold(source.pages[i]);
        fresh.pages.push_back(source.pages[i]);
        for (std::size_t g = 1; g < groups_.size(); ++g) {
            if (i >= source.kept_from[g]) groups_[g].records->hold(source.pages[i]);
        }
    }
    fresh.kept_from = source.kept_from;
    place_pages(to, 0);
    source.published = fresh.published = shared;
    if (checkpoints_) copy_state(from, to);
    fresh.state_at = source.state_at;
    fresh.length = source.length;
}

void Cache::check_step(std::uint32_t slot, std::uint32_t end) const {
    const Sequence& s = sequences_.at(slot);
    if (s.pages.size() < pages_for(end) || s.published > s.length / kPagePositions) {
        throw InvalidArgumentError("slot " + std::to_string(slot) + " was not reserved for this step");
    }
    for (std::size_t g = 1; g < groups_.size(); ++g) {
        if (s.kept_from[g] <= first_page_seen(groups_[g].window, s.length)) continue;
        throw InvalidArgumentError("slot " + std::to_string(slot) +
                                   " lacks pages that its next row sees: its restoring was not finished");
    }
}

bool Cache::contains(const Binding& binding) const {
    return binding.buffer.handle == step_.states.buffer.handle ||
           std::ranges::any_of(
               groups_, [&](const PageGroup& group) { return binding.buffer.handle == group.cache.buffer.handle; });
}

void Cache::skip_to(std::uint32_t slot, std::uint32_t position) {
    Sequence& s = sequences_[slot];
    for (std::size_t g = 1; g < groups_.size(); ++g) s.kept_from[g] = first_page_seen(groups_[g].window, position);
}

void Cache::clear(std::uint32_t slot) {
    for (const PageGroup& group : groups_) {
        const std::vector<std::byte> zeros(group.page_bytes);
        for (const std::uint32_t page : sequences_[slot].pages) {
            const std::uint32_t record = group.record(page);
            if (record != PageRecords::kNone && !zeros.empty()) device_.upload(group.at(record), zeros);
        }
    }
}

}  // namespace akunu
