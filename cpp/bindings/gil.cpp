#include "bindings/gil.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bindings/bind.h"

namespace akunu {

namespace {

namespace py = pybind11;

std::atomic<bool> exiting{false};
std::atomic<int> released{0};  // threads inside a GilRelease that may still take the GIL
std::atomic<std::uint64_t> signal_polls{0};
std::atomic<unsigned long> main_thread{0};  // the one that Python runs signals' handlers on
std::thread::id exit_thread;  // set before `exiting`: callbacks of other modules may still use an engine there

void leave_calls() {
    exit_thread = std::this_thread::get_id();
    exiting = true;
    while (released > 0) {
        {
            const py::gil_scoped_release release;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // Ctrl-C: do not wait
    }
}

[[noreturn]] void pause_for_ever() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

}  // namespace

bool interpreter_exiting() { return exiting && std::this_thread::get_id() != exit_thread; }

GilRelease::GilRelease() : state_(PyEval_SaveThread()) { ++released; }

GilRelease::~GilRelease() {
    if (interpreter_exiting()) {
        --released;
        pause_for_ever();
    }
    PyEval_RestoreThread(state_);
    --released;
}

bool SignalPoll::operator()() {
    constexpr auto kInterval = std::chrono::milliseconds(100);
    if (interpreter_exiting() || raised_) return true;
    if (PyThread_get_thread_ident() != main_thread) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kInterval) return false;
    const py::gil_scoped_acquire gil;
    ++signal_polls;
    if (PyErr_CheckSignals() != 0) raised_.emplace();
    last_ = std::chrono::steady_clock::now();
    return raised_.has_value();
}

void bind_exit(py::module_& m) {
    main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
    pthread_atfork(nullptr, nullptr, [] {  // a forked child has none of the other threads
        released = 0;
        main_thread = PyThread_get_thread_ident();
    });
    py::module_::import("atexit").attr("register")(py::cpp_function(leave_calls));
    m.def("signal_polls", [] { return signal_polls.load(); });
}

}  // namespace akunu
