// The log-mel front end of speech models.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "audio/log_mel.h"
#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/gil.h"

namespace akunu {
namespace {

namespace py = pybind11;

using Samples = py::array_t<float, py::array::c_style | py::array::forcecast>;

std::size_t checked_mels(std::int64_t mels) {
    return static_cast<std::size_t>(checked("mels", mels, mels >= 1 && mels <= 512, "1 to 512"));
}

py::array_t<float> feed(audio::LogMelStream& stream, const Samples& samples, bool end) {
    if (samples.ndim() != 1) {
        throw InvalidArgumentError("samples have " + std::to_string(samples.ndim()) + " dimensions, expected 1");
    }
    if (stream.ended()) throw InvalidArgumentError("samples after the end of the stream; make a new LogMelStream");
    std::vector<float> frames;
    {
        const std::span<const float> all(samples.data(), static_cast<std::size_t>(samples.size()));
        const GilRelease release;
        frames = stream.feed(all, end);
    }
    const auto mels = static_cast<py::ssize_t>(stream.mels());
    py::array_t<float> out({mels, static_cast<py::ssize_t>(frames.size()) / mels});
    std::copy(frames.begin(), frames.end(), out.mutable_data());
    return out;
}

}  // namespace

void bind_audio(py::module_& module) {
    py::class_<audio::LogMelStream>(
        module, "LogMelStream", "log10 of the mel power of samples that come in pieces, 100 frames a second at 16 kHz.")
        .def(py::init([](std::int64_t mels) { return audio::LogMelStream(checked_mels(mels)); }), py::arg("mels") = 80)
        .def_property_readonly("mels", &audio::LogMelStream::mels)
        .def("feed", feed, py::arg("samples"), py::arg("end") = false);
}

}  // namespace akunu
