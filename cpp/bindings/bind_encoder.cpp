// Encoders for Python. Thin: converts, and releases the GIL.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/loaded.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "engine/encoder.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

using TokenIds = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;

using PyEncoder = Exclusive<Encoder>;

py::array_t<float> encode(PyEncoder& e, const std::vector<std::pair<TokenIds, std::uint32_t>>& list,
                          const py::object& progress) {
    std::vector<EncoderText> texts;
    for (const auto& [ids, second] : list) {
        texts.push_back({{ids.data(), static_cast<std::size_t>(ids.size())}, second});
    }
    py::array_t<float> out({texts.size(), std::size_t{e.get().width()}});
    float* data = out.mutable_data();
    const std::function<void(std::size_t)> report = [&](std::size_t done) {
        if (progress.is_none() || interpreter_exiting()) return;
        const py::gil_scoped_acquire gil;
        progress(done);
    };
    const std::size_t done =
        e.call([&](Encoder& encoder, const Poll& poll) { return encoder.encode(texts, data, poll, report); });
    if (done != texts.size()) {
        throw Error("cancelled after " + std::to_string(done) + " of " + std::to_string(texts.size()) + " texts");
    }
    return out;
}

}  // namespace

void bind_encoder(py::module_& m) {
    py::class_<PyEncoder>(m, "Encoder")
        .def(py::init([](const std::shared_ptr<TensorFiles>& file, const py::object& spec, const std::string& device,
                         std::uint32_t context, int threads, bool check_weights, const py::object& quantize,
                         const py::object& progress) {
                 ModelConfig config = to_config(field(spec, "config"));
                 auto source = to_source(file, field(spec, "tensors"), py::none(), is_planned(device), check_weights);
                 if (!quantize.is_none()) source = quantized(std::move(source), quantize, threads);
                 const Progress report = to_progress(progress);
                 const GilRelease release;
                 return std::make_unique<PyEncoder>(std::make_unique<Encoder>(
                     open_device(device, threads), std::move(config), std::move(source), context, report));
             }),
             py::arg("file"), py::arg("spec"), py::kw_only(), py::arg("device") = "cpu", py::arg("context") = 0,
             py::arg("threads") = 0, py::arg("check_weights") = true, py::arg("quantize") = py::none(),
             py::arg("progress") = py::none())
        .def_property_readonly("context", [](PyEncoder& e) { return e.get().context(); })
        .def_property_readonly("width", [](PyEncoder& e) { return e.get().width(); })
        .def_property_readonly("device", [](PyEncoder& e) { return e.get().device().name(); })
        .def_property_readonly("threads", [](PyEncoder& e) { return e.get().device().threads(); })
        .def_property_readonly("isa", [](PyEncoder& e) { return e.get().device().isa(); })
        // An engine's: it runs no sequences side by side, and keeps none.
        .def_property_readonly("parallel", [](PyEncoder&) { return 0; })
        .def_property_readonly("pages",
                               [](PyEncoder&) {
                                   py::dict d;
                                   for (const char* name : {"pages", "held", "pinned", "cached", "page_bytes"})
                                       d[name] = 0;
                                   return d;
                               })
        .def_property_readonly("memory", [](PyEncoder& e) { return memory_dict(e.get().memory()); })
        .def_property_readonly("memory_left", [](PyEncoder& e) { return e.get().device().memory_left(); })
        .def("encode", encode, py::arg("texts"), py::arg("progress") = py::none())
        .def(
            "plan",
            [](PyEncoder& e, std::uint32_t rows, std::uint32_t texts) {
                return command_list(PyEncoder::Call(e).model().commands(rows, texts));
            },
            py::arg("rows"), py::arg("texts") = 1)
        .def(
            "profile",
            [](PyEncoder& e, std::uint32_t rows, std::uint32_t texts, std::int64_t repeats) {
                const std::size_t n = to_repeats(repeats);
                return command_list(
                    e.call([&](Encoder& encoder, const Poll& poll) { return encoder.profile(rows, texts, n, poll); }));
            },
            py::arg("rows"), py::arg("texts") = 1, py::arg("repeats") = 16)
        .def("cancel", &PyEncoder::cancel)
        .def("close", &PyEncoder::close);
}

}  // namespace akunu
