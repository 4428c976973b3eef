#import "metal/host/residency.h"

#include <unistd.h>

#include <algorithm>

namespace akunu::metal {

namespace {

constexpr std::chrono::milliseconds kBeat{500};  // half of what macOS waits
constexpr double kLongest = 1e9;                 // seconds that the clock can add

}  // namespace

Residency::Residency(id<MTLDevice> device, id<MTLCommandQueue> queue, double keep_alive)
    : queue_(queue),
      keep_alive_(std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(std::clamp(keep_alive, 0.0, kLongest)))) {
    if (@available(macOS 15.0, *)) {
        // Without one everything runs, only later after a pause.
        id<MTLResidencySet> set = [device newResidencySetWithDescriptor:[MTLResidencySetDescriptor new] error:nil];
        if (set) [queue addResidencySet:set];
        set_ = set;
    }
}

Residency::~Residency() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_one();
    if (heart_.joinable()) {
        if (process_ == getpid()) {
            heart_.join();
        } else {
            heart_.detach();
        }
    }
    if (!set_) return;
    if (@available(macOS 15.0, *)) {
        id<MTLResidencySet> set = set_;
        [queue_ removeResidencySet:set];
        [set endResidency];
    }
}

void Residency::add(id<MTLBuffer> buffer) {
    if (!set_) return;
    if (@available(macOS 15.0, *)) {
        const std::lock_guard lock(mutex_);
        id<MTLResidencySet> set = set_;
        [set addAllocation:buffer];
        changed_ = true;
    }
}

void Residency::remove(id<MTLBuffer> buffer) {
    if (!set_) return;
    if (@available(macOS 15.0, *)) {
        const std::lock_guard lock(mutex_);
        id<MTLResidencySet> set = set_;
        [set removeAllocation:buffer];
        [set commit];  // the set holds it until then
    }
}

void Residency::use() {
    if (!set_) return;
    const std::lock_guard lock(mutex_);
    keep_until_ = Clock::now() + keep_alive_;
    if (changed_ || asleep_) request();
    if (!heart_.joinable() && keep_alive_ > kBeat) {
        process_ = getpid();
        heart_ = std::thread([this] { beat(); });
    }
    if (asleep_) {
        asleep_ = false;
        wake_.notify_one();
    }
}

// With the lock held.
void Residency::request() {
    if (@available(macOS 15.0, *)) {
        @autoreleasepool {
            id<MTLResidencySet> set = set_;
            if (changed_) [set commit];
            changed_ = false;
            [set requestResidency];
        }
    }
}

void Residency::beat() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        asleep_ = Clock::now() >= keep_until_;
        if (asleep_) {
            wake_.wait(lock, [&] { return stop_ || !asleep_; });
        } else if (!wake_.wait_for(lock, kBeat, [&] { return stop_; })) {
            request();
        }
    }
}

}  // namespace akunu::metal
