#include "engine/draft_head.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace akunu {

DraftHead::DraftHead(const EngineContext& context, const EncodedInputs& inputs) : engine_(context), inputs_(inputs) {
    const std::uint64_t slots = engine_.sequences.size();
    const auto shared = [&](std::uint64_t bytes) { return engine_.own(slots * bytes, &MemoryUse::scratch); };
    StepBuffers &rows = rows_ = engine_.step, &samples = samples_ = engine_.step;
    rows.max_rows = samples.max_rows = rows.max_logits = samples.max_logits = engine_.sequences.size();
    rows.rows = shared(sizeof(Row));
    rows.logit_rows = shared(sizeof(u32));
    if (engine_.config.has_axes()) rows.positions = shared(kPositionAxes * sizeof(u32));
    samples.rows = rows.sampled_rows = shared(sizeof(Row));
    samples.logit_rows = shared(sizeof(u32));
    samples.slots = shared(sizeof(SlotState));
    samples.control = engine_.own(sizeof(Control), &MemoryUse::scratch);
    std::iota(samples.logit_rows.host<u32>(), samples.logit_rows.host<u32>() + slots, 0u);
}

const Program* DraftHead::keeping(Phase phase) {
    if (!engine_.model.drafter()->keeps()) return nullptr;
    auto& p = keeping_[phase = engine_.compiled(phase)];
    if (!p) p = engine_.device.compile(engine_.model.keep_for_drafts(engine_.plan(engine_.step), phase));
    return p.get();
}

const Program& DraftHead::body(Phase phase, bool first) {
    phase = engine_.compiled(phase);
    auto& p = bodies_[{phase, first}];
    if (!p) p = engine_.device.compile(engine_.model.draft(engine_.plan(rows_), phase, first));
    return *p;
}

const Program& DraftHead::tail(const TailKey& key, bool common) {
    auto& p = tails_[{key, common}];
    if (p) return *p;
    StepBuffers& buffers = common ? common_ : samples_;
    if (common && !buffers.logits) {
        buffers = samples_;
        const std::uint64_t floats = std::uint64_t{engine_.sequences.size()} * engine_.config.vocab_size;
        buffers.logits = engine_.own(floats * sizeof(float), &MemoryUse::scratch, MemoryKind::kDevice);
        const std::vector<float> none(floats, -std::numeric_limits<float>::infinity());
        engine_.device.upload(buffers.logits, std::as_bytes(std::span(none)));
    }
    p = engine_.device.compile(engine_.model.draft_tail(engine_.plan(buffers), key, common));
    return *p;
}

void DraftHead::place(std::span<const Wish> wishes, std::uint32_t n) {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        const Sequence& s = engine_.sequences[wishes[i].slot];
        const std::uint32_t at = s.length - 1 + (engine_.model.drafter()->stands_still() ? 0 : n);
        rows_.rows.host<Row>()[i] = {wishes[i].slot, at};
        samples_.rows.host<Row>()[i] = {wishes[i].slot, s.length + n};
        inputs_.place_axes(rows_, static_cast<std::uint32_t>(i), s, at);
    }
}

std::vector<std::vector<std::uint32_t>> DraftHead::draft(std::span<const Wish> wishes, const Poll& stop, bool common) {
    common = common && engine_.model.common_tokens() != 0;
    std::vector<Wish> wanted;
    for (Wish wish : wishes) {
        const Sequence& s = engine_.sequences.opened(wish.slot);
        if (s.last_row == kNoRow || s.known != s.length + 1) continue;
        // A step that verifies them has one row more.
        const auto reserved = static_cast<std::uint32_t>(s.pages.size()) * kPagePositions;
        const std::uint32_t room = std::min(reserved, engine_.context);
        wish.tokens = std::min(wish.tokens, room - std::min(room, s.length + 1));
        if (wish.tokens) wanted.push_back(wish);
    }
    // Those that are wanted longest first, so that rows go on at their places when others have enough.
    std::ranges::stable_sort(wanted, std::ranges::greater{}, &Wish::tokens);
    TailKey key;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::uint32_t slot = wanted[i].slot;
        const Sequence& s = engine_.sequences[slot];
        if (!s.plain) key.sampling = Sampling::kSampled;
        rows_.logit_rows.host<u32>()[i] = s.last_row;
        samples_.slots.host<SlotState>()[slot] = {0, 0, wanted[i].tokens};
        engine_.step.sampler.host<SamplerState>()[slot].masked = 0;
    }
    auto& control = *samples_.control.host<Control>();
    control = {.stop = 0, .active = static_cast<u32>(wanted.size()), .yield = 0};
    for (std::uint32_t done = 0; !wanted.empty() && !control.stop;) {
        const auto rows =
            static_cast<std::uint32_t>(std::ranges::count_if(wanted, [&](const Wish& w) { return w.tokens > done; }));
        if (rows == 0) break;
        const auto going_on = std::span(wanted).first(rows);
        place(going_on, done);
        std::uint32_t keys = 0;
        for (const Wish& w : going_on) keys = std::max(keys, engine_.sequences[w.slot].length + done);
        const std::uint32_t steps = done == 0 ? 1 : going_on.back().tokens - done;
        key.one_row = rows == 1;
        const Program* const segments[] = {&body(engine_.phase_for(rows), done == 0), &tail(key, common)};
        const ReplayArgs args{.rows = rows, .logits = rows, .steps = steps, .keys = keys, .sequences = rows};
        if (engine_.device.replay(segments, args, control, stop, {}) != steps) break;
        done += steps;
    }
    std::vector<std::vector<std::uint32_t>> out;
    for (const Wish& wish : wishes) {
        auto& ids = out.emplace_back();
        const auto is_wanted = [&](const Wish& w) { return w.slot == wish.slot; };
        if (std::ranges::none_of(wanted, is_wanted)) continue;
        const std::uint32_t n = samples_.slots.host<SlotState>()[wish.slot].produced;
        const std::uint32_t* first = engine_.history(wish.slot) + engine_.sequences[wish.slot].known;
        ids.assign(first, first + n);
    }
    return out;
}

}  // namespace akunu
