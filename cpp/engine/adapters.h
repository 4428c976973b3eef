// Adapters: what is added to the products of a model's linear layers, in slots of one buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "plan/adapters.h"
#include "plan/loader.h"

namespace akunu {

constexpr std::uint32_t kMaxRank = 512;
constexpr std::uint32_t kMaxAdapters = 256;

// What an adapter adds to a layer: scale·B·A.
struct AdapterTensors {
    std::uint32_t linear = 0;  // its place among the model's, + 1
    std::uint32_t rank = 0;
    float scale = 1;
    std::span<const float> a, b;  // [rank, cols], [rows, rank]
};

class AdapterSlots {
  public:
    explicit AdapterSlots(const std::vector<Linear>& linears) : linears_(linears) {}

    // Returns the number of its slot. The plan changes where its layers, or ranks, or the adapter itself had no room:
    // `changed` says so. InvalidArgumentError where a shape is not the layer's, or a value is not finite.
    std::uint32_t add(Device& device, std::span<const AdapterTensors> tensors, std::uint32_t rows, bool& changed);
    void remove(std::uint32_t slot);
    bool has(std::uint32_t slot) const { return slot < used_.size() && used_[slot]; }
    bool any() const;
    const AdapterPlan& plan() const { return plan_; }
    void set_choices(const Binding& choices) { plan_.choices = choices; }
    std::uint64_t bytes() const;

  private:
    // The parts of all layers, so large as those that there are and these need.
    std::vector<AdapterPlan::Layer> parts_with(std::span<const AdapterTensors> tensors) const;
    std::uint64_t slot_bytes(const std::vector<AdapterPlan::Layer>& parts) const;
    std::uint64_t part_bytes(std::size_t linear, std::uint32_t max_rank) const;
    // Moves what there is to slots of other parts, or to more of them.
    void resize(Device& device, std::vector<AdapterPlan::Layer> parts, std::size_t slots, std::uint32_t rows);
    void check(std::span<const AdapterTensors> tensors) const;

    const std::vector<Linear>& linears_;
    AdapterPlan plan_;
    std::vector<bool> used_;
    DeviceBuffer slots_;
    std::vector<DeviceBuffer> scratch_;
};

}  // namespace akunu
