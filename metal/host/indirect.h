// Replay by an indirect command buffer: a chain's commands are encoded once, and each token costs a dispatch that
// patches their parameters and one call that executes them.
#pragma once

#import "metal/host/resolved_command.h"
#include "metal/host/step_commands.h"

#include <span>
#include <vector>

#include "metal/include/replay_patch.h"

namespace akunu::metal {

class Indirect {
  public:
    Indirect(id<MTLDevice> device, Memory& memory, Library& library, const Resolver& resolver, void* dummy)
        : device_(device), memory_(memory), library_(library), resolver_(resolver), dummy_(dummy) {}
    ~Indirect();

    // Whether the host knows the counts of all threadgroups: an indirect command has no others.
    static bool takes(std::span<const StepCommand> commands);
    // Encodes the commands as of the chain's first step. Nothing that uses this object may be in flight.
    void prepare(std::vector<StepCommand> commands, const Chain& chain);

    // The first step after `step` that needs other threadgroup counts; `limit` when none before it does.
    std::uint32_t same_counts_until(std::uint32_t step, std::uint32_t limit) const;
    // Sets the counts of `step`. Nothing may be in flight.
    void set_counts(std::uint32_t step);

    // One step's commands, behind a barrier.
    void encode(id<MTLComputeCommandEncoder> encoder, std::uint32_t step);
    // What the steps of an encoder touch.
    void use_resources(id<MTLComputeCommandEncoder> encoder) const;

  private:
    // A dispatch: pass `index` of a command, with its parameters in a slot.
    struct Entry {
        const StepCommand* command;
        std::size_t slot, index;
        MTLSize counts;
        const ResolvedCommand& resolved() const { return *static_cast<const ResolvedCommand*>(command->cmd->kernel); }
        const ResolvedPass& pass() const { return resolved().passes[index]; }
        bool waits() const { return index != 0 || command->barrier || resolved().scratch; }
        bool none() const { return counts.width * counts.height * counts.depth == 0; }
    };
    static bool follows_keys(const ResolvedPass& p) {
        return p.x.follows_keys() || p.y.follows_keys() || p.z.follows_keys();
    }
    MTLSize counts_of(const Entry& e, std::uint32_t step) const;
    void reserve(std::size_t dispatches, std::size_t commands, std::size_t patches);
    void add_command(std::size_t slot);
    void bind(id<MTLIndirectComputeCommand> command, void* handle, NSUInteger offset, int index);
    // Whether it waits for those before it, or one did that is none and stands directly before.
    bool waits(std::size_t at) const;
    void encode_entry(std::size_t at);

    id<MTLDevice> device_;
    Memory& memory_;
    Library& library_;
    const Resolver& resolver_;
    void* dummy_;
    id<MTLIndirectCommandBuffer> commands_;
    __unsafe_unretained id<MTLComputePipelineState> patch_ = nil;
    Buffer params_, patches_;
    std::vector<StepCommand> step_;
    std::vector<Entry> entries_;
    std::vector<ReplayPatch> list_;
    std::vector<void*> used_;  // buffers, each once, sorted
    Chain chain_;              // of which the segments are not looked at
};

}  // namespace akunu::metal
