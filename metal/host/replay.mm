#import "metal/host/replay.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"

namespace akunu::metal {

namespace {

constexpr std::size_t kInFlight = 3;
constexpr std::uint64_t kPollMilliseconds = 20;  // a poll may have to wait for Python's lock
// Dispatches that one command buffer holds if whole tokens fit: a small model's token is too little work for one. A
// large one's fills it by its time.
constexpr std::size_t kDispatchesPerBuffer = 768;
constexpr std::size_t kMaxStepsPerBuffer = 8;

std::uint32_t load(const std::uint32_t& v) { return __atomic_load_n(&v, __ATOMIC_RELAXED); }

bool finished(id<MTLCommandBuffer> b) { return b.status >= MTLCommandBufferStatusCompleted; }

bool failed(id<MTLCommandBuffer> b) { return b.status == MTLCommandBufferStatusError; }

double seconds_of(std::span<const StepCommand> commands, const BufferLimit& limit) {
    double sum = 0;
    for (const StepCommand& c : commands) sum += limit.seconds_of(c.label->cost, c.args);
    return sum;
}

// Tokens of a chain that one command buffer holds.
std::uint32_t steps_per_buffer(std::size_t dispatches, double step_seconds, double limit_seconds) {
    const std::size_t fit = std::min(kDispatchesPerBuffer / dispatches, kMaxStepsPerBuffer);
    std::uint32_t steps = 1;
    while (steps < fit && (steps + 1) * step_seconds <= limit_seconds) ++steps;
    return steps;
}

}  // namespace

Replay::Replay(id<MTLDevice> device, id<MTLCommandQueue> queue, Residency& residency, const Resolver& resolver,
               void* dummy, Indirect* indirect, const BufferLimit& limit)
    : device_(device),
      queue_(queue),
      residency_(residency),
      fence_([device newFence]),
      event_([device newSharedEvent]),
      resolver_(resolver),
      dummy_(dummy),
      indirect_(indirect),
      limit_(limit) {
    if (!fence_ || !event_) throw DeviceError("Metal gave no fence or event");
}

template <typename Encode>
void Replay::submit_buffer(std::uint32_t first_step, const Encode& encode) {
    @autoreleasepool {
        // Every buffer outlives the work: release() drains first.
        id<MTLCommandBuffer> buffer = [queue_ commandBufferWithUnretainedReferences];
        id<MTLComputeCommandEncoder> compute = [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
        [compute waitForFence:fence_];
        const double predicted = encode(compute);
        [compute updateFence:fence_];
        [compute endEncoding];
        [buffer encodeSignalEvent:event_ value:++value_];
        [buffer commit];
        submitted_.push_back({buffer, value_, first_step, predicted});
    }
}

Replay::Cursor Replay::submit(std::span<const StepCommand> commands, const Chain& chain, Cursor at, Cursor last,
                              bool cut) {
    submit_buffer(at.step, [&](id<MTLComputeCommandEncoder> compute) {
        Encoder encoder(compute, resolver_, dummy_);
        double seconds = 0;
        const double limit = limit_.seconds / pace(commands).times();
        while (at < last) {
            const std::size_t i = at.command++;
            encoder.encode(commands[i], chain.args_at(commands[i].args, at.step));
            if (at.command == commands.size()) at = {at.step + 1, 0};
            seconds += limit_.seconds_of(commands[i].label->cost, commands[i].args);
            if (cut && seconds > limit && commands[at.command].barrier) break;
        }
        return seconds;
    });
    return at;
}

void Replay::submit_indirect(std::uint32_t first, std::uint32_t last, double predicted) {
    submit_buffer(first, [&](id<MTLComputeCommandEncoder> compute) {
        indirect_->use_resources(compute);
        for (std::uint32_t step = first; step < last; ++step) indirect_->encode(compute, step);
        return predicted;
    });
}

bool Replay::wait(const Submitted& work, const std::function<void()>& meanwhile) {
    while (event_.signaledValue < work.value) {
        if (failed(work.buffer)) return false;
        [event_ waitUntilSignaledValue:work.value timeoutMS:kPollMilliseconds];
        meanwhile();
    }
    return true;
}

void Replay::drain() {
    @autoreleasepool {
        for (const Submitted& s : submitted_) [s.buffer waitUntilCompleted];
        submitted_.clear();
    }
}

std::uint32_t Replay::run(std::vector<StepCommand> commands, const Chain& chain, const Control& control,
                          const Poll& poll, const Errand& errand) {
    if (commands.empty() || chain.times == 0) return 0;
    drain();
    using Clock = std::chrono::steady_clock;
    auto polled = Clock::now();
    bool cancelled = false;
    const auto meanwhile = [&] {
        if (!poll || Clock::now() - polled < std::chrono::milliseconds(kPollMilliseconds)) return;
        if (poll()) cancelled = true;
        polled = Clock::now();
    };
    Pace& of_kind = pace(commands);
    const double step_seconds = seconds_of(commands, limit_), limit = limit_.seconds / of_kind.times();
    const std::uint32_t per_buffer = steps_per_buffer(commands.size(), step_seconds, limit);
    Indirect* indirect = chain.times > 1 && Indirect::takes(commands) ? indirect_ : nullptr;
    if (indirect) indirect->prepare(commands, chain);
    residency_.use();
    const bool cut = step_seconds > limit;
    std::size_t done = 0;  // of submitted_: the GPU has signalled, the driver may still hold them
    Cursor next;
    bool errand_left = errand.run && errand.before < commands.size();
    const auto more = [&] {
        if (cancelled || next.step == chain.times) return false;
        const bool inside = next.step == 0 || next.command != 0;  // a step that has begun is finished
        return inside || !(load(control.stop) || load(control.yield));
    };
    while (done < submitted_.size() || more()) {
        if (more() && submitted_.size() - done < kInFlight) {
            if (errand_left && next.command == errand.before) {
                errand_left = false;
                cancelled = !errand.run() || cancelled;
                continue;
            }
            const std::uint32_t last = std::min(next.step + per_buffer, chain.times);
            if (errand_left || !indirect) {
                next = submit(commands, chain, next, errand_left ? Cursor{0, errand.before} : Cursor{last, 0}, cut);
                continue;
            }
            const std::uint32_t same = indirect->same_counts_until(next.step, last);
            if (same != next.step) {
                submit_indirect(next.step, same, (same - next.step) * step_seconds);
                next.step = same;
                continue;
            }
            if (done == submitted_.size()) {
                indirect->set_counts(next.step);
                continue;
            }
        }
        if (!wait(submitted_[done], meanwhile)) fail(commands, chain);
        meanwhile();
        ++done;
        for (; done != 0 && finished(submitted_.front().buffer); --done) {
            const Submitted& front = submitted_.front();
            if (failed(front.buffer)) fail(commands, chain);
            of_kind.measured(front.predicted, front.buffer.GPUEndTime - front.buffer.GPUStartTime);
            submitted_.pop_front();
        }
    }
    // The signal may come before the driver says that the work failed.
    for (const Submitted& s : submitted_) {
        [s.buffer waitUntilCompleted];
        if (failed(s.buffer)) fail(commands, chain);
    }
    submitted_.clear();
    return next.step;
}

// ---- errors -----------------------------------------------------------------------------------

namespace {

// Errors that running again would not explain, or that would cost seconds again.
bool worth_repeating(NSInteger code) {
    return code == MTLCommandBufferErrorInternal || code == MTLCommandBufferErrorPageFault ||
           code == MTLCommandBufferErrorInvalidResource || code == MTLCommandBufferErrorStackOverflow;
}

}  // namespace

void Replay::fail(std::span<const StepCommand> commands, const Chain& chain) {
    std::string text;
    NSInteger code = 0;
    std::uint32_t step = 0;
    @autoreleasepool {
        for (const Submitted& s : submitted_) {
            [s.buffer waitUntilCompleted];
            if (!text.empty() || !failed(s.buffer)) continue;
            text = error_text(s.buffer.error);
            code = s.buffer.error.code;
            step = s.first_step;
        }
        submitted_.clear();
    }
    fence_ = [device_ newFence];  // the failed work may have left it as it was
    const StepCommand* one = worth_repeating(code) ? faulted(commands, chain, step) : nullptr;
    const StepCommand &first = commands.front(), &last = commands.back();
    throw DeviceError("the GPU failed in " +
                      (one ? "command '" + one->label->full_name() + "' of table '" + one->table->phase + "'"
                           : "table '" + first.table->phase + "' (" + first.label->full_name() + " to " +
                                 last.label->full_name() + ")") +
                      " at step " + std::to_string(step) + " of " + std::to_string(chain.times) + ": " + text);
}

const StepCommand* Replay::faulted(std::span<const StepCommand> commands, const Chain& chain, std::uint32_t step) {
    // Once more, with an encoder for every command, which the driver can tell apart. The result is not used.
    return pooled([&]() -> const StepCommand* {
        MTLCommandBufferDescriptor* descriptor = [MTLCommandBufferDescriptor new];
        descriptor.errorOptions = MTLCommandBufferErrorOptionEncoderExecutionStatus;
        id<MTLCommandBuffer> buffer = [queue_ commandBufferWithDescriptor:descriptor];
        id<MTLFence> fence = [device_ newFence];
        for (std::size_t i = 0; i < commands.size(); ++i) {
            id<MTLComputeCommandEncoder> compute = [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
            encode_alone(compute, fence, i == 0, resolver_, dummy_, commands[i], chain.args_at(commands[i].args, step));
        }
        [buffer commit];
        [buffer waitUntilCompleted];
        NSArray<id<MTLCommandBufferEncoderInfo>>* infos =
            (NSArray<id<MTLCommandBufferEncoderInfo>>*)buffer.error.userInfo[MTLCommandBufferEncoderInfoErrorKey];
        for (id<MTLCommandBufferEncoderInfo> info in infos) {
            if (info.errorState != MTLCommandEncoderErrorStateFaulted) continue;
            const std::string name = info.label.UTF8String;
            for (const StepCommand& c : commands) {
                if (c.label->full_name() == name) return &c;
            }
        }
        return nullptr;
    });
}

}  // namespace akunu::metal
