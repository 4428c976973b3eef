// What a module of kernels must have.
#pragma once

#include <set>
#include <span>
#include <string>

#include "cuda/kernels/command.h"

namespace akunu::cuda {

struct Needs {
    std::set<u32> ops, readers, kv_types, groups, decode_kinds, prompt_dims;
    std::set<u32> gate_up_readers, down_readers;  // of experts, whose kernels are the largest
    std::set<u32> expert_kinds;                   // ExpertKind
    std::set<u32> activations;                    // of matmuls
    std::set<u32> decode_runs;                    // 1: some steps have several rows of a sequence
    std::set<u32> adapters;                       // 1: some matmuls have them
    void add(const Needs& other);
    bool covers(const Needs& other) const;
    // The lists that cuda/kernels/interpreter.cu begins with.
    std::string definitions() const;
};

// Of commands for so many blocks.
Needs needs_of(std::span<const Command> commands, u32 blocks);

}  // namespace akunu::cuda
