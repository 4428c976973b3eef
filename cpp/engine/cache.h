// Cache: what sequences keep from step to step. Pages hold keys and values, and are shared by sequences that begin
// alike; layers with a window keep records of the last pages alone; states advance with every row, so going back means
// a copy from before: a checkpoint, at the end of a page.
//
// Its files: cache.cpp has pages, cache_states.cpp states, cache_memory.cpp how much there is of each kind and where a
// block finds its part, cache_outside.cpp pages that come from outside or are pinned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_context.h"
#include "engine/pages.h"

namespace akunu {

// Pages of layers with a window, of which a sequence keeps the last ones only.
struct WindowUse {
    std::uint32_t positions = 0;  // that a row sees
    std::uint32_t pages = 0, held = 0, pinned = 0, cached = 0;
    std::uint32_t most_held = 0;  // by one sequence
    std::uint64_t page_bytes = 0;
};

struct PageUse {
    std::uint32_t pages = 0, held = 0, pinned = 0, cached = 0;  // those that are pinned are held
    std::uint64_t page_bytes = 0;                               // with those of windows
    std::vector<WindowUse> windows;
    // Where blocks have a state: how many checkpoints pages have, and the size of one.
    std::uint32_t checkpoints = 0;
    std::uint64_t state_bytes = 0;
};

// What a page has outside of the engine: what layers without a window keep of its positions, what those of each window
// do, and the state behind it, as far as the model has any. The cache may lack parts, but the first one.
using PageParts = std::vector<std::optional<std::vector<std::byte>>>;
using PartsView = std::span<const std::optional<std::span<const std::byte>>>;

class Cache {
  public:
    // Steps have up to `chunk` rows of one sequence. Fills in what the step's buffers say of the cache.
    Cache(const EngineContext& context, const EngineOptions& options, std::uint32_t chunk, std::uint64_t weights);

    // ---- a sequence's own ----

    // A sequence has nothing yet.
    void open(Sequence& s) const;
    // The cached pages that a sequence of these keys begins with are its own; sets its length.
    void take_cached(std::uint32_t slot, std::span<const PageKey> keys);
    // All that a sequence has is another's too, which has nothing yet. Where that throws, it has it in part.
    void share(std::uint32_t from, std::uint32_t to);
    // Gives a sequence's pages back; others find them until their memory is needed. Its tokens are to be run again.
    void drop(std::uint32_t slot);
    // The pages of positions [from, to) exist and belong to this sequence alone; false when none is left.
    bool make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to);
    // Calls `make_writable`, and throws DeviceError when no page is left.
    void take(std::uint32_t slot, std::uint32_t from, std::uint32_t to);
    // Throws unless a sequence has room for rows up to `end`, and what the next row sees.
    void check_step(std::uint32_t slot, std::uint32_t end) const;
    // Enters what the cache holds of a sequence: its full pages, and with `all` the last one too.
    void publish(std::uint32_t slot, bool all);
    // Gives back what no later row of a sequence sees.
    void pass(std::uint32_t slot);
    // Goes back to the first n tokens, or as many of them as there is a state of, and what windows reach.
    void go_back(std::uint32_t slot, std::uint32_t n);

    // ---- states ----

    bool has_states() const { return checkpoints_ != nullptr; }
    // The longest part of a step, and the most steps, after which a checkpoint is due.
    std::uint32_t shorten(Part& part, std::uint32_t steps) const;
    // A sequence's next n rows are in the step, the last `drafts` of which may be refused.
    void begin_rows(std::uint32_t slot, std::uint32_t n, std::uint32_t drafts);
    // After a step: the state is where its rows left it, before position `state_at`, or, where it did not run to its
    // end, at a checkpoint before.
    void settle(std::uint32_t slot, bool whole, std::uint32_t state_at);
    // That of a slot's last step; all are 0 where there are no states.
    StateSpan span_of(std::uint32_t slot) const {
        return has_states() ? step_.state_spans.host<StateSpan>()[slot] : StateSpan{};
    }
    // A slot's own state; nothing where there is none.
    Binding state_of(std::uint32_t slot) const { return {step_.states.buffer, slot * state_bytes_, state_bytes_}; }
    std::uint64_t state_bytes() const { return state_bytes_; }

    // ---- from outside (cache_outside.cpp) ----

    // The last page of a prefix, whole pages that some sequence begins with; nothing when the cache does not hold it.
    // Parts that are not `wanted` are left out.
    std::optional<PageParts> read_page(const Prefix& prefix, const std::function<bool(std::size_t)>& wanted = {}) const;
    // The next page of a slot's sequence as `read_page` gave it, so that its tokens need not be run. False when no page
    // is left. At least the last known token is still to be run.
    bool restore_page(std::uint32_t slot, PartsView parts);
    // To be called behind the last of these pages. Returns how many tokens the cache holds now, so that the sequence
    // can go on: fewer where the pages came without a part that the next row needs.
    std::uint32_t finish_restoring(std::uint32_t slot);
    // Bytes of the parts of a page.
    std::vector<std::uint64_t> part_bytes() const;
    // The pages of a prefix, whole pages that some sequence begins with, stay in the cache until they are unpinned as
    // often. False where it does not hold all of them. Throws where a sequence that fills the context would have no
    // room left, and, of `unpin`, where they are not pinned.
    bool pin(const Prefix& prefix);
    void unpin(const Prefix& prefix);
    // Forgets every sequence that no slot holds.
    void forget() { pool_->forget(); }
    // Gives the memory of pages that hold nothing back to the system.
    void discard_unused();
    PageUse use() const;

    // ---- for profiles ----

    // Whether a command that writes here writes what sequences keep.
    bool contains(const Binding& binding) const;
    // A sequence that has nothing is to be run from this position on, without what is before.
    void skip_to(std::uint32_t slot, std::uint32_t position);
    // Writes zeros to a sequence's pages.
    void clear(std::uint32_t slot);

  private:
    // What layers keep for one owner and with one window: a part of each page, in a cache and page tables of their own.
    // The first group keeps all positions of sequences; in those of windows pages have the record that `records` says.
    struct PageGroup {
        Kept::Owner owner = Kept::Owner::kPage;
        std::uint32_t window = 0, most_held = 0;
        std::uint64_t page_bytes = 0;
        Binding cache, tables;
        std::unique_ptr<PageRecords> records;
        std::unique_ptr<Program> copies;

        std::uint32_t* table(std::uint32_t slot, std::uint32_t max_pages) const {
            return tables.host<std::uint32_t>() + std::size_t{slot} * max_pages;
        }
        std::uint32_t record(std::uint32_t page) const { return records ? records->find(page) : page; }
        Binding at(std::uint32_t record) const { return {cache.buffer, record * page_bytes, page_bytes}; }
    };
    class FreshPage;
    std::span<PageGroup> windows() { return std::span(groups_).subspan(1); }
    // Gives a group a cache of n pages, and a page table for each of its owners; blocks find their parts there.
    void place(PageGroup& group, std::span<const Kept> kept, std::uint64_t n, std::uint64_t owners,
               std::uint32_t max_pages);
    // The pages of all sounds, which exist from the beginning.
    void place_sounds(std::span<const Kept> kept, std::uint32_t sounds);

    // Pages of a window that a sequence can hold, with one to copy, where its steps have up to so many rows.
    std::uint32_t most_held(std::uint32_t window, std::uint32_t rows) const;
    // Pages that one sequence needs: it can fill the context, and a page that it shares be copied.
    std::uint32_t least_pages() const { return step_.max_pages + 1; }
    // A sequence that goes back a little, as one whose last token is run again, finds what it sees from there.
    static constexpr std::uint32_t kGoesBack = kPagePositions;

    bool own_page(std::uint32_t slot, std::uint32_t index);
    // Pages [from, s.pages.size()) are in the slot's page tables.
    void place_pages(std::uint32_t slot, std::uint32_t from);
    void place_page(std::uint32_t slot, std::uint32_t index);
    void copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint64_t bytes, std::uint32_t from,
                     std::uint32_t to);
    void release_pages(Sequence& s, std::uint32_t from);
    // Holds what the next row sees of windows, which pages have.
    void hold_windows(Sequence& s);
    void check_parts(PartsView parts) const;

    // The position after a sequence's length where a checkpoint of it is to be kept next.
    std::uint32_t next_checkpoint(const Sequence& s) const;
    // Keeps a checkpoint of the sequence as it is; after its pages have been published.
    void keep_checkpoint(std::uint32_t slot);
    // Keeps a state, that before `state_at`, for a page that has none: `copy(record)` copies it. Where that throws the
    // page has none, as before.
    void add_checkpoint(std::uint32_t page, std::uint32_t state_at, const std::function<void(std::uint32_t)>& copy);
    void restore_state(std::uint32_t slot, std::uint32_t page);
    void copy_state(std::uint32_t from, std::uint32_t to);

    const EngineContext& engine_;
    Device& device_;
    StepBuffers& step_;
    Sequences& sequences_;
    std::vector<PageGroup> groups_;
    std::unique_ptr<Program> state_copies_;
    std::uint64_t state_bytes_ = 0;
    // Where blocks have a state: the pages that have a copy of one, and the position that each such copy is before.
    // What the sequence ran since is stashed in it.
    std::unique_ptr<PageRecords> checkpoints_;
    std::vector<std::uint32_t> checkpoint_at_;
    std::unique_ptr<PagePool> pool_;
};

}  // namespace akunu
