// Engine: runs whose logits, or what is computed on the way to them, are the caller's.
#include <algorithm>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

std::uint32_t Engine::run_fresh(std::span<const std::uint32_t> ids, AdapterChoice adapter, std::uint32_t at_once,
                                std::span<const Program* const> programs, const Poll& poll,
                                const std::function<void(std::uint32_t, std::uint32_t)>& done) {
    const std::uint32_t slot = take_slot();
    struct Closer {
        Engine& e;
        std::uint32_t slot;
        ~Closer() { e.close(slot); }
    } const closer{*this, slot};
    begin(slot, ids, {}, false, {}, adapter);
    cancelled_ = false;
    check_weights();
    Sequence& s = sequences_[slot];
    const Poll stop = stopping(poll);
    const bool has_tail = programs.size() > 1;
    while (s.length < s.known) {
        const std::uint32_t n = std::min(s.known - s.length, at_once);
        cache_->take(slot, s.length, s.length + n);
        place(0, slot, n);
        for (std::uint32_t i = 0; i < n && has_tail; ++i) step_.logit_rows.host<std::uint32_t>()[i] = i;
        Control& control = begin_control(0);
        StepSegments segments;
        for (const Program* p : programs) {
            segments.add(*p, {.rows = n, .logits = has_tail ? n : 0, .keys = s.length + n});
        }
        if (stop() || device_->replay({.segments = segments.get()}, control, stop, {}) == 0) {
            cancelled_ = false;
            break;
        }
        done(s.length, n);
        s.length += n;
        s.state_at = s.length;
        cache_->pass(slot);
    }
    return s.length;
}

std::uint32_t Engine::for_each_logits(std::span<const std::uint32_t> ids, AdapterChoice adapter, const Poll& poll,
                                      const std::function<void(std::size_t, std::span<const float>)>& row) {
    adapters_.check(adapter);
    const std::uint32_t at_once = std::min(chunk_, kLogitsRows);
    const bool adapted = adapter.number != 0;
    const Program* const programs[] = {&body(shared_.phase_for(at_once), adapted),
                                       &tail({.sampling = Sampling::kNone, .one_row = false}, adapted)};
    const std::size_t vocab = config_.vocab_size;
    std::vector<float> logits(at_once * vocab);
    return run_fresh(ids, adapter, at_once, programs, poll, [&](std::uint32_t first, std::uint32_t n) {
        device_->download(step_.logits, std::as_writable_bytes(std::span(logits).first(n * vocab)));
        for (std::size_t i = 0; i < n; ++i) row(first + i, std::span(logits).subspan(i * vocab, vocab));
    });
}

std::uint32_t Engine::add_input_squares(std::span<const std::uint32_t> ids, AdapterChoice adapter, const Poll& poll,
                                        InputSquares& squares) {
    const Program* const program = &squares.program();
    return run_fresh(ids, adapter, chunk_, {&program, 1}, poll, [&](std::uint32_t, std::uint32_t) { squares.add(); });
}

bool Engine::run(std::span<const LogitsRequest> asked, const RunSinks& sinks, const Poll& poll) {
    cancelled_ = false;
    if (sinks.aligned) sounds().reserve_aligned();
    const std::uint32_t most = sinks.aligned ? step_.aligned_rows : step_.max_rows;
    auto* logit_rows = step_.logit_rows.host<std::uint32_t>();
    for (std::size_t first = 0; first < asked.size();) {
        ReplayArgs args{.rows = 0, .logits = 0, .keys = 0};
        std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;  // slots, and their rows
        bool room = true, adapted = false;
        for (std::size_t t = first; t < asked.size() && room; ++t) {
            const Sequence& s = sequences_.opened(asked[t].slot);
            std::uint32_t end = s.length;
            for (; end < s.known; ++end) {
                const bool wanted = std::ranges::binary_search(asked[t].positions, end);
                room = args.rows < most && !(wanted && args.logits == step_.max_logits);
                if (!room) break;
                if (wanted) logit_rows[args.logits++] = args.rows;
                ++args.rows;
            }
            cache_->take(asked[t].slot, s.length, end);
            if (end != s.length) place(args.rows - (end - s.length), asked[t].slot, end - s.length);
            parts.emplace_back(asked[t].slot, end - s.length);
            adapted = adapted || has_adapter(asked[t].slot);
            args.keys = std::max(args.keys, end);
        }
        const bool ran = args.rows == 0 || replay_run(args, adapted, sinks, poll);
        for (const auto& [slot, rows] : parts) {
            Sequence& s = sequences_[slot];
            if (rows == 0) continue;
            if (!ran) {
                cache_->go_back(slot, s.length);
                continue;
            }
            s.length += rows;
            s.state_at = s.length;
            cache_->publish(slot, false);
            cache_->pass(slot);
        }
        if (!ran) return false;
        while (first < asked.size() && sequences_[asked[first].slot].length == sequences_[asked[first].slot].known) {
            ++first;
        }
    }
    return true;
}

bool Engine::replay_run(const ReplayArgs& args, bool adapted, const RunSinks& sinks, const Poll& poll) {
    check_weights();
    const Poll stop = stopping(poll);
    const bool ranks = bool(sinks.ranks);
    StepSegments segments;
    segments.add(body(sinks.aligned ? Phase::kAligned : shared_.phase_for(args.rows), adapted), args);
    if (args.logits) {
        segments.add(tail({.sampling = Sampling::kNone, .logprobs = ranks, .one_row = false, .rules = ranks}, adapted),
                     args);
    }
    if (!sinks.aligned) add_keeping(segments, args);
    Control& control = begin_control(0);
    if (stop() || device_->replay({.segments = segments.get()}, control, stop, {}) == 0) {
        cancelled_ = false;
        return false;
    }
    const std::size_t vocab = config_.vocab_size;
    std::vector<float> logits(sinks.logits ? args.logits * vocab : 0);
    if (sinks.logits) device_->download(step_.logits, std::as_writable_bytes(std::span(logits)));
    for (std::size_t i = 0; i < args.logits; ++i) {
        if (sinks.logits) sinks.logits(std::span(logits).subspan(i * vocab, vocab));
        if (ranks) sinks.ranks(step_.logprobs.host<LogprobRecord>()[i]);
    }
    if (sinks.aligned) {
        sinks.aligned({step_.aligned.host<float>(), step_.aligned.buffer.size / sizeof(float)}, args.rows);
    }
    return true;
}

}  // namespace akunu
