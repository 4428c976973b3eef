#include "bindings/weights.h"

#include <pybind11/stl.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bindings/arguments.h"
#include "core/error.h"
#include "engine/file_source.h"
#include "engine/quantizing_source.h"

namespace akunu {

namespace {

std::map<std::string, TensorRef> to_refs(const py::object& tensors) {
    std::map<std::string, TensorRef> refs;
    for (const auto& [name, ref] : py::dict(tensors)) {
        refs.emplace(
            py::cast<std::string>(name),
            TensorRef{py::cast<std::string>(field(ref, "source")), py::cast<std::uint64_t>(field(ref, "first_row")),
                      py::cast<std::uint64_t>(field(ref, "n_rows")), py::cast<std::uint64_t>(field(ref, "n_cols")),
                      py::cast<float>(field(ref, "add")), py::cast<std::string>(field(ref, "dtype")),
                      py::cast<std::string>(field(ref, "scales")), py::cast<std::string>(field(ref, "biases")),
                      py::cast<std::string>(field(ref, "factor")), py::cast<bool>(field(ref, "inverse")),
                      py::cast<std::optional<std::array<std::uint64_t, 2>>>(field(ref, "scale_tile")),
                      py::cast<std::optional<std::array<std::uint64_t, 2>>>(field(ref, "group")),
                      py::cast<std::vector<std::string>>(field(ref, "more")),
                      py::cast<std::vector<std::array<std::string, 3>>>(field(ref, "more_planes")),
                      py::cast<bool>(field(ref, "turned")), py::cast<std::uint64_t>(field(ref, "swapped"))});
    }
    return refs;
}

DType to_weight_type(const std::string& name) {
    const DTypeInfo* info = find_dtype(name);
    if (!info || !info->is_weight) throw UnsupportedError("unknown weight type '" + name + "'");
    return info->id;
}

}  // namespace

std::shared_ptr<WeightSource> to_source(std::shared_ptr<const TensorFiles> files, const py::object& tensors,
                                        const py::object& synthetic, bool planned, bool check) {
    const auto refs = to_refs(tensors);
    if (files) return std::make_shared<FileSource>(std::move(files), refs, check);
    std::map<std::string, SyntheticSource::Shape> shapes;
    for (const auto& [name, ref] : refs) {
        const DType dtype = to_weight_type(py::cast<std::string>(synthetic[py::str(name)]));
        const bool vector = ref.cols == 0;
        shapes.emplace(name, SyntheticSource::Shape{dtype, vector ? 1 : ref.rows, vector ? ref.rows : ref.cols});
    }
    if (planned) return std::make_shared<ShapeSource>(std::move(shapes));
    return std::make_shared<SyntheticSource>(std::move(shapes));
}

std::shared_ptr<WeightSource> quantized(std::shared_ptr<WeightSource> source, const py::object& types, int threads) {
    std::map<std::string, DType> wanted;
    for (const auto& [name, type] : py::dict(types)) {
        wanted.emplace(py::cast<std::string>(name), to_weight_type(py::cast<std::string>(type)));
    }
    return std::make_shared<QuantizingSource>(std::move(source), std::move(wanted), threads);
}

}  // namespace akunu
