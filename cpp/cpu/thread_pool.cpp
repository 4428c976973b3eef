#include "cpu/thread_pool.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>

#include "core/error.h"
#include "cpu/topology.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace akunu::cpu {

namespace {

constexpr int kSpinsBeforeYield = 4000;  // a few tens of microseconds
// A worker that has finished its job keeps spinning this long: the next chunk of a stream comes at once.
constexpr auto kSpinBeforeSleep = std::chrono::microseconds(100);

}  // namespace

void spin_pause() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

int spins_before_yield(int threads) { return threads > usable_processors() ? 0 : kSpinsBeforeYield; }

void SpinBarrier::wait() {
    if (threads_ == 1) return;
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
        arrived_.store(0, std::memory_order_relaxed);
        generation_.store(generation + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins) {
        if (spins < spins_) {
            spin_pause();
        } else {
            std::this_thread::yield();
        }
    }
}

ThreadPool::ThreadPool(int threads) : threads_(threads), spins_(spins_before_yield(threads)), process_(getpid()) {
    auto& started = workers_->threads;
    started.reserve(static_cast<std::size_t>(threads));
    try {
        for (int i = 1; i < threads; ++i) started.emplace_back([this, i] { worker(i); });
    } catch (const std::system_error& e) {
        end_workers();
        throw DeviceError("only " + std::to_string(started.size() + 1) + " of " + std::to_string(threads) +
                          " threads could be started (" + e.what() + "); use fewer threads");
    }
}

ThreadPool::~ThreadPool() {
    if (forked()) {
        static_cast<void>(workers_.release());
        return;
    }
    end_workers();
}

void ThreadPool::end_workers() {
    {
        const std::lock_guard lock(workers_->mutex);
        quit_ = true;
    }
    workers_->wake.notify_all();
    for (auto& w : workers_->threads) w.join();
}

bool ThreadPool::forked() const { return getpid() != process_; }

void ThreadPool::run(const std::function<void(int)>& job) {
    if (threads_ == 1) {
        job(0);
        return;
    }
    if (forked()) {
        throw Error(
            "this model was loaded before the process was forked, and its threads are not in this process; "
            "load it here, or start the process by the method 'spawn'");
    }
    {
        const std::lock_guard lock(workers_->mutex);
        job_ = &job;
        running_.store(threads_ - 1, std::memory_order_relaxed);
        job_id_.fetch_add(1, std::memory_order_release);
    }
    workers_->wake.notify_all();
    job(0);
    for (int spins = 0; running_.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins < spins_) {
            spin_pause();
        } else {
            std::this_thread::yield();
        }
    }
}

void ThreadPool::worker(int index) {
    std::uint32_t seen = 0;
    for (;;) {
        const auto sleep_at = std::chrono::steady_clock::now() + kSpinBeforeSleep;
        while (job_id_.load(std::memory_order_acquire) == seen && !quit_.load(std::memory_order_relaxed)) {
            for (int i = 0; i < 64; ++i) spin_pause();
            if (std::chrono::steady_clock::now() < sleep_at) continue;
            std::unique_lock lock(workers_->mutex);
            workers_->wake.wait(lock, [&] { return quit_ || job_id_.load(std::memory_order_acquire) != seen; });
        }
        if (quit_) return;
        seen = job_id_.load(std::memory_order_acquire);
        (*job_)(index);
        running_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace akunu::cpu
