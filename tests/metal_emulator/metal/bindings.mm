// What an encoder and an indirect command share: the argument table, its checks, the dispatch.
#include <algorithm>
#include <cstring>

#import "fake.h"

namespace fakemetal {
using mslrt::Binding;
using mslrt::Param;

std::string to_string(MTLSize s) {
    return "(" + std::to_string(s.width) + "," + std::to_string(s.height) + "," + std::to_string(s.depth) + ")";
}

static void check_index(NSUInteger index, const char* who) {
    if (index >= mslrt::kMaxBuffers) invalid(std::string(who) + ": index " + std::to_string(index) + " > 30");
}

void set_buffer(Bindings& b, FMBuffer* buffer, NSUInteger offset, NSUInteger index, const char* who) {
    check_index(index, who);
    if (buffer && offset >= buffer->size)
        invalid(std::string(who) + ": offset " + std::to_string(offset) + " is not within the buffer's length " +
                std::to_string(buffer->size));
    b.slot[index].buffer = buffer;
    b.slot[index].offset = offset;
    b.slot[index].bytes = nullptr;
}

void set_threadgroup_memory(Bindings& b, NSUInteger bytes, NSUInteger index, const char* who) {
    check_index(index, who);
    if (bytes % 16)
        invalid(std::string(who) + ": threadgroup memory length " + std::to_string(bytes) + " is not a multiple of 16");
    if (bytes > 32768)
        invalid(std::string(who) + ": threadgroup memory length " + std::to_string(bytes) + " exceeds 32768");
    b.threadgroup[index] = static_cast<uint32_t>(bytes);
}

static void check_buffer(const Param& p, const Slot& s, const std::string& what) {
    if (!s.buffer && !s.bytes)
        invalid(what + ": missing buffer binding at index " + std::to_string(p.binding.index) + " for '" +
                p.binding.name + "'");
    const std::string where = what + ": buffer " + std::to_string(p.binding.index) + " '" + p.binding.name + "'";
    const NSUInteger length = s.bytes ? s.bytes->size() : s.buffer->size - s.offset;
    if (p.size > length)
        invalid(where + ": needs " + std::to_string(p.size) + " bytes, " + std::to_string(length) + " are bound");
    const NSUInteger align = p.constant ? std::max<NSUInteger>(4, p.align) : p.align;
    if (!s.bytes && s.offset % align)
        invalid(where + ": offset " + std::to_string(s.offset) + " is not a multiple of " + std::to_string(align));
    if (s.bytes && p.writable) invalid(where + ": setBytes for a parameter the kernel may write");
}

void check_dispatch(const Dispatch& d, const char* who) {
    FMPipeline* p = d.bindings.pipeline;
    if (!p) invalid(std::string(who) + ": no pipeline is set");
    const std::string what = std::string(who) + " of '" + p->kernel->name + "'";
    const NSUInteger threads = d.group.width * d.group.height * d.group.depth;
    if (!threads) invalid(what + ": threads per threadgroup " + to_string(d.group));
    if (threads > p->max_threads)
        invalid(what + ": " + std::to_string(threads) + " threads per threadgroup, the pipeline allows " +
                std::to_string(p->max_threads));
    NSUInteger memory = 0;
    for (uint32_t i = 0; i < p->kernel->n_params; ++i) {
        const Param& q = p->kernel->params[i];
        if (!p->bound[i]) continue;
        if (q.binding.kind == mslrt::kBuffer) check_buffer(q, d.bindings.slot[q.binding.index], what);
        if (q.binding.kind == mslrt::kThreadgroup) {
            if (!d.bindings.threadgroup[q.binding.index])
                invalid(what + ": threadgroup memory length at index " + std::to_string(q.binding.index) +
                        " is not set");
            memory += d.bindings.threadgroup[q.binding.index];
        }
    }
    if (memory > 32768) invalid(what + ": " + std::to_string(memory) + " bytes of threadgroup memory exceed 32768");
}

std::string execute(const Dispatch& d, void* sync_in, void* sync_out) {
    const FMPipeline* p = d.bindings.pipeline;
    mslrt::Args a{};
    for (uint32_t i = 0; i < p->kernel->n_params; ++i) {
        const Binding& b = p->kernel->params[i].binding;
        if (b.kind != mslrt::kBuffer || !p->bound[i]) continue;
        const Slot& s = d.bindings.slot[b.index];
        // setBytes data is not writable: check_buffer has seen to it.
        a.buffer[b.index] = s.bytes ? const_cast<char*>(s.bytes->data()) : s.buffer->bytes + s.offset;
        a.length[b.index] = s.bytes ? s.bytes->size() : s.buffer->size - s.offset;
    }
    memcpy(a.threadgroup_length, d.bindings.threadgroup, sizeof a.threadgroup_length);
    const NSUInteger grid[3] = {d.grid.width, d.grid.height, d.grid.depth},
                     group[3] = {d.group.width, d.group.height, d.group.depth};
    uint32_t counts[3] = {1, 1, 1};
    if (d.indirect) memcpy(counts, d.indirect->bytes + d.indirect_offset, sizeof counts);
    for (int i = 0; i < 3; ++i) {
        a.group[i] = static_cast<uint32_t>(group[i]);
        a.grid[i] = static_cast<uint32_t>(d.indirect ? counts[i] * group[i] : grid[i]);
    }
    const MslOptions options{static_cast<uint64_t>(setting(kSeed)), static_cast<uint32_t>(setting(kSchedule)),
                             static_cast<uint32_t>(setting(kWorkers)), sync_in, sync_out};
    char error[1024] = "";
    add(kDispatches);
    executor().dispatch(p->library, p->kernel, &a, p->constants.data(), static_cast<uint32_t>(p->constants.size()),
                        &options, error, sizeof error);
    return error;
}

// ---- hazards ---------------------------------------------------------------------------------

void HazardTracker::barrier_for(const void* buffer) {
    uses_.erase(std::remove_if(uses_.begin(), uses_.end(), [&](const Use& u) { return u.buffer == buffer; }),
                uses_.end());
}

void HazardTracker::add(const Dispatch& d, const char* who) {
    const int64_t mode = setting(kHazards);
    if (!mode) return;
    const FMPipeline* p = d.bindings.pipeline;
    const size_t before = uses_.size();
    for (uint32_t i = 0; i < p->kernel->n_params; ++i) {
        const Param& q = p->kernel->params[i];
        const Slot& s = d.bindings.slot[q.binding.index];
        if (q.binding.kind != mslrt::kBuffer || !p->bound[i] || !s.buffer) continue;
        const Use use{
            (__bridge const void*)s.buffer, s.offset, s.buffer->size, q.writable, p->kernel->name, q.binding.name};
        for (size_t k = 0; k < before; ++k) {
            const Use& u = uses_[k];
            // Mode 1: the same offset.  What a kernel touches behind its offset is not declared, so that
            // overlapping ranges (mode 2) also flags neighbours within one allocation.
            const bool same =
                u.buffer == use.buffer && (mode == 2 ? u.begin < use.end && use.begin < u.end : u.begin == use.begin);
            if (same && (u.writes || use.writes))
                invalid(std::string(who) + ": '" + use.kernel + "' " + (use.writes ? "writes" : "reads") + " '" +
                        use.parameter + "' that '" + u.kernel + "' " + (u.writes ? "writes" : "reads") + " as '" +
                        u.parameter + "' with no barrier between them in a concurrent encoder");
        }
        uses_.push_back(use);
    }
}
}  // namespace fakemetal
