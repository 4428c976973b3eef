// Keeps the GPU's memory wired. macOS unwires what no command has used for about a second, and the next token then
// takes several times as long (llama.cpp issue 10119: 63 ms became 320). A residency set ends that, where it is
// requested again and again: on recent systems a single request holds no longer than that (llama.cpp pull request
// 17766).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#import "metal/host/objc.h"

namespace akunu::metal {

class Residency {
  public:
    // Does nothing before macOS 15. Memory stays wired for `keep_alive` seconds after the last use: then other
    // processes may have it, and the next use takes it back.
    Residency(id<MTLDevice> device, id<MTLCommandQueue> queue, double keep_alive);
    ~Residency();
    Residency(const Residency&) = delete;
    Residency& operator=(const Residency&) = delete;

    // What the GPU is to see, until it is removed.
    void add(id<MTLBuffer> buffer);
    void remove(id<MTLBuffer> buffer);
    // Before work is submitted: everything added is requested, and kept.
    void use();

  private:
    using Clock = std::chrono::steady_clock;
    void request();
    void beat();

    id<MTLCommandQueue> queue_;
    id set_;  // MTLResidencySet, which is macOS 15's; nil where there is none
    Clock::duration keep_alive_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::thread heart_;  // from the first use on
    Clock::time_point keep_until_{};
    bool changed_ = false, asleep_ = false, stop_ = false;
    int process_ = 0;  // that has the thread: a fork has not
};

}  // namespace akunu::metal
