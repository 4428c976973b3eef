// The whole engine on small random models, for sanitizer builds: every weight type and every compiled instruction set
// through prefill, batches, decode chains, sampling, truncation, cancelling, limits and refusals.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "check.h"
#include "core/error.h"
#include "core/recode.h"
#include "cpu/cpu_device.h"
#include "engine/engine.h"
#include "engine/inspector.h"
#include "forwarding_device.h"
#include "one_sequence.h"
#include "page_parts.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kContext = 96;

struct Opened {
    Engine engine;
    OneSequence sequence;
    Opened(const SyntheticModel& m, int threads, std::uint32_t chunk = 32, DType kv = DType::F16, bool apart = false)
        : engine(std::make_unique<cpu::CpuDevice>(threads), m.config, m.source(),
                 {.context = kContext, .chunk = chunk, .kv_types = {kv, kv}, .activations_apart = apart}, {}),
          sequence(engine) {}
};

// The prompt and then up to n tokens, in chains of `chain`.
Ids generate(Opened& e, const Ids& prompt, std::uint32_t n, std::uint32_t chain, const SamplerSettings& s,
             bool reuse = true) {
    e.sequence.begin(prompt, s, reuse);
    Produced out = e.sequence.prefill();
    Ids ids = out.ids;
    while (ids.size() < n && !out.ended) {
        out = e.sequence.decode(std::min(chain, n - static_cast<std::uint32_t>(ids.size())));
        if (out.ids.empty()) break;
        ids.insert(ids.end(), out.ids.begin(), out.ids.end());
    }
    return ids;
}

void check_tokens(const Opened& e, Ids expected, const Ids& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
    if (!ids.empty()) expected.pop_back();  // it has not been input
    const auto held = e.sequence.tokens();
    check(Ids(held.begin(), held.end()) == expected, "the cache holds what was seen");
}

Ids prompt_of(std::uint32_t n, std::uint32_t vocab) {
    Ids ids(n);
    for (std::uint32_t i = 0; i < n; ++i) ids[i] = (i * 37 + 5) % vocab;
    return ids;
}

std::vector<SamplerSettings> samplers() {
    const auto make = [](float temperature, std::uint32_t top_k, float top_p, float min_p, float typical_p) {
        SamplerSettings s;
        s.state.temperature = temperature;
        s.state.top_k = top_k;
        s.state.top_p = top_p;
        s.state.min_p = min_p;
        s.state.typical_p = typical_p;
        s.state.seed_lo = 1234;
        return s;
    };
    std::vector<SamplerSettings> all{make(0, 0, 1, 0, 1),
                                     make(1, 0, 1, 0, 1),
                                     make(0.7f, 40, 0.9f, 0.05f, 1),
                                     make(1, 0, 0.8f, 0, 0.9f),
                                     make(1e-30f, 1000, 0.5f, 1, 0.5f),
                                     make(1e30f, 0, 0.999999f, 1e-30f, 0.999999f)};
    for (SamplerSettings& s : all) {
        s.state.want_logprobs = 1;
        s.state.n_logprobs = kMaxLogprobs;
    }
    SamplerSettings penalties = all[2];
    penalties.state.repeat_penalty = 1.3f;
    penalties.state.presence_penalty = 0.2f;
    penalties.state.frequency_penalty = 0.1f;
    penalties.state.penalty_window = 0xFFFFFFFFu;
    penalties.bias = {{3, -std::numeric_limits<float>::infinity()}, {300, 2.0f}};
    all.push_back(penalties);
    return all;
}

// Whether weights of another type are recoded to this one, which no file has where it is not planar.
bool made_at_load(DType dtype) {
    return std::ranges::any_of(kDTypes,
                               [&](const DTypeInfo& t) { return t.id != dtype && recoded_type(t.id) == dtype; });
}

// Everything that one model does, in every phase.
void exercise(DType dtype, DType kv) {
    const SyntheticModel m = synthetic_model(dtype);
    Opened e(m, 2, 32, kv), other(m, 1, 7, kv);
    const SamplerSettings greedy;
    // 34 = a prefill of 32 rows and a batch of 2; the other engine runs 7 rows at a time.
    for (const std::uint32_t length : {1u, 10u, 34u}) {
        const Ids prompt = prompt_of(length, m.config.vocab_size);
        const Ids ids = generate(e, prompt, 5, 4, greedy, false);
        check(ids.size() == 5, "5 tokens");
        check_tokens(e, prompt, ids);
        check(generate(other, prompt, 5, 1, greedy, false) == ids, "phases, chains and threads agree");
    }
    std::size_t rows = 0;
    e.engine.for_each_logits(prompt_of(5, m.config.vocab_size), {}, {}, [&](std::size_t, std::span<const float> row) {
        ++rows;
        for (const float v : row) check(std::isfinite(v), "logits are finite");
    });
    check(rows == 5, "logits of every row");
}

void sample() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Opened e(m, 2), other(m, 3, 5);
    const Ids prompt = prompt_of(20, m.config.vocab_size);
    for (SamplerSettings s : samplers()) {
        const Ids ids = generate(e, prompt, 12, 8, s);
        check(ids.size() == 12 && generate(other, prompt, 12, 1, s) == ids, "same seed, same tokens");
        s.state.end_ids[0] = ids[10];
        s.state.n_end_ids = 1;
        const Ids ended = generate(e, prompt, 12, 64, s);
        check(!ended.empty() && ended.size() <= 11 && ended.back() == ids[10], "an end token ends the chain");
        check_tokens(e, prompt, ended);
    }
    for (const std::uint32_t vocab : {1u, 2u, 5u, 17u}) {  // fewer tokens than log-probabilities
        Opened small(synthetic_model(DType::F32, vocab), 2);
        for (SamplerSettings s : samplers()) {
            s.bias.clear();
            check(generate(small, {0}, 20, 8, s).size() == 20, "a tiny vocabulary");
        }
    }
}

void stop() {
    const SyntheticModel m = synthetic_model(DType::Q4_0);
    Opened e(m, 2);
    const Ids prompt = prompt_of(70, m.config.vocab_size);
    const SamplerSettings s = samplers()[2];
    const Ids all = generate(e, prompt, 1000, 13, s);
    check(all.size() == kContext - prompt.size() + 1 && e.sequence.position() == kContext,
          "up to the end of the context");
    e.sequence.truncate(75);
    Ids longer = prompt;
    longer.insert(longer.end(), all.begin(), all.begin() + 8);
    check(e.sequence.begin(longer, s, true) >= 75, "the prefix is cached");
    const Ids rest = generate(e, longer, 1000, 7, s);
    check(Ids(all.begin() + 8, all.end()) == rest, "continued = fresh");
    e.sequence.truncate(0);

    // Cancelled from another thread, at any moment.
    for (int round = 0; round < 12; ++round) {
        Ids ids = generate(e, prompt, 1, 1, s);
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2 * round));
            e.engine.cancel();
        });
        for (Produced out; (out = e.sequence.decode(16)).ids.size() == 16;) {
            ids.insert(ids.end(), out.ids.begin(), out.ids.end());
        }
        canceller.join();
        const auto held = e.sequence.tokens();
        check(std::equal(prompt.begin(), prompt.end(), held.begin()), "a cancelled cache still begins as it did");
        check(std::equal(ids.begin(), ids.end() - 1, held.begin() + static_cast<std::ptrdiff_t>(prompt.size())),
              "and holds what was seen");
    }
}

// Sequences that run together, in chunks of any size and drafts that hold or not, are those that run alone; all pages
// return.
void together(const SyntheticModel& m) {
    std::vector<SamplerSettings> settings = samplers();
    std::vector<Ids> prompts, expected;
    {
        Opened alone(m, 1);
        for (std::size_t i = 0; i < settings.size(); ++i) {
            prompts.push_back(prompt_of(3 + 11 * static_cast<std::uint32_t>(i), m.config.vocab_size));
            expected.push_back(generate(alone, prompts[i], 20, 20, settings[i], false));
        }
    }
    Engine e(std::make_unique<cpu::CpuDevice>(2), m.config, m.source(),
             {.context = kContext, .chunk = 32, .parallel = 8}, {});
    std::uint64_t random = 1;
    const auto below = [&](std::uint64_t n) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<std::uint32_t>((random >> 33) % n);
    };
    for (int round = 0; round < 4; ++round) {
        std::vector<std::uint32_t> slots;
        std::vector<Ids> sequences(prompts.size());
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            slots.push_back(e.open().value());
            e.begin(slots[i], prompts[i], settings[i], round % 2 != 0);
        }
        for (std::size_t done = 0; done < sequences.size();) {
            std::vector<Part> parts;
            std::vector<std::size_t> who;
            const std::uint32_t steps = below(3) == 0 ? 1 + below(4) : 1;
            std::uint32_t rows = 0;
            done = 0;
            for (std::size_t i = 0; i < sequences.size(); ++i) {
                const Sequence& s = e.sequence(slots[i]);
                const auto want = static_cast<std::uint32_t>(expected[i].size() - sequences[i].size());
                if (want == 0) ++done;
                if (want == 0 || below(3) == 0) continue;
                const std::uint32_t left = s.known - s.length, most = steps > 1 ? 1 : 12;
                if (steps > 1 && left != 1) continue;
                Part part{slots[i], std::min(left, 1 + below(most)), false, want, {}};
                part.sample = part.rows == left;
                if (part.sample && steps == 1) {
                    for (std::uint32_t d = below(4); d > 0 && part.drafts.size() + 1 < want; --d) {
                        const std::uint32_t right = expected[i][sequences[i].size() + part.drafts.size()];
                        part.drafts.push_back(below(4) ? right : below(m.config.vocab_size));
                    }
                }
                const auto n = static_cast<std::uint32_t>(part.rows + part.drafts.size());
                if (rows + n > 32 || (steps > 1 && s.length + steps > kContext)) continue;
                rows += n;
                check(e.reserve(part, steps), "pages for all");
                parts.push_back(part);
                who.push_back(i);
            }
            const std::vector<Produced> produced = e.step(parts, steps, {});
            for (std::size_t p = 0; p < parts.size(); ++p) {
                Ids& sequence = sequences[who[p]];
                sequence.insert(sequence.end(), produced[p].ids.begin(), produced[p].ids.end());
                check(produced[p].logprobs.size() == produced[p].ids.size(), "a record for every token");
                check(sequence.size() <= expected[who[p]].size() &&
                          std::equal(sequence.begin(), sequence.end(), expected[who[p]].begin()),
                      "together as alone");
            }
        }
        for (const std::uint32_t slot : slots) e.close(slot);
        check(e.cache().use().held == 0, "every page is back");
    }
    e.cache().forget();
    check(e.cache().use().cached == 0 && e.cache().use().checkpoints == 0, "and forgotten");
}

// A CPU that can be cancelled in the middle of a step.
class Interrupted final : public ForwardingDevice {
  public:
    std::function<void()> cancel;  // the next replay is cancelled, by this, after so many commands
    std::uint32_t commands = 0;

    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll,
                         const akunu::Meanwhile& meanwhile) override {
        if (!cancel || !poll) return ForwardingDevice::replay(chain, control, poll, meanwhile);
        ForwardingDevice::replay({.segments = chain.segments, .commands = commands}, control, {}, {});
        std::exchange(cancel, nullptr)();
        check(poll(), "it is to stop");
        return 0;
    }
};

// A sequence whose states some layers have advanced when a step was cancelled, others not, goes on as if it had not
// been.
void interrupted() {
    const SyntheticModel m = synthetic_hybrid(DType::Q8_0);
    const Ids prompt = prompt_of(70, m.config.vocab_size);
    const SamplerSettings s = samplers()[2];
    Opened alone(m, 2);
    const Ids expected = generate(alone, prompt, 20, 5, s, false);
    auto device = std::make_shared<Interrupted>();
    Engine e(device, m.config, m.source(), {.context = kContext, .chunk = 32}, {});
    const std::uint32_t slot = e.open().value();
    for (std::uint32_t commands = 0; commands < 24; commands += 3) {
        e.begin(slot, prompt, s, false);
        Ids ids;
        for (int step = 0; ids.size() < expected.size(); ++step) {
            const Sequence& sequence = e.sequence(slot);
            const std::uint32_t left = sequence.known - sequence.length, rows = std::min(left, 20u);
            const auto want = static_cast<std::uint32_t>(expected.size() - ids.size());
            const std::uint32_t steps = left == 1 ? std::min(want, 4u) : 1;
            const Part part{slot, rows, rows == left, want, {}};
            check(e.reserve(part, steps), "there is room");
            if (step % 3 == 2 && step < 24) {
                device->commands = commands;
                device->cancel = [&] { e.cancel(); };
            }
            const Produced out = e.step({&part, 1}, steps, {})[0];
            ids.insert(ids.end(), out.ids.begin(), out.ids.end());
            check(sequence.length <= prompt.size() + ids.size(), "it holds what was seen, or less");
        }
        check(ids == expected, "and goes on as it would have");
    }
}

// Pages that one engine read go on in another; what a step's prefix runs changes no sequence.
void keep() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Opened from(m, 2), to(m, 1, 32, DType::F16, true), alone(m, 1);
    const SamplerSettings s = samplers()[2];
    const Ids prompt = prompt_of(75, m.config.vocab_size);
    const Ids expected = generate(alone, prompt, 12, 5, s, false);
    generate(from, prompt, 1, 1, s);
    const std::span ids(prompt);
    const auto first = from.engine.cache().read_page(ids.first(32)),
               second = from.engine.cache().read_page(ids.first(64));
    check(first && second, "both are there");
    check(!to.engine.cache().read_page(ids.first(32)), "not in another engine");
    const auto one = views(*first), two = views(*second);
    auto little = one;
    little[0] = one[0]->first(9);

    const std::uint32_t slot = to.engine.open().value();
    check(to.engine.begin(slot, prompt, s, true) == 0, "nothing is cached");
    check(to.engine.cache().restore_page(slot, one) && to.engine.cache().restore_page(slot, two), "there is room");
    check(to.engine.cache().finish_restoring(slot) == 64, "nothing is lacking");
    check(to.engine.sequence(slot).length == 64, "two pages");
    check_throws<InvalidArgumentError>([&] { to.engine.cache().restore_page(slot, one); },
                                       "the last token is to be run");
    check_throws<InvalidArgumentError>([&] { to.engine.cache().restore_page(slot, little); }, "a part");
    check_throws<InvalidArgumentError>([&] { from.engine.cache().read_page(ids.first(33)); }, "no page's end");
    from.sequence.begin(prompt_of(2, m.config.vocab_size), s, false);  // which holds no page yet
    check(from.engine.cache().pin(ids.first(64)) && from.engine.cache().pin(ids.first(32)), "pinned");
    check(from.engine.cache().use().pinned == 2 && from.engine.cache().use().held == 2, "two pages, by nobody else");
    from.engine.cache().forget();
    check(from.engine.cache().read_page(ids.first(64)).has_value(), "they stay");
    from.engine.cache().unpin(ids.first(64));
    check_throws<InvalidArgumentError>([&] { from.engine.cache().unpin(ids.first(64)); }, "the second is not");
    check(!from.engine.cache().pin(ids.subspan(1, 32)), "no sequence's beginning");
    from.engine.cache().unpin(ids.first(32));
    from.engine.cache().forget();
    check(!from.engine.cache().read_page(ids.first(32)), "they went");
    const std::uint32_t commands = 5;
    check(!Inspector(to.engine).run_prefix(slot, commands).empty(), "a command wrote something");
    check_throws<InvalidArgumentError>([&] { Inspector(to.engine).run_prefix(slot, 0); }, "no command");
    to.engine.close(slot);
    check(to.sequence.begin(prompt, s, true) == 64, "others find them");
    check(generate(to, prompt, 12, 3, s) == expected, "the same tokens");
}

void refuse() {
    SyntheticModel m = synthetic_model(DType::F16);
    Opened e(m, 2);
    const SamplerSettings s;
    check_throws<InvalidArgumentError>([&] { e.sequence.begin({}, s, true); }, "an empty prompt");
    check_throws<InvalidArgumentError>([&] { e.sequence.begin(Ids{301}, s, true); }, "an id beyond the vocabulary");
    check_throws<ContextLengthError>([&] { e.sequence.begin(Ids(kContext + 1, 1), s, true); },
                                     "a prompt beyond the context");
    check_throws<InvalidArgumentError>([&] { e.sequence.decode(1); }, "decode without a token");
    check_throws<InvalidArgumentError>([&] { e.sequence.truncate(1); }, "truncate beyond the cache");
    check_throws<InvalidArgumentError>([&] { Inspector(e.engine).profile({Phase::kDecode, 1, kContext}); },
                                       "profile beyond the context");
    Inspector(e.engine).profile({Phase::kDecode, 1, kContext - 1});

    m.shapes["layers.1.ffn_up"].rows = 255;
    check_throws<ModelFileError>([&] { Opened(m, 2); }, "a matrix of another shape");
    m.shapes.erase("layers.0.attn_norm");
    check_throws<ModelFileError>([&] { Opened(m, 2); }, "a missing norm");
    check_throws<InvalidArgumentError>([&] { cpu::CpuDevice(-1); }, "a negative number of threads");
    check_throws<UnsupportedError>([&] { Opened(synthetic_model(DType::F16), 2, 32, DType::Q5_0); }, "a KV type");
}

}  // namespace

int main() {
    for (const cpu::KernelSet* set : cpu::kernel_sets()) {
        if (!set->supported()) {
            std::printf("%s: this processor does not have it\n", std::string(set->isa).c_str());
            continue;
        }
        setenv("AKUNU_CPU_ISA", std::string(set->isa).c_str(), 1);
        for (const DTypeInfo& type : kDTypes) {
            // Affine types differ by data; one for each number of bits will do.
            const auto affine = affine_type(type.id);
            if (!type.is_weight || (affine && (affine->group != 64 || affine->scales != DType::BF16))) continue;
            if (!type.planar() && made_at_load(type.id)) continue;
            exercise(type.id, type.id == DType::F16 ? DType::F32 : DType::F16);
        }
        sample();
        stop();
        together(synthetic_model(DType::Q8_0));
        together(synthetic_hybrid(DType::Q8_0));
        interrupted();
        keep();
        refuse();
        std::printf("%s: passed\n", std::string(set->isa).c_str());
    }
    return 0;
}
