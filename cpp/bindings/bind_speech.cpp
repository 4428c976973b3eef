// Encoders of sound with their decoders for Python. Thin: converts, and releases the GIL.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/loaded.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "engine/registry.h"
#include "engine/speech.h"

namespace py = pybind11;

namespace akunu {

namespace {

using PySpeech = Exclusive<Speech>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Words = py::array_t<std::uint32_t, py::array::c_style>;

// What "encode" runs has no rows of sequences.
std::optional<PhaseRun> to_speech_run(const std::string& phase, std::uint32_t rows, std::uint32_t position) {
    return phase == "encode" ? std::nullopt : std::optional(to_run(phase, rows, position));
}

void check_ran(bool ran) {
    if (!ran) throw Error("cancelled");
}

std::unique_ptr<PySpeech> load(const std::shared_ptr<TensorFiles>& files, const py::object& sound,
                               const py::object& text, const std::string& device, int threads,
                               const std::string& kv_dtype, std::uint32_t parallel, std::uint32_t sounds,
                               bool check_weights, const py::object& synthetic, const py::object& progress) {
    if (!files && synthetic.is_none()) throw InvalidArgumentError("Speech needs files or synthetic types");
    const auto stack = [&](const py::object& spec) {
        return Stack{to_config(field(spec, "config")),
                     to_source(files, field(spec, "tensors"), synthetic, is_planned(device), check_weights)};
    };
    Stack hears = stack(sound), says = stack(text);
    EngineOptions options;
    options.kv_types = to_kv_types(kv_dtype);
    options.parallel = parallel;
    options.sounds = sounds;
    const Progress report = to_progress(progress);
    const GilRelease release;
    return std::make_unique<PySpeech>(
        std::make_unique<Speech>(open_device(device, threads), std::move(hears), std::move(says), options, report));
}

// Token ids, one list of positions of each sequence, and the logits after them.
py::array_t<float> logits(PySpeech& s, const std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>>& asked) {
    std::vector<LogitsRequest> list;
    std::size_t rows = 0;
    for (const auto& [slot, positions] : asked) {
        list.push_back({slot, positions});
        rows += positions.size();
    }
    py::array_t<float> out({rows, std::size_t{s.get().text().config().vocab_size}});
    float* at = out.mutable_data();
    const float* const end = at + out.size();
    check_ran(s.call([&](Speech& speech, const Poll& poll) {
        const auto sink = [&](std::span<const float> row) { at = std::ranges::copy(row, at).out; };
        return speech.text().run(list, {.logits = sink, .ranks = {}, .aligned = {}}, poll);
    }));
    if (at != end) throw InvalidArgumentError("logits were asked for at positions that are not to be run");
    return out;
}

// The weights of the aligned heads, layer after layer [heads, tokens, positions], and the logits [tokens, vocab].
py::tuple attend(PySpeech& s, std::uint32_t sound, const py::object& object) {
    const PySpeech::Call call(s);  // from here on: what `object` runs of Python's cannot close the model
    const ModelConfig& config = call.model().text().config();
    const auto ids = to_ids(object, config.vocab_size);
    const std::size_t heads = config.aligned_heads(), positions = config.sound_positions(), n = ids.size();
    py::array_t<float> weights({heads, n, positions}), rows({n, std::size_t{config.vocab_size}});
    float *to = weights.mutable_data(), *row = rows.mutable_data();
    check_ran(call.run([&](Speech& speech, const Poll& poll) {
        Engine& engine = speech.text();
        const std::uint32_t slot = speech.begin(sound, ids);
        struct Closer {
            Engine& engine;
            std::uint32_t slot;
            ~Closer() { engine.close(slot); }
        } const closer{engine, slot};
        LogitsRequest asked{slot, {}};
        for (std::uint32_t i = 0; i < n; ++i) asked.positions.push_back(i);
        std::size_t done = 0;
        const auto aligned = [&](std::span<const float> found, std::uint32_t count) {
            const std::size_t head = found.size() / heads;
            for (std::size_t h = 0; h < heads; ++h) {
                std::copy_n(found.data() + h * head, count * positions, to + (h * n + done) * positions);
            }
            done += count;
        };
        const auto sink = [&](std::span<const float> found) { row = std::ranges::copy(found, row).out; };
        return engine.run({&asked, 1}, {.logits = sink, .ranks = {}, .aligned = aligned}, poll);
    }));
    return py::make_tuple(weights, rows);
}

}  // namespace

void bind_speech(py::module_& m) {
    py::class_<PySpeech>(m, "Speech")
        .def(py::init(&load), py::arg("files").none(true), py::arg("sound"), py::arg("text"), py::kw_only(),
             py::arg("device") = "cpu", py::arg("threads") = 0, py::arg("kv_dtype") = "f16", py::arg("parallel") = 8,
             py::arg("sounds") = 1, py::arg("check_weights") = true, py::arg("synthetic") = py::none(),
             py::arg("progress") = py::none())
        .def_property_readonly("parallel", [](PySpeech& s) { return s.get().text().parallel(); })
        .def_property_readonly("threads", [](PySpeech& s) { return s.get().text().device().threads(); })
        .def_property_readonly("device", [](PySpeech& s) { return s.get().text().device().name(); })
        .def_property_readonly("isa", [](PySpeech& s) { return s.get().text().device().isa(); })
        .def_property_readonly("memory", [](PySpeech& s) { return memory_dict(s.get().memory()); })
        .def(
            "encode",
            [](PySpeech& s, const Floats& mel) {
                const std::span<const float> frames(mel.data(), static_cast<std::size_t>(mel.size()));
                const auto sound =
                    s.call([&](Speech& speech, const Poll& poll) { return speech.encode(frames, poll); });
                check_ran(sound.has_value());
                return *sound;
            },
            py::arg("mel"))
        .def("states",
             [](PySpeech& s) {
                 const PySpeech::Call call(s);
                 const ModelConfig& config = call.model().sound().config();
                 py::array_t<float> out({config.positions, config.dim});
                 call.model().sound().states({out.mutable_data(), static_cast<std::size_t>(out.size())});
                 return out;
             })
        .def(
            "close_sound", [](PySpeech& s, std::uint32_t sound) { PySpeech::Call(s).model().close_sound(sound); },
            py::arg("sound"))
        .def(
            "begin",
            [](PySpeech& s, std::uint32_t sound, const py::object& object) {
                const auto ids = to_ids(object, s.get().text().config().vocab_size);
                return PySpeech::Call(s).model().begin(sound, ids);
            },
            py::arg("sound"), py::arg("ids"))
        .def("fork", [](PySpeech& s, std::uint32_t slot) { return PySpeech::Call(s).model().fork(slot); })
        .def("close_slot", [](PySpeech& s, std::uint32_t slot) { PySpeech::Call(s).model().text().close(slot); })
        .def(
            "extend",
            [](PySpeech& s, std::uint32_t slot, const py::object& object) {
                const auto ids = to_ids(object, s.get().text().config().vocab_size);
                const PySpeech::Call call(s);
                call.model().text().extend(slot, ids);
                return call.model().text().sequence(slot).known - 1;
            },
            py::arg("slot"), py::arg("ids"))
        .def(
            "set_rules",
            [](PySpeech& s, std::uint32_t slot, std::uint32_t prompt, std::uint32_t end, std::uint32_t timestamp_begin,
               std::uint32_t max_initial, const Words& never, const Words& not_first) {
                const auto words = [](const Words& mask) {
                    return std::span<const std::uint32_t>(mask.data(), static_cast<std::size_t>(mask.size()));
                };
                PySpeech::Call(s).model().text().set_rules(slot, {prompt, end, timestamp_begin, max_initial},
                                                           words(never), words(not_first));
            },
            py::arg("slot"), py::arg("prompt"), py::arg("end"), py::arg("timestamp_begin"), py::arg("max_initial"),
            py::arg("never"), py::arg("not_first"))
        .def("logits", logits, py::arg("asked"))
        .def(
            "rank",
            [](PySpeech& s, const std::vector<std::uint32_t>& slots, std::uint32_t count) {
                count = std::min(count, s.get().text().config().vocab_size);
                py::array_t<std::int64_t> ids({slots.size(), std::size_t{count}});
                py::array_t<float> values({slots.size(), std::size_t{count}});
                std::int64_t* id = ids.mutable_data();
                float* value = values.mutable_data();
                check_ran(s.call([&](Speech& speech, const Poll& poll) {
                    return speech.rank(slots, count, poll, [&](const LogprobRecord& r) {
                        id = std::copy_n(r.ids, count, id);
                        value = std::copy_n(r.values, count, value);
                    });
                }));
                return py::make_tuple(ids, values);
            },
            py::arg("slots"), py::arg("count"))
        .def(
            "generate",
            [](PySpeech& s, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& sequences, float temperature,
               std::uint32_t limit, std::uint32_t end) {
                std::vector<Speech::Generation> generations;
                for (const auto& [slot, seed] : sequences) generations.push_back({slot, seed, {}, 0, false});
                check_ran(s.call([&](Speech& speech, const Poll& poll) {
                    return speech.generate(generations, temperature, limit, end, poll);
                }));
                py::list out;
                for (const auto& d : generations) out.append(py::make_tuple(d.ids, d.log_p));
                return out;
            },
            py::arg("sequences"), py::arg("temperature"), py::arg("limit"), py::arg("end"))
        .def("attend", attend, py::arg("sound"), py::arg("ids"))
        .def(
            "plan",
            [](PySpeech& s, const std::string& phase, std::uint32_t rows, std::uint32_t position) {
                const PySpeech::Call call(s);
                return command_list(call.model().commands(to_speech_run(phase, rows, position)));
            },
            py::arg("phase") = "encode", py::arg("rows") = 1, py::arg("position") = 0)
        .def(
            "profile",
            [](PySpeech& s, const std::string& phase, std::uint32_t rows, std::uint32_t position,
               std::int64_t repeats) {
                const std::size_t n = to_repeats(repeats);
                const auto run = to_speech_run(phase, rows, position);
                return command_list(
                    s.call([&](Speech& speech, const Poll& poll) { return speech.profile(run, n, poll); }));
            },
            py::arg("phase") = "encode", py::arg("rows") = 1, py::arg("position") = 0, py::arg("repeats") = 16)
        .def("cancel", &PySpeech::cancel)
        .def("close", &PySpeech::close);
}

}  // namespace akunu
