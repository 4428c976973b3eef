// Runs of the engine whose results are the caller's, for Python: logits, sums of inputs, plans and profiles.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/arguments.h"
#include "bindings/engine.h"
#include "engine/inspector.h"
#include "engine/measure.h"

namespace akunu {

namespace {

// After a call that has no partial result.
void check_complete(std::size_t done, std::size_t tokens) {
    if (done == tokens) return;
    throw Error("cancelled after " + std::to_string(done) + " of " + std::to_string(tokens) + " tokens");
}

}  // namespace

void bind_engine_runs(py::class_<PyEngine>& engine) {
    engine
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
                        out[py::str(input.name)] =
                            py::make_tuple(py::array_t<double>(n, input.sums.data()), py::none());
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
                const auto run = [&](Engine& engine, const Poll&) {
                    return Inspector(engine).run_prefix(slot, commands);
                };
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
            py::arg("phase") = "decode", py::arg("rows") = 1, py::arg("position") = 0, py::arg("repeats") = 16);
}

}  // namespace akunu
