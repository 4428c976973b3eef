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
std::thread::id exit_thread;   // set before `exiting`: callbacks of other modules may still use an engine there

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

void bind_exit(py::module_&) {
    pthread_atfork(nullptr, nullptr, [] { released = 0; });  // a forked child has none of the other threads
    py::module_::import("atexit").attr("register")(py::cpp_function(leave_calls));
}

}  // namespace akunu
