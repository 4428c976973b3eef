// Engine: a head of the model's own that drafts (plan/drafter.h).
//
// What it keeps of a text lies in the text's pages, as a layer's keys and values do, and every step enters its rows: so
// drafts begin at any step, behind a cached beginning too. At a position it depends on the token that follows, which
// texts that share a page may not; the last position of such a page may then be another text's. That makes a draft less
// likely to hold, and changes nothing else.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

void Engine::allocate_drafts() {
    drafting_ = std::make_unique<Drafting>();
    const std::uint64_t slots = parallel();
    const auto shared = [&](std::uint64_t bytes) { return own(slots * bytes, &MemoryUse::scratch); };
    StepBuffers &rows = drafting_->rows = step_, &draws = drafting_->draws = step_;
    rows.max_rows = draws.max_rows = rows.max_logits = draws.max_logits = parallel();
    rows.rows = shared(sizeof(Row));
    rows.logit_rows = shared(sizeof(u32));
    if (config_.has_axes()) rows.positions = shared(kPositionAxes * sizeof(u32));
    draws.rows = shared(sizeof(Row));
    draws.logit_rows = shared(sizeof(u32));
    draws.slots = shared(sizeof(SlotState));
    draws.control = own(sizeof(Control), &MemoryUse::scratch);
    std::iota(draws.logit_rows.host<u32>(), draws.logit_rows.host<u32>() + slots, 0u);
}

const Program* Engine::keeping(Phase phase) {
    if (!drafts()) return nullptr;
    if (phase == Phase::kBatch && device_->traits().max_batch_rows <= 1) phase = Phase::kPrefill;
    auto& p = drafting_->keeping[phase];
    if (!p) p = device_->compile(model_->keep_for_drafts(plan(), phase));
    return p.get();
}

const Program& Engine::draft_body(Phase phase, bool first) {
    if (phase == Phase::kBatch && device_->traits().max_batch_rows <= 1) phase = Phase::kPrefill;
    auto& p = drafting_->bodies[{phase, first}];
    if (!p) p = device_->compile(model_->draft({*device_, config_, activations_, drafting_->rows}, phase, first));
    return *p;
}

const Program& Engine::draft_tail(const TailKey& key, bool common) {
    auto& p = drafting_->tails[{key, common}];
    if (p) return *p;
    StepBuffers& buffers = common ? drafting_->common : drafting_->draws;
    if (common && !buffers.logits) {
        buffers = drafting_->draws;
        const std::uint64_t floats = std::uint64_t{parallel()} * config_.vocab_size;
        buffers.logits = own(floats * sizeof(float), &MemoryUse::scratch, MemoryKind::kDevice);
        const std::vector<float> none(floats, -std::numeric_limits<float>::infinity());
        device_->upload(buffers.logits, std::as_bytes(std::span(none)));
    }
    p = device_->compile(model_->draft_tail({*device_, config_, activations_, buffers}, key, common));
    return *p;
}

void Engine::place_drafts(std::span<const Wish> wishes, std::uint32_t n) {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        const Sequence& s = sequences_[wishes[i].slot];
        drafting_->rows.rows.host<Row>()[i] = {wishes[i].slot, s.length - 1 + n};
        drafting_->draws.rows.host<Row>()[i] = {wishes[i].slot, s.length + n};
        place_axes(drafting_->rows, static_cast<std::uint32_t>(i), s, s.length - 1 + n);
    }
}

std::vector<std::vector<std::uint32_t>> Engine::draft(std::span<const Wish> wishes, const Poll& poll, bool common) {
    if (!drafts()) throw InvalidArgumentError("this model has no head that drafts");
    common = common && common_tokens() != 0;
    check_weights();
    std::vector<Wish> wanted;
    for (Wish wish : wishes) {
        const Sequence& s = opened(wish.slot);
        if (s.last_row == kNoRow || s.known != s.length + 1) continue;
        // A step that verifies them has one row more.
        const auto reserved = static_cast<std::uint32_t>(s.pages.size()) * kPagePositions;
        const std::uint32_t room = std::min(reserved, context_);
        wish.tokens = std::min(wish.tokens, room - std::min(room, s.length + 1));
        if (wish.tokens) wanted.push_back(wish);
    }
    // Those that are wanted longest first, so that rows go on at their places when others have enough.
    std::ranges::stable_sort(wanted, std::ranges::greater{}, &Wish::tokens);
    TailKey key;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::uint32_t slot = wanted[i].slot;
        const Sequence& s = sequences_[slot];
        if (!s.plain) key.draw = Draw::kSampled;
        drafting_->rows.logit_rows.host<u32>()[i] = s.last_row;
        drafting_->draws.slots.host<SlotState>()[slot] = {0, 0, wanted[i].tokens};
        step_.sampler.host<SamplerState>()[slot].masked = 0;
    }
    auto& control = *drafting_->draws.control.host<Control>();
    control = {.stop = 0, .active = static_cast<u32>(wanted.size()), .yield = 0};
    const Poll stop = stopping(poll);
    for (std::uint32_t done = 0; !wanted.empty() && !control.stop;) {
        const auto rows =
            static_cast<std::uint32_t>(std::ranges::count_if(wanted, [&](const Wish& w) { return w.tokens > done; }));
        if (rows == 0) break;
        const auto texts = std::span(wanted).first(rows);
        place_drafts(texts, done);
        std::uint32_t keys = 0;
        for (const Wish& w : texts) keys = std::max(keys, sequences_[w.slot].length + done);
        const std::uint32_t steps = done == 0 ? 1 : texts.back().tokens - done;
        key.one_row = rows == 1;
        const Program* const segments[] = {&draft_body(phase_for(rows), done == 0), &draft_tail(key, common)};
        const ReplayArgs args{.rows = rows, .logits = rows, .steps = steps, .keys = keys, .texts = rows};
        if (device_->replay(segments, args, control, stop, {}) != steps) break;
        done += steps;
    }
    std::vector<std::vector<std::uint32_t>> out;
    for (const Wish& wish : wishes) {
        auto& ids = out.emplace_back();
        const auto is_wanted = [&](const Wish& w) { return w.slot == wish.slot; };
        if (std::ranges::none_of(wanted, is_wanted)) continue;
        const std::uint32_t n = drafting_->draws.slots.host<SlotState>()[wish.slot].produced;
        const std::uint32_t* first = history(wish.slot) + sequences_[wish.slot].known;
        ids.assign(first, first + n);
    }
    return out;
}

}  // namespace akunu
