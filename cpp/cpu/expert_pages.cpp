#include "cpu/expert_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "cpu/beacon.h"

namespace akunu::cpu {

namespace {

constexpr std::uint32_t kNowhere = ~0u;

// The system reads these pages of a file from now on, without anybody waiting for it.
void read_ahead(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()), first = begin / page * page;
    auto* at = const_cast<std::byte*>(bytes.data()) - (begin - first);
    static_cast<void>(madvise(at, begin + bytes.size() - first, MADV_WILLNEED));
}

}  // namespace

ExpertPages::ExpertPages(std::span<const HostTensor> experts, std::size_t lanes, ExpertStore& store)
    : store_(store),
      dtype_(experts.front().dtype),
      rows_(experts.front().rows),
      cols_(experts.front().cols),
      lanes_(lanes),
      groups_((rows_ + lanes - 1) / lanes),
      file_bytes_(experts.front().total_bytes()),
      state_(experts.size(), State::kAbsent),
      place_of_(experts.size(), kNowhere),
      wanted_(experts.size(), 0) {
    group_bytes_ = packed_bytes(dtype_, rows_, cols_, lanes) / groups_;
    for (const HostTensor& t : experts) {
        source_.push_back(
            {t.bytes.data(), t.scales.data(), t.biases.data(), t.factors.empty() ? 1.0f : t.factors.front()});
        planes_.insert(planes_.end(), {t.bytes, t.scales, t.biases});
    }
}

void ExpertPages::hold(std::uint64_t n) {
    n = std::min<std::uint64_t>(n, source_.size());
    places_.assign(n, {kNowhere, 0});
    // One spare line: the last vectors of a narrow plane may be read whole.
    if (n) memory_ = map_memory(n * expert_bytes() + 64, "more memory= leaves room for experts, less of it for none");
}

std::uint32_t ExpertPages::oldest_place() const {
    std::uint32_t found = kNowhere;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
        if (places_[i].used == clock_) continue;  // of an expert of this step
        if (found == kNowhere || places_[i].used < places_[found].used) found = i;
    }
    return found;
}

void ExpertPages::choose(std::span<const std::uint32_t> ids, bool counted) {
    ++clock_;
    // A replay that was stopped has never packed these.
    for (const std::uint32_t e : fetched_) {
        if (state_[e] != State::kFilling) continue;
        state_[e] = State::kAbsent;
        places_[place_of_[e]] = {kNowhere, 0};
        place_of_[e] = kNowhere;
    }
    fetched_.clear();
    for (const std::uint32_t e : ids) wanted_[e] = clock_;
    std::uint64_t hits = 0;
    for (std::uint32_t e = 0; e < source_.size(); ++e) {
        if (wanted_[e] != clock_) continue;
        if (state_[e] == State::kHeld) {
            places_[place_of_[e]].used = clock_;
            ++hits;
        } else {
            fetched_.push_back(e);
        }
    }
    for (const std::uint32_t e : fetched_) {
        fetch_ahead(e);
        const std::uint32_t place = oldest_place();
        if (place == kNowhere) continue;
        if (const std::uint32_t old = places_[place].expert; old != kNowhere) {
            state_[old] = State::kAbsent;
            place_of_[old] = kNowhere;
        }
        places_[place] = {e, clock_};
        place_of_[e] = place;
        state_[e] = State::kFilling;
    }
    store_.read_bytes_ += fetched_.size() * file_bytes_;
    if (!counted) return;
    store_.hits_ += hits;
    store_.misses_ += fetched_.size();
}

void ExpertPages::settle() {
    for (const std::uint32_t e : fetched_) {
        if (state_[e] == State::kFilling) state_[e] = State::kHeld;
        let_go(e);
    }
    fetched_.clear();
}

void ExpertPages::fetch_ahead(std::size_t expert) const {
    for (std::size_t i = 0; i < 3; ++i) read_ahead(planes_[3 * expert + i]);
}

void ExpertPages::let_go(std::size_t expert) const {
    for (std::size_t i = 0; i < 3; ++i) {
        const auto plane = planes_[3 * expert + i];
        if (!plane.empty()) give_back(const_cast<std::byte*>(plane.data()), plane.size());
    }
}

const std::byte* ExpertPages::groups(std::size_t expert, std::uint64_t first, std::uint64_t last, int thread,
                                     int half) {
    const auto place = [&] { return memory_.get() + place_of_[expert] * expert_bytes(); };
    if (state_[expert] == State::kHeld) return place();
    const auto begin = Clock::now();
    std::byte* base = nullptr;
    if (state_[expert] == State::kFilling) {
        base = place();
    } else {
        const std::uint64_t range = 2 * static_cast<std::uint64_t>(thread) + static_cast<std::uint64_t>(half);
        base = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(store_.scratch_.get()) +
                                            range * store_.range_bytes_ - first * group_bytes_);
    }
    pack_groups(dtype_, rows_, cols_, lanes_, source_[expert], base, first, last);
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    store_.nanoseconds_.fetch_add(static_cast<std::uint64_t>(took), std::memory_order_relaxed);
    return base;
}

bool is_held(const ExpertPages& pages, std::size_t expert) { return pages.held(expert); }

const std::byte* groups_of(ExpertPages& pages, std::size_t expert, std::uint64_t first, std::uint64_t last, int thread,
                           int half) {
    return pages.groups(expert, first, last, thread, half);
}

std::shared_ptr<ExpertPages> ExpertStore::add(std::span<const HostTensor> experts, std::size_t lanes) {
    all_.push_back(std::make_shared<ExpertPages>(experts, lanes, *this));
    const ExpertPages& pages = *all_.back();
    range_bytes_ = std::max<std::uint64_t>(range_bytes_, pack_align((kPagedRows / lanes) * pages.group_bytes_ + 64));
    return all_.back();
}

ExpertPages* ExpertStore::find(const Binding& weight) const {
    const auto is = [&](const auto& pages) { return reinterpret_cast<const std::byte*>(pages.get()) == weight.as(); };
    const auto found = std::ranges::find_if(all_, is);
    return found == all_.end() ? nullptr : found->get();
}

std::uint64_t ExpertStore::hold(std::uint64_t bytes) {
    const std::uint64_t scratch = 2 * static_cast<std::uint64_t>(threads_) * range_bytes_;
    scratch_ = map_memory(std::max<std::uint64_t>(scratch, 64), "fewer threads need less");
    std::uint64_t all = 0;
    for (const auto& pages : all_) all += pages->bytes();
    const std::uint64_t left = bytes - std::min(bytes, scratch);
    const double share = all ? std::min(1.0, static_cast<double>(left) / static_cast<double>(all)) : 1.0;
    held_bytes_ = 0;
    for (const auto& pages : all_) {
        pages->hold(static_cast<std::uint64_t>(share * static_cast<double>(pages->source_.size())));
        held_bytes_ += pages->places_.size() * pages->expert_bytes();
    }
    return held_bytes_ + scratch;
}

PagedUse ExpertStore::use() const {
    std::uint64_t all = 0;
    for (const auto& pages : all_) all += pages->bytes();
    const double seconds = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
    return {all, held_bytes_, hits_, misses_, read_bytes_, seconds / threads_};
}

}  // namespace akunu::cpu
