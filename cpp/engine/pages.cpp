#include "engine/pages.h"

#include <algorithm>

namespace akunu {

PagePool::PagePool(std::uint32_t pages, Checkpoints* checkpoints) : pages_(pages), checkpoints_(checkpoints) {
    free_.reserve(pages);
    for (std::uint32_t i = pages; i-- > 0;) free_.push_back(i);
}

void PagePool::leave_queue(std::uint32_t page) { queue_.erase({pages_[page].used, page}); }

void PagePool::touch(std::uint32_t page) {
    leave_queue(page);
    Page& p = pages_[page];
    p.used = ++clock_;
    if (evictable(p)) queue_.insert({p.used, page});
}

const std::vector<std::uint32_t>* PagePool::children_of(const Branch& branch) const {
    const auto at = tree_.find(branch);
    return at == tree_.end() ? nullptr : &at->second;
}

void PagePool::withdraw(std::uint32_t page) {
    leave_queue(page);
    if (checkpoints_) checkpoints_->drop(page);
    Page& p = pages_[page];
    const auto at = tree_.find({p.root, p.keys[0], p.parent});
    std::erase(at->second, page);
    if (at->second.empty()) tree_.erase(at);
    if (p.parent != kNone) {
        Page& parent = pages_[p.parent];
        // Its turn is that of its own last use.
        if (--parent.children == 0 && evictable(parent)) queue_.insert({parent.used, p.parent});
    }
    p.n_keys = 0;
    p.parent = kNone;
}

void PagePool::evict(std::uint32_t page) {
    withdraw(page);
    --cached_;
    free_.push_back(page);
}

std::uint32_t PagePool::acquire() {
    if (free_.empty()) {
        if (queue_.empty()) return kNone;
        evict(queue_.begin()->second);
    }
    const std::uint32_t page = free_.back();
    free_.pop_back();
    pages_[page].holders = 1;
    ++held_;
    return page;
}

void PagePool::hold(std::uint32_t page) {
    Page& p = pages_[page];
    if (p.holders++ == 0) {
        ++held_;
        --cached_;
    }
    touch(page);
}

void PagePool::release(std::uint32_t page) {
    Page& p = pages_[page];
    if (--p.holders != 0) return;
    --held_;
    if (p.n_keys == 0) {
        free_.push_back(page);
    } else {
        ++cached_;
        touch(page);
    }
}

PagePool::Match PagePool::match(const Beginning& text) {
    Match m;
    std::uint32_t parent = kNone;
    for (auto keys = text.keys; !keys.empty();) {
        const auto* siblings = children_of({text.root, keys[0], parent});
        if (!siblings) break;
        std::uint32_t best = kNone;
        std::size_t longest = 0;
        for (const std::uint32_t page : *siblings) {
            const auto have = keys_of(pages_[page]);
            const auto n = static_cast<std::size_t>(std::ranges::mismatch(have, keys).in1 - have.begin());
            if (n > longest) longest = n, best = page;
        }
        if (longest < kPagePositions) {
            m.partial = best;
            m.partial_keys = static_cast<std::uint32_t>(longest);
            break;
        }
        m.pages.push_back(best);
        keys = keys.subspan(longest);
        parent = best;
    }
    if (checkpoints_) end_at_checkpoint(m);
    for (const std::uint32_t page : m.pages) hold(page);
    if (m.partial != kNone) hold(m.partial);
    return m;
}

void PagePool::end_at_checkpoint(Match& m) const {
    if (m.partial != kNone && (m.partial_keys < pages_[m.partial].n_keys || !checkpoints_->find(m.partial))) {
        m.partial = kNone;
    }
    if (m.partial != kNone) return;
    while (!m.pages.empty() && !checkpoints_->find(m.pages.back())) m.pages.pop_back();
}

std::vector<std::uint32_t> PagePool::path(const Beginning& text) const {
    std::vector<std::uint32_t> pages;
    for (auto keys = text.keys; !keys.empty(); keys = keys.subspan(kPagePositions)) {
        const auto* siblings = children_of({text.root, keys[0], pages.empty() ? kNone : pages.back()});
        if (!siblings) break;
        const auto wanted = keys.first(kPagePositions);
        const auto at = std::ranges::find_if(
            *siblings, [&](std::uint32_t other) { return std::ranges::equal(keys_of(pages_[other]), wanted); });
        if (at == siblings->end()) break;
        pages.push_back(*at);
    }
    return pages;
}

std::uint32_t PagePool::find(const Beginning& text) const {
    const auto pages = path(text);
    return !pages.empty() && pages.size() * kPagePositions == text.keys.size() ? pages.back() : kNone;
}

bool PagePool::pin(const Beginning& text) {
    const auto pages = path(text);
    if (pages.size() * kPagePositions != text.keys.size()) return false;
    for (const std::uint32_t page : pages) {
        if (pages_[page].pins++ != 0) continue;
        hold(page);
        ++pinned_;
    }
    return true;
}

bool PagePool::unpin(const Beginning& text) {
    const auto pages = path(text);
    if (pages.size() * kPagePositions != text.keys.size()) return false;
    if (std::ranges::any_of(pages, [&](std::uint32_t page) { return pages_[page].pins == 0; })) return false;
    // Later pages first, as those of a text that ends.
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
        if (--pages_[*page].pins != 0) continue;
        --pinned_;
        release(*page);
    }
    return true;
}

std::uint32_t PagePool::unpinned_in(const Beginning& text) const {
    const auto pages = path(text);
    const auto pinned = std::ranges::count_if(pages, [&](std::uint32_t page) { return pages_[page].pins != 0; });
    return static_cast<std::uint32_t>(text.keys.size() / kPagePositions - static_cast<std::size_t>(pinned));
}

std::uint32_t PagePool::publish(std::uint32_t parent, std::uint32_t page, const Beginning& text) {
    const auto keys = text.keys;
    const Branch branch{text.root, keys[0], parent};
    if (auto* siblings = children_of(branch)) {
        std::vector<std::uint32_t> covered;  // by these keys: of no more use
        for (const std::uint32_t other : *siblings) {
            const auto have = keys_of(pages_[other]);
            if (other != page && std::ranges::equal(have, keys)) {
                hold(other);
                release(page);
                return other;
            }
            if (have.size() < keys.size() && pages_[other].holders == 0 &&
                std::ranges::equal(have, keys.first(have.size()))) {
                covered.push_back(other);
            }
        }
        for (const std::uint32_t other : covered) evict(other);
    }
    Page& p = pages_[page];
    p.root = text.root;
    p.parent = parent;
    p.n_keys = static_cast<std::uint32_t>(keys.size());
    std::ranges::copy(keys, p.keys.begin());
    tree_[branch].push_back(page);
    if (parent != kNone) {
        leave_queue(parent);
        ++pages_[parent].children;
    }
    p.used = ++clock_;
    return page;
}

bool PagePool::make_private(std::uint32_t page) {
    const Page& p = pages_[page];
    if (p.holders != 1 || p.children != 0) return false;
    if (p.n_keys != 0) withdraw(page);
    return true;
}

void PagePool::forget() {
    while (!queue_.empty()) evict(queue_.begin()->second);
}

}  // namespace akunu
