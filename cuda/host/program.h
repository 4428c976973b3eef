// A compiled table as the interpreter reads it.
#pragma once

#include <optional>
#include <vector>

#include "core/device.h"
#include "cuda/host/memory.h"
#include "cuda/host/needs.h"
#include "cuda/kernels/command.h"
#include "cuda/kernels/few_layout.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

// What commands are laid out for.
struct Geometry {
    std::uint64_t shared_bytes;
    u32 blocks;
    BlockSizes sizes() const { return block_sizes(shared_bytes); }
};
// The interpreter's op that does the work of one of the core's; nothing where there is none.
std::optional<OpCode> op_code(Op op);

// The commands of a table, one for each. Throws UnsupportedError for one that no kernel runs.
std::vector<Command> compile_commands(const DispatchTable& table, const Geometry& geometry);
// The same with fewer commands, where one does the work of several; of rows of different sequences.
std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands, const Geometry& geometry);
// The same of a table of several rows, for up to kByteRows of them: norms are part of the matmuls behind them, too.
std::vector<Command> fused_of_few(const DispatchTable& table, std::span<const Command> commands,
                                  const Geometry& geometry);
// How many commands of the table before its label's, and behind that, a command does the work of, too.
struct Covered {
    std::size_t before, behind;
};
// The rows of a shared expert's gate, or the inputs of its last matrix, where it is one more choice of the command's.
inline u32 shared_expert_of(const Command& c) {
    if (c.op == kOpNormExperts) return reinterpret_cast<const NormExpertsParams&>(c.params).shared;
    return c.op == kOpExpertsDown ? reinterpret_cast<const RowDownParams&>(c.params).shared : 0;
}
// Whether a command has what adapters add to its results.
inline bool is_adapted(const Command& c) {
    const bool multiplies = c.op == kOpMatmul || c.op == kOpGateUp || c.op == kOpNormQkv || c.op == kOpNormGateUp;
    return multiplies && c.buffers[kAdapterChoices] != 0;
}
inline const AdaptedParams& adapted_params(const Command& c) {
    return reinterpret_cast<const AdaptedParams&>(c.params[kAdaptedWord]);
}
inline u32 ranks_of(const Command& c) {
    const auto& ranks = adapted_params(c).max_rank;
    return ranks[0] + ranks[1] + ranks[2];
}
// Where the matmuls that such a command has stand in the table, behind the first one, its label; before one that has
// adapters stands their A, and behind it their B.
struct AdaptedPlaces {
    std::size_t matmuls = 1, normed = 0, gated = 0;  // how many there are; 1: with a norm, with an activation
    std::size_t at[3] = {}, end = 0;                 // of the matmuls; behind all commands

    explicit AdaptedPlaces(const Command& c) : ranks_(adapted_params(c).max_rank) {
        gated = c.op == kOpGateUp || c.op == kOpNormGateUp;
        normed = c.op == kOpNormQkv || c.op == kOpNormGateUp;
        matmuls = c.op == kOpNormQkv ? 3 : 1 + gated;
        for (std::size_t i = 1; i < matmuls; ++i) at[i] = at[i - 1] + has(i - 1) + has(i) + 1;
        end = at[matmuls - 1] + has(matmuls - 1) + gated + 1;
    }
    std::size_t has(std::size_t matmul) const { return ranks_[matmul] != 0 ? 1 : 0; }
    // The first one that has adapters.
    std::size_t first() const { return has(0) ? 0 : has(1) ? 1 : 2; }

  private:
    const u32* ranks_;
};
// Whether the router of kOpNormExperts has a norm of its own, which stands before it, and the experts' behind it.
inline bool has_router_norm(const Command& c) {
    return !reinterpret_cast<const NormExpertsParams&>(c.params).route.has_choice_bias && c.buffers[kRouterNorm];
}
// Whether a norm, and the matmuls that read what it gives, are one command of a few rows.
inline bool is_norm_of_rows(const Command& c) {
    return (c.op == kOpNormQkv || c.op == kOpNormGateUp) && c.n_patches != 0;
}
inline Covered covered_by(const Command& c) {
    if (is_norm_of_rows(c)) return {1, c.op == kOpNormQkv ? 2u : 0u};
    if (is_adapted(c)) {
        const AdaptedPlaces at(c);
        return {at.normed + at.has(0), at.end - 1};
    }
    if (c.op == kOpDecodeAttention || c.op == kOpLatentValues || c.op == kOpNormSums) return {1, 1};
    if (c.op == kOpLatentQueries) return {1, 0};
    if (c.op == kOpNormRoute) return {1, reinterpret_cast<const NormRouteParams&>(c.params).shared ? 3u : 1u};
    if (c.op == kOpNormExperts) {
        const auto& p = reinterpret_cast<const NormExpertsParams&>(c.params);
        return {p.shared_router ? 5u : has_router_norm(c) ? 4u : 3u, p.shared ? 1u : 0u};
    }
    return {0, c.reduces || shared_expert_of(c) ? 1u : 0u};
}
// Whether the same rows of two decode attentions see the same keys, and have the same heads.
bool same_shape(const Command& a, const Command& b);
// All of them, and what commands of each read through the ring, in their order: checked (cuda/host/schedule.h). Those
// of a few rows, up to kByteRows, have norms in them, too; where a table has none of these they are the fused ones.
struct Schedules {
    std::vector<Command> plain, fused, few;
    std::vector<Stream> streams, fused_streams, few_streams;
    Geometry geometry;
};
Schedules compile_schedules(const DispatchTable& table, const Geometry& geometry);
// Notes in the table which commands another one does the work of.
void note_merged(DispatchTable& table, std::span<const Command> fused);
// The bytes of a block's memory that a command's op takes in a launch, at most, and those that come to a slot of the
// ring at a time; whether matmuls of many rows have more stages in more memory; and what all blocks' rings load in a
// step to commands of one row, and to how many.
struct OpMemory {
    std::uint64_t bytes, slot_bytes;
    bool stages;
    std::uint64_t streamed, streaming;
};
// `commands` are those of the schedules that run, and `streams` what they read.
OpMemory memory_of(const DispatchTable& table, const Schedules& schedules, std::span<const Command> commands,
                   std::span<const Stream> streams, const ReplayArgs& args);
// The bytes of the results of choices that a command of the table adds up later, at most.
std::uint64_t result_bytes(const DispatchTable& table);
// The shared buffers that a table's commands use, each once.
std::vector<Mirror> mirrors_of(const DispatchTable& table);

// Some commands on the device.
class CommandList {
  public:
    CommandList(Device& device, std::vector<Command> commands, std::vector<Stream> streams, u32 blocks);
    const Command* at() const { return buffer_.at().as<const Command>(); }
    const Stream* streams() const { return streams_.at().as<const Stream>(); }
    std::span<const Command> commands() const { return commands_; }
    std::span<const Stream> read() const { return read_; }
    const std::shared_ptr<const Needs>& needs() const { return needs_; }

  private:
    std::vector<Command> commands_;
    std::vector<Stream> read_;
    std::shared_ptr<const Needs> needs_;
    DeviceBuffer buffer_, streams_;
};

class CudaProgram final : public Program {
  public:
    // `box_maps`: what the schedules' commands name.
    CudaProgram(DispatchTable table, Device& device, Schedules schedules, DeviceBuffer box_maps);
    // What runs of up to `most` commands of the table: a prefix has a command for each of the table's, and so has a
    // step in which more rows are of one sequence than attention in decoding takes.
    const CommandList& list(const ReplayArgs& args, std::uint32_t most) const {
        if (most < table.commands.size() || !takes_runs(args)) return plain_;
        return table.max_rows != 1 && args.rows <= kByteRows ? few_ : fused_;
    }
    // What whole steps run.
    std::vector<std::shared_ptr<const Needs>> needs() const {
        if (table.max_rows == 1) return {fused_.needs()};
        return {fused_.needs(), few_.needs(), plain_.needs()};
    }
    LaunchSegment segment(const ReplayArgs& args, std::uint32_t most) const;
    OpMemory memory(const ReplayArgs& args, std::uint32_t most) const {
        const CommandList& run = list(args, most);
        return memory_of(table, schedules_, run.commands(), run.read(), args);
    }

  private:
    bool takes_runs(const ReplayArgs& args) const {
        if (args.sequences == args.rows) return true;
        return args.rows <= run_ * args.sequences && args.rows * units_ <= schedules_.geometry.blocks;
    }

    CommandList plain_, fused_, few_;
    DeviceBuffer mirrors_, box_maps_;
    Schedules schedules_;
    u32 n_mirrors_ = 0;
    u32 run_ = kMostRun, units_ = 1;  // of all attention in decoding: rows of a sequence; blocks that take one
};

}  // namespace akunu::cuda
