// EngineContext: what the parts of an engine share: the model on its device, the buffers of a step, and the sequences.
#pragma once

#include <functional>

#include "engine/loaded_model.h"
#include "engine/sequence.h"

namespace akunu {

constexpr std::uint32_t kMaxParallel = 256;
constexpr std::uint32_t kMaxChain = 256;   // steps of one call
constexpr std::uint32_t kLogitsRows = 32;  // rows whose logits a step can give, whatever the sequences

struct EngineOptions {
    std::uint32_t context = 0;  // 0: the model's, at most kDefaultContext
    std::uint32_t chunk = 0;    // rows of a step at most; 0: the device's own
    KvTypes kv_types = {};
    std::uint32_t parallel = 8;  // sequences at a time
    // Bytes of all pages and states; 0: those of a context for each sequence, or half of the device's memory.
    std::uint64_t kv_memory = 0;
    // Bytes of the model in all; 0: as the device has. Experts that have no room stay in their file.
    std::uint64_t memory = 0;
    std::uint32_t sounds = 1;        // of decoders with cross-attention: sounds at a time
    bool activations_apart = false;  // no two share memory: see Inspector::run_prefix
};

// The parts of an engine refer to its members, and live as long as it does.
struct EngineContext {
    Device& device;
    const ModelConfig& config;
    const Model& model;
    Activations& activations;
    MemoryUse& memory;
    StepBuffers& step;
    Sequences& sequences;
    std::uint32_t context;  // positions of a sequence at most
    // Allocates bytes that count for a purpose, and belong to the engine.
    std::function<Binding(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose, MemoryKind kind)> allocate;

    Binding own(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose, MemoryKind kind = MemoryKind::kShared) const {
        return allocate(bytes, purpose, kind);
    }
    PlanContext plan(const StepBuffers& buffers) const { return {device, config, activations, buffers}; }
    // The phase of a step of so many rows that are all tokens.
    Phase phase_for(std::uint32_t rows) const {
        if (rows == 1) return Phase::kDecode;
        return rows <= device.traits().max_batch_rows ? Phase::kBatch : Phase::kPrefill;
    }
    // The phase whose programs run: a device that takes one row at a time has no batch programs.
    Phase compiled(Phase phase) const {
        return phase == Phase::kBatch && device.traits().max_batch_rows <= 1 ? Phase::kPrefill : phase;
    }
    // The tokens of a slot's sequence.
    std::uint32_t* history(std::uint32_t slot) const {
        return step.history.host<std::uint32_t>() + std::size_t{slot} * step.history_stride;
    }
};

}  // namespace akunu
