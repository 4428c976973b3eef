#import "metal/host/indirect.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace akunu::metal {

namespace {

constexpr std::uint32_t kPatchThreads = 64;

bool equal(MTLSize a, MTLSize b) { return a.width == b.width && a.height == b.height && a.depth == b.depth; }

// As patch_value() in core/dispatch.h.
ReplayPatch patch_of(const Patch& p, std::uint32_t word) {
    switch (p.source) {
        case PatchSource::kPosition:
            return {word, p.add, 1, 0, 1};
        case PatchSource::kRows:
            return {word, p.add, 0, 1, 0};
        case PatchSource::kLastRow:
            return {word, p.add - 1u, 0, 1, 0};
        case PatchSource::kStep:
            return {word, p.add, 0, 0, 1};
        case PatchSource::kEnd:
            return {word, p.add, 1, 1, 1};
    }
    return {};
}

}  // namespace

Indirect::~Indirect() {
    for (Buffer* b : {&params_, &patches_}) {
        if (b->handle) memory_.release(*b);
    }
}

MTLSize Indirect::counts_of(const Entry& e, std::uint32_t step) const {
    const auto count = [&](const GroupCount& c) {
        return groups(c, e.resolved().extent, args_.position + step, args_.rows);
    };
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
        const Buffer larger = memory_.allocate(bytes);
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

void Indirect::encode_entry(std::size_t at) {
    const Entry& e = entries_[at];
    const ResolvedCommand& resolved = e.resolved();
    const DispatchCmd& cmd = *e.command;
    id<MTLIndirectComputeCommand> command = [commands_ indirectComputeCommandAtIndex:at];
    [command reset];
    [command setComputePipelineState:library_.indirect_pipeline(resolved.choice.passes[e.index])];
    if (at != 0 && (e.index != 0 || cmd.barrier || resolved.scratch)) [command setBarrier];
    for (std::uint8_t b = 0; b < cmd.n_buffers; ++b) {
        const Binding& binding = cmd.buffers[b];
        bind(command, binding ? binding.buffer.handle : dummy_, binding ? binding.offset : 0, b);
    }
    if (cmd.param_bytes != 0) bind(command, params_.handle, e.slot * kParamsStride, kParamsIndex);
    if (resolved.scratch) bind(command, resolver_.scratch(), 0, kScratchIndex);
    [command concurrentDispatchThreadgroups:e.counts threadsPerThreadgroup:e.pass().threads];
}

void Indirect::add_command(const DispatchCmd& cmd, std::size_t slot) {
    const std::size_t passes = static_cast<const ResolvedCommand*>(cmd.kernel)->passes.size();
    for (std::size_t i = 0; i < passes; ++i) {
        entries_.push_back({&cmd, slot, i, {}});
        entries_.back().counts = counts_of(entries_.back(), 0);
        encode_entry(entries_.size() - 1);
    }
    std::memcpy(params_.contents + slot * kParamsStride, cmd.params.data(), cmd.param_bytes);
    for (std::uint8_t i = 0; i < cmd.n_patches; ++i) {
        const auto word =
            static_cast<std::uint32_t>((slot * kParamsStride + cmd.patches[i].offset) / sizeof(std::uint32_t));
        list_.push_back(patch_of(cmd.patches[i], word));
    }
}

void Indirect::prepare(const DispatchTable& table, const ReplayArgs& args) {
    if (!patch_) patch_ = library_.pipeline({"patch_params", {}, {}, {}, {}, {kPatchThreads, 1, 1}});
    std::size_t dispatches = 0, patches = 0;
    for (const DispatchCmd& c : table.commands) {
        dispatches += static_cast<const ResolvedCommand*>(c.kernel)->passes.size();
        patches += c.n_patches;
    }
    args_ = args;
    reserve(dispatches, table.commands.size(), patches);
    entries_.clear();
    list_.clear();
    used_.clear();
    for (std::size_t i = 0; i < table.commands.size(); ++i) add_command(table.commands[i], i);
    std::memcpy(patches_.contents, list_.data(), list_.size() * sizeof(ReplayPatch));
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
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (!follows_keys(entries_[i].pass())) continue;
        entries_[i].counts = counts_of(entries_[i], step);
        encode_entry(i);
    }
}

void Indirect::use_resources(id<MTLComputeCommandEncoder> encoder) const {
    for (void* handle : used_) {
        [encoder useResource:as_buffer(handle) usage:MTLResourceUsageRead | MTLResourceUsageWrite];
    }
}

void Indirect::encode(id<MTLComputeCommandEncoder> encoder, std::uint32_t step) {
    if (!list_.empty()) {
        const ReplayPatchArgs args{static_cast<uint>(list_.size()), args_.position, args_.rows, step};
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
