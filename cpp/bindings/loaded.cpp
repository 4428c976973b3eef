#include "bindings/loaded.h"

#include <chrono>

#include "bindings/arguments.h"

namespace akunu {

namespace py = pybind11;

py::dict memory_dict(const MemoryUse& use) {
    py::dict d;
    d["weights"] = use.weights;
    d["weights_mapped"] = use.weights_mapped;
    d["kv_cache"] = use.kv_cache;
    d["scratch"] = use.scratch;
    d["activations"] = use.activations;
    d["activations_apart"] = use.activations_apart;
    return d;
}

py::list command_list(const std::vector<CommandInfo>& commands) {
    py::list out;
    for (const CommandInfo& info : commands) {
        py::dict d;
        d["label"] = info.label;
        d["op"] = info.op;
        d["dtype"] = info.dtype;
        d["kernel"] = info.kernel;
        d["dispatches"] = info.dispatches;
        d["layer"] = info.layer;
        d["shape"] = info.shape;
        d["bytes"] = info.bytes;
        d["minimum"] = info.minimum;
        d["flops"] = info.flops;
        d["whole"] = info.whole;
        d["barrier"] = info.barrier;
        d["seconds"] = info.seconds;
        out.append(d);
    }
    return out;
}

PhaseRun to_run(const std::string& phase, std::uint32_t rows, std::uint32_t position) {
    const auto found = [&] {
        if (phase == "decode") return Phase::kDecode;
        if (phase == "batch") return Phase::kBatch;
        if (phase == "prefill") return Phase::kPrefill;
        throw InvalidArgumentError("phase is '" + phase + "', expected decode, batch or prefill");
    }();
    return {found, rows, position, found == Phase::kBatch};
}

std::size_t to_repeats(std::int64_t repeats) {
    return static_cast<std::size_t>(checked("repeats", repeats, repeats >= 1 && repeats <= 100000, "1..100000"));
}

// Other threads of Python's may run meanwhile, and each call waits for them: so not for every tensor.
Progress to_progress(const py::object& progress) {
    using Clock = std::chrono::steady_clock;
    static constexpr auto kInterval = std::chrono::milliseconds(100);
    return [&progress, next = Clock::time_point()](std::uint64_t done, std::uint64_t total,
                                                   std::string_view what) mutable {
        if (interpreter_exiting()) throw Error("the interpreter is exiting");
        if (what.empty() && done < total && Clock::now() < next) return;
        next = Clock::now() + kInterval;
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
