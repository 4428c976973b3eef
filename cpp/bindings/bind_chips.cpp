// What is known about Apple's and NVIDIA's chips, for predictions.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bind.h"
#include "cuda/host/chip.h"
#include "metal/choose/chip.h"

namespace py = pybind11;

namespace akunu {

namespace {

py::dict to_dict(const metal::Chip& c) {
    py::dict d;
    d["name"] = std::string(c.name);
    d["family"] = c.family;
    d["gpu_cores"] = c.gpu_cores;
    d["bytes_per_second"] = c.bandwidth;
    d["flops"] = c.f16_flops;
    return d;
}

}  // namespace

void bind_chips(py::module_& m) {
    m.def("apple_chips", [] {
        py::list all;
        for (const metal::Chip& c : metal::chips()) all.append(to_dict(c));
        return all;
    });
    m.def("nvidia_chips", [] {
        py::list all;
        for (const cuda::Chip& c : cuda::kChips) {
            py::dict d;
            d["name"] = std::string(c.name);
            d["arch"] = std::string(c.arch);
            d["device"] = std::string(c.device);
            d["multiprocessors"] = c.multiprocessors;
            d["bytes_per_second"] = c.bandwidth;
            d["flops"] = c.f16_flops;
            all.append(d);
        }
        return all;
    });
    m.def("find_apple_chip", [](const std::string& name) { return to_dict(metal::find_chip(name)); }, py::arg("name"));
}

}  // namespace akunu
