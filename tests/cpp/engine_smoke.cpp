// The whole engine on small random models, for sanitizer builds: every weight type and every compiled instruction set
// through prefill, batches, decode chains, sampling, truncation, cancelling, limits and refusals.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "check.h"
#include "core/error.h"
#include "cpu/cpu_device.h"
#include "engine/engine.h"
#include "synthetic_model.h"

namespace {

using namespace akunu;
using namespace akunu::test;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kContext = 96;

Engine open(const SyntheticModel& m, int threads, std::uint32_t chunk = 32, DType kv = DType::F16) {
    return {std::make_unique<cpu::CpuDevice>(threads), m.config, m.source(), {kContext, chunk, kv}, {}};
}

// The prompt and then up to n tokens, in chains of `chain`.
Ids generate(Engine& e, const Ids& prompt, std::uint32_t n, std::uint32_t chain, const SamplerState& s,
             bool reuse = true) {
    e.begin(prompt, s, reuse);
    Chunk out;
    while (e.prefill(true, out, {}) != 0) {
    }
    Ids ids = out.ids;
    while (ids.size() < n && !out.ended) {
        out = e.decode(std::min(chain, n - static_cast<std::uint32_t>(ids.size())), {});
        if (out.ids.empty()) break;
        ids.insert(ids.end(), out.ids.begin(), out.ids.end());
    }
    return ids;
}

void check_tokens(const Engine& e, Ids expected, const Ids& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
    if (!ids.empty()) expected.pop_back();  // it has not been input
    const auto held = e.history();
    check(Ids(held.begin(), held.end()) == expected, "the cache holds what was seen");
}

Ids prompt_of(std::uint32_t n, std::uint32_t vocab) {
    Ids ids(n);
    for (std::uint32_t i = 0; i < n; ++i) ids[i] = (i * 37 + 5) % vocab;
    return ids;
}

std::vector<SamplerState> samplers() {
    const auto make = [](float temperature, std::uint32_t top_k, float top_p, float min_p, float typical_p) {
        SamplerState s;
        s.temperature = temperature;
        s.top_k = top_k;
        s.top_p = top_p;
        s.min_p = min_p;
        s.typical_p = typical_p;
        s.seed_lo = 1234;
        return s;
    };
    std::vector<SamplerState> all{make(0, 0, 1, 0, 1),
                                  make(1, 0, 1, 0, 1),
                                  make(0.7f, 40, 0.9f, 0.05f, 1),
                                  make(1, 0, 0.8f, 0, 0.9f),
                                  make(1e-30f, 1000, 0.5f, 1, 0.5f),
                                  make(1e30f, 0, 0.999999f, 1e-30f, 0.999999f)};
    for (SamplerState& s : all) {
        s.want_logprobs = 1;
        s.n_logprobs = kMaxLogprobs;
    }
    SamplerState penalties = all[2];
    penalties.repeat_penalty = 1.3f;
    penalties.presence_penalty = 0.2f;
    penalties.frequency_penalty = 0.1f;
    penalties.penalty_window = 0xFFFFFFFFu;
    penalties.bias[0] = {3, -std::numeric_limits<float>::infinity()};
    penalties.bias[1] = {300, 2.0f};
    penalties.n_bias = 2;
    all.push_back(penalties);
    return all;
}

// Everything that one model does, in every phase.
void exercise(DType dtype, DType kv) {
    const SyntheticModel m = synthetic_model(dtype);
    Engine e = open(m, 2, 32, kv), other = open(m, 1, 7, kv);
    const SamplerState greedy;
    // 34 = a prefill of 32 rows and a batch of 2; the other engine runs 7 rows at a time.
    for (const std::uint32_t length : {1u, 10u, 34u}) {
        const Ids prompt = prompt_of(length, m.config.vocab_size);
        const Ids ids = generate(e, prompt, 5, 4, greedy, false);
        check(ids.size() == 5, "5 tokens");
        check_tokens(e, prompt, ids);
        check(generate(other, prompt, 5, 1, greedy, false) == ids, "phases, chains and threads agree");
    }
    std::size_t rows = 0;
    e.for_each_logits(prompt_of(5, m.config.vocab_size), {}, [&](std::size_t, std::span<const float> row) {
        ++rows;
        for (const float v : row) check(std::isfinite(v), "logits are finite");
    });
    check(rows == 5, "logits of every row");
}

void sample() {
    const SyntheticModel m = synthetic_model(DType::Q8_0);
    Engine e = open(m, 2), other = open(m, 3, 5);
    const Ids prompt = prompt_of(20, m.config.vocab_size);
    for (SamplerState s : samplers()) {
        const Ids ids = generate(e, prompt, 12, 8, s);
        check(ids.size() == 12 && generate(other, prompt, 12, 1, s) == ids, "same seed, same text");
        s.end_ids[0] = ids[10];
        s.n_end_ids = 1;
        const Ids ended = generate(e, prompt, 12, 64, s);
        check(!ended.empty() && ended.size() <= 11 && ended.back() == ids[10], "an end token ends the chain");
        check_tokens(e, prompt, ended);
    }
    for (const std::uint32_t vocab : {1u, 2u, 5u, 17u}) {  // fewer tokens than log-probabilities
        Engine small = open(synthetic_model(DType::F32, vocab), 2);
        for (SamplerState s : samplers()) {
            s.n_bias = 0;
            check(generate(small, {0}, 20, 8, s).size() == 20, "a tiny vocabulary");
        }
    }
}

void stop() {
    const SyntheticModel m = synthetic_model(DType::Q4_0);
    Engine e = open(m, 2);
    const Ids prompt = prompt_of(70, m.config.vocab_size);
    const SamplerState s = samplers()[2];
    const Ids all = generate(e, prompt, 1000, 13, s);
    check(all.size() == kContext - prompt.size() + 1 && e.position() == kContext, "up to the end of the context");
    e.truncate(75);
    Ids longer = prompt;
    longer.insert(longer.end(), all.begin(), all.begin() + 8);
    check(e.begin(longer, s, true) == 75, "the prefix is cached");
    const Ids rest = generate(e, longer, 1000, 7, s);
    check(Ids(all.begin() + 8, all.end()) == rest, "continued = fresh");
    e.truncate(0);

    // Cancelled from another thread, at any moment.
    for (int round = 0; round < 12; ++round) {
        Ids ids = generate(e, prompt, 1, 1, s);
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2 * round));
            e.cancel();
        });
        for (Chunk out; (out = e.decode(16, {})).ids.size() == 16;) {
            ids.insert(ids.end(), out.ids.begin(), out.ids.end());
        }
        canceller.join();
        const auto held = e.history();
        check(std::equal(prompt.begin(), prompt.end(), held.begin()), "a cancelled cache still begins as it did");
        check(std::equal(ids.begin(), ids.end() - 1, held.begin() + static_cast<std::ptrdiff_t>(prompt.size())),
              "and holds what was seen");
    }
    int polls = 0;
    generate(e, prompt, 1, 1, s);
    const Chunk none = e.decode(16, [&] { return ++polls > 0; });
    check(none.ids.empty() && polls == 1, "a poll stops a chain");
}

void refuse() {
    SyntheticModel m = synthetic_model(DType::F16);
    Engine e = open(m, 2);
    const SamplerState s;
    Chunk out;
    check_throws<InvalidArgumentError>([&] { e.begin({}, s, true); }, "an empty prompt");
    check_throws<InvalidArgumentError>([&] { e.begin(Ids{301}, s, true); }, "an id beyond the vocabulary");
    check_throws<ContextLengthError>([&] { e.begin(Ids(kContext + 1, 1), s, true); }, "a prompt beyond the context");
    check_throws<InvalidArgumentError>([&] { e.prefill(true, out, {}); }, "prefill without a prompt");
    check_throws<InvalidArgumentError>([&] { e.decode(1, {}); }, "decode without a token");
    check_throws<InvalidArgumentError>([&] { e.truncate(1); }, "truncate beyond the cache");
    check_throws<InvalidArgumentError>([&] { e.profile({}, {kContext, 1, 1}); }, "profile beyond the context");
    e.profile({}, {kContext - 1, 1, 1});

    m.shapes["layers.1.ffn_up"].rows = 255;
    check_throws<ModelFileError>([&] { open(m, 2); }, "a matrix of another shape");
    m.shapes.erase("layers.0.attn_norm");
    check_throws<ModelFileError>([&] { open(m, 2); }, "a missing norm");
    check_throws<InvalidArgumentError>([&] { cpu::CpuDevice(-1); }, "a negative number of threads");
    check_throws<UnsupportedError>([&] { open(synthetic_model(DType::F16), 2, 32, DType::Q4_0); }, "a KV type");
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
            if (type.is_weight) exercise(type.id, type.id == DType::F16 ? DType::F32 : DType::F16);
        }
        sample();
        stop();
        refuse();
        std::printf("%s: passed\n", std::string(set->isa).c_str());
    }
    return 0;
}
