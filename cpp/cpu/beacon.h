// A number that one thread sets and others wait for. Who waits spins for about 5 µs, as long as one thread of a team
// usually waits for another, then lets others run, then sleeps until it is woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#ifndef __linux__
#include <condition_variable>
#include <mutex>
#endif

namespace akunu::cpu {

using Clock = std::chrono::steady_clock;

class alignas(64) Beacon {
  public:
    explicit Beacon(std::uint64_t value = 0) : value_(value) {}

    std::uint64_t get() const { return value_.load(std::memory_order_acquire); }
    // Wakes up to `most` sleepers. What the caller wrote before is seen by those who see the value.
    void set(std::uint64_t value, int most = std::numeric_limits<int>::max());

    // Waiting for a value other than `old`; false when it was not enough.
    bool spin(std::uint64_t old) const;
    bool yield(std::uint64_t old) const;
    // Sleeps till then, or till `deadline`.
    void sleep(std::uint64_t old, Clock::time_point deadline = Clock::time_point::max());

    // All three; returns the new value.
    std::uint64_t wait(std::uint64_t old) {
        if (!spin(old) && !yield(old)) sleep(old);
        return get();
    }

  private:
    std::atomic<std::uint64_t> value_;
    std::atomic<int> sleepers_{0};
#ifdef __linux__
    std::atomic<std::uint32_t> rings_{0};  // what sleepers watch: the system watches 32 bits
#else
    std::mutex mutex_;
    std::condition_variable changed_;
#endif
};

}  // namespace akunu::cpu
