#import "metal/host/indirect.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/error.h"

namespace akunu::metal {

namespace {

constexpr std::uint32_t kPatchThreads = 64;

constexpr PatchSource kSources[] = {PatchSource::kRows, PatchSource::kLogits, PatchSource::kStep, PatchSource::kKeys};
static_assert(std::size(kSources) == kPatchSources && kMaxSegments * kPatchSources == kPatchValues);
uint value_of(std::size_t segment, PatchSource source) {
    return static_cast<uint>(segment * kPatchSources + static_cast<std::size_t>(source));
}

bool equal(MTLSize a, MTLSize b) { return a.width == b.width && a.height == b.height && a.depth == b.depth; }

}  // namespace

Indirect::~Indirect() {
    for (Buffer* b : {&params_, &patches_}) {
        if (b->handle) memory_.release(*b);
    }
}

MTLSize Indirect::counts_of(const Entry& e, std::uint32_t step) const {
    const ReplayArgs args = chain_.args_at(e.command->args, step);
    const auto count = [&](const GroupCount& c) { return groups(c, e.resolved().extent, args); };
    return MTLSizeMake(count(e.pass().x), count(e.pass().y), count(e.pass().z));
}

void Indirect::reserve(std::size_t dispatches, std::size_t commands, std::size_t patches) {
    if (!commands_ || commands_.size < dispatches) {
        MTLIndirectCommandBufferDescriptor* descriptor = [MTLIndirectCommandBufferDescriptor new];
        descriptor.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
        descriptor.inheritPipelineState = NO;
        descriptor.inheritBuffers = NO;
        descriptor.maxKernelBufferBindCount = kScratchIndex + 1;
        commands_ = [device_ newIndirectCommandBufferWithDescriptor:descriptor
                                                    maxCommandCount:dispatches
                                                            options:MTLResourceStorageModeShared];
        if (!commands_) throw DeviceError("Metal gave no indirect command buffer");
    }
    const auto grow = [&](Buffer& b, std::uint64_t bytes) {
        if (b.size >= bytes) return;
        const Buffer larger = memory_.allocate(bytes, MemoryKind::kShared);
        if (b.handle) memory_.release(b);
        b = larger;
    };
    grow(params_, commands * kParamsStride);
    grow(patches_, std::max<std::size_t>(patches, 1) * sizeof(ReplayPatch));
}

void Indirect::bind(id<MTLIndirectComputeCommand> command, void* handle, NSUInteger offset, int index) {
    [command setKernelBuffer:as_buffer(handle) offset:offset atIndex:static_cast<NSUInteger>(index)];
    const auto at = std::lower_bound(used_.begin(), used_.end(), handle);
    if (at == used_.end() || *at != handle) used_.insert(at, handle);
}

bool Indirect::waits(std::size_t at) const {
    while (!entries_[at].waits() && at != 0 && entries_[at - 1].none()) --at;
    return at != 0 && entries_[at].waits();
}

void Indirect::encode_entry(std::size_t at) {
    const Entry& e = entries_[at];
    const ResolvedCommand& resolved = e.resolved();
    const DispatchCmd& cmd = *e.command->cmd;
    id<MTLIndirectComputeCommand> command = [commands_ indirectComputeCommandAtIndex:at];
    [command reset];
    if (e.none()) return;
    [command setComputePipelineState:library_.indirect_pipeline(resolved.choice.passes[e.index])];
    if (waits(at)) [command setBarrier];
    for (std::uint8_t b = 0; b < cmd.n_buffers; ++b) {
        const Binding* binding = bound_as(cmd, b);
        bind(command, binding ? binding->buffer.handle : dummy_, binding ? binding->offset : 0, b);
    }
    if (cmd.param_bytes != 0) bind(command, params_.handle, e.slot * kParamsStride, kParamsIndex);
    if (resolved.scratch) bind(command, resolver_.scratch(), 0, kScratchIndex);
    [command concurrentDispatchThreadgroups:e.counts threadsPerThreadgroup:e.pass().threads];
}

void Indirect::add_command(std::size_t slot) {
    const DispatchCmd& cmd = *step_[slot].cmd;
    const std::size_t passes = static_cast<const ResolvedCommand*>(cmd.kernel)->passes.size();
    for (std::size_t i = 0; i < passes; ++i) {
        entries_.push_back({&step_[slot], slot, i, {}});
        entries_.back().counts = counts_of(entries_.back(), 0);
        encode_entry(entries_.size() - 1);
    }
    std::memcpy(params_.host + slot * kParamsStride, cmd.params.data(), cmd.param_bytes);
    for (std::uint8_t i = 0; i < cmd.n_patches; ++i) {
        const auto word =
            static_cast<std::uint32_t>((slot * kParamsStride + cmd.patches[i].offset) / sizeof(std::uint32_t));
        list_.push_back({word, value_of(step_[slot].segment, cmd.patches[i].source), cmd.patches[i].times});
    }
}

bool Indirect::takes(std::span<const StepCommand> commands) {
    return std::ranges::none_of(commands, [](const StepCommand& c) {
        const auto& passes = static_cast<const ResolvedCommand*>(c.cmd->kernel)->passes;
        return std::ranges::any_of(passes, &ResolvedPass::counted);
    });
}

void Indirect::prepare(std::vector<StepCommand> commands, const Chain& chain) {
    if (!patch_) patch_ = library_.pipeline({"patch_params", {}, {}, {}, {}, {kPatchThreads, 1, 1}});
    std::size_t dispatches = 0, patches = 0;
    for (const StepCommand& c : commands) {
        dispatches += static_cast<const ResolvedCommand*>(c.cmd->kernel)->passes.size();
        patches += c.cmd->n_patches;
    }
    chain_ = chain;
    chain_.segments = {};
    step_ = std::move(commands);
    reserve(dispatches, step_.size(), patches);
    entries_.clear();
    list_.clear();
    used_.clear();
    for (std::size_t i = 0; i < step_.size(); ++i) add_command(i);
    std::memcpy(patches_.host, list_.data(), list_.size() * sizeof(ReplayPatch));
}

std::uint32_t Indirect::same_counts_until(std::uint32_t step, std::uint32_t limit) const {
    const auto same = [&](std::uint32_t s) {
        return std::all_of(entries_.begin(), entries_.end(),
                           [&](const Entry& e) { return !follows_keys(e.pass()) || equal(e.counts, counts_of(e, s)); });
    };
    while (step < limit && same(step)) ++step;
    return step;
}

void Indirect::set_counts(std::uint32_t step) {
    bool changed = false;  // whether the one before is none, or one that is none before that
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        Entry& e = entries_[i];
        const bool was_none = e.none(), follows = follows_keys(e.pass());
        if (follows) e.counts = counts_of(e, step);
        if (follows || changed) encode_entry(i);
        changed = was_none != e.none() || (changed && e.none());
    }
}

void Indirect::use_resources(id<MTLComputeCommandEncoder> encoder) const {
    for (void* handle : used_) {
        [encoder useResource:as_buffer(handle) usage:MTLResourceUsageRead | MTLResourceUsageWrite];
    }
}

void Indirect::encode(id<MTLComputeCommandEncoder> encoder, std::uint32_t step) {
    if (!list_.empty()) {
        ReplayPatchArgs args{static_cast<uint>(list_.size()), {}};
        for (std::size_t i = 0; i < step_.size(); ++i) {
            if (i != 0 && step_[i].segment == step_[i - 1].segment) continue;
            const ReplayArgs of_segment = chain_.args_at(step_[i].args, step);
            for (const PatchSource source : kSources) {
                args.values[value_of(step_[i].segment, source)] = source_value(source, of_segment);
            }
        }
        [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
        [encoder setComputePipelineState:patch_];
        [encoder setBuffer:as_buffer(params_.handle) offset:0 atIndex:0];
        [encoder setBuffer:as_buffer(patches_.handle) offset:0 atIndex:1];
        [encoder setBytes:&args length:sizeof args atIndex:2];
        [encoder
             dispatchThreadgroups:MTLSizeMake(ceil_div(static_cast<std::uint32_t>(list_.size()), kPatchThreads), 1, 1)
            threadsPerThreadgroup:MTLSizeMake(kPatchThreads, 1, 1)];
    }
    [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
    [encoder executeCommandsInBuffer:commands_ withRange:NSMakeRange(0, entries_.size())];
}

}  // namespace akunu::metal
