// The thread pool, its barrier and the replay, for ThreadSanitizer: data passes from thread to thread through plain
// memory, so that a missing happens-before is a report, and every result is checked as well.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"
#include "cpu/cpu_device.h"
#include "cpu/thread_pool.h"
#include "engine/engine.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;

// Each job adds to what the job before left, on all threads, and the caller reads it in between.
void check_jobs(int threads) {
    cpu::ThreadPool pool(threads);
    std::vector<int> done(static_cast<std::size_t>(threads));
    int calls = 0;
    for (int job = 1; job <= 1000; ++job) {
        pool.run([&](int index) {
            ++done[static_cast<std::size_t>(index)];
            if (index == 0) ++calls;
        });
        for (const int n : done) check(n == job, "every thread ran every job once");
        // Long enough for the workers to fall asleep, now and then.
        if (job % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    check(calls == 1000, "thread 0 is the caller");
}

// Between two barriers each thread reads what its neighbour wrote before the first.
void check_barrier(int threads) {
    constexpr int kStages = 1000;
    cpu::ThreadPool pool(threads);
    cpu::SpinBarrier barrier(threads);
    std::vector<int> slots(static_cast<std::size_t>(threads));
    std::vector<int> wrong(static_cast<std::size_t>(threads));
    pool.run([&](int index) {
        const auto mine = static_cast<std::size_t>(index), next = (mine + 1) % slots.size();
        for (int stage = 1; stage <= kStages; ++stage) {
            slots[mine] = stage * 10 + index;
            barrier.wait();
            wrong[mine] += slots[next] != stage * 10 + static_cast<int>(next);
            barrier.wait();
        }
    });
    for (const int n : wrong) check(n == 0, "a barrier separates the stages");
}

// Pools that live for no, one or a few jobs.
void check_lifetimes() {
    for (int round = 0; round < 300; ++round) {
        cpu::ThreadPool pool(2 + round % 3);
        int sum = 0;
        for (int job = 0; job < round % 4; ++job) {
            pool.run([&](int index) {
                if (index == 0) ++sum;
            });
        }
        check(sum == round % 4, "all jobs ran");
    }
    // A pool that is asleep when it ends.
    cpu::ThreadPool pool(3);
    pool.run([](int) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// ---- replay --------------------------------------------------------------------------------

constexpr std::uint32_t kCells = 64;

// Buffer 0: cells to read, 1: cells to write, 2: Control, 3: steps after which to stop.
struct StageParams {
    std::uint32_t step;  // patched
};

// out[i] = in[i - 1] + 1, so that every thread needs what another one wrote.
void shift(const DispatchCmd& cmd, const std::byte*, const cpu::Worker& worker) {
    const auto* in = cmd.buffers[0].as<std::uint32_t>();
    auto* out = cmd.buffers[1].as<std::uint32_t>();
    const auto range = worker.share(kCells);
    for (auto i = range.begin; i < range.end; ++i) out[i] = in[(i + kCells - 1) % kCells] + 1;
}

// As the sampler does: thread 0 alone decides whether the chain ends.
void decide(const DispatchCmd& cmd, const std::byte* params, const cpu::Worker& worker) {
    if (worker.index != 0) return;
    auto& control = *cmd.buffers[2].as<Control>();
    ++control.produced;
    if (cpu::params_as<StageParams>(params).step + 1 == *cmd.buffers[3].as<std::uint32_t>()) control.stop = 1;
}

struct Replay {
    std::vector<std::uint32_t> a = std::vector<std::uint32_t>(kCells), b = a, last = {0};
    std::vector<Control> control = std::vector<Control>(1);
    DispatchTable table;

    template <typename T>
    static Binding bind(std::vector<T>& v) {
        return {{v.data(), reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(T)}, 0};
    }
    Replay() {
        for (int i = 0; i < 5; ++i) {
            DispatchCmd cmd;
            cmd.kernel = reinterpret_cast<const void*>(i < 4 ? shift : decide);
            cmd.buffers = {bind(i % 2 ? b : a), bind(i % 2 ? a : b), bind(control), bind(last)};
            cmd.n_buffers = 4;
            cmd.set_params(StageParams{});
            cmd.patches[0] = {0, PatchSource::kStep, 0};
            cmd.n_patches = 1;
            table.commands.push_back(cmd);
        }
    }
    // Steps that ran; each adds 4 to every cell.
    std::uint32_t run(cpu::CpuDevice& device, std::uint32_t steps, const std::function<bool()>& poll = {}) {
        std::fill(a.begin(), a.end(), 0);
        control[0] = {};
        return device.replay(table, {0, 1, steps}, control[0], poll);
    }
    bool all_are(std::uint32_t value) const {
        for (const std::uint32_t v : a) {
            if (v != value) return false;
        }
        return true;
    }
};

void check_replay(int threads) {
    constexpr std::uint32_t kSteps[] = {1, 2, 3, 4, 7, 12, 33, 60};
    cpu::CpuDevice device(threads);
    Replay r;
    for (const std::uint32_t steps : kSteps) {
        check(r.run(device, steps) == steps && r.all_are(4 * steps), "a chain runs all its steps");
        check(r.control[0].produced == steps, "and one decision in each");
    }
    for (const std::uint32_t last : kSteps) {
        r.last[0] = last;
        check(r.run(device, 64) == last && r.all_are(4 * last), "a stop ends the chain after its step");
    }
    r.last[0] = 0;
    // Polled every 20 ms; the chain would run for minutes. It stops between two commands.
    for (int round = 0; round < 3; ++round) {
        int polls = 0;
        const std::uint32_t steps = r.run(device, 1u << 30, [&] { return ++polls > round % 3; });
        check(polls == round % 3 + 1 && steps < 1u << 30, "a poll stops the chain");
        check(r.control[0].produced - steps <= 1, "in the step after the last whole one");
    }
    std::vector<double> seconds(r.table.commands.size());
    std::fill(r.a.begin(), r.a.end(), 0);
    device.profile(r.table, {0, 1, 1}, seconds);
    check(r.all_are(4), "profiling runs the table once");
}

// The real tables, on threads that may be more than the cores.
void check_engine(int threads) {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Engine one(std::make_unique<cpu::CpuDevice>(1), m.config, m.source(), {64, 16, DType::F16}, {});
    Engine e(std::make_unique<cpu::CpuDevice>(threads), m.config, m.source(), {64, 16, DType::F16}, {});
    SamplerState s;
    s.temperature = 0.8f;
    s.top_p = 0.9f;
    s.repeat_penalty = 1.2f;
    s.want_logprobs = 1;
    s.n_logprobs = 5;
    const std::vector<std::uint32_t> prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
    const auto generate = [&](Engine& engine) {
        engine.begin(prompt, s, false);
        Chunk out;
        while (engine.prefill(true, out, {}) != 0) {
        }
        std::vector<std::uint32_t> ids = out.ids;
        while (!(out = engine.decode(10, {})).ids.empty()) ids.insert(ids.end(), out.ids.begin(), out.ids.end());
        return ids;
    };
    const auto expected = generate(one);
    check(generate(e) == expected && expected.size() == 45, "threads do not change the text");
    // Cancelled by another thread while it runs.
    for (int round = 0; round < 5; ++round) {
        e.begin(prompt, s, false);
        Chunk out;
        while (e.prefill(true, out, {}) != 0) {
        }
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(4 * round));
            e.cancel();
        });
        while (!e.decode(10, {}).ids.empty()) {
        }
        canceller.join();
    }
    check(generate(e) == expected, "after a cancel as before");
}

}  // namespace

int main() {
    check_lifetimes();
    for (const int threads : {1, 2, 3, 4}) {
        check_jobs(threads);
        check_barrier(threads);
        check_replay(threads);
        if (threads == 3) check_engine(threads);
        std::printf("%d threads: passed\n", threads);
        std::fflush(stdout);
    }
    return 0;
}
