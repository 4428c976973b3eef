// Engine: its programs, looked at from outside: plans, profiles, and what a prefix of a step writes.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

Replay Engine::replay_of(const PhaseRun& run) {
    const DispatchTable& t = body(run.phase).table;
    const std::uint32_t most = run.each_draws ? std::min(t.max_rows, step_.max_logits) : t.max_rows;
    const std::uint64_t keys = std::uint64_t{run.position} + (run.each_draws ? 1 : run.rows);
    if (run.rows == 0 || run.rows > most || keys > context_) {
        throw InvalidArgumentError("a " + t.phase + " table takes 1.." + std::to_string(most) +
                                   " rows that end within the context of " + std::to_string(context_) + ", not " +
                                   std::to_string(run.rows) + " at position " + std::to_string(run.position));
    }
    std::vector<const Program*> programs{&body(run.phase), &tail({.one_row = run.texts() == 1})};
    if (const Program* keeps = keeping(run.phase)) programs.push_back(keeps);
    return {.programs = std::move(programs),
            .args = {.rows = run.rows,
                     .logits = run.texts(),
                     .steps = 1,
                     .keys = static_cast<std::uint32_t>(keys),
                     .texts = run.texts()}};
}

std::vector<Written> Engine::run_prefix(std::uint32_t slot, std::uint32_t commands) {
    Sequence& s = opened(slot);
    const std::uint32_t rows = s.known - s.length;
    const PhaseRun run{phase_for(rows, is_encoded(s, rows)), rows, s.length};
    auto [segments, args] = replay_of(run);
    args.commands = commands;
    const DispatchCmd* last = nullptr;
    std::uint64_t before = 0;
    for (const Program* p : segments) {
        const auto& list = p->table.commands;
        if (commands > before && commands <= before + list.size()) last = &list[commands - before - 1];
        before += list.size();
    }
    if (!last) {
        throw InvalidArgumentError("a step of " + std::to_string(run.rows) + " rows has " + std::to_string(before) +
                                   " commands, not " + std::to_string(commands));
    }
    take_pages(slot, s.length, s.known);
    const std::uint32_t state_at = s.state_at;
    std::vector<std::byte> state(state_bytes_);
    if (checkpoints_) device_->download(state_of(slot), state);
    place(0, slot, run.rows);
    step_.logit_rows.host<std::uint32_t>()[0] = run.rows - 1;
    step_.slots.host<SlotState>()[slot] = {0, 0, 1};
    Control& control = begin_control(1);
    // What the last command wrote, or any; without the cache, the texts, and their states.
    const auto each_written = [&](const DispatchCmd& c, const auto& f) {
        for (std::size_t i = 0; i < c.n_buffers && c.op != Op::kAccept; ++i) {
            const Binding& b = c.buffers[i];
            const BufferInfo& info = op_info(c.op).buffers[i];
            const bool kept = b.buffer.handle == step_.states.buffer.handle ||
                              std::ranges::any_of(groups_, [&](const PageGroup& group) {
                                  return b.buffer.handle == group.cache.buffer.handle;
                              });
            if (b && info.access != Access::kRead && !kept) f(info.name, b);
        }
    };
    // Rows that this step has not are those of earlier steps: they are no part of it.
    std::set<std::pair<void*, std::uint64_t>> cleared;
    for (const Program* p : segments) {
        for (const DispatchCmd& c : p->table.commands) {
            each_written(c, [&](std::string_view, const Binding& b) {
                if (!cleared.insert({b.buffer.handle, b.offset}).second) return;
                device_->upload(b, std::vector<std::byte>(b.end() - b.offset));
            });
        }
    }
    device_->replay(segments, args, control, {}, {});
    std::vector<Written> out;
    each_written(*last, [&](std::string_view name, const Binding& b) {
        out.push_back({name, std::vector<std::byte>(b.end() - b.offset)});
        device_->download(b, out.back().bytes);
    });
    if (checkpoints_) device_->upload(state_of(slot), state);
    s.state_at = state_at;
    return out;
}

std::vector<CommandInfo> Engine::profile(const PhaseRun& run, std::size_t repeats, const Poll& poll,
                                         std::uint32_t sound) {
    const Replay replay = replay_of(run);
    const ReplayArgs& args = replay.args;
    struct Opened {
        Engine& e;
        std::vector<std::uint32_t> slots;
        ~Opened() {
            for (const std::uint32_t slot : slots) e.close(slot);
        }
    } opened{*this, {}};
    const std::uint32_t rows = args.rows / args.texts;
    // Memory that nothing was written to is of no place yet: it would be read faster than any cache.
    for (std::uint32_t i = 0; i < args.texts; ++i) {
        const auto slot = open(sound);
        if (!slot) {
            throw InvalidArgumentError("a step of " + std::to_string(args.texts) +
                                       " texts needs as many free ones of " + std::to_string(parallel()) +
                                       " sequences");
        }
        opened.slots.push_back(*slot);
        Sequence& s = sequences_[*slot];
        for (std::size_t g = 1; g < groups_.size(); ++g) {
            s.kept_from[g] = first_page_seen(groups_[g].window, run.position);
        }
        take_pages(*slot, 0, args.keys);
        for (const PageGroup& group : groups_) {
            const std::vector<std::byte> zeros(group.page_bytes);
            for (const std::uint32_t page : s.pages) {
                const std::uint32_t record = group.record(page);
                if (record != PageRecords::kNone && !zeros.empty()) device_->upload(group.at(record), zeros);
            }
        }
        // As if it had so many tokens, for as long as it takes to place those that follow.
        s.length = s.state_at = run.position;
        place(i * rows, *slot, rows);
        s.length = 0;
        step_.logit_rows.host<std::uint32_t>()[i] = (i + 1) * rows - 1;
    }
    return akunu::profile(*device_, replay, repeats, poll, [&] {
        // None has ended: devices skip those that have.
        for (const std::uint32_t slot : opened.slots) step_.slots.host<SlotState>()[slot] = {};
    });
}

}  // namespace akunu
