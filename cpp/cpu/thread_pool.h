// A persistent pool of workers. A job wakes them once; between its stages they meet at a spin barrier.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace akunu::cpu {

// Tells the processor that this is a spin loop.
void spin_pause();

// How often `threads` threads that wait for one another spin before they yield to the system: at once where some of
// them have no processor, since the one that is waited for may need this one.
int spins_before_yield(int threads);

// Barrier for a fixed number of threads. Spins; yields to the system after a while, so that an oversubscribed machine
// still makes progress.
class SpinBarrier {
  public:
    explicit SpinBarrier(int threads) : threads_(threads), spins_(spins_before_yield(threads)) {}
    void wait();

  private:
    const int threads_, spins_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> generation_{0};
};

// The threads belong to the process that made the pool. A forked child has none of them: there, run throws, and the
// destructor leaves behind what only they could end.
class ThreadPool {
  public:
    // Throws DeviceError when the system does not start so many.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return threads_; }
    // Runs job(index) on every thread, index 0 on the caller, and returns when all are done. `job` must not throw.
    // Throws Error in a process that was forked after the pool was made.
    void run(const std::function<void(int)>& job);

  private:
    // What cannot be destroyed in a forked child: joining a thread, and destroying a condition that threads wait for,
    // wait for threads that the child does not have.
    struct Workers {
        std::mutex mutex;
        std::condition_variable wake;
        std::vector<std::thread> threads;
    };

    bool forked() const;
    void worker(int index);
    void end_workers();

    const int threads_, spins_;
    const pid_t process_;
    const std::function<void(int)>* job_ = nullptr;
    alignas(64) std::atomic<std::uint32_t> job_id_{0};
    alignas(64) std::atomic<int> running_{0};
    std::atomic<bool> quit_{false};
    std::unique_ptr<Workers> workers_ = std::make_unique<Workers>();
};

}  // namespace akunu::cpu
