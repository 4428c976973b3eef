// A compiled table as the interpreter reads it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/device.h"
#include "cuda/host/memory.h"
#include "cuda/kernels/command.h"

namespace akunu::cuda {

// What a module of kernels must have.
struct Needs {
    std::set<u32> ops, readers, kv_types, groups, lanes;
    void add(const Needs& other);
    bool covers(const Needs& other) const;
    // The lists that cuda/kernels/interpreter.cu begins with.
    std::string definitions() const;
};

// What commands are laid out for.
struct Geometry {
    std::uint64_t shared_bytes;
    u32 blocks;
};
// The interpreter's op that does the work of one of the core's; nothing where there is none.
std::optional<OpCode> op_code(Op op);
// Where a command's weights are among its buffers, and how large.
struct WeightPlace {
    std::size_t buffer;
    std::uint64_t rows, cols;
};
std::vector<WeightPlace> weights_in(const DispatchCmd& command);

// The commands of a table, one for each. Throws UnsupportedError for one that no kernel runs.
std::vector<Command> compile_commands(const DispatchTable& table, const Geometry& geometry);
// The same with fewer commands, where one does the work of several.
std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands);
Needs needs_of(std::span<const Command> commands);
// What commands read through the ring, in their order.
std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands);
// All three, checked (cuda/host/schedule.h).
struct Schedules {
    std::vector<Command> plain, fused;
    std::vector<Stream> streams;
};
Schedules compile_schedules(const DispatchTable& table, const Geometry& geometry);
// Notes in the table which commands another one does the work of.
void note_merged(DispatchTable& table, std::span<const Command> fused);
// The bytes of a block's memory that a command's op takes, at most.
std::uint64_t op_bytes_of(const DispatchTable& table, std::span<const Command> commands);
// The shared buffers that a table's commands use, each once.
std::vector<Mirror> mirrors_of(const DispatchTable& table);

// Some commands on the device.
class CommandList {
  public:
    CommandList(Device& device, std::vector<Command> commands);
    const Command* at() const { return buffer_.at().as<const Command>(); }
    std::span<const Command> commands() const { return commands_; }
    const std::shared_ptr<const Needs>& needs() const { return needs_; }

  private:
    std::vector<Command> commands_;
    std::shared_ptr<const Needs> needs_;
    DeviceBuffer buffer_;
};

class CudaProgram final : public Program {
  public:
    CudaProgram(DispatchTable table, Device& device, Schedules schedules);
    // What runs where only so many of the table's commands are wanted: a prefix has a command for each of them.
    const CommandList& list(std::uint32_t most) const { return most < table.commands.size() ? plain_ : fused_; }
    Segment segment(std::uint32_t most) const;
    std::uint64_t op_bytes() const { return op_bytes_; }

  private:
    CommandList plain_, fused_;
    DeviceBuffer streams_, mirrors_;
    std::uint64_t op_bytes_;
    u32 n_mirrors_;
};

}  // namespace akunu::cuda
