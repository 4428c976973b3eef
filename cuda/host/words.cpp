#include "cuda/host/words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/kernels/few_layout.h"

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
// The same of several rows: of what byte_rows multiplies (cuda/kernels/byte_rows.cuh), without adapters, which read
// their inputs where these are.
bool has_words_of_rows(const Command& c) {
    if (c.op == kOpDecodeAttention) return true;
    const bool normed = c.op == kOpNormQkv || c.op == kOpNormGateUp;
    if (c.streams == 0 || is_adapted(c) || (normed ? !is_norm_of_rows(c) : c.op != kOpMatmul && c.op != kOpGateUp)) {
        return false;
    }
    const auto are_codes = [](const WeightPlanes& w) { return !w.codes || input_parts(w.reader) == 1; };
    return rows_from(c) == kPatchRows && std::ranges::all_of(c.weights, are_codes);
}
bool has_words(const Command& c, u32 most_rows) { return most_rows == 1 ? has_words(c) : has_words_of_rows(c); }
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
bool uses_its_own(std::span<const Command> commands, std::size_t at, u32 most_rows) {
    const Command& of = commands[at];
    const bool adds = of.op == kOpMatmul && reinterpret_cast<const MatmulParams&>(of.params).accumulate;
    for (std::size_t i = at; i-- > 0;) {
        const Command& c = commands[i];
        if (!has_words(c, most_rows)) return false;
        if (of.op == kOpDecodeAttention && c.op == of.op && c.buffers[4] == of.buffers[4]) return false;
        const bool sums = c.op == kOpMatmul || c.op == kOpExpertsDown;
        if (adds && sums && c.buffers[2] == of.buffers[2]) return own_sums(c) != 0 && own_sums(c) == own_sums(of);
        if (c.barrier && !c.reads_words) break;
    }
    return true;
}

}  // namespace

u64 own_sums(const Command& c) {
    if (c.op == kOpMatmul && c.streams != 0) {
        return u64{c.params[kSplitWord]} << 32 | reinterpret_cast<const MatmulParams&>(c.params).n;
    }
    if (c.op == kOpExpertsDown && has_words(c)) return reinterpret_cast<const ExpertsDownParams&>(c.params).n;
    return 0;
}

u32 rows_by_words(const Command& c, const Command& before, u32 most) {
    if (!has_words(before, most) || !may_leave_words(before)) return 0;
    if (!has_words(c, most) || c.op == kOpExpertsDown || c.op == kOpLatentValues) return 0;
    const Left left = left_by(before);
    const auto rows_of = [&](std::uint64_t words) { return static_cast<u32>(std::min<u64>(most, words / left.words)); };
    const u32 rows = rows_of(kMostWords);
    if (c.op == kOpNormExperts) {
        // Words are read once, and not for the norm's results.
        if (reinterpret_cast<const NormExpertsParams&>(c.params).stores_norm) return 0;
    }
    if (c.op == kOpDecodeAttention) {
        if (before.op != kOpNormQkv) return 0;
        const auto& p = reinterpret_cast<const NormQkvParams&>(before.params);
        return p.n_kv != 0 && c.buffers[0] == left.at && c.buffers[1] == left.at + u64{p.k_offset} * 4 &&
                       c.buffers[2] == left.at + u64{p.v_offset} * 4
                   ? rows
                   : 0;
    }
    // Every block reads all of them, or those of its part of the inputs.
    const bool normed = c.op == kOpNormQkv || c.op == kOpNormGateUp || c.op == kOpNormExperts;
    const u32 split = c.op == kOpMatmul && most != 1 ? std::max(c.params[kSplitWord], 1u) : 1;
    const bool same = c.buffers[0] == left.at && left.format == (normed ? kActF32 : kActF16);
    return same ? std::min(rows, rows_of(std::uint64_t{kMostWordsOfAll} * split)) : 0;
}

void set_words(std::span<Command> commands, u32 most_rows) {
    for (std::size_t i = 1; i < commands.size(); ++i) {
        Command &c = commands[i], &before = commands[i - 1];
        // Both are the only ones of their stage: so what stands before them is done when they begin.
        const bool alone =
            c.barrier && (i == 1 || before.barrier) && (i + 1 == commands.size() || commands[i + 1].barrier);
        const u32 rows = alone ? rows_by_words(c, before, most_rows) : 0;
        // Of several rows more than one: else a barrier it is.
        if (rows < std::min(most_rows, 2u) || !uses_its_own(commands, i, most_rows)) continue;
        c.reads_words = before.writes_words = rows;
    }
}

}  // namespace akunu::cuda
