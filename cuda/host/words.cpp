#include "cuda/host/words.h"

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

namespace {

// Whether a command may write or read mailbox words: commands of one row may, of experts' only those in tiles.
bool has_words(const Command& c) {
    if (c.op == kOpDecodeAttention || c.op == kOpNormExperts) return true;
    if (c.op == kOpLatentValues) {
        const auto& p = reinterpret_cast<const LatentValuesParams&>(c.params).product;
        return p.n % 2 == 0 && p.k <= kMostPairedInputs;
    }
    if (c.op == kOpExpertsDown) {
        const auto& p = reinterpret_cast<const RowDownParams&>(c.params);
        return takes_expert_rows(c.weights[0].reader, p.experts.k, p.experts.chosen, p.shared);
    }
    return c.streams != 0 && (c.op == kOpMatmul || c.op == kOpGateUp || c.op == kOpNormQkv || c.op == kOpNormGateUp);
}
bool may_leave_words(const Command& c) { return has_words(c) && c.op != kOpNormExperts; }

// The results of a producer: where they are, F16 numbers or floats, and how many words.
struct Left {
    u64 at;
    u32 format;
    std::uint64_t words;
};
Left left_by(const Command& c) {
    switch (c.op) {
        case kOpMatmul:
            return {c.buffers[2], kActF32, reinterpret_cast<const MatmulParams&>(c.params).n};
        case kOpExpertsDown:
            return {c.buffers[2], kActF32, reinterpret_cast<const ExpertsDownParams&>(c.params).n};
        case kOpGateUp:
            return {c.buffers[4], kActF16, reinterpret_cast<const GateUpParams&>(c.params).n / 2};
        case kOpNormGateUp:
            return {c.buffers[5], kActF16, reinterpret_cast<const NormGateUpParams&>(c.params).n / 2};
        case kOpLatentValues: {
            const auto& p = reinterpret_cast<const LatentValuesParams&>(c.params).product;
            return {c.buffers[2], kActF16, std::uint64_t{p.heads} * p.n / 2};
        }
        case kOpDecodeAttention: {
            const auto& p = reinterpret_cast<const DecodeAttentionParams&>(c.params);
            return {c.buffers[10], kActF16, p.n_heads * p.head_dim / 2};
        }
        default: {
            const auto& p = reinterpret_cast<const NormQkvParams&>(c.params);
            return {c.buffers[5], kActF32, std::uint64_t{p.n_q} + 2 * std::uint64_t{p.n_kv}};
        }
    }
}

// Whether a command uses what its own threads have left alone, besides words, as far back as no barrier stands between:
// a matmul what it adds to, attention its layer's part of the cache.
bool uses_its_own(std::span<const Command> commands, std::size_t at) {
    const Command& of = commands[at];
    const bool adds = of.op == kOpMatmul && reinterpret_cast<const MatmulParams&>(of.params).accumulate;
    for (std::size_t i = at; i-- > 0;) {
        const Command& c = commands[i];
        if (!has_words(c)) return false;
        if (of.op == kOpDecodeAttention && c.op == of.op && c.buffers[4] == of.buffers[4]) return false;
        if (adds && own_sums(c) != 0 && c.buffers[2] == of.buffers[2]) return own_sums(c) == own_sums(of);
        if (c.barrier && !c.reads_words) break;
    }
    return true;
}

}  // namespace

u64 own_sums(const Command& c) {
    if (c.op == kOpMatmul && c.streams != 0) return reinterpret_cast<const MatmulParams&>(c.params).n;
    if (c.op == kOpExpertsDown && has_words(c)) return reinterpret_cast<const ExpertsDownParams&>(c.params).n;
    return 0;
}

bool may_read_words(const Command& c, const Command& before) {
    if (!may_leave_words(before) || !has_words(c) || c.op == kOpExpertsDown || c.op == kOpLatentValues) return false;
    const Left left = left_by(before);
    if (left.words > kMostWords) return false;
    if (c.op == kOpNormExperts) {
        // Words are read once, and not for the norm's results.
        if (reinterpret_cast<const NormExpertsParams&>(c.params).stores_norm) return false;
    }
    if (c.op == kOpDecodeAttention) {
        if (before.op != kOpNormQkv) return false;
        const auto& p = reinterpret_cast<const NormQkvParams&>(before.params);
        return p.n_kv != 0 && c.buffers[0] == left.at && c.buffers[1] == left.at + u64{p.k_offset} * 4 &&
               c.buffers[2] == left.at + u64{p.v_offset} * 4;
    }
    // Every block reads all of them.
    const bool normed = c.op == kOpNormQkv || c.op == kOpNormGateUp || c.op == kOpNormExperts;
    return c.buffers[0] == left.at && left.format == (normed ? kActF32 : kActF16) && left.words <= kMostWordsOfAll;
}

void set_words(std::span<Command> commands) {
    for (std::size_t i = 1; i < commands.size(); ++i) {
        Command &c = commands[i], &before = commands[i - 1];
        // Both are the only ones of their stage: so what stands before them is done when they begin.
        const bool alone =
            c.barrier && (i == 1 || before.barrier) && (i + 1 == commands.size() || commands[i + 1].barrier);
        if (alone && may_read_words(c, before) && uses_its_own(commands, i)) c.reads_words = before.writes_words = 1;
    }
}

}  // namespace akunu::cuda
