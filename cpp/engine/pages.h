// PagePool: who holds which page of the cache, and which texts' pages can be used again. It counts; the pages' contents
// are the device's.
//
// Pages that hold a text's keys and values form a tree: a page follows the page of the tokens before its own. A text
// that begins like an earlier one, whoever's it was, shares the pages of the common beginning. A page in the tree that
// nobody holds stays until its memory is needed; those used longest ago go first, and no page before the pages that
// follow it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/params.h"
#include "engine/checkpoints.h"

namespace akunu {

class PagePool {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // With checkpoints a beginning is cached only up to one of them.
    explicit PagePool(std::uint32_t pages, Checkpoints* checkpoints = nullptr);

    // A page that only the caller holds; kNone when all are held.
    std::uint32_t acquire();
    void hold(std::uint32_t page);
    void release(std::uint32_t page);

    // The longest cached beginning of `tokens`: pages whose tokens match whole, and how many tokens of one more match.
    // All are held for the caller.
    struct Match {
        std::vector<std::uint32_t> pages;
        std::uint32_t partial = kNone, partial_tokens = 0;
    };
    Match match(std::span<const std::uint32_t> tokens);

    // The page of the last of these tokens, which are whole pages; kNone where it is not in the tree. Holds nothing.
    std::uint32_t find(std::span<const std::uint32_t> tokens) const;

    // The pages of these tokens, which are whole pages, stay in the tree until as many calls of `unpin`. False, and
    // nothing is done, where they are not all there, or, of `unpin`, not pinned.
    bool pin(std::span<const std::uint32_t> tokens);
    bool unpin(std::span<const std::uint32_t> tokens);
    // Pages that `pin` would add to those that are pinned.
    std::uint32_t unpinned_in(std::span<const std::uint32_t> tokens) const;

    // Enters the caller's page, which holds these tokens, behind `parent` (kNone: at a text's beginning). Returns the
    // page to hold from now on: an equal one that was there before, in whose favour the caller's is released, or
    // `page`.
    std::uint32_t publish(std::uint32_t parent, std::uint32_t page, std::span<const std::uint32_t> tokens);

    // Makes a held page one that only the caller holds and may write: true where nobody else holds it or its tokens go
    // on in other pages. It leaves the tree.
    bool make_private(std::uint32_t page);

    // How many tokens of a page others can find; 0: it is not in the tree.
    std::uint32_t tokens_in(std::uint32_t page) const { return pages_[page].n_tokens; }

    // Forgets every text that nobody holds.
    void forget();

    std::uint32_t pages() const { return static_cast<std::uint32_t>(pages_.size()); }
    std::uint32_t held() const { return held_; }
    // Of these, those that are pinned.
    std::uint32_t pinned() const { return pinned_; }
    // In the tree, held by nobody.
    std::uint32_t cached() const { return cached_; }

  private:
    struct Page {
        std::uint32_t holders = 0;
        std::uint32_t parent = kNone;
        std::uint32_t children = 0;
        std::uint32_t n_tokens = 0;  // 0: not in the tree
        std::uint32_t pins = 0;      // together they are one holder
        std::uint64_t used = 0;
        std::array<std::uint32_t, kPagePositions> tokens{};
    };
    static std::uint64_t key(std::uint32_t parent, std::uint32_t first) { return std::uint64_t{parent} << 32 | first; }
    std::span<const std::uint32_t> tokens_of(const Page& p) const { return {p.tokens.data(), p.n_tokens}; }
    bool evictable(const Page& p) const { return p.holders == 0 && p.n_tokens != 0 && p.children == 0; }
    // The pages of a match up to the last one that has a checkpoint, and the state there.
    void end_at_checkpoint(Match& m) const;
    // Takes a page out of the tree; one that nobody holds gives its memory back, too.
    void withdraw(std::uint32_t page);
    void evict(std::uint32_t page);
    // After a change of what `evictable` looks at.
    void touch(std::uint32_t page);
    void leave_queue(std::uint32_t page);
    // The pages of these tokens, which are whole pages, as far as they are in the tree.
    std::vector<std::uint32_t> path(std::span<const std::uint32_t> tokens) const;
    const std::vector<std::uint32_t>* children_of(std::uint32_t parent, std::uint32_t first) const;

    std::vector<Page> pages_;
    Checkpoints* checkpoints_;
    std::vector<std::uint32_t> free_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> tree_;  // by parent and first token
    std::set<std::pair<std::uint64_t, std::uint32_t>> queue_;             // evictable pages, by last use
    std::uint64_t clock_ = 0;
    std::uint32_t held_ = 0, pinned_ = 0, cached_ = 0;
};

}  // namespace akunu
