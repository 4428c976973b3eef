// Engine: chains of steps whose drafts the model's own head writes, on the device, without the host in between.
#include <algorithm>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

Drafting Engine::shortened(std::vector<Part>& parts, Drafting how) const {
    how.steps = std::min(how.steps, kMaxChain / (1 + how.drafts));
    for (const Part& part : parts) {
        const Sequence& s = sequences_.at(part.slot);
        if (!drafter_->goes_on(s)) how.drafts = 0;
        if (s.sampler.want_logprobs) how.steps = 1;  // records are those of one step
    }
    if (cache_->has_states()) {
        for (Part& part : parts) {
            how.steps = cache_->shorten(part, how.steps);
            how.drafts = std::min(how.drafts, static_cast<std::uint32_t>(part.drafts.size()));
        }
    }
    return how;
}

std::vector<Part> Engine::with_drafts(std::span<const Part> parts, std::uint32_t drafts) const {
    if (!this->drafts()) throw InvalidArgumentError("this model has no head that drafts");
    if (drafts == 0 || drafts > kMostDrafts) {
        throw InvalidArgumentError("a head writes 1.." + std::to_string(kMostDrafts) + " drafts at a time, not " +
                                   std::to_string(drafts));
    }
    const std::uint64_t rows = parts.size() * (1 + std::uint64_t{drafts});
    if (const std::uint32_t most = std::min(step_.max_rows, step_.max_logits); rows > most) {
        throw InvalidArgumentError("a step has " + std::to_string(rows) + " rows that sample, more than " +
                                   std::to_string(most));
    }
    std::vector<Part> out(parts.begin(), parts.end());
    for (Part& part : out) {
        if (part.rows != 1 || !part.sample || !part.drafts.empty()) {
            throw InvalidArgumentError("drafts of the head follow a sequence's last token, and no other drafts");
        }
        part.drafts.resize(drafts);
    }
    return out;
}

std::vector<Produced> Engine::draft_and_verify(std::span<const Part> parts, Drafting how, const Poll& poll) {
    std::vector<Part> drafted = with_drafts(parts, how.drafts);
    if (parts.empty() || cancelled_.exchange(false)) return std::vector<Produced>(parts.size());
    check_step(drafted, how.steps);
    how = shortened(drafted, how);
    if (how.drafts == 0) return step(parts, 1, poll);

    const auto n = static_cast<std::uint32_t>(parts.size()), rows = 1 + how.drafts;
    drafter_->begin_chain(parts);
    Control& control = begin_control(0);
    TailKey key{.one_row = false};
    bool adapted = false;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t slot = parts[i].slot;
        place(i * rows, slot, rows, how.drafts);
        begin_sampling(parts[i], control, key);
        adapted = adapted || has_adapter(slot);
        longest = std::max(longest, sequences_[slot].length);
    }
    const ReplayArgs args{.rows = n * rows, .logits = n * rows, .keys = longest + rows, .sequences = n};
    for (std::uint32_t row = 0; row < args.logits; ++row) step_.logit_rows.host<std::uint32_t>()[row] = row;
    StepSegments segments;
    drafter_->add_drafts(segments, how.drafts, n, longest, key.sampling, how.common);
    segments.add(body(shared_.phase_for(args.rows), adapted), args);
    segments.add(tail(key, adapted), args);
    add_keeping(segments, args);
    segments.add(drafter_->advance(), args);
    const Chain chain{.segments = segments.get(), .times = how.steps, .more_steps = 0, .more_keys = rows};
    const std::uint32_t done = replay_step(chain, control, stopping(poll), {});
    const bool whole = done == how.steps || !interrupted_;
    if (!whole) cancelled_ = false;
    std::vector<Produced> out;
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t slot = parts[i].slot;
        const auto of_steps = drafter_->tokens(slot);
        Produced& produced = out.emplace_back(collect(parts[i], i * rows, 1, done != 0));
        produced.drafts = how.drafts;
        produced.of_steps.assign(of_steps.begin(), of_steps.end());
        // The device has moved the span on.
        cache_->settle(slot, whole, cache_->span_of(slot).from);
        cache_->pass(slot);
        const bool ended = step_.slots.host<SlotState>()[slot].stopped != 0;
        if (whole && done != 0 && !ended) sequences_[slot].last_row = drafter_->last_row(i);
    }
    return out;
}

}  // namespace akunu
