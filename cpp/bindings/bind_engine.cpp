// Engine, devices and peaks for Python. Thin: converts, checks what only Python can get wrong, releases the GIL.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/gil.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "cpu/cpu_device.h"
#include "engine/engine.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

using IdArray = py::array_t<std::uint32_t, py::array::c_style>;

// What a signal's handler raised inside a poll (KeyboardInterrupt for Ctrl-C); kept until the engine has left its call.
struct Interrupt {
    std::optional<py::error_already_set> raised;
    bool operator()() {
        if (interpreter_exiting()) return true;
        const py::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) raised.emplace();
        return raised.has_value();
    }
    void rethrow() const {
        if (raised) throw *raised;
    }
};

// The Python object: an engine that refuses overlapping calls. Its members are touched only with the GIL.
class PyEngine {
  public:
    explicit PyEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

    // Claims the engine for one call: it throws when another call runs, and until its end nobody else calls or closes.
    class Call {
      public:
        explicit Call(PyEngine& engine) : e_(engine) {
            e_.get();
            e_.claim();
        }
        ~Call() { e_.busy_ = false; }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

        Engine& engine() const { return *e_.engine_; }

        // Runs f(engine, poll) without the GIL. Ctrl-C stops it and is raised afterwards.
        template <typename F>
        auto run(F&& f) const {
            Interrupt interrupt;
            const Poll poll = std::ref(interrupt);
            if constexpr (std::is_void_v<std::invoke_result_t<F, Engine&, const Poll&>>) {
                {
                    const GilRelease release;
                    f(engine(), poll);
                }
                interrupt.rethrow();
            } else {
                auto result = [&] {
                    const GilRelease release;
                    return f(engine(), poll);
                }();
                interrupt.rethrow();
                return result;
            }
        }

      private:
        PyEngine& e_;
    };

    template <typename F>
    auto call(F&& f) {
        return Call(*this).run(std::forward<F>(f));
    }
    Engine& get() const {
        if (!engine_) throw InvalidArgumentError("this model has been closed");
        return *engine_;
    }
    void cancel() {
        if (engine_) engine_->cancel();
    }
    void close() {
        claim();
        std::unique_ptr<Engine> engine = std::move(engine_);
        busy_ = false;
        const GilRelease release;
        engine.reset();
    }

  private:
    void claim() {
        if (busy_) throw InvalidArgumentError("this engine is already running a call from another thread");
        busy_ = true;
    }

    std::unique_ptr<Engine> engine_;
    bool busy_ = false;
};

struct PyChunk {
    Chunk chunk;
    bool want = false;
    std::uint32_t top = 0;
};

// After a call that has no partial result.
void check_complete(std::size_t done, std::size_t tokens) {
    if (done == tokens) return;
    throw Error("cancelled after " + std::to_string(done) + " of " + std::to_string(tokens) + " tokens");
}

Phase to_phase(const std::string& name) {
    if (name == "decode") return Phase::kDecode;
    if (name == "batch") return Phase::kBatch;
    if (name == "prefill") return Phase::kPrefill;
    throw InvalidArgumentError("phase is '" + name + "', expected decode, batch or prefill");
}

py::list describe(Engine& e, const std::string& phase, const ReplayArgs& args, const std::vector<double>& seconds) {
    const DispatchTable& t = e.table({to_phase(phase), Head::kLastRow, Tail::kGreedy, false});
    if (args.rows == 0 || args.rows > t.max_rows) {
        throw InvalidArgumentError("a " + phase + " table takes 1.." + std::to_string(t.max_rows) + " rows, not " +
                                   std::to_string(args.rows));
    }
    py::list out;
    for (std::size_t i = 0; i < t.commands.size(); ++i) {
        const DispatchCmd& c = t.commands[i];
        const CommandLabel& l = t.labels[i];
        py::dict d;
        const bool weighted = c.op == Op::kMatmul || c.op == Op::kGateUp || c.op == Op::kEmbed ||
                              c.op == Op::kNormQkv || c.op == Op::kNormGateUp;
        const bool cached = c.op == Op::kRopeKv || c.op == Op::kAttention || c.op == Op::kAttentionSplit;
        d["label"] = l.full_name();
        d["op"] = std::string(op_name(c.op));
        d["dtype"] = weighted ? std::string(dtype_info(c.weight).name)
                     : cached ? std::string(dtype_info(c.kv).name)
                              : "";
        std::vector<std::string> kernels = e.device().kernel_names(c);
        if (kernels.empty()) {
            const auto dtype = d["dtype"].cast<std::string>();
            kernels.push_back(std::string(op_name(c.op)) + (dtype.empty() ? "" : "_" + dtype));
        }
        d["kernel"] = kernels.back();
        d["dispatches"] = kernels.size();
        d["layer"] = l.layer;
        d["shape"] = l.shape;
        d["bytes"] = cost_bytes(l.cost, args);
        d["minimum"] = cost_minimum_bytes(l.cost, args);
        d["flops"] = cost_flops(l.cost, args);
        d["barrier"] = c.barrier;
        d["seconds"] = seconds.empty() ? 0.0 : seconds[i];
        out.append(d);
    }
    return out;
}

PyChunk wrap(Engine& e, Chunk chunk) {
    const SamplerState& s = e.sampler();
    return {std::move(chunk), s.want_logprobs != 0, std::min(s.n_logprobs, e.config().vocab_size)};
}

void bind_engine_class(py::module_& m) {
    py::class_<PyChunk>(m, "Chunk")
        .def_property_readonly("ids", [](const PyChunk& c) { return c.chunk.ids; })
        .def_property_readonly("ended", [](const PyChunk& c) { return c.chunk.ended; })
        .def_property_readonly("logprobs",
                               [](const PyChunk& c) {
                                   std::vector<float> v;
                                   for (const auto& r : c.chunk.logprobs) v.push_back(r.chosen);
                                   return v;
                               })
        .def_property_readonly("top_logprobs", [](const PyChunk& c) {
            std::vector<std::vector<std::pair<std::uint32_t, float>>> v;
            if (c.top == 0) return v;
            for (const auto& r : c.chunk.logprobs) {
                auto& row = v.emplace_back();
                for (std::uint32_t i = 0; i < c.top; ++i) row.emplace_back(r.ids[i], r.values[i]);
            }
            return v;
        });

    py::class_<PyEngine>(m, "Engine")
        .def(py::init([](const std::shared_ptr<TensorFiles>& file, const py::object& spec, const std::string& device,
                         std::uint32_t context, int threads, const std::string& kv_dtype, std::uint32_t chunk,
                         const py::object& synthetic, const py::object& progress) {
                 if (!file && synthetic.is_none()) throw InvalidArgumentError("Engine needs a file or synthetic types");
                 const DTypeInfo* kv = find_dtype(kv_dtype);
                 if (!kv) throw UnsupportedError("unknown KV cache type '" + kv_dtype + "'");
                 if (chunk == 0) throw InvalidArgumentError("chunk is 0, expected at least 1");
                 ModelConfig config = to_config(field(spec, "config"));
                 auto source = to_source(file, field(spec, "tensors"), synthetic, device.starts_with("plan:"));
                 const Progress report = [&](std::uint64_t done, std::uint64_t total) {
                     if (interpreter_exiting()) throw Error("the interpreter is exiting");
                     const py::gil_scoped_acquire gil;
                     if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                     if (!progress.is_none()) progress(done, total);
                 };
                 const GilRelease release;
                 auto dev = open_device(device, threads);
                 return std::make_unique<PyEngine>(
                     std::make_unique<Engine>(std::move(dev), std::move(config), std::move(source),
                                              EngineOptions{context, chunk, kv->id}, report));
             }),
             py::arg("file").none(true), py::arg("spec"), py::kw_only(), py::arg("device") = "auto",
             py::arg("context") = 0, py::arg("threads") = 0, py::arg("kv_dtype") = "f16", py::arg("chunk") = 512,
             py::arg("synthetic") = py::none(), py::arg("progress") = py::none())
        .def_property_readonly("context", [](PyEngine& e) { return e.get().context(); })
        .def_property_readonly("position", [](PyEngine& e) { return e.get().position(); })
        .def_property_readonly("tokens",
                               [](PyEngine& e) {
                                   const auto h = e.get().history();
                                   return IdArray(static_cast<py::ssize_t>(h.size()), h.data());
                               })
        .def_property_readonly("threads", [](PyEngine& e) { return e.get().device().threads(); })
        .def_property_readonly("device", [](PyEngine& e) { return e.get().device().name(); })
        .def_property_readonly("isa", [](PyEngine& e) { return e.get().device().isa(); })
        .def_property_readonly("kv_dtype", [](PyEngine& e) { return std::string(dtype_info(e.get().kv_dtype()).name); })
        .def_property_readonly("chunk", [](PyEngine& e) { return e.get().chunk(); })
        .def_property_readonly("memory",
                               [](PyEngine& e) {
                                   const MemoryUse u = e.get().memory();
                                   py::dict d;
                                   d["weights"] = u.weights;
                                   d["weights_mapped"] = u.weights_mapped;
                                   d["kv_cache"] = u.kv_cache;
                                   d["scratch"] = u.scratch;
                                   return d;
                               })
        .def(
            "begin",
            [](PyEngine& e, const py::object& ids, float temperature, std::int64_t top_k, float top_p, float min_p,
               float typical_p, float repeat_penalty, float presence_penalty, float frequency_penalty,
               std::int64_t penalty_window, const py::object& logit_bias, std::uint64_t seed, int logprobs,
               const py::object& end_ids, bool reuse) {
                const std::uint32_t vocab = e.get().config().vocab_size;
                const SamplerState s =
                    to_sampler(temperature, top_k, top_p, min_p, typical_p, repeat_penalty, presence_penalty,
                               frequency_penalty, penalty_window, logit_bias, seed, logprobs, end_ids, vocab);
                const auto prompt = to_ids(ids, vocab);
                return e.call([&](Engine& engine, const Poll&) { return engine.begin(prompt, s, reuse); });
            },
            py::arg("ids"), py::kw_only(), py::arg("temperature") = 0.0f, py::arg("top_k") = 0, py::arg("top_p") = 1.0f,
            py::arg("min_p") = 0.0f, py::arg("typical_p") = 1.0f, py::arg("repeat_penalty") = 1.0f,
            py::arg("presence_penalty") = 0.0f, py::arg("frequency_penalty") = 0.0f, py::arg("penalty_window") = 64,
            py::arg("logit_bias") = py::none(), py::arg("seed") = 0, py::arg("logprobs") = -1,
            py::arg("end_ids") = py::tuple(), py::arg("reuse") = true)
        .def(
            "prefill",
            [](PyEngine& e, bool sample) {
                PyChunk out;
                const std::uint32_t left = e.call([&](Engine& engine, const Poll& poll) {
                    Chunk chunk;
                    const std::uint32_t rest = engine.prefill(sample, chunk, poll);
                    out = wrap(engine, std::move(chunk));
                    return rest;
                });
                return py::make_tuple(left, std::move(out));
            },
            py::arg("sample") = true)
        .def("decode",
             [](PyEngine& e, std::uint32_t n) {
                 return e.call([&](Engine& engine, const Poll& poll) { return wrap(engine, engine.decode(n, poll)); });
             })
        .def("cancel", &PyEngine::cancel)
        .def("truncate",
             [](PyEngine& e, std::uint32_t n) { e.call([&](Engine& engine, const Poll&) { engine.truncate(n); }); })
        .def("logits",
             [](PyEngine& e, const py::object& object) {
                 const std::size_t vocab = e.get().config().vocab_size;
                 const auto ids = to_ids(object, e.get().config().vocab_size);
                 e.get().check_ids(ids);
                 py::array_t<float> out({ids.size(), vocab});
                 float* data = out.mutable_data();
                 const std::uint32_t done = e.call([&](Engine& engine, const Poll& poll) {
                     engine.for_each_logits(ids, poll, [&](std::size_t i, std::span<const float> row) {
                         std::copy(row.begin(), row.end(), data + i * vocab);
                     });
                     return engine.position();
                 });
                 check_complete(done, ids.size());
                 return out;
             })
        .def(
            "nll",
            [](PyEngine& e, const py::object& object, std::size_t first) {
                const auto ids = to_ids(object, e.get().config().vocab_size);
                e.get().check_ids(ids);
                if (first < 1 || first > ids.size()) {
                    throw InvalidArgumentError("first is " + std::to_string(first) + ", expected 1.." +
                                               std::to_string(ids.size()));
                }
                py::array_t<float> out(static_cast<py::ssize_t>(ids.size() - first));
                float* data = out.mutable_data();
                const std::uint32_t done = e.call([&](Engine& engine, const Poll& poll) {
                    engine.for_each_logits(ids, poll, [&](std::size_t i, std::span<const float> row) {
                        if (i + 1 < first || i + 1 >= ids.size()) return;
                        double sum = 0;
                        const float max = *std::max_element(row.begin(), row.end());
                        for (const float v : row) sum += std::exp(v - max);
                        data[i + 1 - first] = static_cast<float>(max + std::log(sum) - row[ids[i + 1]]);
                    });
                    return engine.position();
                });
                check_complete(done, ids.size());
                return out;
            },
            py::arg("ids"), py::arg("first") = 1)
        .def(
            "plan",
            [](PyEngine& e, const std::string& phase, std::uint32_t rows, std::uint32_t position) {
                const PyEngine::Call call(e);
                return describe(call.engine(), phase, {position, rows, 1}, {});
            },
            py::arg("phase") = "decode", py::arg("rows") = 1, py::arg("position") = 0)
        .def(
            "profile",
            [](PyEngine& e, const std::string& phase, std::uint32_t rows, std::uint32_t position, int repeats) {
                checked("repeats", repeats, repeats >= 1 && repeats <= 100000, "1..100000");
                const TableKey key{to_phase(phase), Head::kLastRow, Tail::kGreedy, false};
                const ReplayArgs args{position, rows, 1};
                std::vector<std::vector<double>> runs;
                const auto n = static_cast<std::size_t>(repeats);
                const PyEngine::Call call(e);
                call.run([&](Engine& engine, const Poll& poll) {
                    engine.profile(key, args);  // warm-up
                    while (runs.size() < n && !poll()) runs.push_back(engine.profile(key, args));
                });
                std::vector<double> median(runs.empty() ? 0 : runs[0].size());
                for (std::size_t i = 0; i < median.size(); ++i) {
                    std::vector<double> v;
                    for (const auto& run : runs) v.push_back(run[i]);
                    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
                    median[i] = v[v.size() / 2];
                }
                return describe(call.engine(), phase, args, median);
            },
            py::arg("phase") = "decode", py::arg("rows") = 1, py::arg("position") = 0, py::arg("repeats") = 16)
        .def("close", &PyEngine::close);
}

}  // namespace

void bind_engine(py::module_& m) {
    bind_engine_class(m);
    m.def("devices", [] {
        py::list out;
        for (const DeviceEntry& e : list_devices()) {
            py::dict d;
            d["id"] = e.id;
            d["name"] = e.name;
            d["backend"] = e.backend;
            d["isa"] = e.isa;
            d["threads"] = e.threads;
            d["memory"] = e.memory;
            out.append(d);
        }
        return out;
    });
    m.def(
        "measure_peaks",
        [](int threads, double seconds) {
            cpu::Peaks p;
            {
                const GilRelease release;
                p = cpu::measure_peaks(threads, seconds);
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
