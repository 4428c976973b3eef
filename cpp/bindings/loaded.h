// What the classes of loaded models have in common in Python: one call at a time, memory by purpose, progress.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/gil.h"
#include "core/error.h"
#include "engine/inspector.h"

namespace akunu {

pybind11::dict memory_dict(const MemoryUse& use);

// Commands of dispatch tables, `CommandInfo` of the stubs.
pybind11::list command_list(const std::vector<CommandInfo>& commands);

// The phase of a decoder that has this name, of so many rows at a position.
PhaseRun to_run(const std::string& phase, std::uint32_t rows, std::uint32_t position);

// Runs that are to be timed. Throws InvalidArgumentError.
std::size_t to_repeats(std::int64_t repeats);

// Reports to a Python function, or, of None, to nobody. Signals end the load.
Progress to_progress(const pybind11::object& progress);

// A loaded model that refuses overlapping calls. Its members are touched only with the GIL.
template <typename Model>
class Exclusive {
  public:
    explicit Exclusive(std::unique_ptr<Model> model) : model_(std::move(model)) {}

    // Claims the model for one call: it throws when another call runs, and until its end nobody else calls or closes.
    class Call {
      public:
        explicit Call(Exclusive& owner) : owner_(owner) {
            owner_.get();
            owner_.claim();
        }
        ~Call() { owner_.busy_ = false; }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

        Model& model() const { return *owner_.model_; }

        // Runs f(model, poll) without the GIL. Ctrl-C stops it and is raised afterwards.
        template <typename F>
        auto run(F&& f) const {
            SignalPoll signals;
            const Poll poll = std::ref(signals);
            if constexpr (std::is_void_v<std::invoke_result_t<F, Model&, const Poll&>>) {
                {
                    const GilRelease release;
                    f(model(), poll);
                }
                signals.rethrow();
            } else {
                auto result = [&] {
                    const GilRelease release;
                    return f(model(), poll);
                }();
                signals.rethrow();
                return result;
            }
        }

      private:
        Exclusive& owner_;
    };

    template <typename F>
    auto call(F&& f) {
        return Call(*this).run(std::forward<F>(f));
    }
    Model& get() const {
        if (!model_) throw InvalidArgumentError("this model has been closed");
        return *model_;
    }
    void cancel() {
        if (model_) model_->cancel();
    }
    void close() {
        claim();
        std::unique_ptr<Model> model = std::move(model_);
        busy_ = false;
        const GilRelease release;
        model.reset();
    }

  private:
    void claim() {
        if (busy_) throw InvalidArgumentError("this engine is already running a call");
        busy_ = true;
    }

    std::unique_ptr<Model> model_;
    bool busy_ = false;
};

}  // namespace akunu
