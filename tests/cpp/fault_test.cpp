// Copies and uploads that fail, and calls that come at the wrong time: no sequence gets another's pages or state, no
// page and no slot is lost, and what is refused leaves everything as it was.
#include <cstdlib>
#include <numeric>
#include <vector>

#include "check.h"
#include "core/error.h"
#include "engine/engine.h"
#include "forwarding_device.h"
#include "page_parts.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kContext = 96;

// Fails while it is told to: uploads, or replays that copy, which are those nobody polls.
class Faulty final : public ForwardingDevice {
  public:
    bool uploads_fail = false, copies_fail = false;
    std::uint64_t host_memory = 0;  // 0: the machine's
    std::function<void()> at_replay;

    std::uint64_t memory() const override { return host_memory ? host_memory : ForwardingDevice::memory(); }
    void upload(const Binding& to, std::span<const std::byte> bytes) override {
        if (uploads_fail) throw DeviceError("an upload failed");
        ForwardingDevice::upload(to, bytes);
    }
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll,
                         const akunu::Meanwhile& meanwhile) override {
        if (copies_fail && !poll) throw DeviceError("a copy failed");
        if (at_replay && poll) std::exchange(at_replay, nullptr)();
        return ForwardingDevice::replay(chain, control, poll, meanwhile);
    }
};

struct Opened {
    std::shared_ptr<Faulty> device = std::make_shared<Faulty>();
    Engine engine;
    explicit Opened(const SyntheticModel& m, std::uint32_t parallel = 2)
        : engine(device, m.config, m.source(), {.context = kContext, .chunk = 32, .parallel = parallel}, {}) {}

    // The prompt, then n tokens.
    Ids generate(std::uint32_t slot, const Ids& prompt, std::uint32_t n, bool reuse) {
        engine.begin(slot, prompt, {}, reuse);
        return go_on(slot, n);
    }
    Ids go_on(std::uint32_t slot, std::uint32_t n) {
        Ids ids;
        for (int step = 0; ids.size() < n; ++step) {
            const Sequence& s = engine.sequence(slot);
            const std::uint32_t left = s.known - s.length, rows = std::min(left, 32u);
            const Part part{slot, rows, rows == left, 1, {}};
            engine.take_pages(part, 1);
            const Ids drawn = engine.step({&part, 1}, 1, {})[0].ids;
            ids.insert(ids.end(), drawn.begin(), drawn.end());
            check(step < 1000, "it goes on");
        }
        return ids;
    }
};

Ids prompt_of(std::uint32_t n, std::uint32_t seed = 5) {
    Ids ids(n);
    for (std::uint32_t i = 0; i < n; ++i) ids[i] = (i * 37 + seed) % 301;
    return ids;
}

// A state that could not be copied is no checkpoint: the next sequence that begins so does not start from another's.
void checkpoints() {
    const SyntheticModel m = synthetic_hybrid(DType::Q8_0);
    const Ids prompt = prompt_of(70);
    Ids expected;
    {
        Opened alone(m);
        expected = alone.generate(alone.engine.take_slot(), prompt, 5, false);
    }
    Opened e(m);
    const std::uint32_t slot = e.engine.take_slot(), other = e.engine.take_slot();
    // Records that are of other sequences' states.
    for (std::uint32_t seed = 100; seed < 110; ++seed) e.generate(other, prompt_of(65, seed), 1, true);
    e.engine.begin(slot, prompt, {}, true);
    e.device->copies_fail = true;
    check_throws<DeviceError>([&] { e.go_on(slot, 1); }, "a checkpoint of the prompt cannot be kept");
    e.engine.close(slot);  // whose pages stay, without a state
    e.device->copies_fail = false;
    const std::uint32_t again = e.engine.take_slot();
    check(e.generate(again, prompt, 5, true) == expected, "the next sequence has its own state");
    // A sequence that cannot be given its state can be begun anew, and ended.
    e.engine.close(again);
    e.device->copies_fail = true;
    const std::uint32_t third = e.engine.take_slot();
    check_throws<DeviceError>([&] { e.engine.begin(third, prompt, {}, true); }, "a state cannot be copied");
    const Part part{third, 1, false, 0, {}};
    check_throws<InvalidArgumentError>([&] { e.engine.step({&part, 1}, 1, {}); }, "it has no state");
    e.device->copies_fail = false;
    check(e.generate(third, prompt, 5, true) == expected, "begun anew");
    // Nor is a slot lost with a fork that fails.
    e.device->copies_fail = true;
    e.engine.close(other);
    check_throws<DeviceError>([&] { e.engine.fork(third); }, "a fork's state cannot be copied");
    e.device->copies_fail = false;
    const std::uint32_t forked = e.engine.fork(third);
    check(e.go_on(forked, 3) == e.go_on(third, 3), "a fork goes on as its sequence");
    e.engine.close(third);
    e.engine.close(forked);
    check(e.engine.cache().use().held == 0, "every page is back");
}

void pages() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    const Ids prompt = prompt_of(75);
    Opened from(m), e(m);
    const std::uint32_t source = from.engine.take_slot();
    const Ids expected = from.generate(source, prompt, 5, false);
    const auto second = from.engine.cache().read_page(std::span(prompt).first(64));
    check(second.has_value(), "there");
    const auto parts = views(*second);

    // A page that cannot be uploaded leaves the sequence what the cache holds of it: a part of that page.
    const std::uint32_t slot = e.engine.take_slot(), other = e.engine.take_slot();
    Ids alike = prompt_of(40);
    alike.push_back(9);
    e.generate(other, alike, 1, false);
    e.engine.close(other);
    check(e.engine.begin(slot, prompt, {}, true) == 40, "a page and a part of one");
    const std::uint32_t held = e.engine.cache().use().held;
    e.device->uploads_fail = true;
    check_throws<DeviceError>([&] { e.engine.cache().restore_page(slot, parts); }, "an upload fails");
    e.device->uploads_fail = false;
    check(e.engine.sequence(slot).length == 40 && e.engine.cache().use().held == held, "all is as before");
    check(e.go_on(slot, 5) == expected, "and goes on");
    // A page that is another sequence's too, and cannot be copied.
    const std::uint32_t forked = e.engine.fork(slot);
    const std::uint32_t before = e.engine.cache().use().held;
    e.device->copies_fail = true;
    check_throws<DeviceError>([&] { e.go_on(forked, 1); }, "a page cannot be copied");
    e.device->copies_fail = false;
    check(e.engine.cache().use().held == before, "no page is lost");
    check(e.go_on(forked, 3) == e.go_on(slot, 3), "both go on");
    e.engine.close(slot);
    e.engine.close(forked);
    check(e.engine.cache().use().held == 0, "every page is back");
}

// A step checks what `reserve` does, whatever was reserved.
void steps() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Opened e(m);
    const std::uint32_t slot = e.engine.take_slot(), next = e.engine.take_slot();
    const Ids prompt = prompt_of(kContext), neighbour = prompt_of(40, 11);
    Ids expected;
    {
        Opened alone(m);
        expected = alone.generate(alone.engine.take_slot(), neighbour, 5, false);
    }
    e.engine.begin(next, neighbour, {}, false);
    e.engine.begin(slot, prompt, {}, false);
    const Part fill{slot, kContext - 1, false, 0, {}};
    for (std::uint32_t done = 0; done < kContext - 1;) {
        const Part some{slot, std::min(32u, kContext - 1 - done), false, 0, {}};
        e.engine.take_pages(some, 1);
        e.engine.step({&some, 1}, 1, {});
        done += some.rows;
    }
    const Part last{slot, 1, true, 1, {}};
    e.engine.take_pages(last, 1);
    const Part drafts{slot, 1, true, 5, {1, 2, 3, 4}};
    check_throws<ContextLengthError>([&] { e.engine.step({&drafts, 1}, 1, {}); }, "drafts beyond the context");
    check_throws<ContextLengthError>([&] { e.engine.step({&last, 1}, 2, {}); }, "a chain beyond the context");
    const Part unseen{slot, 1, false, 5, {1, 2}};
    check_throws<InvalidArgumentError>([&] { e.engine.step({&unseen, 1}, 1, {}); }, "drafts that nobody verifies");
    check_throws<InvalidArgumentError>([&] { e.engine.step({&fill, 1}, 1, {}); }, "more rows than are known");
    check_throws<InvalidArgumentError>([&] { e.engine.step({&last, 1}, 0, {}); }, "no step");
    check(e.go_on(next, 5) == expected, "the neighbour has its own tokens");
    // A page that others can find is copied by `reserve` before it is written.
    e.engine.close(slot);
    const std::uint32_t forked = e.engine.fork(next);
    const Part shared{forked, 1, true, 1, {}};
    check_throws<InvalidArgumentError>([&] { e.engine.step({&shared, 1}, 1, {}); }, "a page of two sequences");
    check(e.go_on(forked, 3) == e.go_on(next, 3), "as its sequence");
}

// A request to end the chain holds for the step that was planned before it and begins after it.
void yields() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Opened e(m);
    const std::uint32_t slot = e.engine.take_slot();
    e.generate(slot, prompt_of(10), 1, false);
    const Part part{slot, 1, true, 4, {}};
    e.engine.take_pages(part, 4);
    e.engine.yield();
    check(e.engine.step({&part, 1}, 4, {})[0].ids.size() == 1, "it ends after its step");
    e.engine.take_pages(part, 4);
    check(e.engine.step({&part, 1}, 4, {})[0].ids.size() == 4, "the next one does not");
    e.device->at_replay = [&] { e.engine.yield(); };
    e.engine.take_pages(part, 4);
    check(e.engine.step({&part, 1}, 4, {})[0].ids.size() == 1, "nor is one lost that comes as it begins");
}

// Forks have their sequence's identity, and sequences of another find nothing of theirs.
void identities() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Opened e(m, 8);
    const Ids prompt = prompt_of(70);
    const std::vector<std::uint64_t> picture{9};
    const Prefix sequences[] = {prompt, {prompt, 1}, {prompt, 2}, {prompt, 1, picture}};
    for (const Prefix& sequence : sequences) {
        const std::uint32_t slot = e.engine.take_slot();
        check(e.engine.begin(slot, sequence, {}, true) == 0, "no sequence of another identity is found");
        e.go_on(slot, 2);
        const std::uint32_t forked = e.engine.fork(slot);
        e.go_on(slot, 3);
        e.engine.close(slot);
        e.go_on(forked, 20);
        e.engine.close(forked);
    }
    for (const Prefix& sequence : sequences) {
        const std::uint32_t slot = e.engine.take_slot();
        check(e.engine.begin(slot, sequence, {}, true) == 69, "each finds its own");
        e.engine.close(slot);
    }
    const std::vector<std::uint64_t> many(prompt.size() + 1, 1);
    const std::uint32_t slot = e.engine.take_slot();
    check_throws<InvalidArgumentError>([&] { e.engine.begin(slot, {prompt, 1, many}, {}, true); }, "more contents");
}

// Where nobody says how much memory pages have, they and the weights fit the device's.
void sizes() {
    const SyntheticModel m = synthetic_model(DType::F16);
    const auto device = std::make_shared<Faulty>();
    const auto kv = [&](std::uint64_t memory) {
        device->host_memory = memory;
        return Engine(device, m.config, m.source(), {.context = kContext, .chunk = 32, .parallel = 256}, {})
            .memory()
            .kv_cache;
    };
    const std::uint64_t mib = std::uint64_t{1} << 20, all = kv(0);
    check(all > 24 * mib && kv(1024 * mib) == all, "a context of each sequence");
    check(kv(16 * mib) <= 8 * mib && kv(16 * mib) > 7 * mib, "half of the memory");
    const Engine whole(device, m.config, m.source(), {.context = kContext, .chunk = 32, .parallel = 256}, {});
    const std::uint64_t weights = whole.memory().weights;
    check(weights > mib && kv(weights + mib) <= mib, "what the weights leave");
}

}  // namespace

int main() {
    checkpoints();
    pages();
    steps();
    yields();
    identities();
    sizes();
    return 0;
}
