#include "cpu/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "cpu/topology.h"

namespace akunu::cpu {

namespace {

// How long a worker stays away that was sent home: longer each time, unless it was of use in between.
constexpr auto kFirstPause = std::chrono::milliseconds(20), kLongestPause = std::chrono::milliseconds(640);
constexpr int kOfUse = 4;  // times its last pause

std::atomic<ThreadPool*> process_pool{nullptr};

// One stage of `count` items, each a piece.
class Loop final : public Team {
  public:
    Loop(int threads, int count, const std::function<void(int)>& job) : Team(threads), count_(count), job_(job) {
        start(threads);
    }

  private:
    std::uint64_t run_stage(std::uint64_t at, Worker& worker) override {
        worker.tag = at + 1;
        auto items = worker.claim(static_cast<std::uint64_t>(count_), std::uint64_t{1} << 30);
        while (items.next()) {
            for (std::uint64_t i = items.begin; i < items.end; ++i) job_(static_cast<int>(i));
        }
        return at + 1;
    }
    bool end_stage(std::uint64_t, std::uint64_t) override { return false; }

    const int count_;
    const std::function<void(int)>& job_;  // not used by who comes late, without a piece
};

}  // namespace

ThreadPool& ThreadPool::of_process() {
    static const int at_fork = pthread_atfork(nullptr, nullptr, [] { process_pool = nullptr; });
    static_cast<void>(at_fork);
    ThreadPool* pool = process_pool;
    if (pool) return *pool;
    auto fresh = std::make_unique<ThreadPool>();
    return *(process_pool.compare_exchange_strong(pool, fresh.get()) ? fresh.release() : pool);
}

ThreadPool::~ThreadPool() { end_workers(0); }

void ThreadPool::end_workers(std::size_t kept) {
    kept_.store(kept, std::memory_order_relaxed);
    ends_.set(ends_.get() + 1);
    offers_.set(offers_.get() + 1);
    for (std::size_t i = kept; i < workers_.size(); ++i) workers_[i].join();
    workers_.resize(kept);
}

void ThreadPool::reserve(int threads) {
    const std::lock_guard growing(growth_);
    const std::size_t before = workers_.size(), wanted = static_cast<std::size_t>(threads - 1);
    if (wanted <= before) return;
    kept_.store(wanted, std::memory_order_relaxed);
    try {
        while (workers_.size() < wanted) {
            workers_.emplace_back([this, index = static_cast<int>(workers_.size()) + 1] { work(index); });
        }
        Mapping memory = map_memory((wanted - before) * kWorkerScratch, "fewer threads need less");
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < wanted - before; ++i) scratch_.push_back(memory.get() + i * kWorkerScratch);
        memory_.push_back(std::move(memory));
    } catch (const std::system_error& e) {
        const std::size_t started = workers_.size();
        end_workers(before);
        throw DeviceError("only " + std::to_string(started + 1) + " of " + std::to_string(threads) +
                          " threads could be started (" + e.what() + "); use fewer threads");
    } catch (...) {
        end_workers(before);
        throw;
    }
}

int ThreadPool::allowed() const {
    static const int processors = usable_cores();
    int most = processors, all = 0;
    for (const auto& team : teams_) {
        most = std::max(most, team->size());
        all += team->size();
    }
    return std::min(most, all);
}

void ThreadPool::look_for_surplus() {
    surplus_.store(static_cast<int>(teams_.size()) + helpers_ > allowed(), std::memory_order_relaxed);
}

void ThreadPool::run(const std::shared_ptr<Team>& team) {
    {
        const std::lock_guard lock(mutex_);
        teams_.push_back(team);
        look_for_surplus();
        const int free = allowed() - static_cast<int>(teams_.size()) - helpers_;
        const int wanted = std::min(free, team->size() - 1);
        if (wanted > 0) offers_.set(offers_.get() + 1, wanted);
    }
    team->lead();
    const std::lock_guard lock(mutex_);
    std::erase(teams_, team);
    look_for_surplus();
    if (!teams_.empty()) offers_.set(offers_.get() + 1);
}

void ThreadPool::run(int threads, int count, const std::function<void(int)>& job) {
    run(std::make_shared<Loop>(threads, count, job));
}

ThreadPool::Seating ThreadPool::join(int index) {
    const std::lock_guard lock(mutex_);
    const auto worker = static_cast<std::size_t>(index);
    if (worker > scratch_.size() || static_cast<int>(teams_.size()) + helpers_ >= allowed()) return {};
    // The one with the fewest helpers.
    Seating best;
    for (const auto& team : teams_) {
        if (team->helpers() + 1 >= team->size()) continue;
        if (!best.team || team->helpers() < best.team->helpers()) best.team = team;
    }
    if (!best.team) return {};
    best.seat = best.team->take_seat(index);
    if (best.seat == 0) return {};
    best.scratch = scratch_[worker - 1];
    ++helpers_;
    return best;
}

bool ThreadPool::leave(const Seating& seating) {
    const std::lock_guard lock(mutex_);
    --helpers_;
    look_for_surplus();
    return seating.team->leave_seat(seating.seat);
}

void ThreadPool::work(int index) {
    Clock::duration pause{};
    auto since = Clock::now();
    for (;;) {
        const std::uint64_t offers = offers_.get(), ends = ends_.get();
        if (static_cast<std::size_t>(index) > kept_.load(std::memory_order_relaxed)) return;
        const Seating seating = join(index);
        if (!seating.team) {
            offers_.wait(offers);
            continue;
        }
        seating.team->help(seating.seat, seating.scratch, surplus_);
        if (!leave(seating)) continue;
        const auto now = Clock::now();
        pause = now - since > kOfUse * pause ? kFirstPause : std::min<Clock::duration>(2 * pause, kLongestPause);
        ends_.sleep(ends, now + pause);
        since = Clock::now();
    }
}

}  // namespace akunu::cpu
