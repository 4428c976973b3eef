// Experts that stay in their file, for models that are larger than the memory they may take.
//
// Some of the experts of each weight are held packed, those that were used last. What else a step needs is packed
// where it is used, by the thread that multiplies with it: in the place of the expert that was used longest ago, or in
// the thread's own scratch where all places belong to experts of the same step. So every product is one of the same
// packed bytes, wherever they lie. Which expert gets which place is decided between two stages of a replay, by the one
// thread that ends the first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device.h"
#include "cpu/memory.h"
#include "cpu/pack.h"
#include "cpu/paged_groups.h"

namespace akunu::cpu {

class ExpertStore;

// The weights of one matrix of all experts of a layer.
class ExpertPages {
  public:
    ExpertPages(std::span<const HostTensor> experts, std::size_t lanes, ExpertStore& store);

    std::uint64_t expert_bytes() const { return groups_ * group_bytes_; }
    std::uint64_t bytes() const { return source_.size() * expert_bytes(); }

    // Before the commands that use the experts `ids`, while no other thread looks at it. `counted`: of the matrices
    // that are used together, this one counts for all.
    void choose(std::span<const std::uint32_t> ids, bool counted);
    // After them.
    void settle();

    // See paged_groups.h.
    bool held(std::size_t expert) const { return state_[expert] == State::kHeld; }
    const std::byte* groups(std::size_t expert, std::uint64_t first, std::uint64_t last, int thread, int half);

  private:
    friend class ExpertStore;
    enum class State : std::uint8_t {
        kAbsent,
        kFilling,  // the groups that this step's commands use are being packed to its place
        kHeld,
    };
    struct HeldExpert {
        std::uint32_t expert;
        std::uint64_t used;  // when, as `clock_` tells
    };
    // Memory for so many experts.
    void hold(std::uint64_t n);
    void fetch_ahead(std::size_t expert) const;
    void let_go(std::size_t expert) const;
    std::uint32_t oldest_place() const;

    ExpertStore& store_;
    const DType dtype_;
    const std::uint64_t rows_, cols_;
    const std::size_t lanes_;
    std::uint64_t groups_ = 0, group_bytes_ = 0, file_bytes_ = 0;  // the last: of an expert
    std::vector<WeightPlanes> source_;                             // of each expert
    std::vector<std::span<const std::byte>> planes_;               // the bytes of each, codes, scales and biases
    std::vector<State> state_;                                     // of each expert
    std::vector<std::uint32_t> place_of_;
    std::vector<std::uint64_t> wanted_;  // when
    std::vector<std::uint32_t> fetched_;
    std::vector<HeldExpert> places_;
    Mapping memory_;
    std::uint64_t clock_ = 0;
};

// Those of a device.
class ExpertStore {
  public:
    explicit ExpertStore(int threads) : threads_(threads) {}

    std::shared_ptr<ExpertPages> add(std::span<const HostTensor> experts, std::size_t lanes);
    // The pages that a command's weight is; null: it is packed as a whole.
    ExpertPages* find(const Binding& weight) const;
    // Lets as many experts of all weights be held as `bytes` have room for. Returns what they take.
    std::uint64_t hold(std::uint64_t bytes);
    PagedUse use() const;

  private:
    friend class ExpertPages;

    const int threads_;
    std::vector<std::shared_ptr<ExpertPages>> all_;
    Mapping scratch_;
    std::uint64_t range_bytes_ = 0;  // of a thread's scratch, for one of its two ranges
    std::uint64_t held_bytes_ = 0;
    std::atomic<std::uint64_t> hits_{0}, misses_{0}, read_bytes_{0}, nanoseconds_{0};  // the last: of all threads
};

}  // namespace akunu::cpu
