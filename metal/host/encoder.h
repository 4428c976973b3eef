// Encodes commands: the tight loop of a replay.
#pragma once

#import "metal/host/resolved_command.h"
#include "metal/host/step_commands.h"

#include <array>

namespace akunu::metal {

// One compute encoder that remembers what is bound, and sets only what differs.
class Encoder {
  public:
    // `dummy` stands for buffers that a command does not have.
    Encoder(__unsafe_unretained id<MTLComputeCommandEncoder> encoder, const Resolver& resolver, void* dummy)
        : encoder_(encoder), scratch_(resolver.scratch()), dummy_(dummy) {}

    void encode(const StepCommand& command, const ReplayArgs& args) {
        const DispatchCmd& cmd = *command.cmd;
        const ResolvedCommand& resolved = *static_cast<const ResolvedCommand*>(cmd.kernel);
        // Commands with scratch memory share it.
        waits_ = waits_ || command.barrier || resolved.scratch;
        bool bound = false;  // a pass before this one ran
        for (const ResolvedPass& p : resolved.passes) {
            waits_ = waits_ || bound;
            const auto count = [&](const GroupCount& c) { return groups(c, resolved.extent, args); };
            const MTLSize counts = MTLSizeMake(count(p.x), count(p.y), count(p.z));
            if (!p.counted && counts.width * counts.height * counts.depth == 0) continue;
            if (waits_ && started_) [encoder_ memoryBarrierWithScope:MTLBarrierScopeBuffers];
            started_ = true;
            waits_ = false;
            if (!bound) bind_all(cmd, resolved, args);
            bound = true;
            if (p.pipeline != pipeline_) {
                pipeline_ = p.pipeline;
                [encoder_ setComputePipelineState:p.pipeline];
            }
            if (p.counted) {
                [encoder_ dispatchThreadgroupsWithIndirectBuffer:as_buffer(scratch_)
                                            indirectBufferOffset:0
                                           threadsPerThreadgroup:p.threads];
                continue;
            }
            [encoder_ dispatchThreadgroups:counts threadsPerThreadgroup:p.threads];
        }
    }

  private:
    struct Slot {
        void* handle = nullptr;
        NSUInteger offset = 0;
    };

    void bind_all(const DispatchCmd& cmd, const ResolvedCommand& resolved, const ReplayArgs& args) {
        for (std::uint8_t i = 0; i < cmd.n_buffers; ++i) {
            const Binding* b = bound_as(cmd, i);
            bind(i, b ? b->buffer.handle : dummy_, b ? b->offset : 0);
        }
        if (resolved.params) {
            bind(kParamsIndex, resolved.params, resolved.params_offset);
        } else if (cmd.param_bytes != 0) {
            alignas(8) std::byte params[kMaxParamBytes];
            patched_params(cmd, args, params);
            [encoder_ setBytes:params length:cmd.param_bytes atIndex:kParamsIndex];
            bound_[kParamsIndex] = {};
        }
        if (resolved.scratch) bind(kScratchIndex, scratch_, 0);
    }

    void bind(int index, void* handle, NSUInteger offset) {
        Slot& slot = bound_[static_cast<std::size_t>(index)];
        if (slot.handle != handle) {
            [encoder_ setBuffer:as_buffer(handle) offset:offset atIndex:static_cast<NSUInteger>(index)];
        } else if (slot.offset != offset) {
            [encoder_ setBufferOffset:offset atIndex:static_cast<NSUInteger>(index)];
        } else {
            return;
        }
        slot = {handle, offset};
    }

    __unsafe_unretained id<MTLComputeCommandEncoder> encoder_;
    __unsafe_unretained id<MTLComputePipelineState> pipeline_ = nil;
    void* scratch_;
    void* dummy_;
    bool started_ = false;
    bool waits_ = false;  // what comes next does, also where a dispatch that would have waited was none
    std::array<Slot, kScratchIndex + 1> bound_{};
};

// Encodes one command alone in an encoder, which carries its name. A fence keeps the encoders of a command
// buffer in order, of which this is the first or not.
inline void encode_alone(id<MTLComputeCommandEncoder> compute, id<MTLFence> fence, bool first, const Resolver& resolver,
                         void* dummy, const StepCommand& command, const ReplayArgs& args) {
    compute.label = ns_string(command.label->full_name());
    if (!first) [compute waitForFence:fence];
    Encoder(compute, resolver, dummy).encode(command, args);
    if (fence) [compute updateFence:fence];
    [compute endEncoding];
}

}  // namespace akunu::metal
