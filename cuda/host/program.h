// A compiled table as the interpreter reads it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/mixed_qkv.h"
#include "cuda/host/memory.h"
#include "cuda/kernels/command.h"

namespace akunu::cuda {

#define AKUNU_PAIR(qk, QK, v, V) {DType::QK, DType::V},
inline constexpr MixedQkv kMixedQkv[] = {AKUNU_MIXED_QKV(AKUNU_PAIR)};
#undef AKUNU_PAIR

// What a module of kernels must have.
struct Needs {
    std::set<u32> ops, readers, kv_types, groups;
    void add(const Needs& other);
    bool covers(const Needs& other) const;
    // The lists that cuda/kernels/interpreter.cu begins with.
    std::string definitions() const;
};

// The commands of a table. Throws UnsupportedError for one that no kernel runs.
std::vector<Command> compile_commands(const DispatchTable& table, std::uint64_t shared_bytes);
Needs needs_of(std::span<const Command> commands);
// The shared buffers that a table's commands use, each once.
std::vector<Mirror> mirrors_of(const DispatchTable& table);

class CudaProgram final : public Program {
  public:
    CudaProgram(DispatchTable table, Device& device, std::span<const Command> commands,
                std::span<const Mirror> mirrors);
    Segment segment(std::uint32_t commands) const;
    const std::shared_ptr<const Needs>& needs() const { return needs_; }

  private:
    std::shared_ptr<const Needs> needs_;
    DeviceBuffer commands_, mirrors_;
    u32 n_mirrors_;
};

}  // namespace akunu::cuda
