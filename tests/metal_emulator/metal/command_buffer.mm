// Command buffers and queues: commit hands the work to the queue's thread.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#import "fake.h"

using namespace fakemetal;

NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";
NSErrorUserInfoKey const MTLCommandBufferEncoderInfoErrorKey = @"MTLCommandBufferEncoderInfoErrorKey";

namespace {
// A wait that no signal ends fails its command buffer instead of hanging the test.
constexpr uint64_t kEventTimeoutMs = 10000;
}  // namespace

@interface FMEncoderInfo : NSObject <MTLCommandBufferEncoderInfo>
@property(nonatomic) NSString* label;
@property(nonatomic) MTLCommandEncoderErrorState errorState;
@end
@implementation FMEncoderInfo
@end
@implementation MTLCommandBufferDescriptor
- (instancetype)init {
    _retainedReferences = YES;
    return self;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLCommandBufferDescriptor* d = [MTLCommandBufferDescriptor new];
    d.retainedReferences = self.retainedReferences;
    d.errorOptions = self.errorOptions;
    return d;
}
@end

@implementation FMCommandBuffer
- (MTLCommandBufferStatus)status {
    std::lock_guard lock(mutex);
    return state;
}
- (NSError*)error {
    std::lock_guard lock(mutex);
    return failure;
}
- (BOOL)retainedReferences {
    return retains;
}
- (MTLCommandBufferErrorOption)errorOptions {
    return error_options;
}
- (CFTimeInterval)GPUStartTime {
    return gpu_start;
}
- (CFTimeInterval)GPUEndTime {
    const int64_t said = setting(kGpuUs);
    return said > 0 ? gpu_start + static_cast<double>(said) * 1e-6 : gpu_end;
}
- (CFTimeInterval)kernelStartTime {
    return gpu_start;
}
- (CFTimeInterval)kernelEndTime {
    return gpu_end;
}
- (void)pushDebugGroup:(NSString*)s {
    (void)s;
}
- (void)popDebugGroup {
}

// ---- encoding --------------------------------------------------------------------------------

- (void)keep:(id)object {
    if (retains) retained.push_back(object);
}
- (void)use:(FMBuffer*)buffer {
    if (!buffers.empty() && buffers.back() == buffer) return;
    [self keep:buffer];
    buffers.push_back(buffer);
}
- (void)begin:(id)encoder {
    if (open_encoder) invalid("a command encoder is made while another one of the command buffer is open");
    if (state > MTLCommandBufferStatusEnqueued) invalid("a command encoder is made after commit");
    open_encoder = encoder;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
    return [self encoder:MTLDispatchTypeSerial pass:nil];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)t {
    return [self encoder:t pass:nil];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)d {
    return [self encoder:d.dispatchType pass:d];
}
- (id<MTLComputeCommandEncoder>)encoder:(MTLDispatchType)t pass:(MTLComputePassDescriptor*)d {
    if (setting(kNoop)) return [[FMNoopEncoder alloc] initFor:self];
    return [[FMComputeEncoder alloc] initFor:self type:t pass:d];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
    return [[FMBlitEncoder alloc] initFor:self];
}
- (void)encodeSignalEvent:(id<MTLEvent>)e value:(uint64_t)v {
    if (open_encoder) invalid("encodeSignalEvent while an encoder is open");
    FMEvent* event = (FMEvent*)e;
    {
        std::lock_guard lock(event->mutex);
        event->signalled_by[v] = number;
    }
    work.push_back({[event, v] {
                        event.signaledValue = v;
                        return std::string();
                    },
                    "signal"});
}
- (void)encodeWaitForEvent:(id<MTLEvent>)e value:(uint64_t)v {
    if (open_encoder) invalid("encodeWaitForEvent while an encoder is open");
    FMEvent* event = (FMEvent*)e;
    {
        std::lock_guard lock(event->mutex);
        const auto by = event->signalled_by.lower_bound(v);
        if (encoders == 0 && by != event->signalled_by.end()) behind.push_back(by->second);
    }
    work.push_back({[event, v] {
                        return [event waitUntilSignaledValue:v timeoutMS:kEventTimeoutMs]
                                   ? std::string()
                                   : "wait for event value " + std::to_string(v) + " timed out";
                    },
                    "wait"});
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)b {
    if (state > MTLCommandBufferStatusEnqueued) invalid("addScheduledHandler after commit");
    scheduled.push_back(b);
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)b {
    if (state > MTLCommandBufferStatusEnqueued) invalid("addCompletedHandler after commit");
    completed.push_back(b);
}

// ---- execution -------------------------------------------------------------------------------

- (void)enqueue {
    if (state != MTLCommandBufferStatusNotEnqueued)
        invalid("enqueue: the command buffer is enqueued or committed already");
    state = MTLCommandBufferStatusEnqueued;
}
- (void)commit {
    if (open_encoder) invalid("commit with an open encoder");
    if (state > MTLCommandBufferStatusEnqueued) invalid("commit: the command buffer was committed already");
    state = MTLCommandBufferStatusCommitted;
    add(kCommandBuffers);
    order_committed(number, behind);
    for (__unsafe_unretained FMBuffer* b : buffers) {
        ++b->in_flight;
        if (!b->resident) add(kNotResident);
        if (!(b->options & MTLResourceHazardTrackingModeUntracked)) continue;
        const uint64_t before = b->last_use.exchange(number);
        if (before && !is_ordered(before, number))
            invalid("an untracked buffer is used by two command buffers in flight, and neither a fence nor an event "
                    "keeps the later one behind");
    }
    FMCommandBuffer* me = self;
    queue->push([me] {
        @autoreleasepool {
            [me execute];
        }
    });
}
- (NSError*)errorFor:(const std::string&)text code:(NSInteger)code faulted:(size_t)index {
    NSString* message = @((std::string("Caused GPU error: ") + text).c_str());
    if (!(error_options & MTLCommandBufferErrorOptionEncoderExecutionStatus))
        return [NSError errorWithDomain:MTLCommandBufferErrorDomain
                                   code:code
                               userInfo:@{NSLocalizedDescriptionKey : message}];
    std::vector<id> infos;
    for (size_t i = 0; i < work.size(); ++i) {
        FMEncoderInfo* info = [FMEncoderInfo new];
        info.label = @(work[i].label.c_str());
        info.errorState = i < index    ? MTLCommandEncoderErrorStateCompleted
                          : i == index ? MTLCommandEncoderErrorStateFaulted
                                       : MTLCommandEncoderErrorStatePending;
        infos.push_back(info);
    }
    NSArray* list = [NSArray arrayWithObjects:(id __unsafe_unretained*)(void*)infos.data() count:infos.size()];
    return [NSError errorWithDomain:MTLCommandBufferErrorDomain
                               code:code
                           userInfo:@{NSLocalizedDescriptionKey : message, MTLCommandBufferEncoderInfoErrorKey : list}];
}
- (void)execute {
    for (auto& h : scheduled) h(self);
    scheduled.clear();
    if (const int64_t us = setting(kDelayMicroseconds)) std::this_thread::sleep_for(std::chrono::microseconds(us));
    gpu_start = now_seconds();
    std::string text;
    size_t at = 0;
    NSInteger code = MTLCommandBufferErrorInternal;
    const bool inject = fault_due(kFailCommandBuffer), late = inject && setting(kFailSignals);
    if (inject) {
        text = "injected fault";
        code = setting(kFailCommandBufferCode);
    }
    // What comes after a fault is not executed, signals included.
    for (; (late || text.empty()) && at < work.size(); ++at) {
        if (std::string e = work[at].run(); !late) text = e;
    }
    if (!text.empty() && at) --at;
    gpu_end = now_seconds();
    NSError* e = nil;
    if (!text.empty()) {
        if (text.find(" bytes behind ") != std::string::npos || text.find("invalid address") != std::string::npos)
            code = MTLCommandBufferErrorPageFault;
        if (text.find("timed out") != std::string::npos) code = MTLCommandBufferErrorTimeout;
        e = [self errorFor:text code:code faulted:at];
        record_fault(text);
        add(kFaults);
    }
    work.clear();
    order_completed(number);
    for (__unsafe_unretained FMBuffer* b : buffers) --b->in_flight;
    buffers.clear();
    retained.clear();
    inline_bytes.clear();
    {
        std::lock_guard lock(mutex);
        failure = e;
        state = e ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
    }
    for (auto& h : completed) h(self);
    {
        std::lock_guard lock(mutex);
        completed.clear();
    }
    changed.notify_all();
}
- (void)waitUntilScheduled {
    if (state < MTLCommandBufferStatusCommitted) invalid("waitUntilScheduled before commit");
}
- (void)waitUntilCompleted {
    if (self.status < MTLCommandBufferStatusCommitted) invalid("waitUntilCompleted before commit");
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return state >= MTLCommandBufferStatusCompleted && completed.empty(); });
}
- (void)dealloc {
    if (open_encoder) invalid("a command buffer was released with an open encoder");
}
@end

@implementation FMQueue {
    std::shared_ptr<Queue> queue;
    std::vector<id<MTLResidencySet>> sets;
}
- (instancetype)init {
    queue = std::make_shared<Queue>();
    return self;
}
- (FMCommandBuffer*)make:(bool)retains options:(MTLCommandBufferErrorOption)o {
    FMCommandBuffer* c = [FMCommandBuffer new];
    c->queue = queue;
    c->number = next_command_buffer();
    c->retains = retains;
    c->error_options = o;
    return c;
}
- (id<MTLCommandBuffer>)commandBuffer {
    return [self make:true options:MTLCommandBufferErrorOptionNone];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
    return [self make:false options:MTLCommandBufferErrorOptionNone];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)d {
    return [self make:d.retainedReferences options:d.errorOptions];
}
- (void)addResidencySet:(id<MTLResidencySet>)s {
    sets.push_back(s);
    add(kResidencySets);
}
- (void)removeResidencySet:(id<MTLResidencySet>)s {
    if (const auto at = std::find(sets.begin(), sets.end(), s); at != sets.end()) {
        sets.erase(at);
        add(kResidencySets, -1);
    }
}
- (void)dealloc {
    add(kResidencySets, -static_cast<int64_t>(sets.size()));
}
@end
