// The compute command encoder: records dispatches, checks each call.
#include <algorithm>
#include <random>
#include <utility>

#import "fake.h"

using namespace fakemetal;

namespace {
/// A dispatch, or a barrier between those before and after it.
struct Step {
    bool barrier = false;
    Dispatch dispatch;
};
/// Objects that order the dispatches of a concurrent encoder for TSan, one per barrier.
class Epochs {
  public:
    Epochs() : last_(&objects_.emplace_back()) { executor().sync_release(last_); }
    void* in() { return last_; }
    void* out() {
        if (!next_) next_ = &objects_.emplace_back();
        return next_;
    }
    void barrier() {
        if (next_) last_ = std::exchange(next_, nullptr);
    }
    ~Epochs() { executor().sync_acquire(next_ ? next_ : last_); }

  private:
    std::deque<uint64_t> objects_;
    void *last_, *next_ = nullptr;
};

std::string run_steps(std::vector<Step>& steps, bool concurrent) {
    if (!concurrent) {
        for (const Step& s : steps)
            if (!s.barrier)
                if (std::string e = execute(s.dispatch, nullptr, nullptr); !e.empty()) return e;
        return "";
    }
    // Between barriers any order is allowed: take a random one when the schedule is random.
    std::mt19937_64 rng(static_cast<uint64_t>(setting(kSeed)));
    Epochs epochs;
    for (size_t i = 0; i < steps.size();) {
        size_t end = i;
        while (end < steps.size() && !steps[end].barrier) ++end;
        if (setting(kSchedule))
            std::shuffle(steps.begin() + static_cast<long>(i), steps.begin() + static_cast<long>(end), rng);
        for (; i < end; ++i)
            if (std::string e = execute(steps[i].dispatch, epochs.in(), epochs.out()); !e.empty()) return e;
        epochs.barrier();
        i = end + 1;
    }
    return "";
}
}  // namespace

@implementation FMComputeEncoder {
    FMCommandBuffer* owner;
    Bindings bindings;
    std::shared_ptr<std::vector<Step>> steps;
    HazardTracker hazards;
    MTLComputePassDescriptor* pass;
    std::vector<const void*> used_resources;
    bool ended;
    int debug_groups;
    size_t number, ordered;  // this encoder; it is behind those below `ordered`
}
- (instancetype)initFor:(FMCommandBuffer*)buffer type:(MTLDispatchType)type pass:(MTLComputePassDescriptor*)p {
    owner = buffer;
    _dispatchType = type;
    pass = p;
    steps = std::make_shared<std::vector<Step>>();
    [buffer begin:self];
    number = buffer->encoders++;
    add(kEncoders);
    return self;
}
- (void)check:(const char*)who {
    if (ended) invalid(std::string(who) + ": the encoder has ended");
}
- (void)dealloc {
    if (!ended) invalid("a command encoder was released without endEncoding");
}

// ---- the argument table ----------------------------------------------------------------------

- (void)setComputePipelineState:(id<MTLComputePipelineState>)p {
    [self check:"setComputePipelineState"];
    if (!p) invalid("setComputePipelineState: nil");
    bindings.pipeline = (FMPipeline*)p;
    [owner keep:p];
}
- (void)setBuffer:(id<MTLBuffer>)b offset:(NSUInteger)o atIndex:(NSUInteger)i {
    [self check:"setBuffer"];
    add(kSetBuffer);
    set_buffer(bindings, (FMBuffer*)b, o, i, "setBuffer");
    if (b) [self use:(FMBuffer*)b];
}
// Without hazard tracking only a fence keeps one encoder of a command buffer behind another. Stricter than need be:
// reading counts too.
- (void)use:(FMBuffer*)buffer {
    [owner use:buffer];
    if (!(buffer->options & MTLResourceHazardTrackingModeUntracked)) return;
    const auto [at, first] = owner->untracked.try_emplace((__bridge const void*)buffer, number);
    if (!first && at->second != number && at->second >= ordered)
        invalid("an untracked buffer is used by encoders " + std::to_string(at->second) + " and " +
                std::to_string(number) + " of a command buffer, and no fence is between them");
    at->second = number;
}
- (void)setBufferOffset:(NSUInteger)o atIndex:(NSUInteger)i {
    [self check:"setBufferOffset"];
    if (i >= mslrt::kMaxBuffers || !bindings.slot[i].buffer)
        invalid("setBufferOffset: no buffer is bound at index " + std::to_string(i));
    set_buffer(bindings, bindings.slot[i].buffer, o, i, "setBufferOffset");
}
- (void)setBuffers:(const id<MTLBuffer> __unsafe_unretained[])b offsets:(const NSUInteger[])o withRange:(NSRange)r {
    for (NSUInteger k = 0; k < r.length; ++k) [self setBuffer:b[k] offset:o[k] atIndex:r.location + k];
}
- (void)setBytes:(const void*)b length:(NSUInteger)n atIndex:(NSUInteger)i {
    [self check:"setBytes"];
    add(kSetBytes);
    if (i >= mslrt::kMaxBuffers) invalid("setBytes: index " + std::to_string(i) + " > 30");
    if (n == 0 || n > 4096) invalid("setBytes: length " + std::to_string(n) + ", 1 to 4096 are allowed");
    // A copy of exact size: ASan sees a read past it.  std::string keeps 16-byte alignment when long.
    owner->inline_bytes.emplace_back(static_cast<const char*>(b), n);
    if (n < 32) owner->inline_bytes.back().reserve(32);
    bindings.slot[i] = Slot{nil, 0, &owner->inline_bytes.back()};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i {
    [self check:"setThreadgroupMemoryLength"];
    set_threadgroup_memory(bindings, n, i, "setThreadgroupMemoryLength");
}

// ---- dispatches ------------------------------------------------------------------------------

- (void)record:(Dispatch)d who:(const char*)who {
    check_dispatch(d, who);
    if (_dispatchType == MTLDispatchTypeConcurrent) hazards.add(d, who);
    steps->push_back({false, d});
}
- (void)dispatchThreadgroups:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    [self check:"dispatchThreadgroups"];
    [self record:{bindings, MTLSizeMake(g.width * t.width, g.height * t.height, g.depth * t.depth), t}
             who:"dispatchThreadgroups"];
}
- (void)dispatchThreads:(MTLSize)g threadsPerThreadgroup:(MTLSize)t {
    [self check:"dispatchThreads"];
    [self record:{bindings, g, t} who:"dispatchThreads"];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)b
                          indirectBufferOffset:(NSUInteger)o
                         threadsPerThreadgroup:(MTLSize)t {
    const char* who = "dispatchThreadgroupsWithIndirectBuffer";
    [self check:who];
    auto* buffer = (FMBuffer*)b;
    if (!b || o % 4 || o + 12 > buffer->size)
        invalid(std::string(who) + ": no room for three counts at offset " + std::to_string(o));
    [self use:buffer];
    [self record:{bindings, MTLSizeMake(0, 0, 0), t, buffer, o} who:who];
}
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)b withRange:(NSRange)r {
    const char* who = "executeCommandsInBuffer";
    [self check:who];
    auto* icb = (FMIndirectCommandBuffer*)b;
    if (r.location + r.length > icb->commands.size())
        invalid(std::string(who) + ": range beyond the buffer's commands");
    [owner keep:icb];
    // Commands run concurrently with each other unless they carry a barrier.
    HazardTracker inner;
    [self barrier];
    for (NSUInteger i = r.location; i < r.location + r.length; ++i) {
        if (!icb->encoded[i]) continue;
        Dispatch d = icb->commands[i];
        if (icb->descriptor.inheritPipelineState) d.bindings.pipeline = bindings.pipeline;
        if (icb->descriptor.inheritBuffers)
            std::copy(std::begin(bindings.slot), std::end(bindings.slot), d.bindings.slot);
        check_dispatch(d, who);
        if (icb->barrier_before[i]) {
            inner.barrier();
            steps->push_back({true, {}});
        }
        inner.add(d, who);
        for (const Slot& s : d.bindings.slot) {
            if (!s.buffer) continue;
            if (!icb->descriptor.inheritBuffers && std::find(used_resources.begin(), used_resources.end(),
                                                             (__bridge const void*)s.buffer) == used_resources.end())
                invalid(std::string(who) + ": a buffer of command " + std::to_string(i) +
                        " was not made resident by useResource");
            [self use:s.buffer];
        }
        steps->push_back({false, d});
    }
    [self barrier];
}

// ---- order and residency ---------------------------------------------------------------------

- (void)barrier {
    add(kBarriers);
    hazards.barrier();
    steps->push_back({true, {}});
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)s {
    [self check:"memoryBarrierWithScope"];
    if (s & MTLBarrierScopeBuffers) [self barrier];
}
- (void)memoryBarrierWithResources:(const id<MTLResource> __unsafe_unretained[])r count:(NSUInteger)n {
    [self check:"memoryBarrierWithResources"];
    add(kBarriers);
    for (NSUInteger i = 0; i < n; ++i) hazards.barrier_for((__bridge const void*)r[i]);
    steps->push_back({true, {}});
}
- (void)useResource:(id<MTLResource>)r usage:(MTLResourceUsage)u {
    [self check:"useResource"];
    if (!r || !u) invalid("useResource: no resource or no usage");
    used_resources.push_back((__bridge const void*)r);
    [owner keep:r];
}
- (void)useResources:(const id<MTLResource> __unsafe_unretained[])r count:(NSUInteger)n usage:(MTLResourceUsage)u {
    for (NSUInteger i = 0; i < n; ++i) [self useResource:r[i] usage:u];
}
// Encoders of one queue run one after the other here: a fence only counts in the checks of untracked buffers.
- (void)updateFence:(id<MTLFence>)f {
    [self check:"updateFence"];
    FMFence* fence = (FMFence*)f;
    fence->queue = owner->queue.get();
    fence->updated_in = owner->number;
    fence->encoder = number;
    fence->complete = ordered == number;
}
- (void)waitForFence:(id<MTLFence>)f {
    [self check:"waitForFence"];
    FMFence* fence = (FMFence*)f;
    if (fence->updated_in == owner->number) {
        if (fence->complete) ordered = std::max(ordered, fence->encoder + 1);
    } else if (fence->queue == owner->queue.get() && number == 0) {
        owner->behind.push_back(fence->updated_in);
    }
}
- (void)insertDebugSignpost:(NSString*)s {
    [self check:"insertDebugSignpost"];
    (void)s;
}
- (void)pushDebugGroup:(NSString*)s {
    [self check:"pushDebugGroup"];
    (void)s;
    ++debug_groups;
}
- (void)popDebugGroup {
    [self check:"popDebugGroup"];
    if (--debug_groups < 0) invalid("popDebugGroup without pushDebugGroup");
}

- (void)endEncoding {
    [self check:"endEncoding"];
    if (debug_groups) invalid("endEncoding with an open debug group");
    ended = true;
    auto recorded = steps;
    const bool concurrent = _dispatchType == MTLDispatchTypeConcurrent ||
                            std::any_of(steps->begin(), steps->end(), [](const Step& s) { return s.barrier; });
    MTLComputePassSampleBufferAttachmentDescriptor* sample = pass.sampleBufferAttachments[0];
    auto* samples = (FMCounterSampleBuffer*)sample.sampleBuffer;
    const NSUInteger first = sample.startOfEncoderSampleIndex, last = sample.endOfEncoderSampleIndex;
    const auto take = [samples](NSUInteger at) {
        if (samples && at != MTLCounterDontSample) samples->samples.at(at) = static_cast<uint64_t>(now_seconds() * 1e9);
    };
    owner->work.push_back({[recorded, concurrent, take, first, last] {
                               take(first);
                               std::string e = run_steps(*recorded, concurrent);
                               take(last);
                               return e;
                           },
                           _label ? _label.UTF8String : ""});
    owner->open_encoder = nil;
    owner = nil;
}
@end
