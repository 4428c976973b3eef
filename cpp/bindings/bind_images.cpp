// Encoders of images, and the rows that they make, for Python. Thin: converts, and releases the GIL.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/loaded.h"
#include "bindings/weights.h"
#include "core/error.h"
#include "engine/image_encoder.h"
#include "engine/image_patches.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

using PyImageEncoder = Exclusive<ImageEncoder>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using AxisArray = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;

std::span<const float> values_of(const Floats& array) { return {array.data(), static_cast<std::size_t>(array.size())}; }

std::shared_ptr<EncodedRows> to_rows(const Floats& array) {
    if (array.ndim() != 2) throw InvalidArgumentError("encoded rows are an array of [rows, width]");
    auto rows = std::make_shared<EncodedRows>();
    rows->count = static_cast<std::uint32_t>(array.shape(0));
    rows->width = static_cast<std::uint32_t>(array.shape(1));
    const auto values = values_of(array);
    rows->values.assign(values.begin(), values.end());
    return rows;
}

py::array_t<float> to_array(const EncodedRows& rows) {
    py::array_t<float> out({rows.count, rows.width});
    std::ranges::copy(rows.values, out.mutable_data());
    return out;
}

void cut(const py::array_t<std::uint8_t, py::array::c_style>& pixels, const Floats& values, std::uint32_t side,
         std::uint32_t merge, std::uint32_t frames, py::array_t<float, py::array::c_style>& out) {
    if (pixels.ndim() != 3 || pixels.shape(2) != 3)
        throw InvalidArgumentError("a picture is bytes of [height, width, 3]");
    if (values.ndim() != 2 || values.shape(0) != 3 || values.shape(1) != 256) {
        throw InvalidArgumentError("the values of a picture's bytes are floats of [3, 256]");
    }
    if (side == 0 || merge == 0 || frames == 0) throw InvalidArgumentError("a patch has pixels and frames");
    Picture picture{.pixels = {pixels.data(), static_cast<std::size_t>(pixels.size())},
                    .height = static_cast<std::uint32_t>(pixels.shape(0)),
                    .width = static_cast<std::uint32_t>(pixels.shape(1)),
                    .side = side,
                    .merge = merge,
                    .frames = frames};
    for (std::size_t i = 0; i < picture.values.size(); ++i) std::copy_n(values.data(i), 256, picture.values[i].begin());
    if (static_cast<std::uint64_t>(out.size()) != picture.floats()) {
        throw InvalidArgumentError("room for the picture's patches is of " + std::to_string(out.size()) +
                                   " floats, expected " + std::to_string(picture.floats()));
    }
    const std::span<float> to(out.mutable_data(), static_cast<std::size_t>(out.size()));
    const GilRelease release;
    cut_patches(picture, to);
}

std::shared_ptr<EncodedRows> encode_image(PyImageEncoder& e, const Floats& pixels, const std::optional<Floats>& added,
                                          const std::optional<AxisArray>& positions,
                                          const std::vector<std::uint32_t>& windows, std::uint64_t added_id) {
    std::vector<std::array<u32, kPositionAxes>> turns(
        positions ? static_cast<std::size_t>(positions->size()) / kPositionAxes : 0);
    for (std::size_t i = 0; i < turns.size(); ++i) {
        std::copy_n(positions->data() + i * kPositionAxes, kPositionAxes, turns[i].begin());
    }
    const ImagePatches image{values_of(pixels), added ? values_of(*added) : std::span<const float>{}, added_id, turns,
                             windows};
    auto rows = e.call([&](ImageEncoder& encoder, const Poll& poll) { return encoder.encode(image, poll); });
    if (!rows) throw Error("cancelled");
    return std::const_pointer_cast<EncodedRows>(rows);
}

}  // namespace

void bind_images(py::module_& m) {
    m.def("cut_patches", &cut, py::arg("picture"), py::arg("values"), py::arg("side"), py::arg("merge"),
          py::arg("frames"), py::arg("out").noconvert());
    py::class_<EncodedRows, std::shared_ptr<EncodedRows>>(m, "EncodedRows")
        .def(py::init(&to_rows), py::arg("values"))
        .def("__len__", [](const EncodedRows& r) { return r.count; })
        .def_property_readonly("width", [](const EncodedRows& r) { return r.width; })
        .def_property_readonly("nbytes", [](const EncodedRows& r) { return r.values.size() * sizeof(float); })
        .def("numpy", &to_array);

    py::class_<PyImageEncoder>(m, "ImageEncoder")
        .def(py::init([](const std::shared_ptr<TensorFiles>& file, const py::object& spec, const std::string& device,
                         int threads, bool check_weights, const py::object& synthetic, const py::object& progress) {
                 if (!file && synthetic.is_none()) {
                     throw InvalidArgumentError("ImageEncoder needs a file or synthetic types");
                 }
                 const ModelConfig config = to_config(field(spec, "config"));
                 auto source = to_source(file, field(spec, "tensors"), synthetic, is_planned(device), check_weights);
                 const Progress report = to_progress(progress);
                 const GilRelease release;
                 return std::make_unique<PyImageEncoder>(
                     std::make_unique<ImageEncoder>(open_device(device, threads), config, std::move(source), report));
             }),
             py::arg("file").none(true), py::arg("spec"), py::kw_only(), py::arg("device") = "cpu",
             py::arg("threads") = 0, py::arg("check_weights") = true, py::arg("synthetic") = py::none(),
             py::arg("progress") = py::none())
        .def_property_readonly("width", [](PyImageEncoder& e) { return e.get().width(); })
        .def_property_readonly("device", [](PyImageEncoder& e) { return e.get().device().name(); })
        .def_property_readonly("threads", [](PyImageEncoder& e) { return e.get().device().threads(); })
        .def_property_readonly("isa", [](PyImageEncoder& e) { return e.get().device().isa(); })
        .def_property_readonly("memory", [](PyImageEncoder& e) { return memory_dict(e.get().memory()); })
        .def_property_readonly("memory_left", [](PyImageEncoder& e) { return e.get().device().memory_left(); })
        .def("encode", &encode_image, py::arg("pixels"), py::arg("added") = py::none(),
             py::arg("positions") = py::none(), py::arg("windows") = std::vector<std::uint32_t>{},
             py::arg("added_id") = 0)
        .def(
            "plan",
            [](PyImageEncoder& e, std::uint32_t rows) {
                return command_list(PyImageEncoder::Call(e).model().commands(rows));
            },
            py::arg("rows"))
        .def(
            "profile",
            [](PyImageEncoder& e, std::uint32_t rows, std::int64_t repeats) {
                const std::size_t n = to_repeats(repeats);
                return command_list(
                    e.call([&](ImageEncoder& encoder, const Poll& poll) { return encoder.profile(rows, n, poll); }));
            },
            py::arg("rows"), py::arg("repeats") = 16)
        .def("cancel", &PyImageEncoder::cancel)
        .def("close", &PyImageEncoder::close);
}

}  // namespace akunu
