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
    records_ = shared(sizeof(ChainRecord));
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

const Program& DraftHead::advance() {
    if (!advance_) {
        const DraftedRows drafted{rows_.rows,         rows_.positions, rows_.logit_rows,
                                  rows_.sampled_rows, samples_.slots,  records_};
        advance_ = engine_.device.compile(engine_.model.advance(engine_.plan(engine_.step), drafted));
    }
    return *advance_;
}

void DraftHead::place(std::uint32_t i, std::uint32_t slot, std::uint32_t limit) {
    const Sequence& s = engine_.sequences[slot];
    rows_.rows.host<Row>()[i] = {slot, s.length - 1};
    rows_.logit_rows.host<u32>()[i] = s.last_row;
    rows_.sampled_rows.host<Row>()[i] = {slot, s.length};
    inputs_.place_axes(rows_, i, s, s.length - 1);
    samples_.slots.host<SlotState>()[slot] = {0, 0, limit};
    engine_.step.sampler.host<SamplerState>()[slot].masked = 0;
}

void DraftHead::add_draft(StepSegments& segments, std::uint32_t n, const ReplayArgs& args, Sampling sampling,
                          bool common) {
    const TailKey key{.sampling = sampling, .one_row = args.rows == 1};
    segments.add(body(engine_.phase_for(args.rows), n == 0), args);
    segments.add(tail(key, common && engine_.model.common_tokens() != 0), args);
}

void DraftHead::begin_chain(std::span<const Part> parts) {
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
        place(i, parts[i].slot, 0);
        auto& record = records_.host<ChainRecord>()[parts[i].slot];
        record.start = engine_.sequences[parts[i].slot].length;
        record.steps = 0;
    }
}

void DraftHead::add_drafts(StepSegments& segments, std::uint32_t drafts, std::uint32_t sequences, std::uint32_t keys,
                           Sampling sampling, bool common) {
    for (std::uint32_t n = 0; n < drafts; ++n) {
        add_draft(segments, n,
                  {.rows = sequences, .logits = sequences, .step = n, .keys = keys + n, .sequences = sequences},
                  sampling, common);
    }
}

std::span<const std::uint32_t> DraftHead::tokens(std::uint32_t slot) const {
    const auto& record = records_.host<ChainRecord>()[slot];
    return std::span(record.tokens).first(record.steps);
}

std::vector<std::vector<std::uint32_t>> DraftHead::draft(std::span<const Wish> wishes, const Poll& stop, bool common) {
    std::vector<Wish> wanted;
    for (Wish wish : wishes) {
        const Sequence& s = engine_.sequences.opened(wish.slot);
        if (!goes_on(s)) continue;
        // A step that verifies them has one row more.
        const auto reserved = static_cast<std::uint32_t>(s.pages.size()) * kPagePositions;
        const std::uint32_t room = std::min(reserved, engine_.context);
        wish.tokens = std::min({wish.tokens, room - std::min(room, s.length + 1), kMostDrafts});
        if (wish.tokens) wanted.push_back(wish);
    }
    // Those that are wanted longest first, so that rows go on at their places when others have enough.
    std::ranges::stable_sort(wanted, std::ranges::greater{}, &Wish::tokens);
    Sampling sampling = Sampling::kGreedy;
    for (std::uint32_t i = 0; i < wanted.size(); ++i) {
        place(i, wanted[i].slot, wanted[i].tokens);
        if (!engine_.sequences[wanted[i].slot].plain) sampling = Sampling::kSampled;
    }
    StepSegments segments;
    for (std::uint32_t n = 0; n < kMostDrafts; ++n) {
        ReplayArgs args{.rows = 0, .step = n, .keys = 0};
        for (; args.rows < wanted.size() && wanted[args.rows].tokens > n; ++args.rows) {
            args.keys = std::max(args.keys, engine_.sequences[wanted[args.rows].slot].length + n);
        }
        if (args.rows == 0) break;
        args.logits = args.sequences = args.rows;
        add_draft(segments, n, args, sampling, common);
    }
    if (!wanted.empty()) {
        auto& control = *samples_.control.host<Control>();
        control = {.stop = 0, .active = static_cast<u32>(wanted.size()), .yield = 0};
        engine_.device.replay({.segments = segments.get()}, control, stop, {});
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
