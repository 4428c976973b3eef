// Engine, devices and peaks for Python. Thin: converts, checks what only Python can get wrong, releases the GIL.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/gil.h"
#include "bindings/loaded.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "engine/engine.h"
#include "engine/inspector.h"
#include "engine/measure.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

using IdArray = py::array_t<std::uint32_t, py::array::c_style>;
using Hashes = py::array_t<std::uint64_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

// A `Part` as Python gives it: slot, rows, sample, limit, drafts.
using PyPart = std::tuple<std::uint32_t, std::uint32_t, bool, std::uint32_t, std::vector<std::uint32_t>>;

struct PyChunk {
    Produced produced;
    std::uint32_t length = 0;  // tokens in the cache
    std::uint32_t top = 0;
    py::object ids;  // as a list, once somebody asks for it
};

std::vector<std::uint64_t> to_contents(const py::object& contents) {
    if (contents.is_none()) return {};
    const auto hashes = contents.cast<Hashes>();
    return {hashes.data(), hashes.data() + hashes.size()};
}

// What `Prefix` needs, kept while it is used: ids, a root, and hashes of what stands at positions.
struct PyPrefix {
    std::vector<std::uint32_t> ids;
    std::uint64_t root;
    std::vector<std::uint64_t> contents;
    Prefix view() const { return {ids, root, contents}; }
};

AdapterChoice to_choice(std::optional<std::uint32_t> adapter, float scale) {
    return {adapter ? *adapter + 1 : 0, scale};
}

PyPrefix to_prefix(const IdArray& ids, std::uint64_t root, const py::object& contents) {
    return {{ids.data(), ids.data() + ids.size()}, root, to_contents(contents)};
}

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

class PyEngine : public Exclusive<Engine> {
  public:
    using Exclusive::Exclusive;

    // Tokens of a slot's sequence that the cache holds.
    std::uint32_t length(std::uint32_t slot) {
        const Call call(*this);
        return call.model().sequence(slot).length;
    }
    // A step, and what the handler of a signal, or `masks`, raised meanwhile.
    py::tuple step(const std::vector<PyPart>& list, std::uint32_t steps, const py::object& masks);
    // By the names of `linears`: A [rank, cols], B [rows, rank], and a scale of their product. Returns its number.
    std::uint32_t add_adapter(const std::map<std::string, std::tuple<Floats, Floats, float>>& tensors);
    // Drafts for each (slot, tokens), and what the handler of a signal raised meanwhile.
    py::tuple draft(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& sequences, bool common);
    void set_mask(std::uint32_t slot, const IdArray& masks) {
        if (!asks_for_masks_) throw InvalidArgumentError("masks are set when a step asks for them, by its `masks`");
        get().set_mask(slot, {masks.data(), static_cast<std::size_t>(masks.size())});
    }
    IdArray tokens(std::uint32_t slot) {
        const Call call(*this);
        const auto ids = call.model().tokens(slot);
        return IdArray(static_cast<py::ssize_t>(ids.size()), ids.data());
    }

  private:
    bool asks_for_masks_ = false;
};

struct OpenAhead {
    std::future<std::shared_ptr<void>> opened = open_ahead();
    void close() {
        const GilRelease release;
        opened = {};
    }
};

// After a call that has no partial result.
void check_complete(std::size_t done, std::size_t tokens) {
    if (done == tokens) return;
    throw Error("cancelled after " + std::to_string(done) + " of " + std::to_string(tokens) + " tokens");
}

PyChunk wrap(Engine& e, std::uint32_t slot, Produced produced) {
    const Sequence& s = e.sequence(slot);
    const std::uint32_t top = s.sampler.want_logprobs ? std::min(s.sampler.n_logprobs, e.config().vocab_size) : 0;
    return {std::move(produced), s.length, top, {}};
}

py::tuple PyEngine::step(const std::vector<PyPart>& list, std::uint32_t steps, const py::object& masks) {
    std::vector<Part> parts;
    for (const auto& [slot, rows, sample, limit, drafts] : list) parts.push_back({slot, rows, sample, limit, drafts});
    const Call call(*this);
    SignalPoll signals;
    std::optional<py::error_already_set> raised;
    const auto tell = [&] {
        if (interpreter_exiting()) return false;
        const py::gil_scoped_acquire gil;
        asks_for_masks_ = true;
        try {
            masks();
        } catch (py::error_already_set& error) {
            raised.emplace(std::move(error));
        }
        asks_for_masks_ = false;
        return !raised;
    };
    std::vector<PyChunk> out;
    {
        const GilRelease release;
        auto produced = call.model().step(parts, steps, std::ref(signals), masks.is_none() ? Meanwhile() : tell);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            out.push_back(wrap(call.model(), parts[i].slot, std::move(produced[i])));
        }
    }
    // What came of it is not lost when Ctrl-C ended it: the other sequences are not the interrupted one's.
    try {
        signals.rethrow();
    } catch (py::error_already_set& error) {
        raised.emplace(std::move(error));
    }
    return py::make_tuple(std::move(out), raised ? raised->value() : py::none());
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
    py::object raised = py::none();
    try {
        signals.rethrow();
    } catch (py::error_already_set& error) {
        raised = error.value();
    }
    return py::make_tuple(std::move(out), std::move(raised));
}

void bind_engine_class(py::module_& m) {
    py::class_<PyChunk>(m, "Chunk")
        .def_property_readonly("ids",
                               [](PyChunk& c) {
                                   if (!c.ids) c.ids = py::cast(c.produced.ids);
                                   return c.ids;
                               })
        .def_property_readonly("length", [](const PyChunk& c) { return c.length; })
        .def_property_readonly("ended", [](const PyChunk& c) { return c.produced.ended; })
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

    py::class_<PyEngine>(m, "Engine")
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
                 return std::make_unique<PyEngine>(std::make_unique<Engine>(
                     std::move(dev), std::move(config), std::move(source),
                     EngineOptions{.context = context,
                                   .chunk = chunk.value_or(0),
                                   .kv_types = kv,
                                   .parallel = parallel,
                                   .kv_memory = kv_memory,
                                   .memory = memory,
                                   .activations_apart = activations_apart}, report));
             }),
             py::arg("file").none(true), py::arg("spec"), py::kw_only(), py::arg("device") = "auto",
             py::arg("context") = 0, py::arg("threads") = 0, py::arg("kv_dtype") = "f16", py::arg("chunk") = py::none(),
             py::arg("parallel") = 8, py::arg("kv_memory") = 0, py::arg("memory") = 0, py::arg("activations_apart") = false, py::arg("check_weights") = true,
             py::arg("synthetic") = py::none(), py::arg("quantize") = py::none(), py::arg("progress") = py::none())
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
        .def_property_readonly("pages",
                               [](PyEngine& e) {
                                   const PyEngine::Call call(e);
                                   const PageUse u = call.model().cache().use();
                                   py::dict d;
                                   d["pages"] = u.pages;
                                   d["held"] = u.held;
                                   d["pinned"] = u.pinned;
                                   d["cached"] = u.cached;
                                   d["page_bytes"] = u.page_bytes;
                                   py::list windows;
                                   for (const WindowUse& w : u.windows) {
                                       py::dict of;
                                       of["positions"] = w.positions;
                                       of["pages"] = w.pages;
                                       of["held"] = w.held;
                                       of["pinned"] = w.pinned;
                                       of["cached"] = w.cached;
                                       of["most_held"] = w.most_held;
                                       of["page_bytes"] = w.page_bytes;
                                       windows.append(std::move(of));
                                   }
                                   d["windows"] = std::move(windows);
                                   d["checkpoints"] = u.checkpoints;
                                   d["state_bytes"] = u.state_bytes;
                                   return d;
                               })
        .def("open", [](PyEngine& e) { return PyEngine::Call(e).model().open(); })
        .def("close_slot", [](PyEngine& e, std::uint32_t slot) { PyEngine::Call(e).model().close(slot); })
        .def(
            "begin",
            [](PyEngine& e, const py::object& ids, std::uint32_t slot, float temperature, std::int64_t top_k, float top_p, float min_p,
               float typical_p, float repeat_penalty, float presence_penalty, float frequency_penalty,
               std::int64_t penalty_window, float top_n_sigma, float xtc_probability, float xtc_threshold,
               std::int64_t min_keep, float dry_multiplier, float dry_base, std::int64_t dry_allowed_length,
               std::int64_t dry_penalty_last_n, const py::object& dry_breakers, const py::object& logit_bias,
               std::uint64_t seed, int logprobs, const py::object& end_ids, bool reuse,
               std::uint64_t root, const py::object& contents,
               const std::vector<PyRows>& rows, const py::object& positions, std::optional<std::uint32_t> adapter,
               float adapter_scale) {
                const std::uint32_t vocab = e.get().config().vocab_size;
                SamplerSettings s =
                    to_sampler(temperature, top_k, top_p, min_p, typical_p, repeat_penalty, presence_penalty,
                               frequency_penalty, penalty_window, logit_bias, seed, logprobs, end_ids, vocab);
                set_cuts(s.state, top_n_sigma, xtc_probability, xtc_threshold, min_keep);
                set_dry(s, dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, dry_breakers, vocab);
                const PyPrefix prompt{to_ids(ids, vocab), root, to_contents(contents)};
                SequenceInputs inputs = to_inputs(rows, positions);
                return e.call([&](Engine& engine, const Poll&) {
                    return engine.begin(slot, prompt.view(), s, reuse, std::move(inputs),
                                        to_choice(adapter, adapter_scale));
                });
            },
            py::arg("ids"), py::kw_only(), py::arg("slot"), py::arg("temperature") = 0.0f, py::arg("top_k") = 0, py::arg("top_p") = 1.0f,
            py::arg("min_p") = 0.0f, py::arg("typical_p") = 1.0f, py::arg("repeat_penalty") = 1.0f,
            py::arg("presence_penalty") = 0.0f, py::arg("frequency_penalty") = 0.0f, py::arg("penalty_window") = 64,
            py::arg("top_n_sigma") = 0.0f, py::arg("xtc_probability") = 0.0f, py::arg("xtc_threshold") = 0.1f,
            py::arg("min_keep") = 0, py::arg("dry_multiplier") = 0.0f, py::arg("dry_base") = 1.75f,
            py::arg("dry_allowed_length") = 2, py::arg("dry_penalty_last_n") = -1, py::arg("dry_breakers") = py::none(),
            py::arg("logit_bias") = py::none(), py::arg("seed") = 0, py::arg("logprobs") = -1,
            py::arg("end_ids") = py::tuple(), py::arg("reuse") = true,
            py::arg("root") = 0, py::arg("contents") = py::none(), py::arg("inputs") = py::tuple(),
            py::arg("positions") = py::none(), py::arg("adapter") = py::none(), py::arg("adapter_scale") = 1.0f)
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
        .def(
            "read_page",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents,
               const std::optional<std::vector<std::uint32_t>>& wanted) -> std::optional<py::list> {
                const PyPrefix prefix = to_prefix(ids, root, contents);
                const auto parts = e.call([&](Engine& engine, const Poll&) {
                    return engine.cache().read_page(prefix.view(), [&](std::size_t part) {
                        return !wanted || std::ranges::find(*wanted, part) != wanted->end();
                    });
                });
                if (!parts) return std::nullopt;
                std::optional<py::list> out(std::in_place);
                for (std::size_t i = 0; i < parts->size(); ++i) {
                    const auto& part = (*parts)[i];
                    if (part) {
                        out->append(ByteArray(static_cast<py::ssize_t>(part->size()),
                                              reinterpret_cast<const std::uint8_t*>(part->data())));
                    } else {
                        out->append(py::none());
                    }
                }
                return out;
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none(), py::arg("parts") = py::none())
        .def(
            "restore_page",
            [](PyEngine& e, std::uint32_t slot, const std::vector<std::optional<ByteArray>>& page) {
                std::vector<std::optional<std::span<const std::byte>>> parts;
                for (const auto& part : page) {
                    auto& bytes = parts.emplace_back();
                    if (part) bytes = std::as_bytes(std::span(part->data(), static_cast<std::size_t>(part->size())));
                }
                return e.call([&](Engine& engine, const Poll&) { return engine.cache().restore_page(slot, parts); });
            },
            py::arg("slot"), py::arg("page"))
        .def(
            "finish_restoring",
            [](PyEngine& e, std::uint32_t slot) {
                return e.call([&](Engine& engine, const Poll&) { return engine.cache().finish_restoring(slot); });
            },
            py::arg("slot"))
        .def_property_readonly("part_bytes", [](PyEngine& e) { return PyEngine::Call(e).model().cache().part_bytes(); })
        .def(
            "pin",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents) {
                const PyPrefix prefix = to_prefix(ids, root, contents);
                return PyEngine::Call(e).model().cache().pin(prefix.view());
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none())
        .def(
            "unpin",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents) {
                const PyPrefix prefix = to_prefix(ids, root, contents);
                PyEngine::Call(e).model().cache().unpin(prefix.view());
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none())
        .def("forget", [](PyEngine& e) { PyEngine::Call(e).model().cache().forget(); })
        .def("discard_unused",
             [](PyEngine& e) { e.call([](Engine& engine, const Poll&) { engine.cache().discard_unused(); }); })
        .def("set_mask", &PyEngine::set_mask, py::arg("slot"), py::arg("masks"))
        .def("step", &PyEngine::step, py::arg("parts"), py::arg("steps") = 1, py::arg("masks") = py::none())
        .def_property_readonly("common_tokens", [](PyEngine& e) { return e.get().common_tokens(); })
        .def("draft", &PyEngine::draft, py::arg("sequences"), py::arg("common") = false)
        .def("stop_after_step", [](PyEngine& e) { e.get().yield(); })
        .def("cancel", &PyEngine::cancel)
        .def(
            "truncate",
            [](PyEngine& e, std::uint32_t n, std::uint32_t slot) {
                return e.call([&](Engine& engine, const Poll&) { return engine.truncate(slot, n); });
            },
            py::arg("n"), py::arg("slot"))
        .def(
            "logits",
            [](PyEngine& e, const py::object& object, std::optional<std::uint32_t> adapter, float adapter_scale) {
                const std::size_t vocab = e.get().config().vocab_size;
                const auto ids = to_ids(object, e.get().config().vocab_size);
                e.get().check_ids(ids);
                py::array_t<float> out({ids.size(), vocab});
                float* data = out.mutable_data();
                const AdapterChoice choice = to_choice(adapter, adapter_scale);
                const std::uint32_t done = e.call([&](Engine& engine, const Poll& poll) {
                    return engine.for_each_logits(ids, choice, poll, [&](std::size_t i, std::span<const float> row) {
                        std::copy(row.begin(), row.end(), data + i * vocab);
                    });
                });
                check_complete(done, ids.size());
                return out;
            },
            py::arg("ids"), py::arg("adapter") = py::none(), py::arg("adapter_scale") = 1.0f)
        .def(
            "nll",
            [](PyEngine& e, const py::object& object, std::size_t first, std::optional<std::uint32_t> adapter,
               float adapter_scale) {
                const auto ids = to_ids(object, e.get().config().vocab_size);
                std::vector<float> out;
                const AdapterChoice choice = to_choice(adapter, adapter_scale);
                const std::uint32_t done = e.call([&](Engine& engine, const Poll& poll) {
                    return negative_log_likelihoods(engine, ids, first, choice, poll, out);
                });
                check_complete(done, ids.size());
                return py::array_t<float>(static_cast<py::ssize_t>(out.size()), out.data());
            },
            py::arg("ids"), py::arg("first") = 1, py::arg("adapter") = py::none(), py::arg("adapter_scale") = 1.0f)
        .def(
            "input_squares",
            [](PyEngine& e, const std::vector<py::object>& sequences, const py::object& report,
               std::optional<std::uint32_t> adapter, float adapter_scale) {
                const PyEngine::Call call(e);
                const AdapterChoice choice = to_choice(adapter, adapter_scale);
                call.model().adapters().check(choice);
                InputSquares squares = call.model().input_squares(choice.number != 0);
                for (std::size_t i = 0; i < sequences.size(); ++i) {
                    const auto ids = to_ids(sequences[i], call.model().config().vocab_size);
                    const std::uint32_t done = call.run([&](Engine& engine, const Poll& poll) {
                        return engine.add_input_squares(ids, choice, poll, squares);
                    });
                    check_complete(done, ids.size());
                    if (!report.is_none()) report(i + 1);
                }
                py::dict out;
                for (const InputSquares::Input& input : squares.inputs()) {
                    const auto n = static_cast<py::ssize_t>(input.sums.size());
                    const auto experts = static_cast<py::ssize_t>(input.counts.size());
                    if (experts == 0) {
                        out[py::str(input.name)] = py::make_tuple(py::array_t<double>(n, input.sums.data()), py::none());
                        continue;
                    }
                    out[py::str(input.name)] =
                        py::make_tuple(py::array_t<double>({experts, n / experts}, input.sums.data()),
                                       py::array_t<double>(experts, input.counts.data()));
                }
                return out;
            },
            py::arg("sequences"), py::arg("progress") = py::none(), py::arg("adapter") = py::none(),
            py::arg("adapter_scale") = 1.0f)
        .def(
            "plan",
            [](PyEngine& e, const std::string& phase, std::uint32_t rows, std::uint32_t position) {
                const PyEngine::Call call(e);
                return command_list(Inspector(call.model()).commands(to_run(phase, rows, position)));
            },
            py::arg("phase") = "decode", py::arg("rows") = 1, py::arg("position") = 0)
        .def(
            "run_prefix",
            [](PyEngine& e, std::uint32_t slot, std::uint32_t commands) {
                py::dict out;
                const auto run = [&](Engine& engine, const Poll&) { return Inspector(engine).run_prefix(slot, commands); };
                for (const Written& w : e.call(run)) {
                    out[py::str(std::string(w.name))] =
                        ByteArray(static_cast<py::ssize_t>(w.bytes.size()),
                                  reinterpret_cast<const std::uint8_t*>(w.bytes.data()));
                }
                return out;
            },
            py::arg("slot"), py::arg("commands"))
        .def(
            "profile",
            [](PyEngine& e, const std::string& phase, std::uint32_t rows, std::uint32_t position,
               std::int64_t repeats) {
                const std::size_t n = to_repeats(repeats);
                const PhaseRun run = to_run(phase, rows, position);
                return command_list(
                    e.call([&](Engine& engine, const Poll& poll) { return Inspector(engine).profile(run, n, poll); }));
            },
            py::arg("phase") = "decode", py::arg("rows") = 1, py::arg("position") = 0, py::arg("repeats") = 16)
        .def("close", &PyEngine::close);
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
    py::class_<OpenAhead>(m, "OpenAhead").def(py::init()).def("close", &OpenAhead::close);
    m.def(
        "devices",
        [] {
            py::list out;
            const auto devices = [] {
                const GilRelease release;
                return list_devices();
            };
            for (const DeviceEntry& e : devices()) {
                py::dict d;
                d["id"] = e.id;
                d["name"] = e.name;
                d["backend"] = e.backend;
                d["isa"] = e.isa;
                d["threads"] = e.threads;
                d["memory"] = e.memory;
                d["prompt_rows"] = e.prompt_rows;
                d["nodes"] = e.nodes;
                out.append(d);
            }
            return out;
        },
        "The devices that models can run on here, the best one first, a dict for each:\n"
        "`id` (what `load(device=)` takes), `name`, `backend`, `isa`, `threads` (of a model, by default),\n"
        "`memory` (bytes), `prompt_rows` (tokens of a prompt that run at once, at most, where nobody says\n"
        "otherwise) and `nodes` (of a CPU's memory: the cores of each).");
    m.def("missing_devices", [] {
        py::dict out;
        for (const MissingDevice& d : missing_devices()) out[py::str(d.backend)] = d.why;
        return out;
    });
    m.def(
        "measure_peaks",
        [](int threads, double seconds) {
            Peaks p;
            {
                const GilRelease release;
                p = measure_peaks(threads, seconds);
            }
            py::dict d;
            d["read_bytes_per_second"] = p.read_bytes_per_second;
            d["f32_flops"] = p.f32_flops;
            d["int8_ops"] = p.int8_ops;
            return d;
        },
        py::arg("threads") = 0, py::arg("seconds") = 0.3);
}

}  // namespace akunu
