// Work without the GIL that survives the end of the interpreter.
//
// CPython ends a daemon thread that asks for the GIL after finalisation has begun by unwinding its stack (up to 3.13),
// which a C++ destructor turns into std::terminate. So no thread may ask for it then: at exit a hook lets those that
// are in a call leave it, and a thread that comes back to Python later stays where it is until the process ends.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>

namespace akunu {

// True when this thread must not return to Python any more: long calls stop, callbacks are not made.
bool interpreter_exiting();

// Releases the GIL. Its end takes the GIL back, or pauses for ever when the interpreter is exiting.
class GilRelease {
  public:
    GilRelease();
    ~GilRelease();
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

  private:
    PyThreadState* state_;
};

// The poll of one long call: true when the call is to stop. Signals' handlers run on the main thread only, and Python
// looks at them itself between calls, so nothing else asks for the GIL, which another thread may be long in giving.
class SignalPoll {
  public:
    bool operator()();
    // Raises what a handler raised (KeyboardInterrupt for Ctrl-C), after the engine has left its call.
    void rethrow() const {
        if (raised_) throw *raised_;
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    std::optional<pybind11::error_already_set> raised_;
};

}  // namespace akunu
