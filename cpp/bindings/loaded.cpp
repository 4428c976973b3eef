#include "bindings/loaded.h"

namespace akunu {

namespace py = pybind11;

py::dict memory_dict(const MemoryUse& use) {
    py::dict d;
    d["weights"] = use.weights;
    d["weights_mapped"] = use.weights_mapped;
    d["kv_cache"] = use.kv_cache;
    d["scratch"] = use.scratch;
    return d;
}

Progress to_progress(const py::object& progress) {
    return [&progress](std::uint64_t done, std::uint64_t total, std::string_view what) {
        if (interpreter_exiting()) throw Error("the interpreter is exiting");
        const py::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (progress.is_none()) return;
        if (what.empty()) {
            progress(done, total);
        } else {
            progress(done, total, std::string(what));
        }
    };
}

}  // namespace akunu
