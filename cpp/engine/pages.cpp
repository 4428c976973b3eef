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

const std::vector<std::uint32_t>* PagePool::children_of(std::uint32_t parent, std::uint32_t first) const {
    const auto at = tree_.find(key(parent, first));
    return at == tree_.end() ? nullptr : &at->second;
}

void PagePool::withdraw(std::uint32_t page) {
    leave_queue(page);
    if (checkpoints_) checkpoints_->drop(page);
    Page& p = pages_[page];
    const auto at = tree_.find(key(p.parent, p.tokens[0]));
    std::erase(at->second, page);
    if (at->second.empty()) tree_.erase(at);
    if (p.parent != kNone) {
        Page& parent = pages_[p.parent];
        // Its turn is that of its own last use.
        if (--parent.children == 0 && evictable(parent)) queue_.insert({parent.used, p.parent});
    }
    p.n_tokens = 0;
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
    if (p.n_tokens == 0) {
        free_.push_back(page);
    } else {
        ++cached_;
        touch(page);
    }
}

PagePool::Match PagePool::match(std::span<const std::uint32_t> tokens) {
    Match m;
    std::uint32_t parent = kNone;
    while (!tokens.empty()) {
        const auto* siblings = children_of(parent, tokens[0]);
        if (!siblings) break;
        std::uint32_t best = kNone;
        std::size_t longest = 0;
        for (const std::uint32_t page : *siblings) {
            const auto have = tokens_of(pages_[page]);
            const auto n = static_cast<std::size_t>(std::ranges::mismatch(have, tokens).in1 - have.begin());
            if (n > longest) longest = n, best = page;
        }
        if (longest < kPagePositions) {
            m.partial = best;
            m.partial_tokens = static_cast<std::uint32_t>(longest);
            break;
        }
        m.pages.push_back(best);
        tokens = tokens.subspan(longest);
        parent = best;
    }
    if (checkpoints_) end_at_checkpoint(m);
    for (const std::uint32_t page : m.pages) hold(page);
    if (m.partial != kNone) hold(m.partial);
    return m;
}

void PagePool::end_at_checkpoint(Match& m) const {
    if (m.partial != kNone && (m.partial_tokens < pages_[m.partial].n_tokens || !checkpoints_->find(m.partial))) {
        m.partial = kNone;
    }
    if (m.partial != kNone) return;
    while (!m.pages.empty() && !checkpoints_->find(m.pages.back())) m.pages.pop_back();
}

std::vector<std::uint32_t> PagePool::path(std::span<const std::uint32_t> tokens) const {
    std::vector<std::uint32_t> pages;
    for (; !tokens.empty(); tokens = tokens.subspan(kPagePositions)) {
        const auto* siblings = children_of(pages.empty() ? kNone : pages.back(), tokens[0]);
        if (!siblings) break;
        const auto wanted = tokens.first(kPagePositions);
        const auto at = std::ranges::find_if(
            *siblings, [&](std::uint32_t other) { return std::ranges::equal(tokens_of(pages_[other]), wanted); });
        if (at == siblings->end()) break;
        pages.push_back(*at);
    }
    return pages;
}

std::uint32_t PagePool::find(std::span<const std::uint32_t> tokens) const {
    const auto pages = path(tokens);
    return !pages.empty() && pages.size() * kPagePositions == tokens.size() ? pages.back() : kNone;
}

bool PagePool::pin(std::span<const std::uint32_t> tokens) {
    const auto pages = path(tokens);
    if (pages.size() * kPagePositions != tokens.size()) return false;
    for (const std::uint32_t page : pages) {
        if (pages_[page].pins++ != 0) continue;
        hold(page);
        ++pinned_;
    }
    return true;
}

bool PagePool::unpin(std::span<const std::uint32_t> tokens) {
    const auto pages = path(tokens);
    if (pages.size() * kPagePositions != tokens.size()) return false;
    if (std::ranges::any_of(pages, [&](std::uint32_t page) { return pages_[page].pins == 0; })) return false;
    // Later pages first, as those of a text that ends.
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
        if (--pages_[*page].pins != 0) continue;
        --pinned_;
        release(*page);
    }
    return true;
}

std::uint32_t PagePool::unpinned_in(std::span<const std::uint32_t> tokens) const {
    const auto pages = path(tokens);
    const auto pinned = std::ranges::count_if(pages, [&](std::uint32_t page) { return pages_[page].pins != 0; });
    return static_cast<std::uint32_t>(tokens.size() / kPagePositions - static_cast<std::size_t>(pinned));
}

std::uint32_t PagePool::publish(std::uint32_t parent, std::uint32_t page, std::span<const std::uint32_t> tokens) {
    if (auto* siblings = children_of(parent, tokens[0])) {
        std::vector<std::uint32_t> covered;  // by these tokens: of no more use
        for (const std::uint32_t other : *siblings) {
            const auto have = tokens_of(pages_[other]);
            if (other != page && std::ranges::equal(have, tokens)) {
                hold(other);
                release(page);
                return other;
            }
            if (have.size() < tokens.size() && pages_[other].holders == 0 &&
                std::ranges::equal(have, tokens.first(have.size()))) {
                covered.push_back(other);
            }
        }
        for (const std::uint32_t other : covered) evict(other);
    }
    Page& p = pages_[page];
    p.parent = parent;
    p.n_tokens = static_cast<std::uint32_t>(tokens.size());
    std::ranges::copy(tokens, p.tokens.begin());
    tree_[key(parent, tokens[0])].push_back(page);
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
    if (p.n_tokens != 0) withdraw(page);
    return true;
}

void PagePool::forget() {
    while (!queue_.empty()) evict(queue_.begin()->second);
}

}  // namespace akunu
