// Cache: the memory of what blocks keep, how much there is of each kind, and where a block finds its part.
#include <algorithm>

#include "engine/cache.h"
#include "engine/cache_sizes.h"
#include "engine/records.h"

namespace akunu {
namespace {

// A copy of a state for so many bytes of pages.
constexpr std::uint64_t kCheckpointShare = 4;
constexpr std::uint64_t kMostCheckpoints = std::uint64_t{1} << 16;

template <typename Bytes>
RecordLayout layout_of(std::span<const Kept> kept, Bytes&& bytes) {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < kept.size(); ++i) all.push_back(bytes(i));
    return RecordLayout(all);
}

}  // namespace

std::uint32_t Cache::most_held(std::uint32_t window, std::uint32_t rows) const {
    const std::uint64_t positions = std::uint64_t{window} + kGoesBack + rows;
    return std::min(step_.max_pages, pages_for(static_cast<std::uint32_t>(positions)) + 1) + 1;
}

Cache::Cache(const EngineContext& context, const EngineOptions& options, std::uint32_t chunk, std::uint64_t weights)
    : engine_(context), device_(context.device), step_(context.step), sequences_(context.sequences) {
    const std::vector<Kept> kept = engine_.model.keeps(device_, options.kv_types);
    // Layers that keep equally many positions are a group; a window of all the context is none.
    std::vector<std::size_t> group_of(kept.size());
    groups_.emplace_back();
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::uint32_t window = kept[i].page_bytes && kept[i].window < engine_.context ? kept[i].window : 0;
        const auto found = std::ranges::find(groups_, window, &PageGroup::window);
        group_of[i] = static_cast<std::size_t>(found - groups_.begin());
        if (found == groups_.end()) groups_.emplace_back().window = window;
    }
    std::vector<RecordLayout> layouts;
    std::vector<CacheNeed> needs;
    const std::uint64_t whole = least_pages();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        PageGroup& group = groups_[g];
        layouts.push_back(layout_of(kept, [&](std::size_t i) { return group_of[i] == g ? kept[i].page_bytes : 0; }));
        group.page_bytes = layouts.back().end;
        if (g == 0) {
            needs.push_back({group.page_bytes, whole, whole, whole});
            continue;
        }
        // Beside what a sequence holds while it runs, the end of one that others go on from.
        const std::uint64_t found_again = most_held(group.window, 0);
        group.most_held = most_held(group.window, std::max(chunk, kMaxChain));
        needs.push_back({group.page_bytes, group.most_held, std::min(whole, group.most_held + found_again),
                         std::min(whole, 2 * found_again)});
    }
    const RecordLayout states = layout_of(kept, [&](std::size_t i) { return kept[i].state_bytes; });
    state_bytes_ = states.end;
    if (state_bytes_) {
        const std::uint64_t some =
            std::clamp<std::uint64_t>(bytes_for(needs, 1) / kCheckpointShare / state_bytes_, 2, kMostCheckpoints);
        needs.push_back({state_bytes_, 2, some, some});
    }

    const std::uint64_t slots = options.parallel, own_states = checked_product({slots, state_bytes_});
    const std::uint64_t least = least_bytes(needs) + own_states;
    // Of memory that is shared with the host, the weights have taken theirs.
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
    const auto in_device = [&](std::uint64_t n, std::uint64_t each) {
        return engine_.own(checked_product({n, each}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    };
    step_.kv.assign(kept.size(), {});
    std::vector<WindowRecords> windows;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        PageGroup& group = groups_[g];
        if (group.page_bytes) group.cache = in_device(counts[g], group.page_bytes);
        group.tables = engine_.own(checked_product({slots, step_.max_pages, sizeof(u32)}), &MemoryUse::scratch);
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (group_of[i] != g || !kept[i].page_bytes) continue;
            step_.kv[i] = {.kv = {group.cache.buffer, layouts[g].begins[i]},
                           .tables = group.tables,
                           .max_pages = step_.max_pages,
                           .page_words = static_cast<std::uint32_t>(group.page_bytes / 4)};
        }
        if (g == 0) continue;
        group.records = std::make_unique<PageRecords>(pages, static_cast<std::uint32_t>(counts[g]));
        windows.push_back({group.window, group.records.get()});
    }
    if (state_bytes_) {
        const auto first = static_cast<std::uint32_t>(slots);
        const auto n = static_cast<std::uint32_t>(std::min(counts.back(), kMostCheckpoints));
        checkpoints_ = std::make_unique<PageRecords>(pages, n, first);
        checkpoint_at_.resize(first + n);
        step_.states = in_device(slots + n, state_bytes_);
        step_.state = states.in(step_.states);
        step_.state_words = static_cast<std::uint32_t>(state_bytes_ / 4);
        step_.state_spans = engine_.own(slots * sizeof(StateSpan), &MemoryUse::scratch);
    }
    pool_ = std::make_unique<PagePool>(pages, checkpoints_.get(), std::move(windows));
}

}  // namespace akunu
