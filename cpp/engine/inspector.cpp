#include "engine/inspector.h"

#include <algorithm>
#include <set>

namespace akunu {

std::vector<Segment> Inspector::segments_of(const PhaseRun& run) const {
    const DispatchTable& t = engine_.body(run.phase).table;
    const std::uint32_t most = run.each_samples ? std::min(t.max_rows, engine_.step_.max_logits) : t.max_rows;
    const std::uint64_t keys = std::uint64_t{run.position} + (run.each_samples ? 1 : run.rows);
    if (run.rows == 0 || run.rows > most || keys > engine_.context_) {
        throw InvalidArgumentError("a " + t.phase + " table takes 1.." + std::to_string(most) +
                                   " rows that end within the context of " + std::to_string(engine_.context_) +
                                   ", not " + std::to_string(run.rows) + " at position " +
                                   std::to_string(run.position));
    }
    const ReplayArgs args{.rows = run.rows,
                          .logits = run.sequences(),
                          .keys = static_cast<std::uint32_t>(keys),
                          .sequences = run.sequences()};
    std::vector<Segment> segments{{&engine_.body(run.phase), args},
                                  {&engine_.tail({.one_row = run.sequences() == 1}), args}};
    if (const Program* keeping = engine_.drafter_ ? engine_.drafter_->keeping(run.phase) : nullptr) {
        segments.push_back({keeping, args});
    }
    return segments;
}

std::vector<CommandInfo> Inspector::commands(const PhaseRun& run) const {
    return describe(*engine_.device_, segments_of(run));
}

std::vector<Written> Inspector::run_prefix(std::uint32_t slot, std::uint32_t commands) const {
    if (engine_.activations_.shares()) {
        throw InvalidArgumentError("activations of this engine share memory: open it with activations_apart");
    }
    Sequence& s = engine_.sequences_.opened(slot);
    const std::uint32_t rows = s.known - s.length;
    const bool encoded = engine_.inputs_.is_encoded(s, rows);
    const PhaseRun run{encoded ? Phase::kEncoded : engine_.shared_.phase_for(rows), rows, s.length};
    const std::vector<Segment> segments = segments_of(run);
    const DispatchCmd* last = nullptr;
    std::uint64_t before = 0;
    for (const Segment& segment : segments) {
        const auto& list = segment.program->table.commands;
        if (commands > before && commands <= before + list.size()) last = &list[commands - before - 1];
        before += list.size();
    }
    if (!last) {
        throw InvalidArgumentError("a step of " + std::to_string(run.rows) + " rows has " + std::to_string(before) +
                                   " commands, not " + std::to_string(commands));
    }
    Cache& cache = engine_.cache();
    cache.take(slot, s.length, s.known);
    const std::uint32_t state_at = s.state_at;
    std::vector<std::byte> state(cache.state_bytes());
    if (cache.has_states()) engine_.device_->download(cache.state_of(slot), state);
    engine_.place(0, slot, run.rows);
    engine_.step_.logit_rows.host<std::uint32_t>()[0] = run.rows - 1;
    engine_.step_.slots.host<SlotState>()[slot] = {0, 0, 1};
    Control& control = engine_.begin_control(1);
    // What the last command wrote, or any; without the cache, the sequences, and their states.
    const auto each_written = [&](const DispatchCmd& c, const auto& f) {
        for (std::size_t i = 0; i < c.n_buffers && c.op != Op::kAccept; ++i) {
            const Binding& b = c.buffers[i];
            const BufferInfo& info = op_info(c.op).buffers[i];
            if (b && info.access != Access::kRead && !cache.contains(b)) f(info.name, b);
        }
    };
    // Rows that this step has not are those of earlier steps: they are no part of it.
    std::set<std::pair<void*, std::uint64_t>> cleared;
    for (const Segment& segment : segments) {
        for (const DispatchCmd& c : segment.program->table.commands) {
            each_written(c, [&](std::string_view, const Binding& b) {
                if (!cleared.insert({b.buffer.handle, b.offset}).second) return;
                engine_.device_->upload(b, std::vector<std::byte>(b.end() - b.offset));
            });
        }
    }
    engine_.device_->replay({.segments = segments, .commands = commands}, control, {}, {});
    std::vector<Written> out;
    each_written(*last, [&](std::string_view name, const Binding& b) {
        out.push_back({name, std::vector<std::byte>(b.end() - b.offset)});
        engine_.device_->download(b, out.back().bytes);
    });
    if (cache.has_states()) engine_.device_->upload(cache.state_of(slot), state);
    s.state_at = state_at;
    return out;
}

std::vector<CommandInfo> Inspector::profile(const PhaseRun& run, std::size_t repeats, const Poll& poll,
                                            std::uint32_t sound) const {
    const std::vector<Segment> segments = segments_of(run);
    const ReplayArgs& args = segments.front().args;
    struct Opened {
        Engine& e;
        std::vector<std::uint32_t> slots;
        ~Opened() {
            for (const std::uint32_t slot : slots) e.close(slot);
        }
    } opened{engine_, {}};
    const std::uint32_t rows = args.rows / args.sequences;
    // Memory that nothing was written to is of no place yet: it would be read faster than any cache.
    for (std::uint32_t i = 0; i < args.sequences; ++i) {
        const auto slot = engine_.open(sound);
        if (!slot) {
            throw InvalidArgumentError("a step of " + std::to_string(args.sequences) +
                                       " sequences needs as many free ones of " + std::to_string(engine_.parallel()) +
                                       " sequences");
        }
        opened.slots.push_back(*slot);
        engine_.cache().skip_to(*slot, run.position);
        engine_.cache().take(*slot, 0, args.keys);
        engine_.cache().clear(*slot);
        Sequence& s = engine_.sequences_[*slot];
        // The sequence counts as one of so many tokens while those that follow are placed.
        s.length = s.state_at = run.position;
        engine_.place(i * rows, *slot, rows);
        s.length = 0;
        engine_.step_.logit_rows.host<std::uint32_t>()[i] = (i + 1) * rows - 1;
    }
    return akunu::profile(*engine_.device_, segments, repeats, poll, [&] {
        // None has ended: devices skip those that have.
        for (const std::uint32_t slot : opened.slots) engine_.step_.slots.host<SlotState>()[slot] = {};
    });
}

}  // namespace akunu
