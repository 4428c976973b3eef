// Cache: the memory of what blocks keep, how much there is of each kind, and where a block finds its part.
#include <algorithm>
#include <numeric>

#include "engine/cache.h"
#include "engine/cache_sizes.h"
#include "engine/records.h"

namespace akunu {
namespace {

// A copy of a state for so many bytes of pages.
constexpr std::uint64_t kCheckpointShare = 4;
constexpr std::uint64_t kMostCheckpoints = std::uint64_t{1} << 16;

// The records of one owner and window.
RecordLayout layout_of(std::span<const Kept> kept, Kept::Owner owner, std::uint32_t window = 0) {
    std::vector<std::uint64_t> bytes;
    for (const Kept& k : kept) bytes.push_back(k.belongs_to(owner, window) ? k.bytes : 0);
    return RecordLayout(bytes);
}

}  // namespace

std::uint32_t Cache::most_held(std::uint32_t window, std::uint32_t rows) const {
    const std::uint64_t positions = std::uint64_t{window} + kGoesBack + rows;
    return std::min(step_.max_pages, pages_for(static_cast<std::uint32_t>(positions)) + 1) + 1;
}

void Cache::place(PageGroup& group, std::span<const Kept> kept, std::uint64_t n, std::uint64_t owners,
                  std::uint32_t max_pages) {
    const RecordLayout layout = layout_of(kept, group.owner, group.window);
    group.page_bytes = layout.end;
    if (layout.end) {
        group.cache = engine_.own(checked_product({n, layout.end}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    }
    group.tables = engine_.own(checked_product({owners, max_pages, sizeof(u32)}), &MemoryUse::scratch);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (!kept[i].belongs_to(group.owner, group.window)) continue;
        step_.kv[i] = {.kv = {group.cache.buffer, layout.begins[i]},
                       .tables = group.tables,
                       .max_pages = max_pages,
                       .page_words = static_cast<std::uint32_t>(layout.end / 4)};
    }
}

void Cache::place_sounds(std::span<const Kept> kept, std::uint32_t sounds) {
    const std::uint32_t each = pages_for(engine_.config.sound_positions());
    if (each == 0) return;
    const std::uint64_t all = checked_product({sounds, each});
    PageGroup group;
    group.owner = Kept::Owner::kSoundPage;
    place(group, kept, all, sounds, each);
    std::iota(group.tables.host<u32>(), group.tables.host<u32>() + all, 0u);
}

Cache::Cache(const EngineContext& context, const EngineOptions& options, std::uint32_t chunk, std::uint64_t weights)
    : engine_(context), device_(context.device), step_(context.step), sequences_(context.sequences) {
    std::vector<Kept> kept = engine_.model.keeps(device_, options.kv_types);
    // Layers that keep equally many positions are a group; a window of all the context is none.
    groups_.emplace_back();
    for (Kept& k : kept) {
        if (k.bytes == 0 || k.window >= engine_.context) k.window = 0;
        if (std::ranges::find(groups_, k.window, &PageGroup::window) == groups_.end()) {
            groups_.emplace_back().window = k.window;
        }
    }
    std::vector<CacheNeed> needs;
    const std::uint64_t whole = least_pages();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        PageGroup& group = groups_[g];
        const std::uint64_t page_bytes = layout_of(kept, group.owner, group.window).end;
        if (g == 0) {
            needs.push_back({page_bytes, whole, whole, whole});
            continue;
        }
        // Beside what a sequence holds while it runs, the end of one that others go on from.
        const std::uint64_t found_again = most_held(group.window, 0);
        group.most_held = most_held(group.window, std::max(chunk, kMaxChain));
        needs.push_back({page_bytes, group.most_held, std::min(whole, group.most_held + found_again),
                         std::min(whole, 2 * found_again)});
    }
    const RecordLayout states = layout_of(kept, Kept::Owner::kSequence);
    state_bytes_ = states.end;
    if (state_bytes_) {
        const std::uint64_t some =
            std::clamp<std::uint64_t>(bytes_for(needs, 1) / kCheckpointShare / state_bytes_, 2, kMostCheckpoints);
        needs.push_back({state_bytes_, 2, some, some});
    }

    const std::uint64_t slots = options.parallel, own_states = checked_product({slots, state_bytes_});
    const std::uint64_t least = least_bytes(needs) + own_states;
    // Where memory is shared with the host, the weights have taken their part of it.
    const auto own_left = device_.memory_left();
    const std::uint64_t shared = options.memory ? std::min(options.memory, device_.memory()) : device_.memory();
    const std::uint64_t has = own_left.value_or(shared);
    const std::uint64_t memory = own_left ? has / 2 : std::min(has / 2, has - std::min(has, weights));
    std::uint64_t bytes = std::max(least, std::min(bytes_for(needs, slots) + own_states, memory));
    if (options.kv_memory) {
        bytes = options.kv_memory;
        if (bytes < least) {
            const std::string with = state_bytes_ ? " and the states of " + std::to_string(slots) + " sequences" : "";
            throw InvalidArgumentError("kv_memory is " + std::to_string(bytes) + " bytes; a context of " +
                                       std::to_string(engine_.context) + " tokens" + with + " needs " +
                                       std::to_string(least) + "; give as much, or a smaller context");
        }
    }
    const auto counts = dealt_out(needs, bytes - own_states);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] < PagePool::kNone) continue;
        throw InvalidArgumentError("the cache would have " + std::to_string(counts[i]) + " pages of " +
                                   std::to_string(needs[i].bytes) + " bytes, expected fewer than 2^32 - 1");
    }

    const auto pages = static_cast<std::uint32_t>(counts[0]);
    step_.kv.assign(kept.size(), {});
    std::vector<WindowRecords> windows;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        PageGroup& group = groups_[g];
        place(group, kept, counts[g], slots, step_.max_pages);
        if (g == 0) continue;
        group.records = std::make_unique<PageRecords>(pages, static_cast<std::uint32_t>(counts[g]));
        windows.push_back({group.window, group.records.get()});
    }
    if (state_bytes_) {
        const auto first = static_cast<std::uint32_t>(slots);
        const auto n = static_cast<std::uint32_t>(std::min(counts.back(), kMostCheckpoints));
        checkpoints_ = std::make_unique<PageRecords>(pages, n, first);
        checkpoint_at_.resize(first + n);
        step_.states =
            engine_.own(checked_product({slots + n, state_bytes_}), &MemoryUse::kv_cache, MemoryKind::kDevice);
        step_.state = states.in(step_.states);
        step_.state_words = static_cast<std::uint32_t>(state_bytes_ / 4);
        step_.state_spans = engine_.own(slots * sizeof(StateSpan), &MemoryUse::scratch);
    }
    pool_ = std::make_unique<PagePool>(pages, checkpoints_.get(), std::move(windows));
    place_sounds(kept, options.sounds);
}

}  // namespace akunu
