// Compiled commands that are wrong are not launched: programs of whole models pass, and every mutation of them that
// could change a result, hang the GPU or leave memory is refused.
#include "cuda/host/schedule.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "../cpp/check.h"
#include "../cpp/synthetic_model.h"
#include "core/error.h"
#include "cuda/host/plan_device.h"
#include "cuda/host/words.h"
#include "engine/engine.h"
#include "engine/inspector.h"

namespace {

using namespace akunu;
using namespace akunu::cuda;
using namespace akunu::test;

const Chip& chip() { return *find_chip("H100"); }
Geometry geometry() { return {chip().shared_bytes, chip().multiprocessors}; }

// Why the commands are refused; empty where they are not.
std::string refusal(const DispatchTable& t, std::span<const Command> commands, std::span<const Stream> streams) {
    try {
        check_schedule(t, commands, streams, geometry().sizes());
        return {};
    } catch (const DeviceError& e) {
        return e.what();
    }
}

// What of a command the table says: its buffers' first addresses, and which are written.
struct Touched {
    std::set<u64> read, written;
};
Touched touched(const DispatchTable& t, const Command& c) {
    Touched out;
    const auto [before, behind] = covered_by(c);
    for (std::size_t i = c.label - before; i <= c.label + behind; ++i) {
        const DispatchCmd& from = t.commands[i];
        for (std::size_t b = 0; b < from.n_buffers; ++b) {
            if (!from.buffers[b]) continue;
            const u64 at = reinterpret_cast<u64>(from.buffers[b].as());
            const Access access = op_info(from.op).buffers[b].access;
            if (access != Access::kWrite) out.read.insert(at);
            if (access != Access::kRead) out.written.insert(at);
        }
    }
    return out;
}
bool depend(const Touched& a, const Touched& b) {
    const auto meet = [](const std::set<u64>& x, const std::set<u64>& y) {
        return std::ranges::any_of(x, [&](u64 v) { return y.contains(v); });
    };
    return meet(a.written, b.read) || meet(a.written, b.written) || meet(a.read, b.written);
}

struct Counts {
    int barriers = 0, swaps = 0, addresses = 0, fields = 0, streams = 0;
};

// Changes one thing at a time in one command, and puts it back.
void mutate(const DispatchTable& t, std::vector<Command> commands, std::vector<Stream> streams, Counts& n) {
    check(refusal(t, commands, streams).empty(), "the program itself passes");
    const auto caught = [&](int& count, const char* what) {
        ++count;
        const std::string why = refusal(t, commands, streams);
        if (why.empty()) std::fprintf(stderr, "%s, table %s\n", what, t.phase.c_str());
        check(why.find('[') != std::string::npos || why.find("command") != std::string::npos, what);
    };
    for (std::size_t i = 0; i < commands.size(); ++i) {
        Command& c = commands[i];
        const Command whole = c;
        if (i != 0 && c.barrier) {
            c.barrier = 0;
            caught(n.barriers, "a barrier is dropped");
            c = whole;
        }
        if (i + 1 < commands.size() && depend(touched(t, c), touched(t, commands[i + 1]))) {
            std::swap(c, commands[i + 1]);
            caught(n.swaps, "two commands change places");
            std::swap(c, commands[i + 1]);
        }
        for (u64& address : c.buffers) {
            const u64 kept = address;
            for (const u64 other : {kept + 16, kept - 16, kept + (u64{1} << 40), u64{0}, commands[0].buffers[0] + 4}) {
                if (other == kept || (kept == 0 && other < 32)) continue;
                address = other;
                caught(n.addresses, "a buffer is elsewhere");
            }
            address = kept;
        }
        for (WeightPlanes& w : c.weights) {
            if (!w.codes) continue;
            w.codes += 16;
            caught(n.addresses, "weights are elsewhere");
            w.codes -= 16;
            w.reader = kReaders;
            caught(n.fields, "a reader that is none");
            w = whole.weights[&w - c.weights];
        }
        const auto field = [&](auto& value, u32 wrong, const char* what) {
            const auto kept = value;
            value = static_cast<std::remove_cvref_t<decltype(value)>>(wrong);
            caught(n.fields, what);
            value = kept;
        };
        field(c.op, c.op + 1, "another op");
        field(c.kv, kKvPairs, "a type of cache that is none");
        field(c.label, static_cast<u32>(t.commands.size()), "a label behind the table");
        field(c.label, c.label ? c.label - 1 : 1, "a label twice");
        field(c.reads_words, 1 - c.reads_words, "words that are not there, or that nobody reads");
        field(c.writes_words, 1 - c.writes_words, "words that nobody reads, or that are not there");
        if (c.op != kOpDecodeAttention || !c.as_before) field(c.as_before, 1, "a shape that nobody has found out");
        const u32 most = t.max_rows == 1 ? 1 : kByteRows;
        if (i != 0 && (c.reads_words || !rows_by_words(c, commands[i - 1], most))) {
            const u32 kept = std::exchange(commands[i - 1].writes_words, most + 1);
            field(c.reads_words, most + 1, "words of another command, or of more rows");
            commands[i - 1].writes_words = kept;
        }
        field(c.reduces, 1 - c.reduces, "a sum of several GPUs that is none, or that is left out");
        field(c.n_patches, 4, "too many patches");
        field(c.streams, 3, "too many streams");
        field(c.streams, c.streams ? 0 : 1, "another number of streams");
        for (u32 p = 0; p < c.n_patches; ++p) {
            field(c.patch_field[p], std::size(c.params) - 1, "a patch behind the parameters");
            field(c.patch_value[p], kPatchKeys + 1, "a patch of nothing");
        }
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
        const Stream whole = streams[i];
        const auto wrong = [&](const std::function<void(Stream&)>& f, const char* what) {
            f(streams[i]);
            caught(n.streams, what);
            streams[i] = whole;
        };
        wrong([](Stream& s) { s.at[0] += 16; }, "a stream from elsewhere");
        wrong([](Stream& s) { ++s.tiles[0]; }, "a tile too many");
        wrong([](Stream& s) { --s.tiles[0]; }, "a tile too few");
        wrong([](Stream& s) { s.slot_bytes = geometry().sizes().slot_bytes + 16; }, "more than a slot holds");
        wrong([](Stream& s) { s.slot_bytes = 0; }, "nothing in a slot");
        wrong([](Stream& s) { s.byte_slot_bytes = geometry().sizes().byte_slot_bytes + 16; }, "more of a few rows");
        wrong([](Stream& s) { s.byte_slot_bytes = s.byte_slot_bytes ? 0 : 16; }, "slots of bytes for others");
        wrong([](Stream& s) { s.split = s.split ? 0 : 2; }, "inputs that are dealt to others");
        wrong([](Stream& s) { ++s.behind; }, "tiles of other blocks");
        wrong([](Stream& s) { s.tile_bytes *= 2; }, "tiles behind the end");
        wrong([](Stream& s) { s.k *= 2; }, "other inputs");
        wrong([](Stream& s) { s.pairs = 1 - s.pairs; }, "tiles in turn that are not");
        wrong([](Stream& s) { s.rows_from = s.rows_from == kPatchRows ? u32(kPatchLogits) : u32(kPatchRows); },
              "rows of another kind");
        if (i + 1 < streams.size()) {
            std::swap(streams[i], streams[i + 1]);
            caught(n.streams, "streams change places");
            std::swap(streams[i], streams[i + 1]);
        }
    }
    if (streams.empty()) return;
    streams.push_back(streams.back());
    caught(n.streams, "a stream that nobody reads");
    streams.pop_back();
    streams.pop_back();
    caught(n.streams, "a stream that is missing");
}

void mutate_all(const DispatchTable& t, const Schedules& s, Counts& n) {
    mutate(t, s.plain, s.streams, n);
    mutate(t, s.fused, s.fused_streams, n);
    if (t.phase == "batch") mutate(t, s.few, s.few_streams, n);
}

void refused(DispatchTable t, const char* what, const char* why) {
    set_barriers(t.commands);
    try {
        compile_schedules(t, geometry());
    } catch (const DeviceError& e) {
        check(std::string(e.what()).find(why) != std::string::npos, e.what());
        return;
    }
    check(false, what);
}

// Tables that are wrong before they are compiled: barriers are set anew, so that order alone is at fault.
void check_tables(const DispatchTable& decode) {
    DispatchTable t = decode;
    std::swap(t.commands[0], t.commands[2]);
    std::swap(t.labels[0], t.labels[2]);
    refused(t, "what is read is written before", "behind it writes");
    t = decode;
    DispatchCmd &first = t.commands[0], &second = t.commands[2];
    check(first.op == Op::kEmbed && second.op == Op::kNormQkv, "the table begins as expected");
    second.buffers[5] = first.buffers[1];
    refused(t, "weights are not written", "reads weights ahead that");
    t = decode;
    std::size_t qkv = 3;
    while (t.commands[qkv].op != Op::kNormQkv) ++qkv;
    check(t.commands[qkv + 1].op == Op::kPrepareHeads, "attention follows");
    t.commands[qkv].buffers[5] = t.commands[qkv + 1].buffers[4];
    refused(t, "keys are not written while attention looks at them ahead", "reads 'kv', which");
    t = decode;
    t.commands[2].buffers[5].offset = t.commands[2].buffers[5].buffer.size;
    refused(t, "a buffer ends with its memory", "ends behind its memory");
}

void set_word(DispatchCmd& c, std::size_t at, u32 value) { std::memcpy(c.params.data() + at, &value, sizeof value); }

// A fused command takes all that this one, which it replaces, says, or does not take its place. `fusions` counts them.
template <typename Fusions>
void check_consumed(const DispatchTable& table, std::size_t at, const Fusions& fusions) {
    const auto all = fusions(table);
    const auto with = [&](const auto& change) {
        DispatchTable t = table;
        change(t.commands[at]);
        return fusions(t);
    };
    // A parameter that the fusion does not know, as an op gets in time.
    const auto later = [&](u32 value) {
        return with([&](DispatchCmd& c) {
            set_word(c, c.param_bytes, value);
            c.param_bytes += sizeof value;
        });
    };
    check(later(0) == all, "a new parameter that is 0 changes nothing");
    check(later(7) == all - 1, "one that says something is not dropped");
    const auto new_buffer = [](DispatchCmd& c) {
        const int behind_all = std::max<int>(c.n_buffers, 6);  // a sink of attention is refused before
        c.buffers[behind_all] = c.buffers[0];
        c.n_buffers = static_cast<std::uint8_t>(behind_all + 1);
    };
    check(with(new_buffer) == all - 1, "nor is a new buffer");
    check(with([](DispatchCmd& c) { --c.n_patches; }) == all - 1, "what a replay sets is set");
}

void check_fusion(const DispatchTable& decode) {
    const auto fusions = [](const DispatchTable& t) {
        return std::ranges::count(fused(t, compile_commands(t, geometry()), geometry()), u32{kOpDecodeAttention},
                                  &Command::op);
    };
    const auto all = fusions(decode);
    std::size_t rope = 0;
    while (decode.commands[rope].op != Op::kPrepareHeads) ++rope;
    check(all > 0 && decode.commands[rope + 2].op == Op::kAttentionMerge, "attention is one command");
    for (std::size_t i = rope; i < rope + 3; ++i) {
        check_consumed(decode, i, fusions);
        DispatchTable t = decode;
        set_word(t.commands[i], find_field(op_info(t.commands[i].op), "max_pages")->offset, 1);
        check(fusions(t) == all - 1, "all three have the same pages");
    }
    DispatchTable t = decode;
    t.commands[rope].kv = {DType::F32, DType::F32};
    check(fusions(t) == all - 1, "and of the same cache");
}

// A matmul whose results all GPUs add up.
void check_joined_sums(const DispatchTable& decode) {
    const auto fusions = [](const DispatchTable& t) {
        const auto commands = fused(t, compile_commands(t, geometry()), geometry());
        return std::ranges::count_if(commands, [](const Command& c) { return c.reduces == 1; });
    };
    std::size_t sum = 0;
    while (decode.commands[sum].op != Op::kAllReduce) ++sum;
    for (const std::size_t i : {sum - 1, sum}) check_consumed(decode, i, fusions);
    for (const char* const field : {"accumulate", "softcap", "activation"}) {
        DispatchTable t = decode;
        set_word(t.commands[sum - 1], find_field(op_info(Op::kMatmul), field)->offset, 1);
        check(fusions(t) == fusions(decode) - 1, "what is done to a sum is not done to its parts");
    }
}

struct LayerCounts {
    int commands = 0, barriers = 0, words = 0;
    bool operator==(const LayerCounts&) const = default;
};

std::unique_ptr<Engine> planned(const SyntheticModel& m, std::uint32_t cards = 1) {
    return std::make_unique<Engine>(std::make_unique<cuda::PlanDevice>(chip(), cards), m.config, m.source(),
                                    EngineOptions{.context = 96, .parallel = 2}, Progress{});
}

// An adapter of this rank in every layer whose name has one of some parts, or in all.
std::vector<AdapterTensors> adapter_of(Engine& engine, u32 rank, std::vector<std::vector<float>>& values,
                                       const std::vector<const char*>& parts = {""}) {
    std::vector<AdapterTensors> out;
    for (std::size_t i = 0; i < engine.linears().size(); ++i) {
        const Linear& l = engine.linears()[i];
        const auto names = [&](const char* part) { return l.name.find(part) != std::string::npos; };
        if (!l.name.starts_with("layers.") || std::ranges::none_of(parts, names)) continue;
        const std::span<const float> a = values.emplace_back(rank * l.cols, 0.5f);
        const std::span<const float> b = values.emplace_back(rank * l.rows, 0.5f);
        out.push_back({.linear = static_cast<u32>(i + 1), .rank = rank, .scale = 1.0f, .a = a, .b = b});
    }
    return out;
}

// Commands of a layer with adapters, of which the first is checked as all programs are.
LayerCounts adapted_layer(DType weights, Phase phase, Counts& n, const std::vector<const char*>& parts = {""}) {
    const auto engine = planned(synthetic_model(weights));
    std::vector<std::vector<float>> values;
    engine->adapters().add(adapter_of(*engine, 16, values, parts));
    const DispatchTable& table = engine->adapters().body(phase).table;
    const Schedules s = compile_schedules(table, geometry());
    mutate_all(table, s, n);
    LayerCounts found;
    for (const Command& c : s.fused) {
        if (table.labels[c.label].layer != 1) continue;
        ++found.commands;
        found.barriers += c.barrier && !c.reads_words;
        found.words += c.reads_words != 0;
    }
    return found;
}

// Commands of a layer of up to kByteRows rows, and what they wait for.
LayerCounts layer_of_few(DType weights) {
    const auto engine = planned(synthetic_model(weights));
    LayerCounts found;
    for (const Segment& segment : Inspector(*engine).segments_of({Phase::kBatch, 4, 0})) {
        const DispatchTable& table = segment.program->table;
        for (const Command& c : compile_schedules(table, geometry()).few) {
            if (table.labels[c.label].layer != 1) continue;
            ++found.commands;
            found.barriers += c.barrier && !c.reads_words;
            found.words += c.reads_words == kByteRows;
        }
    }
    return found;
}

// Five commands with adapters that need not wait for one another have words in four places.
void check_rank_words(DispatchTable t) {
    std::size_t key = 0;
    while (t.labels[key].name != "attn_k_lora_a") ++key;
    static std::byte results[4][1 << 16], sums[4][1 << 16];
    for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t at = key + 3 * (i + 1);
        for (std::size_t k = 0; k < 3; ++k) {
            t.commands.insert(t.commands.begin() + static_cast<std::ptrdiff_t>(at + k), t.commands[key + k]);
            t.labels.insert(t.labels.begin() + static_cast<std::ptrdiff_t>(at + k), t.labels[key + k]);
        }
        const auto moved = [](Binding& b, std::byte* to) {
            b = {{.handle = to, .device = to, .size = b.end() - b.offset}, 0};
        };
        moved(t.commands[at].buffers[2], sums[i]);
        moved(t.commands[at + 1].buffers[2], results[i]);
        t.commands[at + 2].buffers[0] = t.commands[at].buffers[2];
        t.commands[at + 2].buffers[2] = t.commands[at + 1].buffers[2];
    }
    set_barriers(t.commands);
    Schedules s = compile_schedules(t, geometry());
    std::vector<Command*> keys;
    for (Command& c : s.fused) {
        if (t.labels[c.label].name == "attn_k" && t.labels[c.label].layer == 0) keys.push_back(&c);
    }
    check(keys.size() == 5 && is_adapted(*keys[4]), "they are five");
    check(!keys[0]->barrier && !keys[1]->barrier && !keys[2]->barrier && keys[3]->barrier && !keys[4]->barrier,
          "the one behind q and three of them waits");
    keys[3]->barrier = 0;
    check(refusal(t, s.fused, s.fused_streams).find("in the place of") != std::string::npos, "or is refused");
}

// Each command of the table that is part of a sum with adapters is taken whole.
void check_adapted() {
    const auto engine = planned(synthetic_model(DType::Q4_0));
    std::vector<std::vector<float>> values;
    engine->adapters().add(adapter_of(*engine, 4, values));
    const auto fusions = [](const DispatchTable& t) {
        return std::ranges::count_if(fused(t, compile_commands(t, geometry()), geometry()), is_adapted);
    };
    const DispatchTable& table = engine->adapters().body(Phase::kBatch).table;
    std::size_t sums = 0, output = 0;
    for (std::size_t i = 0; i < table.commands.size(); ++i) {
        if (table.commands[i].op != Op::kLoraA) continue;
        ++sums;
        if (table.labels[i].name == "attn_output_lora_a" && output == 0) output = i;
    }
    check(sums == 14 && fusions(table) == 12, "all products are sums with adapters, gate's and up's one of both");
    for (std::size_t i = output; i < output + 3; ++i) check_consumed(table, i, fusions);
    check_rank_words(table);
    for (const char* const field : {"softcap", "activation", "format"}) {
        DispatchTable t = table;
        set_word(t.commands[output + 1], find_field(op_info(Op::kMatmul), field)->offset, 2);
        check(fusions(t) == 11, "nothing is added to what went through a function");
    }
    for (const char* const field : {"n", "max_rank", "slot_words", "gather"}) {
        DispatchTable t = table;
        set_word(t.commands[output], find_field(op_info(Op::kLoraA), field)->offset, 1);
        check(fusions(t) == 11, "both products of an adapter are of the same");
    }
}

}  // namespace

int main() {
    Counts n;
    // Of one of two GPUs: the sums of a row are part of its matmuls.
    const auto half = planned(synthetic_model(DType::Q4_0), 2);
    for (const PhaseRun run : {PhaseRun{Phase::kDecode, 1, 0}, {Phase::kBatch, 4, 0}}) {
        const std::vector<Segment> segments = Inspector(*half).segments_of(run);
        for (const Segment& segment : segments) {
            const Program* const p = segment.program;
            const Schedules s = compile_schedules(p->table, geometry());
            mutate_all(p->table, s, n);
            const auto sums = std::ranges::count(p->table.commands, Op::kAllReduce, &DispatchCmd::op);
            const auto joined = std::ranges::count(s.fused, 1u, &Command::reduces);
            if (p->table.phase == "decode") {
                check(sums != 0 && joined == sums, "they are part of them");
                check_joined_sums(p->table);
            }
            if (p->table.phase == "batch") check(sums != 0 && joined == 0, "those of several rows are not");
        }
    }
    for (const DType weights : {DType::Q4_0, DType::Q6_K, DType::Q5_1, DType::F32}) {
        const auto engine = planned(synthetic_model(weights));
        for (const PhaseRun run : {PhaseRun{Phase::kDecode, 1, 0}, {Phase::kBatch, 4, 0}, {Phase::kPrefill, 40, 0}}) {
            const std::vector<Segment> segments = Inspector(*engine).segments_of(run);
            for (const Segment& segment : segments) {
                const Program* const p = segment.program;
                const Schedules s = compile_schedules(p->table, geometry());
                mutate_all(p->table, s, n);
            }
        }
        check_tables(Inspector(*engine).segments_of({Phase::kDecode, 1, 0}).front().program->table);
        check_fusion(Inspector(*engine).segments_of({Phase::kDecode, 1, 0}).front().program->table);
    }
    // Commands of a layer of experts, and of latent attention: those that wait for a barrier, and for words.
    const auto layer_of = [&](const SyntheticModel& m, int layer) {
        const auto engine = planned(m);
        const std::vector<Segment> segments = Inspector(*engine).segments_of({Phase::kDecode, 1, 0});
        LayerCounts found;
        for (const Segment& segment : segments) {
            const Program* const p = segment.program;
            const Schedules s = compile_schedules(p->table, geometry());
            mutate_all(p->table, s, n);
            for (const Command& c : s.fused) {
                if (p->table.labels[c.label].layer != layer) continue;
                ++found.commands;
                found.barriers += c.barrier && !c.reads_words;
                found.words += c.reads_words != 0;
            }
        }
        return found;
    };
    check(layer_of(synthetic_experts(DType::Q4_0, Beside::kRouted), 1) == LayerCounts{5, 1, 4}, "a routed one");
    check(layer_of(synthetic_experts(DType::Q4_0, Beside::kPlain), 1) == LayerCounts{5, 1, 4}, "a plain one");
    check(layer_of(synthetic_experts(DType::Q4_0, Beside::kNormed), 1) == LayerCounts{8, 3, 3}, "one with norms");
    check(layer_of(synthetic_latents(DType::Q4_0), 0) == LayerCounts{8, 4, 4}, "latent attention");
    // With adapters a layer has the commands that it has without them, and waits for as many words; prompts have all.
    for (const DType weights : {DType::Q4_0, DType::Q6_K, DType::F16}) {
        check(adapted_layer(weights, Phase::kDecode, n) == LayerCounts{5, 0, 5}, "one row with adapters");
        check(adapted_layer(weights, Phase::kBatch, n) == LayerCounts{9, 7, 0}, "a few rows with adapters");
    }
    using Parts = std::vector<const char*>;
    for (const Parts& parts : {Parts{"attn_q", "attn_v"}, Parts{"attn_k", "ffn_up"}, Parts{"attn_v", "ffn_gate"}}) {
        check(adapted_layer(DType::Q4_0, Phase::kDecode, n, parts) == LayerCounts{5, 0, 5}, "one row with some");
        check(adapted_layer(DType::Q4_0, Phase::kBatch, n, parts) == LayerCounts{9, 7, 0}, "a few rows with some");
    }
    // Up to four rows of codes have norms in their matmuls, and words; with floats norms are commands.
    check(layer_of_few(DType::Q4_0) == LayerCounts{5, 0, 5}, "four rows of codes");
    check(layer_of_few(DType::F16) == LayerCounts{9, 7, 0}, "four rows of floats");
    check(adapted_layer(DType::Q3_K, Phase::kDecode, n) == LayerCounts{25, 12, 0}, "weights that are not in tiles");
    check_adapted();
    std::printf("refused: %d barriers, %d swaps, %d addresses, %d fields, %d streams\n", n.barriers, n.swaps,
                n.addresses, n.fields, n.streams);

    SyntheticModel deep = synthetic_model(DType::Q4_0);
    constexpr std::uint32_t kLayers = 28;
    for (std::uint32_t i = 2; i < kLayers; ++i) {
        for (const std::size_t of_first : {0, 1}) {
            BlockConfig block = deep.config.blocks[of_first];
            block.prefix = "layers." + std::to_string(i) + ".";
            block.layer = static_cast<int>(i);
            deep.config.blocks.push_back(std::move(block));
        }
        for (const auto& [name, shape] : synthetic_model(DType::Q4_0).shapes) {
            const std::string first = "layers.0.";
            if (name.starts_with(first))
                deep.shapes["layers." + std::to_string(i) + "." + name.substr(first.size())] = shape;
        }
    }
    Needs needs;
    needs.ops = {0, 70};
    check(needs.definitions().find("#define AKUNU_OPS X(0) X(70)\n") == 0, "there may be any number of ops");

    const auto engine = planned(deep);
    const std::vector<Segment> segments = Inspector(*engine).segments_of({Phase::kDecode, 1, 0});
    for (const Segment& segment : segments) {
        const Program* const p = segment.program;
        const Schedules s = compile_schedules(p->table, geometry());
        const auto begin = std::chrono::steady_clock::now();
        check_schedule(p->table, s.fused, s.fused_streams, geometry().sizes());
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        std::printf("%s: %zu commands checked in %.3f ms\n", p->table.phase.c_str(), s.fused.size(), took.count());
        // Five commands a layer; the first waits for the embedding.
        const auto words = static_cast<std::size_t>(std::ranges::count(s.fused, 1u, &Command::reads_words));
        if (p->table.phase == "decode") check(words == 5 * kLayers - 1, "commands wait for words");
    }
}
