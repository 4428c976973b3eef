// The engine for Python. Thin: converts, checks what only Python can get wrong, releases the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/engine.h"
#include "bindings/gil.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "engine/engine.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

struct PyChunk {
    Produced produced;
    std::uint32_t length = 0;  // tokens in the cache
    std::uint32_t top = 0;
    py::object ids;  // as a list, once somebody asks for it
};

// Start, rows, the first of them, and their count.
using PyRows = std::tuple<std::uint32_t, std::shared_ptr<EncodedRows>, std::uint32_t, std::uint32_t>;

SequenceInputs to_inputs(const std::vector<PyRows>& rows, const py::object& object) {
    SequenceInputs inputs;
    for (const auto& [start, encoded, first, count] : rows) {
        if (!encoded) throw InvalidArgumentError("inputs: found no rows at " + std::to_string(start));
        inputs.rows.push_back({start, first, count, encoded});
    }
    if (object.is_none()) return inputs;
    const auto positions = object.cast<IdArray>();
    if (positions.ndim() != 2 || positions.shape(1) != kPositionAxes) {
        throw InvalidArgumentError("positions: expected an array of [tokens, " + std::to_string(kPositionAxes) + "]");
    }
    inputs.positions.resize(static_cast<std::size_t>(positions.shape(0)));
    const std::uint32_t* at = positions.data();
    for (auto& position : inputs.positions) {
        std::copy_n(at, kPositionAxes, position.begin());
        at += kPositionAxes;
    }
    return inputs;
}

// What a handler raised during a call; None: nothing. What came of the call is not lost when Ctrl-C ended it: the other
// sequences are not the interrupted one's.
py::object raised_by(SignalPoll& signals) {
    try {
        signals.rethrow();
    } catch (py::error_already_set& error) {
        return error.value();
    }
    return py::none();
}

PyChunk wrap(Engine& e, std::uint32_t slot, Produced produced) {
    const Sequence& s = e.sequence(slot);
    const std::uint32_t top = s.sampler.want_logprobs ? std::min(s.sampler.n_logprobs, e.config().vocab_size) : 0;
    return {std::move(produced), s.length, top, {}};
}

}  // namespace

py::tuple PyEngine::step(const std::vector<PyPart>& list, std::uint32_t steps, const py::object& masks) {
    std::vector<Part> parts;
    for (const auto& [slot, rows, sample, limit, drafts] : list) parts.push_back({slot, rows, sample, limit, drafts});
    const Call call(*this);
    SignalPoll signals;
    py::object raised = py::none();
    const auto tell = [&] {
        if (interpreter_exiting()) return false;
        const py::gil_scoped_acquire gil;
        asks_for_masks_ = true;
        try {
            masks();
        } catch (py::error_already_set& error) {
            raised = error.value();
        }
        asks_for_masks_ = false;
        return raised.is_none();
    };
    std::vector<PyChunk> out;
    {
        const GilRelease release;
        auto produced = call.model().step(parts, steps, std::ref(signals), masks.is_none() ? Meanwhile() : tell);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            out.push_back(wrap(call.model(), parts[i].slot, std::move(produced[i])));
        }
    }
    const py::object interrupt = raised_by(signals);
    return py::make_tuple(std::move(out), interrupt.is_none() ? raised : interrupt);
}

std::uint32_t PyEngine::add_adapter(const std::map<std::string, std::tuple<Floats, Floats, float>>& tensors) {
    const std::vector<Linear>& linears = get().linears();
    std::vector<AdapterTensors> list;
    for (const auto& [name, of] : tensors) {
        const auto& [a, b, scale] = of;
        const auto found = std::ranges::find(linears, name, &Linear::name);
        if (found == linears.end() || name.empty()) {
            throw InvalidArgumentError("the model has no linear layer '" + name + "'");
        }
        if (a.ndim() != 2 || b.ndim() != 2 || a.shape(0) != b.shape(1)) {
            throw InvalidArgumentError("adapter of " + name + ": expected A of [rank, columns] and B of [rows, rank]");
        }
        const auto view = [](const Floats& x) { return std::span(x.data(), static_cast<std::size_t>(x.size())); };
        list.push_back({static_cast<std::uint32_t>(found - linears.begin() + 1),
                        static_cast<std::uint32_t>(std::min<py::ssize_t>(a.shape(0), UINT32_MAX)), scale, view(a),
                        view(b)});
    }
    return call([&](Engine& engine, const Poll&) { return engine.adapters().add(list); });
}

py::tuple PyEngine::draft_and_verify(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& list,
                                     std::uint32_t drafts, std::uint32_t steps, bool common) {
    std::vector<Part> parts;
    for (const auto& [slot, limit] : list) parts.push_back({.slot = slot, .limit = limit, .drafts = {}});
    const Call call(*this);
    SignalPoll signals;
    std::vector<PyChunk> out;
    {
        const GilRelease release;
        auto produced = call.model().draft_and_verify(parts, {drafts, steps, common}, std::ref(signals));
        for (std::size_t i = 0; i < parts.size(); ++i) {
            out.push_back(wrap(call.model(), parts[i].slot, std::move(produced[i])));
        }
    }
    return py::make_tuple(std::move(out), raised_by(signals));
}

py::tuple PyEngine::draft(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& sequences, bool common) {
    std::vector<Wish> wishes;
    for (const auto& [slot, tokens] : sequences) wishes.push_back({slot, tokens});
    const Call call(*this);
    SignalPoll signals;
    std::vector<std::vector<std::uint32_t>> out;
    {
        const GilRelease release;
        out = call.model().draft(wishes, std::ref(signals), common);
    }
    return py::make_tuple(std::move(out), raised_by(signals));
}

namespace {

void bind_engine_class(py::module_& m) {
    py::class_<PyChunk>(m, "Chunk")
        .def_property_readonly("ids",
                               [](PyChunk& c) {
                                   if (!c.ids) c.ids = py::cast(c.produced.ids);
                                   return c.ids;
                               })
        .def_property_readonly("length", [](const PyChunk& c) { return c.length; })
        .def_property_readonly("ended", [](const PyChunk& c) { return c.produced.ended; })
        .def_property_readonly("drafts", [](const PyChunk& c) { return c.produced.drafts; })
        .def_property_readonly("of_steps", [](const PyChunk& c) { return c.produced.of_steps; })
        .def_property_readonly("logprobs",
                               [](const PyChunk& c) {
                                   std::vector<float> v;
                                   for (const auto& r : c.produced.logprobs) v.push_back(r.chosen);
                                   return v;
                               })
        .def_property_readonly("top_logprobs", [](const PyChunk& c) {
            std::vector<std::vector<std::pair<std::uint32_t, float>>> v;
            if (c.top == 0) return v;
            for (const auto& r : c.produced.logprobs) {
                auto& row = v.emplace_back();
                for (std::uint32_t i = 0; i < c.top; ++i) row.emplace_back(r.ids[i], r.values[i]);
            }
            return v;
        });

    py::class_<PyEngine> engine(m, "Engine");
    engine
        .def(py::init([](const std::shared_ptr<TensorFiles>& file, const py::object& spec, const std::string& device,
                         std::uint32_t context, int threads, const std::string& kv_dtype,
                         std::optional<std::uint32_t> chunk, std::uint32_t parallel, std::uint64_t kv_memory,
                         std::uint64_t memory, bool activations_apart, bool check_weights, const py::object& synthetic,
                         const py::object& quantize, const py::object& progress) {
                 if (!file && synthetic.is_none()) throw InvalidArgumentError("Engine needs a file or synthetic types");
                 const KvTypes kv = to_kv_types(kv_dtype);
                 if (chunk == 0u) throw InvalidArgumentError("chunk is 0, expected at least 1");
                 ModelConfig config = to_config(field(spec, "config"));
                 auto source = to_source(file, field(spec, "tensors"), synthetic, is_planned(device), check_weights);
                 if (!quantize.is_none()) source = quantized(std::move(source), quantize, threads);
                 const Progress report = to_progress(progress);
                 const GilRelease release;
                 auto dev = open_device(device, threads);
                 return std::make_unique<PyEngine>(
                     std::make_unique<Engine>(std::move(dev), std::move(config), std::move(source),
                                              EngineOptions{.context = context,
                                                            .chunk = chunk.value_or(0),
                                                            .kv_types = kv,
                                                            .parallel = parallel,
                                                            .kv_memory = kv_memory,
                                                            .memory = memory,
                                                            .activations_apart = activations_apart},
                                              report));
             }),
             py::arg("file").none(true), py::arg("spec"), py::kw_only(), py::arg("device") = "auto",
             py::arg("context") = 0, py::arg("threads") = 0, py::arg("kv_dtype") = "f16", py::arg("chunk") = py::none(),
             py::arg("parallel") = 8, py::arg("kv_memory") = 0, py::arg("memory") = 0,
             py::arg("activations_apart") = false, py::arg("check_weights") = true, py::arg("synthetic") = py::none(),
             py::arg("quantize") = py::none(), py::arg("progress") = py::none())
        .def_property_readonly("context", [](PyEngine& e) { return e.get().context(); })
        .def_property_readonly("vocab", [](PyEngine& e) { return e.get().config().vocab_size; })
        .def_property_readonly("parallel", [](PyEngine& e) { return e.get().parallel(); })
        .def_property_readonly("threads", [](PyEngine& e) { return e.get().device().threads(); })
        .def_property_readonly("device", [](PyEngine& e) { return e.get().device().name(); })
        .def_property_readonly("memory_left", [](PyEngine& e) { return e.get().device().memory_left(); })
        .def_property_readonly("isa", [](PyEngine& e) { return e.get().device().isa(); })
        .def_property_readonly("kv_dtype", [](PyEngine& e) { return kv_name(e.get().kv_types()); })
        .def_property_readonly("chunk", [](PyEngine& e) { return e.get().chunk(); })
        .def_property_readonly("max_rows", [](PyEngine& e) { return e.get().max_rows(); })
        .def_property_readonly("whole_images", [](PyEngine& e) { return e.get().config().whole_image_rows != 0; })
        .def_property_readonly("max_logits", [](PyEngine& e) { return e.get().max_logits(); })
        .def_property_readonly("memory", [](PyEngine& e) { return memory_dict(e.get().memory()); })
        .def_property_readonly("paged_experts",
                               [](PyEngine& e) {
                                   const PagedUse u = e.get().paged_use();
                                   py::dict d;
                                   d["bytes"] = u.bytes;
                                   d["held_bytes"] = u.held_bytes;
                                   d["hits"] = u.hits;
                                   d["misses"] = u.misses;
                                   d["read_bytes"] = u.read_bytes;
                                   d["seconds"] = u.seconds;
                                   return d;
                               })
        .def("open", [](PyEngine& e) { return PyEngine::Call(e).model().open(); })
        .def("close_slot", [](PyEngine& e, std::uint32_t slot) { PyEngine::Call(e).model().close(slot); })
        .def(
            "begin",
            [](PyEngine& e, const py::object& ids, std::uint32_t slot, float temperature, std::int64_t top_k,
               float top_p, float min_p, float typical_p, float repeat_penalty, float presence_penalty,
               float frequency_penalty, std::int64_t penalty_window, float top_n_sigma, float xtc_probability,
               float xtc_threshold, std::int64_t min_keep, float dry_multiplier, float dry_base,
               std::int64_t dry_allowed_length, std::int64_t dry_penalty_last_n, const py::object& dry_breakers,
               const py::object& logit_bias, std::uint64_t seed, int logprobs, const py::object& end_ids, bool reuse,
               std::uint64_t root, const py::object& contents, const std::vector<PyRows>& rows,
               const py::object& positions, std::optional<std::uint32_t> adapter, float adapter_scale) {
                const std::uint32_t vocab = e.get().config().vocab_size;
                SamplerSettings s =
                    to_sampler(temperature, top_k, top_p, min_p, typical_p, repeat_penalty, presence_penalty,
                               frequency_penalty, penalty_window, logit_bias, seed, logprobs, end_ids, vocab);
                set_cuts(s.state, top_n_sigma, xtc_probability, xtc_threshold, min_keep);
                set_dry(s, dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, dry_breakers, vocab);
                const PyPrefix prompt = to_prefix(to_ids(ids, vocab), root, contents);
                SequenceInputs inputs = to_inputs(rows, positions);
                return e.call([&](Engine& engine, const Poll&) {
                    return engine.begin(slot, prompt.view(), s, reuse, std::move(inputs),
                                        to_choice(adapter, adapter_scale));
                });
            },
            py::arg("ids"), py::kw_only(), py::arg("slot"), py::arg("temperature") = 0.0f, py::arg("top_k") = 0,
            py::arg("top_p") = 1.0f, py::arg("min_p") = 0.0f, py::arg("typical_p") = 1.0f,
            py::arg("repeat_penalty") = 1.0f, py::arg("presence_penalty") = 0.0f, py::arg("frequency_penalty") = 0.0f,
            py::arg("penalty_window") = 64, py::arg("top_n_sigma") = 0.0f, py::arg("xtc_probability") = 0.0f,
            py::arg("xtc_threshold") = 0.1f, py::arg("min_keep") = 0, py::arg("dry_multiplier") = 0.0f,
            py::arg("dry_base") = 1.75f, py::arg("dry_allowed_length") = 2, py::arg("dry_penalty_last_n") = -1,
            py::arg("dry_breakers") = py::none(), py::arg("logit_bias") = py::none(), py::arg("seed") = 0,
            py::arg("logprobs") = -1, py::arg("end_ids") = py::tuple(), py::arg("reuse") = true, py::arg("root") = 0,
            py::arg("contents") = py::none(), py::arg("inputs") = py::tuple(), py::arg("positions") = py::none(),
            py::arg("adapter") = py::none(), py::arg("adapter_scale") = 1.0f)
        .def_property_readonly("linears",
                               [](PyEngine& e) {
                                   py::dict d;
                                   for (const Linear& l : e.get().linears()) {
                                       if (!l.name.empty()) d[py::str(l.name)] = py::make_tuple(l.rows, l.cols);
                                   }
                                   return d;
                               })
        .def("add_adapter", &PyEngine::add_adapter, py::arg("tensors"))
        .def(
            "remove_adapter",
            [](PyEngine& e, std::uint32_t number) {
                e.call([&](Engine& engine, const Poll&) { engine.adapters().remove(number); });
            },
            py::arg("number"))
        .def(
            "extend",
            [](PyEngine& e, std::uint32_t slot, const py::object& ids) {
                const auto more = to_ids(ids, e.get().config().vocab_size);
                PyEngine::Call(e).model().extend(slot, more);
            },
            py::arg("slot"), py::arg("ids"))
        .def("length", &PyEngine::length, py::arg("slot"))
        .def("tokens", &PyEngine::tokens, py::arg("slot"))
        .def(
            "reserve",
            [](PyEngine& e, std::uint32_t slot, std::uint32_t rows, std::uint32_t steps, std::uint32_t drafts) {
                const bool sample = drafts != 0;  // which are verified by sampling
                return PyEngine::Call(e).model().reserve({slot, rows, sample, 0, std::vector<std::uint32_t>(drafts)},
                                                         steps);
            },
            py::arg("slot"), py::arg("rows"), py::arg("steps") = 1, py::arg("drafts") = 0)
        .def("set_mask", &PyEngine::set_mask, py::arg("slot"), py::arg("masks"))
        .def("step", &PyEngine::step, py::arg("parts"), py::arg("steps") = 1, py::arg("masks") = py::none())
        .def_property_readonly("common_tokens", [](PyEngine& e) { return e.get().common_tokens(); })
        .def("draft", &PyEngine::draft, py::arg("sequences"), py::arg("common") = false)
        .def("draft_and_verify", &PyEngine::draft_and_verify, py::arg("sequences"), py::arg("drafts"), py::arg("steps"),
             py::arg("common") = false)
        .def("stop_after_step", [](PyEngine& e) { e.get().yield(); })
        .def("cancel", &PyEngine::cancel)
        .def(
            "truncate",
            [](PyEngine& e, std::uint32_t n, std::uint32_t slot) {
                return e.call([&](Engine& engine, const Poll&) { return engine.truncate(slot, n); });
            },
            py::arg("n"), py::arg("slot"))
        .def("close", &PyEngine::close);
    bind_engine_pages(engine);
    bind_engine_runs(engine);
}

}  // namespace

void bind_engine(py::module_& m) {
    m.attr("PAGE") = std::uint32_t{kPagePositions};
    m.attr("DEFAULT_CONTEXT") = kDefaultContext;
    m.attr("MAX_THREADS") = kMaxThreads;
    m.attr("MAX_PARALLEL") = kMaxParallel;
    m.attr("MAX_CHAIN") = kMaxChain;
    m.attr("MAX_LOGPROBS") = u32{kMaxLogprobs};
    m.attr("MAX_LOGIT_BIAS") = u32{kMaxLogitBias};
    m.attr("BREAKER_SETS") = u32{kBreakerSets};
    m.attr("BREAKER_TAILS") = u32{kBreakerTails};
    m.attr("BREAKER_TAIL_IDS") = u32{kBreakerTailIds};
    bind_engine_class(m);
}

}  // namespace akunu
