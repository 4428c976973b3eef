// Drafts by lookup.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "engine/lookup.h"

namespace akunu {

void bind_lookup(py::module_& m) {
    py::class_<Lookup>(m, "Lookup")
        .def(py::init<>())
        .def("__len__", &Lookup::size)
        .def(
            "extend", [](Lookup& sequence, const std::vector<std::uint32_t>& tokens) { sequence.extend(tokens); },
            py::arg("tokens"))
        .def(
            "propose",
            [](const Lookup& sequence, const std::vector<const Lookup*>& others, std::size_t own) {
                Lookup::Proposal found = sequence.propose(others, own);
                return std::pair(found.agree, std::move(found.tokens));
            },
            py::arg("others"), py::arg("own"));
}

}  // namespace akunu
