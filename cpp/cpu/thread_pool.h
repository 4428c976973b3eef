// A persistent pool of workers. A job wakes them once; between its stages they meet at a spin barrier.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace akunu::cpu {

// Tells the processor that this is a spin loop.
void spin_pause();

// Barrier for a fixed number of threads. Spins; yields to the system after a while, so that an oversubscribed machine
// still makes progress.
class SpinBarrier {
  public:
    explicit SpinBarrier(int threads) : threads_(threads) {}
    void wait();

  private:
    const int threads_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> generation_{0};
};

class ThreadPool {
  public:
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return threads_; }
    // Runs job(index) on every thread, index 0 on the caller, and returns when all are done. `job` must not throw.
    void run(const std::function<void(int)>& job);

  private:
    void worker(int index);

    const int threads_;
    const std::function<void(int)>* job_ = nullptr;
    alignas(64) std::atomic<std::uint32_t> job_id_{0};
    alignas(64) std::atomic<int> running_{0};
    std::atomic<bool> quit_{false};
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
};

}  // namespace akunu::cpu
