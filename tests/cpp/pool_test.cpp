// The thread pool, its teams and the replay, for ThreadSanitizer: data passes from thread to thread through plain
// memory, so that a missing happens-before is a report, and every result is checked as well.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "cpu/cpu_device.h"
#include "cpu/thread_pool.h"
#include "cpu/topology.h"
#include "engine/engine.h"
#include "one_sequence.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;
using std::chrono::milliseconds;

constexpr std::uint64_t kMuch = 1 << 20;     // bytes: as many pieces as items
constexpr std::uint64_t kLittle = 64 << 10;  // fewer

// Each loop adds to what the one before left, on all threads, and the caller reads it in between.
void check_loops(int threads) {
    cpu::ThreadPool pool;
    pool.reserve(threads);
    std::vector<int> done(static_cast<std::size_t>(3 * threads));
    for (int job = 1; job <= 1000; ++job) {
        pool.run(threads, 3 * threads, [&](int i) { ++done[static_cast<std::size_t>(i)]; });
        for (const int n : done) check(n == job, "every loop runs every item once");
        // Long enough for the workers to fall asleep, now and then.
        if (job % 200 == 0) std::this_thread::sleep_for(milliseconds(1));
    }
}

// Pools that live for no, one or a few jobs.
void check_lifetimes() {
    for (int round = 0; round < 300; ++round) {
        cpu::ThreadPool pool;
        pool.reserve(2 + round % 3);
        int sum = 0;
        for (int job = 0; job < round % 4; ++job) {
            pool.run(2 + round % 3, 5, [&](int i) {
                if (i == 0) ++sum;
            });
        }
        check(sum == round % 4, "all jobs ran");
    }
    // A pool that is asleep when it ends.
    cpu::ThreadPool pool;
    pool.reserve(3);
    pool.run(3, 3, [](int) {});
    std::this_thread::sleep_for(milliseconds(5));
}

// A program of equal stages: before it claims, and for each piece, a thread calls these.
class Program final : public cpu::Team {
  public:
    Program(int threads, std::uint64_t stages, std::uint64_t pieces, std::uint64_t bytes = kMuch)
        : Team(threads), stages_(stages), pieces_(pieces), bytes_(bytes) {
        start(threads);
    }
    std::function<void(int)> before = [](int) {};
    std::function<void(int, std::uint64_t)> piece = [](int, std::uint64_t) {};
    std::function<bool()> goes_on = [] { return true; };

  private:
    std::uint64_t run_stage(std::uint64_t at, cpu::Worker& worker) override {
        before(worker.index);
        worker.tag = at + 1;
        auto claims = worker.claim(pieces_, bytes_);
        while (claims.next()) {
            for (std::uint64_t i = claims.begin; i < claims.end; ++i) piece(worker.index, i);
        }
        return at + 1;
    }
    bool end_stage(std::uint64_t, std::uint64_t next) override { return next < stages_ && goes_on(); }

    const std::uint64_t stages_, pieces_, bytes_;
};

// One stage: how many items each piece has.
class Shares final : public cpu::Team {
  public:
    Shares(int threads, std::uint64_t items, std::uint64_t bytes) : Team(threads), items_(items), bytes_(bytes) {
        start(threads);
    }
    std::vector<std::uint64_t> pieces;

  private:
    std::uint64_t run_stage(std::uint64_t at, cpu::Worker& worker) override {
        worker.tag = at + 1;
        auto claims = worker.claim(items_, bytes_);
        while (claims.next()) {
            const std::lock_guard lock(mutex_);
            pieces.push_back(claims.end - claims.begin);
        }
        return at + 1;
    }
    bool end_stage(std::uint64_t, std::uint64_t) override { return false; }

    const std::uint64_t items_, bytes_;
    std::mutex mutex_;
};

// Each stage reads what its neighbour wrote in the one before.
void check_stages(int threads) {
    constexpr std::uint64_t kStages = 1000;
    cpu::ThreadPool pool;
    pool.reserve(threads);
    const auto n = static_cast<std::uint64_t>(2 * threads + 1);
    std::vector<std::uint64_t> slots[2];
    slots[0].resize(n);
    slots[1].resize(n);
    auto program = std::make_shared<Program>(threads, kStages, n);
    std::vector<std::uint64_t> stage(n);
    program->piece = [&](int, std::uint64_t i) {
        const std::uint64_t at = stage[i]++;
        slots[(at + 1) % 2][i] = slots[at % 2][(i + 1) % n] + 1;
    };
    pool.run(program);
    for (const std::uint64_t v : slots[kStages % 2]) check(v == kStages, "a stage ends before the next begins");
}

// Seats get equal shares of items that make no whole pieces.
void check_shares() {
    constexpr std::uint64_t kItems = 36;
    cpu::ThreadPool pool;
    pool.reserve(2);
    auto program = std::make_shared<Shares>(2, kItems, kLittle);
    pool.run(program);
    std::vector<std::uint64_t>& pieces = program->pieces;
    check(std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0}) == kItems, "every item is in one piece");
    const auto [least, most] = std::minmax_element(pieces.begin(), pieces.end());
    check(pieces.size() > 2 && pieces.size() < kItems && *most - *least <= 1, "pieces are of a size");
}

// Nobody waits for a helper that has no piece: the lead runs the whole program while the helper is somewhere in its
// first stage, and what the helper finds when it comes back is nothing.
void check_late_helper() {
    cpu::ThreadPool pool;
    pool.reserve(2);
    auto program = std::make_shared<Program>(2, 50, 8);
    std::atomic<bool> here{false}, over{false};
    int by_lead = 0, by_helper = 0;
    program->before = [&](int index) {
        if (index == 0) {
            while (!here) std::this_thread::yield();
        } else {
            here = true;
            while (!over) std::this_thread::yield();
        }
    };
    program->piece = [&](int index, std::uint64_t) { ++(index == 0 ? by_lead : by_helper); };
    pool.run(program);
    check(by_lead == 50 * 8, "the lead does what nobody else does");
    check(program->helpers() == 1, "the helper is still there");
    over = true;
    while (program->helpers() != 0) std::this_thread::yield();
    check(by_helper == 0, "it came too late for all of it");
}

// A helper that keeps the others waiting, as one does that has no processor, is sent home; not one whose pieces are as
// long as they were said to be.
void check_dismissal() {
    const std::uint64_t stages = 100;
    // Said to take 32 ms: a busy machine may let the helper sleep for longer than it asked.
    constexpr std::uint64_t kLarge = std::uint64_t{512} << 20;
    const auto pieces_of_helper = [=](std::uint64_t bytes, bool left) {
        cpu::ThreadPool pool;
        pool.reserve(2);
        auto program = std::make_shared<Program>(2, stages, 2, bytes);
        std::atomic<std::uint64_t> by_helper{0};
        std::atomic<bool> here{false};
        std::uint64_t seen = 0;
        bool first = false;  // piece of the lead in this stage
        program->before = [&](int index) {
            while (index == 0 && !here) std::this_thread::yield();
            here = true;
            if (index == 0) first = true;
        };
        // With `left` the lead leaves the helper its piece, however late that wakes.
        program->piece = [&](int index, std::uint64_t) {
            if (index != 0) {
                ++by_helper;
                std::this_thread::sleep_for(milliseconds(4));
            } else if (left && std::exchange(first, false)) {
                while (by_helper == seen && program->helpers() != 0) std::this_thread::yield();
                seen = by_helper;
            }
        };
        pool.run(program);
        return by_helper.load();
    };
    check(pieces_of_helper(kMuch, false) < stages / 4, "a helper that costs more than it gives does not stay");
    check(pieces_of_helper(kLarge, true) > stages / 2, "a helper with large pieces does");
}

// Two models at once share the workers: both make progress, and helpers go when a second lead wants their processors.
void check_two_leads() {
    const int threads = std::max(2, cpu::usable_cores());
    cpu::ThreadPool pool;
    pool.reserve(threads);
    std::atomic<int> stages[2] = {0, 0};
    std::atomic<bool> over{false};
    std::shared_ptr<Program> programs[2];
    for (int p = 0; p < 2; ++p) programs[p] = std::make_shared<Program>(threads, ~std::uint64_t{0} - 1, 4);
    for (int p = 0; p < 2; ++p) {
        // Until all threads together are no more than one program has alone.
        programs[p]->goes_on = [&, p] {
            ++stages[p];
            const bool both = stages[0] > 100 && stages[1] > 100;
            if (both && 2 + programs[0]->helpers() + programs[1]->helpers() <= threads) over = true;
            return !over;
        };
    }
    std::thread other([&] { pool.run(programs[1]); });
    pool.run(programs[0]);
    other.join();
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
    auto cells = worker.claim(kCells, kMuch);
    while (cells.next()) {
        for (auto i = cells.begin; i < cells.end; ++i) out[i] = in[(i + kCells - 1) % kCells] + 1;
    }
}

// As the sampler does: one thread decides whether the chain ends.
void decide(const DispatchCmd& cmd, const std::byte* params, const cpu::Worker& worker) {
    auto all = worker.claim(1, 0);
    if (!all.next()) return;
    auto& control = *cmd.buffers[2].as<Control>();
    ++control.active;
    if (cpu::params_as<StageParams>(params).step + 1 == *cmd.buffers[3].as<std::uint32_t>()) control.stop = 1;
}

struct Replay {
    std::vector<std::uint32_t> a = std::vector<std::uint32_t>(kCells), b = a, last = {0};
    std::vector<Control> control = std::vector<Control>(1);
    cpu::CpuProgram program = made();

    template <typename T>
    static Binding bind(std::vector<T>& v) {
        auto* at = reinterpret_cast<std::byte*>(v.data());
        return {{v.data(), at, at, v.size() * sizeof(T)}, 0};
    }
    cpu::CpuProgram made() {
        akunu::DispatchTable table;
        for (int i = 0; i < 5; ++i) {
            DispatchCmd cmd;
            cmd.kernel = reinterpret_cast<const void*>(i < 4 ? shift : decide);
            cmd.buffers = {bind(i % 2 ? b : a), bind(i % 2 ? a : b), bind(control), bind(last)};
            cmd.n_buffers = 4;
            cmd.set_params(StageParams{});
            cmd.patches[0] = {0, PatchSource::kStep};
            cmd.n_patches = 1;
            table.commands.push_back(cmd);
        }
        return cpu::CpuProgram(std::move(table), {});
    }
    // Steps that ran; each adds 4 to every cell.
    std::uint32_t run(cpu::CpuDevice& device, std::uint32_t steps, const std::function<bool()>& poll = {}) {
        std::fill(a.begin(), a.end(), 0);
        control[0] = {};
        const Segment segment{&program};
        return device.replay({.segments = {&segment, 1}, .times = steps}, control[0], poll, {});
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
        check(r.control[0].active == steps, "and one decision in each");
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
        check(r.control[0].active - steps <= 1, "in the step after the last whole one");
    }
    std::vector<double> seconds(r.program.table.commands.size());
    std::fill(r.a.begin(), r.a.end(), 0);
    const Segment segment{&r.program};
    device.profile({&segment, 1}, seconds);
    check(r.all_are(4), "profiling runs the table once");
}

// ---- costs -----------------------------------------------------------------------------------

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

void check_costs() {
    check(near(chosen_experts(128, 8, 1), 8) && chosen_experts(0, 0, 5) == 0, "a row's experts differ");
    check(near(chosen_experts(4, 1, 2), 1.75), "two rows choose the same one in one of four cases");
    check(chosen_experts(128, 8, 4096) > 127.999, "many rows choose all of them");

    const Cost experts{
        .weights = 10, .bytes = 100, .bytes_per_row = 3, .bytes_per_expert = 1000, .experts = 4, .chosen = 1};
    check(near(cost_bytes(experts, {.rows = 2}), 100 + 6 + 1750),
          "what is read of experts is what some row has chosen");
    check(near(cost_minimum_bytes(experts, {.rows = 2}), 10 + 1750), "and must be read");

    DispatchCmd recur;
    recur.op = Op::kRecur;
    recur.set_params(RecurParams{.rows = 1, .step = 0, .dim = 64, .formats = kActF32, .state_words = 64});
    const Cost state = op_info(Op::kRecur).cost(recur);
    const double one = cost_bytes(state, {.rows = 6, .sequences = 1}),
                 three = cost_bytes(state, {.rows = 6, .sequences = 3});
    check(near(three - one, 2 * 8.0 * 64), "each sequence's state is read and written once, however many rows it has");

    // Found out once, a program's load is that of its commands.
    DispatchCmd body, head;
    for (DispatchCmd* c : {&body, &head}) {
        c->op = Op::kMatmul;
        c->set_params(MatmulParams{.rows = 1,
                                   .n = 64,
                                   .k = 32,
                                   .y_stride = 64,
                                   .accumulate = 0,
                                   .has_bias = 0,
                                   .softcap = 0,
                                   .activation = 0,
                                   .format = kActF32});
        c->n_patches = 1;
    }
    head.patches[0] = {0, PatchSource::kLogits};
    const std::vector<DispatchCmd> commands{body, body, head};
    const cpu::Load load(commands);
    const double bytes = 64 * 32 * 4;
    check(load.stages() == 3, "a stage for each barrier");
    check(near(load.nanoseconds({.rows = 1, .logits = 1}), 3 * bytes / 16), "all weights are read");
    check(near(load.nanoseconds({.rows = 40, .logits = 1}), (2 * 10 + 1) * bytes / 16), "again for each four rows");
}

std::atomic<std::uint32_t> bodies{0};

// The end of the first segment, and the second: what the host has told by then.
void announce(const DispatchCmd&, const std::byte*, const cpu::Worker& worker) {
    if (auto all = worker.claim(1, 1); all.next()) ++bodies;
}
void take_told(const DispatchCmd& cmd, const std::byte*, const cpu::Worker& worker) {
    if (auto all = worker.claim(1, 1); all.next())
        *cmd.buffers[1].as<std::uint32_t>() = *cmd.buffers[0].as<std::uint32_t>();
}

cpu::CpuProgram program_of(cpu::Kernel kernel, std::initializer_list<Binding> buffers) {
    DispatchCmd cmd;
    cmd.kernel = reinterpret_cast<const void*>(kernel);
    std::ranges::copy(buffers, cmd.buffers.begin());
    cmd.n_buffers = static_cast<std::uint8_t>(buffers.size());
    akunu::DispatchTable table;
    table.commands.push_back(cmd);
    return cpu::CpuProgram(std::move(table), {});
}

// What the host has to tell the second segment, it tells while the others run the first one.
void check_meanwhile(int threads) {
    cpu::CpuDevice device(threads);
    std::vector<std::uint32_t> told{0}, taken{0};
    const cpu::CpuProgram body = program_of(announce, {});
    const cpu::CpuProgram tail = program_of(take_told, {Replay::bind(told), Replay::bind(taken)});
    const Segment segments[] = {{&body}, {&tail}};
    Control control;
    for (std::uint32_t round = 1; round <= 50; ++round) {
        bodies = 0;
        const std::uint32_t before = taken[0];
        const auto meanwhile = [&] {
            const auto end = cpu::Clock::now() + std::chrono::seconds(60);
            while (threads > 1 && bodies == 0 && cpu::Clock::now() < end) std::this_thread::yield();
            check(bodies == (threads > 1 ? 1u : 0u),
                  "the first segment runs meanwhile, where somebody else can run it");
            told[0] = round;
            return round % 5 != 0;
        };
        const std::uint32_t steps = device.replay({.segments = segments}, control, {}, meanwhile);
        check(steps == (round % 5 != 0) && bodies == 1, "a replay of which the rest is not wanted ends");
        check(taken[0] == (round % 5 != 0 ? round : before), "the second segment knows what was told");
    }
}

// The real tables, on threads that may be more than the cores.
void check_engine(int threads) {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Engine one(std::make_unique<cpu::CpuDevice>(1), m.config, m.source(), {64, 16, DType::F16}, {});
    Engine e(std::make_unique<cpu::CpuDevice>(threads), m.config, m.source(), {64, 16, DType::F16}, {});
    SamplerSettings settings;
    SamplerState& s = settings.state;
    s.temperature = 0.8f;
    s.top_p = 0.9f;
    s.repeat_penalty = 1.2f;
    s.want_logprobs = 1;
    s.n_logprobs = 5;
    const std::vector<std::uint32_t> prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
    const auto generate = [&](Engine& engine) {
        OneSequence sequence(engine);
        sequence.begin(prompt, settings, false);
        Produced out = sequence.prefill();
        std::vector<std::uint32_t> ids = out.ids;
        while (!(out = sequence.decode(10)).ids.empty()) ids.insert(ids.end(), out.ids.begin(), out.ids.end());
        return ids;
    };
    const auto expected = generate(one);
    check(generate(e) == expected && expected.size() == 45, "threads do not change the sequence");
    // Cancelled by another thread while it runs.
    for (int round = 0; round < 5; ++round) {
        OneSequence sequence(e);
        sequence.begin(prompt, settings, false);
        sequence.prefill();
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(4 * round));
            e.cancel();
        });
        while (sequence.decode(10).ids.size() == 10) {
        }
        canceller.join();
    }
    check(generate(e) == expected, "after a cancel as before");
}

}  // namespace

int main() {
    check_lifetimes();
    check_shares();
    check_late_helper();
    check_dismissal();
    check_two_leads();
    check_costs();
    for (const int threads : {1, 2, 3, 4}) {
        check_loops(threads);
        check_stages(threads);
        check_replay(threads);
        check_meanwhile(threads);
        if (threads == 3) check_engine(threads);
        std::printf("%d threads: passed\n", threads);
        std::fflush(stdout);
    }
    return 0;
}
