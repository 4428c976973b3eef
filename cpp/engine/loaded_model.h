// LoadedModel: a model on a device: its weights, the buffers between its commands, and what they take. What engines of
// every kind have in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/device.h"
#include "core/model.h"
#include "core/weight_source.h"
#include "plan/model.h"

namespace akunu {

// Bytes by purpose. Of `scratch`, so many are activations, which would take more if none shared memory.
struct MemoryUse {
    std::uint64_t weights = 0, weights_mapped = 0, kv_cache = 0, scratch = 0;
    std::uint64_t activations = 0, activations_apart = 0;

    void add_activations(const Activations& a, std::uint64_t allocated) {
        scratch += allocated;
        activations += allocated;
        activations_apart = a.bytes_apart();
    }
};

constexpr std::uint32_t kDefaultContext = 4096;

constexpr std::uint32_t pages_for(std::uint32_t positions) { return (positions + kPagePositions - 1) / kPagePositions; }

class LoadedModel {
  public:
    LoadedModel(const LoadedModel&) = delete;
    LoadedModel& operator=(const LoadedModel&) = delete;

    const ModelConfig& config() const { return config_; }
    const Device& device() const { return *device_; }
    // Tokens of a sequence at most.
    std::uint32_t context() const { return context_; }
    MemoryUse memory() const { return memory_; }
    // How experts that stay in their file are used.
    PagedUse paged_use() const { return device_->paged_use(); }

    // Ends the replay that runs; an Engine's step that begins later, too. May be called at any time.
    void cancel() { cancelled_ = true; }

  protected:
    // `context` 0: the model's, at most kDefaultContext. `memory`: what the model may take in all, 0: as much as the
    // device has. Experts that have no room stay in their file.
    LoadedModel(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
                std::uint32_t context, const Progress& progress, std::uint64_t memory = 0);
    ~LoadedModel() = default;

    // ModelFileError where weights are used from the mapping of a file that is shorter by now: reading them would be a
    // SIGBUS.
    void check_weights() const {
        if (source_) source_->check_files();
    }
    Binding own(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose, MemoryKind kind = MemoryKind::kShared);
    // The cache of a model whose sequences are whole in each step: so many pages, which all layers use, one after the
    // other. Returns the page tables, of up to so many sequences.
    Binding allocate_kv_of_one_step(std::uint64_t pages, std::uint64_t sequences);
    // What the model's blocks need between their commands, for tables of up to `rows` rows. `tables` are all that name
    // these activations, as they are emitted for a context; the step's buffers must be there. `adapted` are those that
    // there may be besides, with adapters, where all f32 rows are wanted.
    using Tables = std::function<std::vector<DispatchTable>(const PlanContext&)>;
    void allocate_activations(std::uint32_t rows, const Tables& tables, const Tables& adapted = {}, bool apart = false);
    // Once all else has its memory: experts that stay in their file get what is left.
    void hold_experts();
    // Once the programs are compiled that every call needs: afterwards none waits for kernels.
    void prepare_kernels(const Progress& progress);
    PlanContext plan() const { return {*device_, config_, activations_, step_}; }

    std::shared_ptr<WeightSource> source_;  // kept while weights are used from the mapping, longer than the device
    std::shared_ptr<Device> device_;
    const ModelConfig config_;
    std::vector<DeviceBuffer> owned_;
    std::unique_ptr<Model> model_;
    Activations activations_;
    StepBuffers step_;
    MemoryUse memory_;
    std::uint64_t total_bytes_ = 0;   // of the source
    std::uint64_t memory_limit_ = 0;  // for weights, caches and what is between commands
    bool has_limit_ = false, pages_experts_ = false;
    std::uint32_t context_ = 0;
    std::atomic<bool> cancelled_{false};
};

}  // namespace akunu
