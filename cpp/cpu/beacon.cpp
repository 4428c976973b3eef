#include "cpu/beacon.h"

#include <thread>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace akunu::cpu {

namespace {

constexpr auto kSpin = std::chrono::microseconds(5);
constexpr auto kYield = std::chrono::microseconds(50);

// Tells the processor that this is a spin loop.
void spin_pause() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

bool Beacon::spin(std::uint64_t old) const {
    const auto end = Clock::now() + kSpin;
    do {
        for (int i = 0; i < 8; ++i) {
            if (get() != old) return true;
            spin_pause();
        }
    } while (Clock::now() < end);
    return get() != old;
}

bool Beacon::yield(std::uint64_t old) const {
    const auto end = Clock::now() + kYield;
    do {
        std::this_thread::yield();
        if (get() != old) return true;
    } while (Clock::now() < end);
    return false;
}

#ifdef __linux__

// A sleeper counts itself before it looks at the value once more, and `set` looks at the count after it has stored the
// value: one of the two sees the other.
void Beacon::set(std::uint64_t value, int most) {
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    rings_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

void Beacon::sleep(std::uint64_t old, Clock::time_point deadline) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
        const std::uint32_t rings = rings_.load(std::memory_order_acquire);
        if (value_.load(std::memory_order_seq_cst) != old) break;
        timespec left{};
        if (deadline != Clock::time_point::max()) {
            const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
            if (ns <= 0) break;
            left = {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                    .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
        }
        const timespec* timeout = deadline == Clock::time_point::max() ? nullptr : &left;
        syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, rings, timeout, nullptr, 0);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

#else

void Beacon::set(std::uint64_t value, int most) {
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    {
        const std::lock_guard lock(mutex_);
    }  // a sleeper that has not seen the value is in its wait now
    if (most == 1) {
        changed_.notify_one();
    } else {
        changed_.notify_all();
    }
}

void Beacon::sleep(std::uint64_t old, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const auto changed = [&] { return value_.load(std::memory_order_seq_cst) != old; };
    if (deadline == Clock::time_point::max()) {
        changed_.wait(lock, changed);
    } else {
        changed_.wait_until(lock, deadline, changed);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

#endif

}  // namespace akunu::cpu
