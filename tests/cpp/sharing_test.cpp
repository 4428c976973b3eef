// One engine, many threads, as the scheduler of the package shares it: of those that wait for their sequences one
// leads, runs a step of all of them and makes way. Meanwhile others come, fork, go back, leave, and end steps early or
// cancel them, which is allowed at any time. Each sequence is what it is alone. For ThreadSanitizer.
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "check.h"
#include "cpu/cpu_device.h"
#include "engine/engine.h"
#include "one_sequence.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kContext = 96, kChunk = 16, kTokens = 14, kSlots = 4, kSequences = 5, kChain = 4;

std::unique_ptr<Engine> open_engine(const SyntheticModel& m) {
    return std::make_unique<Engine>(std::make_unique<cpu::CpuDevice>(2), m.config, m.source(),
                                    EngineOptions{.context = kContext, .chunk = kChunk, .parallel = kSlots},
                                    Progress{});
}

Ids prompt_of(std::uint32_t sequence) {
    Ids ids(5 + 14 * sequence);
    // Sequences begin alike.
    for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = (i < 33 ? i * 7 + 1 : i * 37 + sequence) % 301;
    return ids;
}

SamplerSettings settings_of(std::uint32_t sequence) {
    SamplerSettings s;
    s.state.temperature = sequence % 2 ? 1.0f : 0.0f;
    s.state.seed_lo = sequence;
    return s;
}

// The engine between its steps, and who runs the next one.
class Shared {
  public:
    explicit Shared(const SyntheticModel& m) : engine_(open_engine(m)) {}

    // Something between two steps.
    template <typename F>
    auto between(F&& f) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !leading_; });
        return f(*engine_);
    }

    // Draws the next tokens of a sequence until it has `tokens` after its prompt.
    void draw(std::uint32_t slot, std::uint32_t tokens, Ids& ids) {
        std::unique_lock lock(mutex_);
        wanted_[slot] = {tokens, &ids};
        while (ids.size() < tokens) {
            if (leading_) {
                changed_.wait(lock);
                continue;
            }
            leading_ = true;
            std::uint32_t steps = kChain;
            const std::vector<Part> parts = plan(steps);
            lock.unlock();
            const std::vector<Produced> produced = engine_->step(parts, steps, {});
            lock.lock();
            ++steps_;
            for (std::size_t i = 0; i < parts.size(); ++i) {
                Ids& to = *wanted_[parts[i].slot].ids;
                to.insert(to.end(), produced[i].ids.begin(), produced[i].ids.end());
            }
            leading_ = false;
            changed_.notify_all();
        }
        wanted_.erase(slot);
    }

    // At any time.
    Engine& engine() { return *engine_; }
    std::uint32_t steps() const { return steps_; }

  private:
    struct Wanted {
        std::uint32_t tokens = 0;
        Ids* ids = nullptr;
    };

    std::vector<Part> plan(std::uint32_t& steps) {
        std::vector<Part> parts;
        std::uint32_t budget = kChunk;
        for (const auto& [slot, wanted] : wanted_) {
            const Sequence& s = engine_->sequence(slot);
            const std::uint32_t left = s.known - s.length, rows = std::min(left, budget);
            const auto missing = static_cast<std::uint32_t>(wanted.tokens - wanted.ids->size());
            if (rows == 0 || missing == 0) continue;
            budget -= rows;
            parts.push_back({slot, rows, rows == left, missing, {}});
            steps = left == 1 ? std::min(steps, missing) : 1;
            if (steps == 1 && left == 1 && missing > 2) parts.back().drafts = {1};
        }
        for (Part& part : parts) {
            if (steps > 1 || budget == 0) part.drafts.clear();
            budget -= static_cast<std::uint32_t>(part.drafts.size());
            check(engine_->reserve(part, steps), "there are pages for all");
        }
        return parts;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool leading_ = false;
    std::atomic<std::uint32_t> steps_{0};
    std::map<std::uint32_t, Wanted> wanted_;
    std::unique_ptr<Engine> engine_;
};

void share(const SyntheticModel& m) {
    std::vector<Ids> expected;
    {
        const auto engine = open_engine(m);
        for (std::uint32_t sequence = 0; sequence < kSequences; ++sequence) {
            OneSequence alone(*engine);
            alone.begin(prompt_of(sequence), settings_of(sequence), false);
            expected.push_back(alone.prefill().ids);
            while (expected[sequence].size() < kTokens) {
                const auto more = alone.decode(kTokens - static_cast<std::uint32_t>(expected[sequence].size())).ids;
                expected[sequence].insert(expected[sequence].end(), more.begin(), more.end());
            }
        }
    }
    Shared shared(m);
    std::atomic<bool> done{false};
    const auto reader = [&](std::uint32_t first) {
        for (std::uint32_t round = 0; round < 6; ++round) {
            const std::uint32_t sequence = (first + round) % kSequences;
            const Ids prompt = prompt_of(sequence);
            const std::uint32_t slot = shared.between([&](Engine& e) {
                const std::uint32_t opened = e.open().value();
                e.begin(opened, prompt, settings_of(sequence), round % 2 == 0);
                return opened;
            });
            Ids ids;
            shared.draw(slot, kTokens / 2, ids);
            check(std::equal(ids.begin(), ids.end(), expected[sequence].begin()), "together as alone");
            const auto other = shared.between([&](Engine& e) -> std::optional<std::uint32_t> {
                if (round % 3 == 0) e.truncate(slot, std::min(e.sequence(slot).length, 20u));
                if (round % 3 == 1) return e.fork(slot);
                return std::nullopt;
            });
            if (other) {
                Ids forked = ids;
                shared.draw(*other, kTokens, forked);
                check(forked == expected[sequence], "a fork goes on as the sequence would");
                shared.between([&](Engine& e) { e.close(*other); });
            }
            if (round % 3 != 0) {
                shared.draw(slot, kTokens, ids);
                check(ids == expected[sequence], "together as alone");
            }
            shared.between([&](Engine& e) { e.close(slot); });
        }
    };
    std::thread nuisance([&] {
        std::uint32_t seen = 0;
        while (!done) {
            const std::uint32_t steps = shared.steps();
            if (steps - seen > 5) {  // all make progress
                shared.engine().cancel();
                seen = steps;
            }
            shared.engine().yield();
            std::this_thread::yield();
        }
    });
    std::vector<std::thread> readers;
    for (std::uint32_t i = 0; i < kSlots / 2; ++i) readers.emplace_back(reader, 2 * i);
    for (std::thread& thread : readers) thread.join();
    done = true;
    nuisance.join();
    shared.between([](Engine& e) {
        e.cache().forget();
        check(e.cache().use().held == 0 && e.cache().use().cached == 0 && e.cache().use().checkpoints == 0,
              "nothing is left");
    });
}

}  // namespace

int main() {
    share(synthetic_model(DType::Q4_0));
    share(synthetic_hybrid(DType::F32));
    std::printf("passed\n");
    return 0;
}
