// PagePool: who holds which page of the cache, and which sequences' pages can be used again. It counts; the pages'
// contents are the device's.
//
// A page is known by everything that its contents follow from: a root, which stands for what all of a sequence depends
// on and for who may share it (an adapter, a tenant), and a key for each position from the beginning on: a token's id,
// or a hash of something else that stands there (`content_key`). Sequences whose roots or keys differ share nothing.
//
// Pages that hold a sequence's keys and values form a tree: a page follows the page of the tokens before its own. A
// sequence that begins like an earlier one, whoever's it was, shares the pages of the common beginning. A page in the
// tree that nobody holds stays until its memory is needed; those used longest ago go first, and no page before the
// pages that follow it.
//
// A page may have records besides (`PageRecords`): of each window, and of a state. A sequence can be gone on with from
// where the pages before have what the next row reads: those that its windows reach have their records, and the last
// one has the state.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/params.h"
#include "engine/page_records.h"

namespace akunu {

// The key of a position: that of a token is its id.
using PageKey = std::uint64_t;
// The key of a position where a piece of an image stands, or another thing that is no token. No token has such a key.
constexpr PageKey content_key(std::uint64_t hash) { return hash | PageKey{1} << 63; }

// What a sequence begins with, for those who look for its pages.
struct Beginning {
    std::uint64_t root = 0;
    std::span<const PageKey> keys;
};

// The first page that a row at `position` sees through a window.
constexpr std::uint32_t first_page_seen(std::uint32_t window, std::uint32_t position) {
    return position + 1 > window ? (position + 1 - window) / kPagePositions : 0;
}

// What pages have besides their own contents for layers with a window.
struct WindowRecords {
    std::uint32_t window;
    PageRecords* records;
};

class PagePool {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // With `states` a beginning is cached only up to one of them.
    explicit PagePool(std::uint32_t pages, PageRecords* states = nullptr, std::vector<WindowRecords> windows = {});

    // A page that only the caller holds; kNone when all are held.
    std::uint32_t acquire();
    void hold(std::uint32_t page);
    void release(std::uint32_t page);

    // The longest cached beginning of a sequence that can be gone on with: pages whose keys match whole, and how many
    // keys of one more match. All are held for the caller, their records are not.
    struct Match {
        std::vector<std::uint32_t> pages;
        std::uint32_t partial = kNone, partial_keys = 0;
    };
    Match match(const Beginning& prefix);

    // Whether the windows of the row at `position` find their records in the pages before it.
    bool windows_reach(std::span<const std::uint32_t> pages, std::uint32_t position) const;

    // The page of the last of these keys, which are whole pages; kNone where it is not in the tree. Holds nothing.
    std::uint32_t find(const Beginning& prefix) const;

    // The pages of these keys, which are whole pages, stay in the tree until as many calls of `unpin`, and so do the
    // records that a sequence needs that goes on behind them. False, and nothing is done, where they are not all there,
    // or, of `unpin`, not pinned.
    bool pin(const Beginning& prefix);
    bool unpin(const Beginning& prefix);
    // Pages that `pin` would add to those that are pinned, and records, of each window.
    std::uint32_t unpinned_in(const Beginning& prefix) const;
    std::vector<std::uint32_t> unpinned_records_in(const Beginning& prefix) const;

    // Enters the caller's page, which holds these keys of a sequence of this root, behind `parent` (kNone: at its
    // beginning). Returns the page to hold from now on: an equal one that was there before, in whose favour the
    // caller's is released, or `page`. An equal one takes over the records of windows that it lacks; of others it has,
    // the caller holds those that it held of its own page.
    std::uint32_t publish(std::uint32_t parent, std::uint32_t page, const Beginning& prefix);

    // Makes a held page one that only the caller holds and may write: true where nobody else holds it or its tokens go
    // on in other pages. It leaves the tree.
    bool make_private(std::uint32_t page);

    // How many positions of a page others can find; 0: it is not in the tree.
    std::uint32_t keys_in(std::uint32_t page) const { return pages_[page].n_keys; }

    // Forgets every sequence that nobody holds.
    void forget();
    // Pages that nobody holds and that are not in the tree.
    std::span<const std::uint32_t> unused() const { return free_; }

    std::uint32_t pages() const { return static_cast<std::uint32_t>(pages_.size()); }
    std::uint32_t held() const { return held_; }
    // Those of the held pages that are pinned.
    std::uint32_t pinned() const { return pinned_; }
    // Those that are in the tree and that nobody holds.
    std::uint32_t cached() const { return cached_; }

  private:
    struct Page {
        std::uint64_t root = 0;
        std::uint32_t holders = 0;
        std::uint32_t parent = kNone;
        std::uint32_t children = 0;
        std::uint32_t n_keys = 0;  // 0: not in the tree
        std::uint32_t pins = 0;    // together they are one holder
        std::uint64_t used = 0;
        std::array<PageKey, kPagePositions> keys{};
    };
    // Siblings that begin alike.
    struct Branch {
        std::uint64_t root;
        PageKey first;
        std::uint32_t parent;
        bool operator==(const Branch&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Branch& b) const {
            std::uint64_t h = b.root;
            for (const std::uint64_t word : {b.first, std::uint64_t{b.parent}}) {
                h = (h ^ word) * 0x9E3779B97F4A7C15u;
                h ^= h >> 29;
            }
            return h;
        }
    };
    static std::span<const PageKey> keys_of(const Page& p) { return {p.keys.data(), p.n_keys}; }
    bool evictable(const Page& p) const { return p.holders == 0 && p.n_keys != 0 && p.children == 0; }
    // The pages of a match as far as a sequence can be gone on with from them.
    void shorten(Match& m) const;
    bool can_go_on(std::span<const std::uint32_t> pages, std::uint32_t position) const;
    // Takes a page out of the tree; `evict`: one that nobody holds, which gives its memory back.
    void withdraw(std::uint32_t page);
    void free(std::uint32_t page);
    void take_over(std::uint32_t from, std::uint32_t to);
    void evict(std::uint32_t page);
    // After a change of what `evictable` looks at.
    void touch(std::uint32_t page);
    void leave_queue(std::uint32_t page);
    // The pages of these keys, which are whole pages, as far as they are in the tree.
    std::vector<std::uint32_t> path(const Beginning& prefix) const;
    const std::vector<std::uint32_t>* children_of(const Branch& branch) const;

    std::vector<Page> pages_;
    PageRecords* states_;
    std::vector<WindowRecords> windows_;
    std::vector<std::uint32_t> free_;
    std::unordered_map<Branch, std::vector<std::uint32_t>, Hash> tree_;
    std::set<std::pair<std::uint64_t, std::uint32_t>> queue_;  // evictable pages, by last use
    std::uint64_t clock_ = 0;
    std::uint32_t held_ = 0, pinned_ = 0, cached_ = 0;
};

}  // namespace akunu
