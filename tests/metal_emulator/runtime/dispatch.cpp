// One dispatch: its threadgroups spread over a pool of OS threads.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor.h"
#include "guard.h"
#include "sanitizer.h"

using namespace mslrt;

namespace {
// Below this many threads, waking a helper costs more than it saves.
constexpr uint64_t kSmallDispatch = 4096;

/// Helper threads, shared by all queues.  Never joined: they may live as long as the process.
class Pool {
  public:
    static Pool& get() {
        static auto* pool = new Pool;
        return *pool;
    }
    void post(unsigned n, const std::function<void()>& task) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (unsigned i = 0; i < n; ++i) tasks_.push_back(task);
            while (threads_ < tasks_.size() && threads_ < kMaxThreads) {
                ++threads_;
                std::thread([this] { run(); }).detach();
            }
        }
        wake_.notify_all();
    }

  private:
    static constexpr size_t kMaxThreads = 64;
    void run() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        }
    }
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    size_t threads_ = 0;
};

/// Executors keep their fiber stacks from one dispatch to the next.
class Executors {
  public:
    static Executors& get() {
        static auto* e = new Executors;
        return *e;
    }
    std::unique_ptr<Executor> take() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (!free_.empty()) {
                auto e = std::move(free_.back());
                free_.pop_back();
                return e;
            }
        }
        return std::make_unique<Executor>();
    }
    void give(std::unique_ptr<Executor> e) {
        std::lock_guard<std::mutex> lock(mutex_);
        free_.push_back(std::move(e));
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Executor>> free_;
};

/// What the helpers of one dispatch share; lives until the last of them lets go.
struct Job {
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    const LibraryDesc* library;
    const KernelDesc* kernel;
    const Args* args;
    const ConstantValue* constants;
    uint32_t n_constants;
    MslOptions options;
    uint64_t total = 1;
    std::vector<uint32_t> order;  // shuffled threadgroups; empty: in order
    std::atomic<uint64_t> next{0};
    std::atomic<bool> stop{false};
    std::atomic<unsigned> workers_seen{0};
    std::mutex mutex;
    std::condition_variable idle;
    unsigned active = 0;
    bool closed = false;  // a helper that comes later has nothing to do
    std::string error;

    // TSan does not see the shared pointer's counter order the last use and the destruction.
    void done_with() { san::release(this); }
    ~Job() { san::acquire(this); }

    void work() {
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (closed) return;
            ++active;
        }
        install_fault_handler();
        auto e = Executors::get().take();
        e->begin_dispatch(*library, *kernel, *args, constants, n_constants, options, workers_seen++);
        for (uint64_t i; !stop && (i = next++) < total;) {
            if (e->run_group(order.empty() ? i : order[i])) continue;
            std::lock_guard<std::mutex> lock(mutex);
            if (error.empty()) error = e->error();
            stop = true;
        }
        Executors::get().give(std::move(e));
        std::lock_guard<std::mutex> lock(mutex);
        if (--active == 0) idle.notify_all();
    }
    void finish() {
        std::unique_lock<std::mutex> lock(mutex);
        closed = true;
        idle.wait(lock, [this] { return active == 0; });
    }
};

void shuffle(std::vector<uint32_t>& order, uint64_t total, uint64_t seed) {
    order.resize(total);
    for (uint32_t i = 0; i < total; ++i) order[i] = i;
    uint64_t r = seed * 0x9E3779B97F4A7C15ull + 1;
    for (uint64_t i = total; i > 1; --i) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        std::swap(order[i - 1], order[(r >> 20) % i]);
    }
}
}  // namespace

extern "C" void msl_specialize(const LibraryDesc* library, const ConstantValue* values, uint32_t n) {
    for (const ConstantDesc* c = library->constants; c->name; ++c) {
        const ConstantValue* v = nullptr;
        for (uint32_t i = 0; i < n; ++i)
            if (values[i].index == c->index) v = &values[i];
        if (v)
            san::copy(c->address(), v->data, c->size);
        else
            san::fill(c->address(), 0, c->size);
        const bool defined = v != nullptr;
        san::copy(c->defined(), &defined, sizeof defined);
    }
    library->derive();
}

extern "C" int msl_dispatch(const LibraryDesc* library, const KernelDesc* kernel, const Args* args,
                            const ConstantValue* constants, uint32_t n_constants, const MslOptions* options, char* err,
                            size_t err_len) {
    const auto reject = [&](const std::string& m) {
        snprintf(err, err_len, "%s: %s", kernel->name, m.c_str());
        return 1;
    };
    const uint64_t threads = uint64_t{args->group[0]} * args->group[1] * args->group[2];
    const uint64_t limit = kernel->max_threads ? kernel->max_threads : 1024;
    if (!threads) return reject("empty threadgroup");
    if (threads > limit)
        return reject(std::to_string(threads) + " threads per threadgroup, at most " + std::to_string(limit));

    auto job = std::make_shared<Job>();
    job->library = library;
    job->kernel = kernel;
    job->args = args;
    job->constants = constants;
    job->n_constants = n_constants;
    job->options = *options;
    for (int i = 0; i < 3; ++i) job->total *= (uint64_t{args->grid[i]} + args->group[i] - 1) / args->group[i];
    if (job->total == 0) return 0;
    if (job->total > UINT32_MAX) return reject("more than 2^32 threadgroups");
    if (options->schedule != kMslFifo) shuffle(job->order, job->total, options->seed);

    char sync[2][8];  // TSan: this dispatch's own start and end
    if (!job->options.sync_in) job->options.sync_in = sync[0];
    if (!job->options.sync_out) job->options.sync_out = sync[1];
    if (!options->sync_in) san::release(sync[0]);

    unsigned workers = options->workers ? options->workers : std::max(1u, std::thread::hardware_concurrency());
    if (!options->workers && job->total * threads < kSmallDispatch) workers = 1;
    workers = static_cast<unsigned>(std::min<uint64_t>(workers, job->total));
    // Before helpers exist: TSan does not see that the static's guard orders its construction.
    Executors::get();
    if (workers > 1)
        Pool::get().post(workers - 1, [job] {
            job->work();
            job->done_with();
        });
    job->work();
    job->finish();
    job->done_with();
    if (!options->sync_out) san::acquire(sync[1]);
    return job->error.empty() ? 0 : reject(job->error);
}

extern "C" void msl_sync_acquire(void* p) { san::acquire(p); }
extern "C" void msl_sync_release(void* p) { san::release(p); }
extern "C" const char* msl_runtime_kind() { return san::kAsan ? "asan" : san::kTsan ? "tsan" : "plain"; }
