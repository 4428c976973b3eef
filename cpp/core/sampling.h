// Sampling parameters as the device sees them, and the random numbers. docs/sampling.md defines what they mean.
#pragma once

#include <array>
#include <cstdint>

namespace akunu {

constexpr std::uint32_t kMaxEndIds = 64;
constexpr std::uint32_t kMaxLogitBias = 4096;
constexpr std::uint32_t kMaxLogprobs = 20;

struct LogitBias {
    std::uint32_t id;
    float bias;
};

// One generation's settings: a slot's entry in a device buffer that the sampling commands read. What is not a few words
// lies apart: kMaxLogitBias biases at the slot's place, and a mask of a bit for every token at that of a row of logits.
struct SamplerState {
    float temperature = 0;
    std::uint32_t top_k = 0;  // 0: off
    float top_p = 1, min_p = 0, typical_p = 1;
    float repeat_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
    std::uint32_t penalty_window = 64;
    std::uint32_t seed_lo = 0, seed_hi = 0;
    std::uint32_t want_logprobs = 0;  // 1: record the chosen token's log p
    std::uint32_t n_logprobs = 0;     // and those of the n most likely
    std::uint32_t n_end_ids = 0, n_bias = 0;
    std::uint32_t masked = 0;  // 1: only tokens whose bit is set in the row's mask
    std::array<std::uint32_t, kMaxEndIds> end_ids{};
};

// 32-bit words of a mask. Token t is bit t % 32 of word t / 32.
constexpr std::uint32_t mask_words(std::uint32_t vocab) { return (vocab + 31) / 32; }

// What may not come next in a transcript: a slot's entry in a device buffer. Two masks of a bit for every token lie
// apart, at the slot's place: tokens that never come, and those that are not the first.
struct SpeechRules {
    std::uint32_t prompt = 0;           // tokens before the transcript
    std::uint32_t end = 0;              // the end of the text: smaller ids are words
    std::uint32_t timestamp_begin = 0;  // from here on ids are times; 0: times are no matter
    std::uint32_t max_initial = 0;      // the first time is at most this one
};

// How far a slot is within a replay.
struct SlotState {
    std::uint32_t stopped = 0;   // a StopReason, from which on it writes no more; 0: it goes on
    std::uint32_t produced = 0;  // tokens written
    std::uint32_t limit = 0;     // tokens to write at most
};

// What kLogprobs writes for each row with logits, step after step.
struct LogprobRecord {
    float chosen = 0;
    std::array<std::uint32_t, kMaxLogprobs> ids{};
    std::array<float, kMaxLogprobs> values{};
};

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// Always inlined, so that the kernels of one instruction set leave no copy that the linker could give to all.
[[gnu::always_inline]] constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                                                         std::uint32_t k0, std::uint32_t k1) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = 0xD2511F53ull * c[0];
        const std::uint64_t p1 = 0xCD9E8D57ull * c[2];
        c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
             static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

}  // namespace akunu
