// Cache: pages that come from outside of it or go there, those that are pinned, and what is in use.
#include <algorithm>
#include <cstring>

#include "engine/fresh_page.h"

namespace akunu {
namespace {

// Throws unless it has whole pages.
void check_whole(const Prefix& prefix) {
    if (!prefix.ids.empty() && prefix.ids.size() % kPagePositions == 0) return;
    throw InvalidArgumentError("a page ends at a multiple of " + std::to_string(kPagePositions) + " tokens, not " +
                               std::to_string(prefix.ids.size()));
}

// Throws where a sequence that fills the context would have no page left.
void expect_room(std::uint64_t pages, std::uint64_t pinned, std::uint64_t least, const std::string& of) {
    if (pinned + least <= pages) return;
    throw InvalidArgumentError("the cache has " + std::to_string(pages) + " pages" + of + "; with " +
                               std::to_string(pinned) + " pinned, no sequence could fill the context, which takes " +
                               std::to_string(least) + ": more kv_memory is needed");
}

// Throws where each of several GPUs has a part of the pages.
void expect_one_gpu(const Device& device) {
    if (device.traits().cards == 1) return;
    throw UnsupportedError("pages of a model on " + std::to_string(device.traits().cards) +
                           " GPUs, each of which has a part of them, are not kept outside; name one GPU, as in "
                           "device='cuda:0'");
}

}  // namespace

bool Cache::pin(const Prefix& prefix) {
    check_whole(prefix);
    const auto keys = keys_of(prefix);
    const Beginning beginning{prefix.root, keys};
    if (checkpoints_)
        throw UnsupportedError("sequences of this model have a state, which goes with checkpoints, not pages");
    expect_room(pool_->pages(), std::uint64_t{pool_->pinned()} + pool_->unpinned_in(beginning), least_pages(), "");
    const auto more = pool_->unpinned_records_in(beginning);
    for (std::size_t i = 0; i < more.size(); ++i) {
        const PageGroup& group = windows()[i];
        expect_room(group.records->records(), std::uint64_t{group.records->pinned()} + more[i], group.most_held,
                    " of the window of " + std::to_string(group.window) + " positions");
    }
    return pool_->pin(beginning);
}

void Cache::unpin(const Prefix& prefix) {
    check_whole(prefix);
    if (!pool_->unpin({prefix.root, keys_of(prefix)})) throw InvalidArgumentError("these pages are not pinned");
}

std::vector<std::uint64_t> Cache::part_bytes() const {
    std::vector<std::uint64_t> bytes;
    for (const PageGroup& group : groups_) bytes.push_back(group.page_bytes);
    if (checkpoints_) bytes.push_back(state_bytes_ + sizeof(std::uint32_t));
    return bytes;
}

std::optional<PageParts> Cache::read_page(const Prefix& prefix, const std::function<bool(std::size_t)>& wanted) const {
    check_whole(prefix);
    expect_one_gpu(device_);
    const std::uint32_t page = pool_->find({prefix.root, keys_of(prefix)});
    if (page == PagePool::kNone) return std::nullopt;
    PageParts parts;
    const auto read = [&](const Binding& from, std::uint64_t bytes) -> std::vector<std::byte>& {
        auto& part = parts.back().emplace(bytes);
        if (bytes) device_.download(from, part);
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

void Cache::check_parts(PartsView parts) const {
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

bool Cache::restore_page(std::uint32_t slot, PartsView parts) {
    expect_one_gpu(device_);
    Sequence& s = sequences_.opened(slot);
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
            device_.upload(groups_[g].at(groups_[g].record(page.number())), *parts[g]);
        }
    }
    release_pages(s, index);  // one that the cache holds a part of
    s.pages.push_back(page.take());
    place_page(slot, index);
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
        add_checkpoint(s.pages[index], at, [&](std::uint32_t record) { device_.upload(state_of(record), state); });
    }
    return true;
}

std::uint32_t Cache::finish_restoring(std::uint32_t slot) {
    go_back(slot, sequences_.opened(slot).length);
    return sequences_[slot].length;
}

void Cache::discard_unused() {
    for (const PageGroup& group : groups_) {
        if (group.page_bytes == 0) continue;
        // Pages side by side in one go: the system takes whole pages of its own, which are larger.
        const auto unused = group.records ? group.records->unused() : pool_->unused();
        std::vector<std::uint32_t> pages(unused.begin(), unused.end());
        std::ranges::sort(pages);
        for (std::size_t first = 0, end = 0; first < pages.size(); first = end) {
            while (end < pages.size() && pages[end] == pages[first] + (end - first)) ++end;
            device_.discard({group.cache.buffer, pages[first] * group.page_bytes, (end - first) * group.page_bytes});
        }
    }
}

PageUse Cache::use() const {
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
