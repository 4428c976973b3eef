#include "queue.h"

#include <atomic>
#include <thread>
#include <utility>

namespace fakemetal {
namespace {
// Never destroyed: queues may end after the program's own objects.
std::mutex& g_mutex = *new std::mutex;
std::condition_variable& g_idle = *new std::condition_variable;
long g_pending = 0;  // command buffers committed and not finished, over all queues
std::string& g_faults = *new std::string;
}  // namespace

struct Queue::State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> work;
    bool stop = false;
    std::thread thread;
};

Queue::Queue() : state_(std::make_shared<State>()) {
    state_->thread = std::thread([s = state_] {
        for (;;) {
            std::function<void()> f;
            {
                std::unique_lock lock(s->mutex);
                s->wake.wait(lock, [&] { return s->stop || !s->work.empty(); });
                if (s->work.empty()) return;
                f = std::move(s->work.front());
                s->work.pop_front();
            }
            f();
            f = nullptr;  // releases the command buffer before the queue counts as idle
            std::lock_guard lock(g_mutex);
            if (--g_pending == 0) g_idle.notify_all();
        }
    });
}

Queue::~Queue() {
    {
        std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    state_->wake.notify_all();
    if (state_->thread.get_id() == std::this_thread::get_id())
        state_->thread.detach();
    else
        state_->thread.join();
}

void Queue::push(std::function<void()> work) {
    {
        std::lock_guard lock(g_mutex);
        ++g_pending;
    }
    {
        std::lock_guard lock(state_->mutex);
        state_->work.push_back(std::move(work));
    }
    state_->wake.notify_all();
}

void drain_queues() {
    std::unique_lock lock(g_mutex);
    g_idle.wait(lock, [] { return g_pending == 0; });
}
void record_fault(const std::string& message) {
    std::lock_guard lock(g_mutex);
    g_faults += message + "\n";
}
std::string take_faults() {
    std::lock_guard lock(g_mutex);
    return std::exchange(g_faults, {});
}
}  // namespace fakemetal
