#include "engine/pages.h"

#include <algorithm>

namespace akunu {

PagePool::PagePool(std::uint32_t pages, PageRecords* states, std::vector<WindowRecords> windows)
    : pages_(pages), states_(states), windows_(std::move(windows)) {
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
    if (states_) states_->drop(page);
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
    free(page);
}

void PagePool::free(std::uint32_t page) {
    for (const WindowRecords& of : windows_) of.records->drop(page);
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
        free(page);
    } else {
        ++cached_;
        touch(page);
    }
}

PagePool::Match PagePool::match(const Beginning& prefix) {
    Match m;
    std::uint32_t parent = kNone;
    for (auto keys = prefix.keys; !keys.empty();) {
        const auto* siblings = children_of({prefix.root, keys[0], parent});
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
    shorten(m);
    for (const std::uint32_t page : m.pages) hold(page);
    if (m.partial != kNone) hold(m.partial);
    return m;
}

bool PagePool::windows_reach(std::span<const std::uint32_t> pages, std::uint32_t position) const {
    return std::ranges::all_of(windows_, [&](const WindowRecords& of) {
        const std::size_t first = first_page_seen(of.window, position);
        if (first >= pages.size()) return true;
        return std::ranges::all_of(pages.subspan(first),
                                   [&](std::uint32_t page) { return of.records->find(page) != PageRecords::kNone; });
    });
}

bool PagePool::can_go_on(std::span<const std::uint32_t> pages, std::uint32_t position) const {
    return (!states_ || states_->find(pages.back()) != PageRecords::kNone) && windows_reach(pages, position);
}

void PagePool::shorten(Match& m) const {
    const auto end = [&] { return static_cast<std::uint32_t>(m.pages.size() * kPagePositions); };
    if (m.partial != kNone) {
        // A state is one behind all of the page's keys.
        const std::uint32_t position = end() + m.partial_keys;
        m.pages.push_back(m.partial);
        const bool whole = m.partial_keys == pages_[m.partial].n_keys;
        const bool all = (whole || !states_) && can_go_on(m.pages, position);
        m.pages.pop_back();
        if (all) return;
        m.partial = kNone;
    }
    while (!m.pages.empty() && !can_go_on(m.pages, end())) m.pages.pop_back();
}

std::vector<std::uint32_t> PagePool::path(const Beginning& prefix) const {
    std::vector<std::uint32_t> pages;
    for (auto keys = prefix.keys; !keys.empty(); keys = keys.subspan(kPagePositions)) {
        const auto* siblings = children_of({prefix.root, keys[0], pages.empty() ? kNone : pages.back()});
        if (!siblings) break;
        const auto wanted = keys.first(kPagePositions);
        const auto at = std::ranges::find_if(
            *siblings, [&](std::uint32_t other) { return std::ranges::equal(keys_of(pages_[other]), wanted); });
        if (at == siblings->end()) break;
        pages.push_back(*at);
    }
    return pages;
}

std::uint32_t PagePool::find(const Beginning& prefix) const {
    const auto pages = path(prefix);
    return !pages.empty() && pages.size() * kPagePositions == prefix.keys.size() ? pages.back() : kNone;
}

bool PagePool::pin(const Beginning& prefix) {
    const auto pages = path(prefix);
    if (pages.size() * kPagePositions != prefix.keys.size()) return false;
    const auto end = static_cast<std::uint32_t>(prefix.keys.size());
    if (!windows_reach(pages, end)) return false;
    for (const std::uint32_t page : pages) {
        if (pages_[page].pins++ != 0) continue;
        hold(page);
        ++pinned_;
    }
    for (const WindowRecords& of : windows_) {
        for (std::size_t i = first_page_seen(of.window, end); i < pages.size(); ++i) of.records->pin(pages[i]);
    }
    return true;
}

bool PagePool::unpin(const Beginning& prefix) {
    const auto pages = path(prefix);
    if (pages.size() * kPagePositions != prefix.keys.size()) return false;
    if (std::ranges::any_of(pages, [&](std::uint32_t page) { return pages_[page].pins == 0; })) return false;
    // Pins of longer sequences need no records of what is before their windows.
    const auto end = static_cast<std::uint32_t>(prefix.keys.size());
    const auto has = [&](const WindowRecords& of, std::size_t i) {
        return of.records->find(pages[i]) != PageRecords::kNone && of.records->is_pinned(pages[i]);
    };
    for (const WindowRecords& of : windows_) {
        for (std::size_t i = first_page_seen(of.window, end); i < pages.size(); ++i) {
            if (!has(of, i)) return false;
        }
    }
    for (const WindowRecords& of : windows_) {
        for (std::size_t i = first_page_seen(of.window, end); i < pages.size(); ++i) of.records->unpin(pages[i]);
    }
    // Later pages first, as those of a sequence that ends.
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
        if (--pages_[*page].pins != 0) continue;
        --pinned_;
        release(*page);
    }
    return true;
}

std::uint32_t PagePool::unpinned_in(const Beginning& prefix) const {
    const auto pages = path(prefix);
    const auto pinned = std::ranges::count_if(pages, [&](std::uint32_t page) { return pages_[page].pins != 0; });
    return static_cast<std::uint32_t>(prefix.keys.size() / kPagePositions - static_cast<std::size_t>(pinned));
}

std::vector<std::uint32_t> PagePool::unpinned_records_in(const Beginning& prefix) const {
    const auto pages = path(prefix);
    const auto end = static_cast<std::uint32_t>(prefix.keys.size());
    std::vector<std::uint32_t> counts;
    for (const WindowRecords& of : windows_) {
        std::uint32_t n = 0;
        for (std::size_t i = first_page_seen(of.window, end); i < end / kPagePositions; ++i) {
            const bool there = i < pages.size() && of.records->find(pages[i]) != PageRecords::kNone;
            n += !(there && of.records->is_pinned(pages[i]));
        }
        counts.push_back(n);
    }
    return counts;
}

void PagePool::take_over(std::uint32_t from, std::uint32_t to) {
    for (const WindowRecords& of : windows_) {
        if (of.records->find(from) == PageRecords::kNone) continue;
        if (of.records->find(to) == PageRecords::kNone) {
            of.records->move(from, to);
        } else if (of.records->is_held(from)) {
            of.records->hold(to);
        }
    }
}

std::uint32_t PagePool::publish(std::uint32_t parent, std::uint32_t page, const Beginning& prefix) {
    const auto keys = prefix.keys;
    const Branch branch{prefix.root, keys[0], parent};
    if (auto* siblings = children_of(branch)) {
        std::vector<std::uint32_t> covered;  // by these keys: of no more use
        for (const std::uint32_t other : *siblings) {
            const auto have = keys_of(pages_[other]);
            if (other != page && std::ranges::equal(have, keys)) {
                hold(other);
                take_over(page, other);
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
    p.root = prefix.root;
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
