// The threads of the process that help: one pool for all models. Whoever runs a program leads it on its own thread;
// idle workers join. Two programs at the same time share them, and do not make more threads run than one of them
// wants, or the machine has processors for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu/beacon.h"
#include "cpu/memory.h"
#include "cpu/team.h"

namespace akunu::cpu {

class ThreadPool {
  public:
    ThreadPool() = default;
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // This process's. It has no end: its threads sleep while nothing runs, and end with the process. A forked child
    // has none of them, and gets a pool of its own.
    static ThreadPool& of_process();

    // Starts workers for teams of `threads`. Throws DeviceError when the system does not start so many.
    void reserve(int threads);
    // Leads the team's program to its end. Workers may hold the team a little longer.
    void run(const std::shared_ptr<Team>& team);
    // Runs job(i) for each i below `count`, on up to `threads` threads, and returns when all are done. `job` must not
    // throw.
    void run(int threads, int count, const std::function<void(int)>& job);

  private:
    struct Seating {
        std::shared_ptr<Team> team;
        int seat = 0;
        std::byte* scratch = nullptr;  // the worker's
    };

    void end_workers(std::size_t kept);
    void work(int index);
    Seating join(int index);
    bool leave(const Seating& seating);
    // Under the lock: how many threads may run, and do; and what follows for those that help.
    int allowed() const;
    void look_for_surplus();

    std::mutex mutex_;
    std::vector<std::shared_ptr<Team>> teams_;  // that run now
    std::vector<std::byte*> scratch_;           // of the workers that may join
    int helpers_ = 0;
    std::atomic<bool> surplus_{false};
    Beacon offers_;  // changes when there may be something to join
    Beacon ends_;    // changes when workers are to end
    std::atomic<std::size_t> kept_{0};
    std::mutex growth_;  // of these:
    std::vector<std::thread> workers_;
    std::vector<Mapping> memory_;
};

}  // namespace akunu::cpu
