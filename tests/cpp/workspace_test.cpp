// Activations share memory: what a command reads is there, whatever was written over the rest.
//
// A device that runs one command at a time writes NaN over every activation that no later command of the replay reads
// before it is written again. Tokens must be those of an engine whose activations share nothing.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "check.h"
#include "engine/engine.h"
#include "forwarding_device.h"
#include "one_sequence.h"
#include "synthetic_model.h"

using namespace akunu;
using namespace akunu::test;

namespace {

class PoisoningDevice final : public ForwardingDevice {
  public:
    std::size_t poisoned = 0;  // times

    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll,
                         const akunu::Meanwhile& meanwhile) override {
        if (chain.times != 1 || meanwhile) return ForwardingDevice::replay(chain, control, poll, meanwhile);
        std::vector<const DispatchCmd*> commands;
        std::vector<std::unique_ptr<Program>> programs;
        std::vector<ReplayArgs> args;
        for (const Segment& segment : chain.segments) {
            const DispatchTable& t = segment.program->table;
            for (std::size_t i = 0; i < t.commands.size(); ++i) {
                DispatchTable one{t.phase, {t.commands[i]}, {t.labels[i]}, t.max_rows, t.rows};
                one.commands[0].barrier = false;
                commands.push_back(&t.commands[i]);
                programs.push_back(compile(std::move(one)));
                args.push_back(segment.args);
            }
        }
        find_cells(commands);
        for (std::size_t i = 0; i <= commands.size(); ++i) {
            for (const auto& [handle, edges] : edges_) poison(commands, i, handle, edges);
            if (i == commands.size()) break;
            const Segment segment{programs[i].get(), args[i]};
            if (ForwardingDevice::replay({.segments = {&segment, 1}}, control, poll, {}) != 1) return 0;
        }
        return 1;
    }

  private:
    static bool is_activation(const DispatchCmd& c, std::size_t i) {
        return c.buffers[i] && op_info(c.op).buffers[i].kind == BufferKind::kActivation;
    }

    void find_cells(const std::vector<const DispatchCmd*>& commands) {
        edges_.clear();
        for (const DispatchCmd* c : commands) {
            for (std::size_t i = 0; i < c->n_buffers; ++i) {
                const Binding& b = c->buffers[i];
                if (!is_activation(*c, i)) continue;
                buffers_[b.buffer.handle] = b.buffer;
                edges_[b.buffer.handle].insert({b.offset, b.end()});
            }
        }
    }

    // Of each part of a buffer, NaN, if the next command from `at` on that uses it writes all of it.
    void poison(const std::vector<const DispatchCmd*>& commands, std::size_t at, void* handle,
                const std::set<std::uint64_t>& edges) {
        for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
            const std::uint64_t begin = *edge, end = *std::next(edge);
            if (!is_dead(commands, at, handle, begin, end)) continue;
            upload({buffers_.at(handle), begin, end - begin}, std::vector<std::byte>(end - begin, std::byte{0xFF}));
            ++poisoned;
        }
    }

    static bool is_dead(const std::vector<const DispatchCmd*>& commands, std::size_t at, void* handle,
                        std::uint64_t begin, std::uint64_t end) {
        for (std::size_t k = at; k < commands.size(); ++k) {
            const DispatchCmd& c = *commands[k];
            bool writes = false;
            for (std::size_t i = 0; i < c.n_buffers; ++i) {
                const Binding& b = c.buffers[i];
                if (b.buffer.handle != handle || b.offset >= end || begin >= b.end()) continue;
                if (access_of(c, i) != Access::kWrite) return false;
                writes = true;
            }
            if (writes) return true;
        }
        return false;  // somebody else may want it
    }

    std::map<void*, Buffer> buffers_;
    std::map<void*, std::set<std::uint64_t>> edges_;
};

Part part_of(const Engine& e, std::uint32_t slot, std::uint32_t rows) {
    const Sequence& s = e.sequence(slot);
    return {slot, rows, s.length + rows == s.known, 1, {}};
}

// Prompts in chunks, beside one another's single rows.
std::vector<std::uint32_t> tokens_of(Engine& engine) {
    std::vector<std::uint32_t> slots, prompt(45), out;
    for (std::uint32_t i = 0; i < prompt.size(); ++i) prompt[i] = (i * 37 + 5) % 301;
    for (const std::size_t n : {45, 3, 20, 1}) {
        slots.push_back(*engine.open());
        engine.begin(slots.back(), std::span<const std::uint32_t>(prompt).first(n), {}, false);
    }
    for (int step = 0; step < 8; ++step) {
        std::vector<Part> parts;
        for (const std::uint32_t slot : slots) {
            const Sequence& s = engine.sequence(slot);
            parts.push_back(part_of(engine, slot, std::min(s.known - s.length, 9u)));
            engine.take_pages(parts.back(), 1);
        }
        for (const Produced& p : engine.step(parts, 1, {})) out.insert(out.end(), p.ids.begin(), p.ids.end());
    }
    for (const std::uint32_t slot : slots) engine.close(slot);
    OneSequence alone(engine);
    alone.begin(prompt, {}, false);
    for (const std::uint32_t id : alone.prefill().ids) out.push_back(id);
    for (int step = 0; step < 5; ++step) {
        for (const std::uint32_t id : alone.decode(1).ids) out.push_back(id);
    }
    return out;
}

void check_model(const SyntheticModel& model, const char* name) {
    const auto device = std::make_shared<PoisoningDevice>();
    const auto options = [](bool apart) {
        EngineOptions o;
        o.chunk = 48;
        o.parallel = 4;
        o.activations_apart = apart;
        return o;
    };
    Engine apart(std::make_shared<ForwardingDevice>(), model.config, model.source(), options(true), {});
    Engine engine(device, model.config, model.source(), options(false), {});
    check(apart.memory().activations == apart.memory().activations_apart, "activations apart share nothing");
    check(engine.memory().activations < engine.memory().activations_apart, "activations share memory");
    check(engine.memory().activations_apart == apart.memory().activations, "sizes are those that were asked for");
    const std::vector<std::uint32_t> expected = tokens_of(apart);
    check(expected.size() > 30, "there are tokens");
    check(tokens_of(engine) == expected, name);
    check(device->poisoned > 100, "memory was poisoned");
}

// Of two activations that one table needs at a time, and another does not.
void check_lifetimes() {
    cpu::CpuDevice device(1);
    Activations a;
    for (const char* name : {"a", "b", "c", "d"}) a.reserve(name, 64);
    a.measure(device, 4);
    const auto add = [](DispatchTable& t, const Binding& from, const Binding& to) {
        DispatchCmd c;
        c.op = Op::kAddRows;
        c.n_buffers = 3;
        c.buffers[0] = from;
        c.buffers[2] = to;
        c.set_params(AddRowsParams{.rows = 4, .dim = 64, .accumulate = 0, .matched = 0, .scale = 1, .floor = 0});
        t.commands.push_back(c);
        t.labels.emplace_back();
    };
    const auto chain = [&](std::initializer_list<const char*> names) {
        DispatchTable t;
        t.phase = "chain";
        for (auto n = names.begin(); std::next(n) != names.end(); ++n) add(t, a.f32(*n), a.f32(*std::next(n)));
        set_barriers(t.commands);
        return t;
    };
    // d is read two commands after b was.
    DispatchTable first = chain({"a", "b", "c", "d", "a"});
    Lifetimes lifetimes;
    a.add_lifetimes(first, lifetimes);
    check(lifetimes.lives_outside({"a", false}), "what is read first comes from outside");
    check(lifetimes.overlap({"b", false}, {"c", false}), "c is written while b is read");
    check(lifetimes.overlap({"b", false}, {"d", false}), "a stage is between those that share");
    DispatchTable longer = chain({"a", "b", "c", "a", "d", "a"});
    Lifetimes others;
    a.add_lifetimes(longer, others);
    check(!others.overlap({"b", false}, {"d", false}), "d is written a stage after b was read");
    check(a.allocate(device, &others) == 3 * device.activation_bytes(kActF32, 4, 64), "b and d share memory");
    a.bind(longer);
    check(longer.commands[0].buffers[2].buffer.handle == longer.commands[3].buffers[2].buffer.handle, "they do");
    check_throws<Error>([&] { a.bind(first); }, "a table that needs both at a time is refused");
}

}  // namespace

int main() {
    check_lifetimes();
    check_model(synthetic_model(DType::F32), "F32");
    check_model(synthetic_model(DType::Q8_0), "Q8_0");
    check_model(synthetic_model(DType::Q4_K), "Q4_K");
    check_model(synthetic_hybrid(DType::Q8_0), "with a recurrence");
    std::puts("ok");
}
