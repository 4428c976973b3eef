// The sampling kernels of every compiled instruction set, on buffers of exactly their size, for sanitizer builds. What
// the sampler must draw is tested in tests/sampling; here a few draws whose result is known, and every path in bounds.
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "check.h"
#include "core/params.h"
#include "core/sampling.h"
#include "cpu/cpu_device.h"

namespace {

using namespace akunu;
using namespace akunu::test;

// Random123's kat_vectors, "philox4x32 10".
using Words = std::array<std::uint32_t, 4>;
static_assert(philox4x32({0, 0, 0, 0}, 0, 0) == Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
static_assert(philox4x32({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFF, 0xFFFFFFFF) ==
              Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
static_assert(philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, 0xA4093822, 0x299F31D0) ==
              Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});

constexpr std::uint32_t kPosition = 6;  // of the token to be drawn, the last of the history

template <typename T>
Binding bind(std::vector<T>& v) {
    auto* at = reinterpret_cast<std::byte*>(v.data());
    return {{v.data(), at, at, v.size() * sizeof(T)}, 0};
}

// The buffers of one sampler, and its commands on them. Its slot is the second of two.
struct Sampler {
    static constexpr std::uint32_t kSlot = 1, kStride = kPosition + 1;
    cpu::CpuDevice& device;
    std::vector<float> logits, scaled;
    std::vector<std::uint32_t> history = std::vector<std::uint32_t>(2 * kStride);
    std::vector<SamplerState> state = std::vector<SamplerState>(2);
    std::vector<LogitBias> bias = std::vector<LogitBias>(2 * kMaxLogitBias);
    std::vector<std::uint32_t> mask, breakers, sampled = {0}, logit_rows = {1};
    std::vector<Row> rows = {{0, 0}, {kSlot, kPosition - 1}};
    std::vector<SlotState> slots = std::vector<SlotState>(2);
    std::vector<Control> control = std::vector<Control>(1);
    std::vector<LogprobRecord> record = std::vector<LogprobRecord>(1);

    Sampler(cpu::CpuDevice& d, std::uint32_t vocab)
        : device(d),
          logits(vocab),
          scaled(2 * std::size_t{vocab}),
          mask(2 * std::size_t{mask_words(vocab)}),
          breakers(2 * std::size_t{breaker_words(vocab)}) {
        for (std::uint32_t i = 0; i < kStride; ++i) history[kStride + i] = i % 3 % vocab;
    }
    void run(Op op, std::initializer_list<Binding> buffers) {
        DispatchCmd cmd;
        cmd.op = op;
        for (const Binding& b : buffers) cmd.buffers[cmd.n_buffers++] = b;
        cmd.set_params(
            SampleParams{.rows = 1, .step = 0, .vocab = static_cast<u32>(logits.size()), .history_stride = kStride});
        DispatchTable table;
        table.commands.push_back(cmd);
        table.labels.emplace_back();
        const auto program = device.compile(std::move(table));
        const Segment segment{program.get()};
        Control none;
        device.replay({.segments = {&segment, 1}}, none, {}, {});
        check(sampled[0] < logits.size(), "an id of the vocabulary");
    }
    std::uint32_t draw(const SamplerState& s) {
        state[kSlot] = s;
        slots[kSlot] = {};
        control[0] = {0, 1, 0};
        run(Op::kSamplePrepare, {bind(logits), bind(history), bind(state), bind(bias), bind(mask), bind(scaled),
                                 bind(rows), bind(logit_rows), bind(breakers)});
        run(Op::kSampleSelect, {bind(scaled), bind(state), bind(sampled), bind(rows), bind(logit_rows)});
        for (std::size_t i = logits.size(); i < scaled.size(); ++i) check(scaled[i] == 0, "the counts are zero again");
        run(Op::kAccept,
            {bind(sampled), bind(history), bind(state), bind(slots), bind(control), bind(rows), bind(logit_rows)});
        check(slots[kSlot].produced == 1 && history[kStride + kPosition] == sampled[0], "one token");
        return sampled[0];
    }
    std::uint32_t argmax() {
        run(Op::kArgmax, {bind(logits), bind(sampled)});
        return sampled[0];
    }
    const LogprobRecord& logprobs() {
        state[kSlot].want_logprobs = 1;
        state[kSlot].n_logprobs = kMaxLogprobs;
        run(Op::kLogprobs, {bind(logits), bind(sampled), bind(state), bind(record), bind(rows), bind(logit_rows)});
        return record[0];
    }
};

SamplerState settings(float temperature, std::uint32_t top_k = 0, float top_p = 1, float typical_p = 1,
                      float min_p = 0) {
    SamplerState s;
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.typical_p = typical_p;
    s.min_p = min_p;
    s.seed_lo = 0xA4093822;
    s.seed_hi = 0x299F31D0;
    return s;
}

// The token with the smallest word: the draw where all tokens are equal.
std::uint32_t smallest_word(const SamplerState& s, std::uint32_t vocab) {
    std::uint32_t best = 0, least = 0xFFFFFFFF;
    for (std::uint32_t id = 0; id < vocab; ++id) {
        const std::uint32_t word = philox4x32({id / 4, kPosition, 0, 0}, s.seed_lo, s.seed_hi)[id % 4];
        if (word < least) {
            least = word;
            best = id;
        }
    }
    return best;
}

void check_known_draws(Sampler& sampler) {
    const auto vocab = static_cast<std::uint32_t>(sampler.logits.size());
    for (float& l : sampler.logits) l = 0;
    check(sampler.argmax() == 0 && sampler.draw(settings(0)) == 0, "the lowest id of equals");
    const SamplerState flat = settings(1);
    check(sampler.draw(flat) == smallest_word(flat, vocab), "all equal: the largest noise wins");
    for (const std::uint32_t k : {1u, vocab / 2, vocab}) {
        if (k == 0) continue;
        const SamplerState s = settings(1, k);
        check(sampler.draw(s) == smallest_word(s, k), "top-k keeps the lowest ids of equals");
        const float share = (static_cast<float>(k) - 0.5f) / static_cast<float>(vocab);
        const SamplerState p = settings(1, 0, share), t = settings(1, 0, 1, share);
        check(sampler.draw(p) == smallest_word(p, k), "so does top-p");
        check(sampler.draw(t) == smallest_word(t, k), "so does typical-p");
    }
    // A token that is far above all others, everywhere once.
    for (std::uint32_t id = 0; id < vocab; id += 1 + vocab / 40) {
        sampler.logits[id] = 1000;
        check(sampler.argmax() == id, "argmax");
        for (const SamplerState& s : {settings(0), settings(1), settings(1, 3), settings(1, 0, 0.9f),
                                      settings(1, 0, 1, 0.9f), settings(1, 0, 1, 1, 0.1f)}) {
            check(sampler.draw(s) == id, "certain");
        }
        check(sampler.logprobs().ids[0] == id, "the most likely");
        sampler.logits[id] = 0;
    }
}

// Everything that a damaged model or a caller may bring, only for the bounds.
void check_bounds(Sampler& sampler) {
    constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
    const float values[] = {0, 1, -1, 3e38f, -3e38f, kInf, -kInf, kNan, -kNan, 1e-40f};
    std::uint64_t random = 1;
    for (int round = 0; round < 30; ++round) {
        for (float& l : sampler.logits) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            l = round < 10 ? values[(random >> 33) % (1 + static_cast<unsigned>(round))]
                           : static_cast<float>(random >> 40) * (round < 20 ? 1e-6f : 1e-9f);
        }
        for (const float temperature : {1e-45f, 1e-6f, 1.0f, 3.4e38f}) {
            for (SamplerState s :
                 {settings(temperature), settings(temperature, 7), settings(temperature, 3000),
                  settings(temperature, 0, 1e-38f), settings(temperature, 0, 0.99999994f),
                  settings(temperature, 0, 1, 1e-38f), settings(temperature, 0, 0.9f, 0.99999994f),
                  settings(temperature, 2000, 0.5f, 0.5f, 1), settings(temperature, 0, 1, 1, 1e-45f)}) {
                sampler.draw(s);
                s.repeat_penalty = 1e-38f;
                s.presence_penalty = 3e38f;
                s.frequency_penalty = -3e38f;
                s.n_bias = 1;
                sampler.bias[Sampler::kSlot * kMaxLogitBias] = {0, round % 2 ? -kInf : 3.4e38f};
                sampler.draw(s);
            }
        }
        sampler.argmax();
        sampler.logprobs();
    }
}

}  // namespace

int main() {
    for (const cpu::KernelSet* set : cpu::kernel_sets()) {
        if (!set->supported()) {
            std::printf("%s: this processor does not have it\n", std::string(set->isa).c_str());
            continue;
        }
        cpu::CpuDevice device(2, *set);
        for (std::uint32_t vocab = 1; vocab < 70; ++vocab) {
            Sampler sampler(device, vocab);
            check_known_draws(sampler);
        }
        // More tokens than a list, a histogram's buckets, a block; whole vectors and not.
        for (const std::uint32_t vocab : {1023u, 1024u, 1025u, 2049u, 5001u, 8192u}) {
            Sampler sampler(device, vocab);
            check_known_draws(sampler);
        }
        for (const std::uint32_t vocab : {1u, 3u, 33u, 100u, 2500u}) {
            Sampler sampler(device, vocab);
            check_bounds(sampler);
        }
        std::printf("%s: passed\n", std::string(set->isa).c_str());
    }
    return 0;
}
