// Devices and their peaks for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <future>
#include <memory>

#include "bindings/bind.h"
#include "bindings/gil.h"
#include "engine/measure.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

struct OpenAhead {
    std::future<std::shared_ptr<void>> opened = open_ahead();
    void close() {
        const GilRelease release;
        opened = {};
    }
};

}  // namespace

void bind_devices(py::module_& m) {
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
