// GGUF, SafeTensors and whisper.cpp's files, the dtype table, the reference dequantisers and quantising for Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/gil.h"
#include "core/dequantize.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/quantize.h"
#include "formats/gguf.h"
#include "formats/quote.h"
#include "formats/repacked.h"
#include "formats/safetensors.h"
#include "formats/whisper_file.h"

namespace akunu {
namespace {

namespace py = pybind11;

py::object steal(PyObject* object) {
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
}

// Bytes that are not UTF-8 survive as lone surrogates (vocabularies do hold such tokens).
py::object text_to_python(std::string_view text) {
    return steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

// The inverse, so that whatever name a file holds can be asked for.
std::string text_from_python(const py::str& text) {
    return py::reinterpret_steal<py::bytes>(
        steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape")).release());
}

PyObject* number_to_python(bool value) { return PyBool_FromLong(value); }
PyObject* number_to_python(std::int64_t value) { return PyLong_FromLongLong(value); }
PyObject* number_to_python(std::uint64_t value) { return PyLong_FromUnsignedLongLong(value); }
PyObject* number_to_python(double value) { return PyFloat_FromDouble(value); }

// `read()` makes `count` new references.
template <typename Read>
py::object list_of(std::uint64_t count, Read read) {
    py::object list = steal(PyList_New(static_cast<Py_ssize_t>(count)));
    for (std::uint64_t i = 0; i < count; ++i) {
        PyObject* item = read();
        if (item == nullptr) throw py::error_already_set();
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
    }
    return list;
}

// A number has a type in the file (Stored), and one for Python (Wide).
template <typename Stored, typename Wide>
py::object numbers_to_python(ByteReader& reader, const GgufValue& value) {
    const auto read = [&] { return number_to_python(static_cast<Wide>(reader.read<Stored>())); };
    return value.type == GgufType::Array ? list_of(value.count, read) : steal(read());
}

py::object value_to_python(const GgufValue& value, std::string_view path, std::string_view key);

py::object items_to_python(ByteReader& reader, const GgufValue& value, std::string_view path, std::string_view key) {
    switch (value.item_type) {
        case GgufType::U8:
            return numbers_to_python<std::uint8_t, std::uint64_t>(reader, value);
        case GgufType::I8:
            return numbers_to_python<std::int8_t, std::int64_t>(reader, value);
        case GgufType::U16:
            return numbers_to_python<std::uint16_t, std::uint64_t>(reader, value);
        case GgufType::I16:
            return numbers_to_python<std::int16_t, std::int64_t>(reader, value);
        case GgufType::U32:
            return numbers_to_python<std::uint32_t, std::uint64_t>(reader, value);
        case GgufType::I32:
            return numbers_to_python<std::int32_t, std::int64_t>(reader, value);
        case GgufType::U64:
            return numbers_to_python<std::uint64_t, std::uint64_t>(reader, value);
        case GgufType::I64:
            return numbers_to_python<std::int64_t, std::int64_t>(reader, value);
        case GgufType::F32:
            return numbers_to_python<float, double>(reader, value);
        case GgufType::F64:
            return numbers_to_python<double, double>(reader, value);
        case GgufType::Bool:
            return numbers_to_python<std::uint8_t, bool>(reader, value);
        case GgufType::String:
            return list_of(value.count, [&] { return text_to_python(reader.read_string()).release().ptr(); });
        case GgufType::Array:
            return list_of(value.count, [&] {
                const GgufValue item = read_gguf_value(reader, GgufType::Array, 1);
                return value_to_python(item, path, key).release().ptr();
            });
    }
    throw ModelFileError(std::string(path) + ": metadata key " + quoted(key) + " has no type");
}

// Reads the mapping a second time, with bounds checked again: the file may have changed.
py::object value_to_python(const GgufValue& value, std::string_view path, std::string_view key) {
    if (value.type == GgufType::String) {
        return text_to_python({reinterpret_cast<const char*>(value.payload.data()), value.payload.size()});
    }
    ByteReader reader(value.payload, path);
    reader.describe("metadata key", key);
    return items_to_python(reader, value, path, key);
}

py::object value_to_python(const GgufFile& file, const GgufValue& value, std::string_view key) {
    const MappedFile& first = *file.files()[0];
    first.check_size();
    return value_to_python(value, first.path(), key);
}

constexpr const char* kMetadata = "_metadata";

// The whole metadata, converted on first use and kept in the instance's __dict__.
py::dict metadata(const py::object& self) {
    py::dict attributes = self.attr("__dict__");
    if (!attributes.contains(kMetadata)) {
        const auto& file = self.cast<const GgufFile&>();
        py::dict values;
        for (const MetadataEntry& entry : file.metadata()) {
            values[text_to_python(entry.name)] = value_to_python(file, entry.value, entry.name);
        }
        attributes[kMetadata] = values;
    }
    return attributes[kMetadata];
}

// One key, without converting the others.
py::object get(const py::object& self, const py::str& key, py::object otherwise) {
    const py::dict attributes = self.attr("__dict__");
    if (attributes.contains(kMetadata)) {
        return attributes[kMetadata].attr("get")(key, otherwise);
    }
    const auto& file = self.cast<const GgufFile&>();
    const std::string name = text_from_python(key);
    const GgufValue* value = file.find(name);
    return value == nullptr ? otherwise : value_to_python(file, *value, name);
}

std::string path_from_python(const py::handle& path) {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw py::error_already_set();
    return py::reinterpret_steal<py::bytes>(encoded);
}

std::shared_ptr<GgufFile> open_gguf(const py::object& path) {
    const std::string name = path_from_python(path);
    const GilRelease release;
    return std::make_shared<GgufFile>(GgufFile::open(name));
}

std::shared_ptr<SafetensorsFiles> open_safetensors(const py::list& paths, const std::vector<std::string>& prefixes) {
    std::vector<std::string> names;
    for (const py::handle path : paths) names.push_back(path_from_python(path));
    const GilRelease release;
    return std::make_shared<SafetensorsFiles>(SafetensorsFiles::open(names, prefixes));
}

const DTypeInfo& known_dtype(std::string_view caller, std::string_view name) {
    const DTypeInfo* info = find_dtype(name);
    if (info != nullptr) return *info;
    throw InvalidArgumentError(std::string(caller) + ": dtype " + quoted(name) +
                               " is unknown; akunu._core.dtypes() lists them");
}

// `matrices`: akunu.files.repacking.PackedMatrix.
std::shared_ptr<RepackedFiles> repack(const TensorFiles& files, const py::list& matrices,
                                      const std::vector<std::string>& left_out) {
    using Layout = PackedMatrix::Layout;
    constexpr std::array<std::pair<std::string_view, Layout>, 5> kLayouts{{{"gptq", Layout::Gptq},
                                                                           {"awq", Layout::Awq},
                                                                           {"rows", Layout::Rows},
                                                                           {"bytes", Layout::Bytes},
                                                                           {"table", Layout::Table}}};
    std::vector<PackedMatrix> found;
    for (const py::handle m : matrices) {
        const auto layout = py::cast<std::string>(field(m, "layout"));
        const auto known = std::ranges::find(kLayouts, layout, &std::pair<std::string_view, Layout>::first);
        if (known == kLayouts.end()) throw InvalidArgumentError("RepackedFiles: layout: found " + quoted(layout));
        found.push_back({.name = py::cast<std::string>(field(m, "name")),
                         .layout = known->second,
                         .bits = py::cast<unsigned>(field(m, "bits")),
                         .rows = py::cast<std::uint64_t>(field(m, "rows")),
                         .cols = py::cast<std::uint64_t>(field(m, "cols")),
                         .group = py::cast<std::uint64_t>(field(m, "group")),
                         .codes = py::cast<std::string>(field(m, "codes")),
                         .scales = py::cast<std::string>(field(m, "scales")),
                         .zeros = py::cast<std::string>(field(m, "zeros")),
                         .zero = py::cast<unsigned>(field(m, "zero")),
                         .symmetric = py::cast<bool>(field(m, "symmetric")),
                         .index = py::cast<std::string>(field(m, "index")),
                         .unit = py::cast<float>(field(m, "unit")),
                         .table = py::cast<std::string>(field(m, "table")),
                         .scale_table = py::cast<std::string>(field(m, "scale_table")),
                         .scale_factors = py::cast<std::string>(field(m, "scale_factors")),
                         .scale_offset = py::cast<float>(field(m, "scale_offset")),
                         .floats = known_dtype("RepackedFiles", py::cast<std::string>(field(m, "floats"))).id});
    }
    const GilRelease release;
    return std::make_shared<RepackedFiles>(files, found, left_out);
}

std::shared_ptr<WhisperFile> open_whisper(const py::object& path) {
    const std::string name = path_from_python(path);
    const GilRelease release;
    return std::make_shared<WhisperFile>(WhisperFile::open(name));
}

py::dict sizes(const WhisperFile& file) {
    py::dict sizes;
    for (std::size_t i = 0; i < WhisperFile::kSizes.size(); ++i) {
        sizes[py::str(WhisperFile::kSizes[i].data(), WhisperFile::kSizes[i].size())] = file.sizes()[i];
    }
    return sizes;
}

py::list tokens(const WhisperFile& file) {
    file.files()[0]->check_size();
    py::list tokens;
    for (const std::string_view token : file.tokens()) tokens.append(py::bytes(token.data(), token.size()));
    return tokens;
}

py::list paths(const TensorFiles& file) {
    py::list names;
    for (const auto& part : file.files()) {
        const std::string& path = part->path();
        names.append(steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()))));
    }
    return names;
}

py::list tensors(const py::object& self) {
    py::list entries;
    for (const TensorEntry& tensor : self.cast<const TensorFiles&>().tensors()) {
        entries.append(py::cast(tensor, py::return_value_policy::reference_internal, self));
    }
    return entries;
}

// A read-only view of the mapping, or of what was made, which it keeps alive.
py::array_t<std::uint8_t> tensor_bytes(const py::object& self, const py::str& key) {
    const std::string name = text_from_python(key);
    const auto& file = self.cast<const TensorFiles&>();
    const TensorEntry* tensor = file.find_tensor(name);
    if (tensor == nullptr) {
        throw InvalidArgumentError(file.files()[0]->path() + ": has no tensor " + quoted(name));
    }
    const TensorBytes bytes = file.tensor_bytes(*tensor);
    py::object keeper = self;
    if (bytes.owner) {
        using Owner = std::shared_ptr<const void>;
        keeper = py::capsule(new Owner(bytes.owner), [](void* owner) { delete static_cast<Owner*>(owner); });
    }
    py::array_t<std::uint8_t> view(static_cast<py::ssize_t>(bytes.span.size()),
                                   reinterpret_cast<const std::uint8_t*>(bytes.span.data()), keeper);
    view.attr("flags").attr("writeable") = false;
    return view;
}

py::tuple shape(const TensorEntry& tensor) {
    py::tuple dims(tensor.shape.size());
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) dims[i] = tensor.shape[i];
    return dims;
}

std::string repr(const TensorEntry& tensor) {
    std::string text = "<TensorEntry ";
    text.append(quoted(tensor.name)).append(" ").append(dtype_info(tensor.dtype).name).append(" [");
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
        text.append(i == 0 ? "" : ", ").append(std::to_string(tensor.shape[i]));
    }
    return text.append("]>");
}

py::list dtypes() {
    py::list rows;
    for (const DTypeInfo& info : kDTypes) {
        py::dict row;
        row["name"] = info.name;
        row["id"] = static_cast<std::uint32_t>(info.id);
        row["block_elems"] = info.block_elems;
        row["block_bytes"] = info.block_bytes;
        row["is_weight"] = info.is_weight;
        row["planes"] = py::make_tuple(info.planes.codes, info.planes.scales, info.planes.biases);
        row["scale_type"] = dtype_info(info.scale_type).name;
        row["float_codes"] = info.has_float_codes();
        rows.append(row);
    }
    return rows;
}

std::span<const std::byte> bytes_of(const py::buffer_info& buffer) {
    return {static_cast<const std::byte*>(buffer.ptr), static_cast<std::size_t>(buffer.size * buffer.itemsize)};
}

// A row a row of the source; the importance is one number a column, or none.
using Bytes = std::optional<py::array_t<std::uint8_t, py::array::c_style>>;

py::array_t<std::uint8_t> quantize(const std::string& dtype, const py::buffer& data, std::uint64_t columns,
                                   const std::string& source, const Bytes& scales, const Bytes& biases,
                                   const py::object& importance, int threads, const py::str& tensor,
                                   std::uint64_t first_row) {
    const DTypeInfo& to = known_dtype("quantize", dtype);
    const DTypeInfo& from = known_dtype("quantize", source);
    const py::buffer_info buffer = data.request();
    const std::span<const std::byte> bytes = bytes_of(buffer);
    const std::uint64_t out_row = row_bytes(to.id, columns), blocks = row_bytes(from.id, columns) / from.block_bytes;
    const std::uint64_t row = blocks * (from.planar() ? from.planes.codes : from.block_bytes);
    if (PyBuffer_IsContiguous(buffer.view(), 'C') == 0 || row == 0 || bytes.size() % row != 0) {
        throw InvalidArgumentError("quantize: rows of " + std::to_string(columns) + " " + source +
                                   " elements take a contiguous buffer of a multiple of " + std::to_string(row) +
                                   " bytes, found " + std::to_string(bytes.size()));
    }
    if (threads < 0) throw InvalidArgumentError("quantize: threads is " + std::to_string(threads));
    const std::uint64_t rows = bytes.size() / row;
    py::array_t<std::uint8_t> result({static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(out_row)});
    py::array_t<float, py::array::c_style | py::array::forcecast> weights;
    if (!importance.is_none()) weights = importance;
    const std::string name = quoted(text_from_python(tensor));
    const auto plane = [](const Bytes& array) {
        return array ? std::as_bytes(std::span(array->data(), static_cast<std::size_t>(array->size())))
                     : std::span<const std::byte>();
    };
    const QuantizeJob job{.tensor = name,
                          .from = from.id,
                          .source = bytes,
                          .scales = plane(scales),
                          .biases = plane(biases),
                          .first_row = first_row,
                          .rows = rows,
                          .columns = columns,
                          .to = to.id,
                          .out = {reinterpret_cast<std::byte*>(result.mutable_data()), rows * out_row},
                          .importance = {weights.data(), static_cast<std::size_t>(weights.size())}};
    const GilRelease release;
    quantize_rows(job, threads);
    return result;
}

py::array_t<float> dequantize(const std::string& dtype, const py::buffer& data, std::uint64_t n) {
    const DTypeInfo& info = known_dtype("dequantize", dtype);
    const py::buffer_info source = data.request();
    const std::uint64_t size = bytes_of(source).size();
    const std::uint64_t expected = row_bytes(info.id, n);
    if (PyBuffer_IsContiguous(source.view(), 'C') == 0 || size != expected) {
        throw InvalidArgumentError("dequantize: " + std::to_string(n) + " elements of " + dtype +
                                   " take a contiguous buffer of " + std::to_string(expected) + " bytes, found " +
                                   std::to_string(size));
    }
    py::array_t<float> result(static_cast<py::ssize_t>(n));
    float* destination = result.mutable_data();
    {
        const GilRelease release;
        dequantize_row(info.id, static_cast<const std::byte*>(source.ptr), destination, n);
    }
    return result;
}

}  // namespace

void bind_formats(py::module_& module) {
    py::class_<TensorEntry>(
        module, "TensorEntry",
        "One tensor of a model file; `shape` is outermost first, so a linear layer is (rows, cols).")
        .def_property_readonly("name", [](const TensorEntry& t) { return text_to_python(t.name); })
        .def_property_readonly("dtype", [](const TensorEntry& t) { return dtype_info(t.dtype).name; })
        .def_property_readonly("shape", shape)
        .def_readonly("nbytes", &TensorEntry::bytes)
        .def_readonly("paired", &TensorEntry::paired)
        .def_readonly("file", &TensorEntry::file)
        .def_readonly("offset", &TensorEntry::offset)
        .def("__repr__", repr);

    py::class_<TensorFiles, std::shared_ptr<TensorFiles>>(module, "TensorFiles", py::dynamic_attr(),
                                                          "The tensors of a model's files, memory-mapped.")
        .def_property_readonly("paths", paths)
        .def_property_readonly("tensors", tensors)
        .def("tensor_bytes", tensor_bytes, py::arg("name"))
        .def(
            "drop",
            [](const TensorFiles& files, const py::str& name) {
                const TensorEntry* t = files.find_tensor(text_from_python(name));
                if (t && !t->made) {
                    files.files()[t->file]->drop(t->offset, t->bytes);
                }
            },
            py::arg("name"));

    py::class_<GgufFile, TensorFiles, std::shared_ptr<GgufFile>>(
        module, "GgufFile", py::dynamic_attr(),
        "A memory-mapped GGUF file, single or split; every length and offset has been checked.")
        .def(py::init(&open_gguf), py::arg("path"))
        .def_property_readonly("version", &GgufFile::version)
        .def_property_readonly("metadata", metadata)
        .def("get", get, py::arg("key"), py::arg("default") = py::none());

    py::class_<SafetensorsFiles, TensorFiles, std::shared_ptr<SafetensorsFiles>>(
        module, "SafetensorsFiles", py::dynamic_attr(),
        "The memory-mapped shards of a SafeTensors model; every length and offset has been checked.")
        .def(py::init(&open_safetensors), py::arg("paths"), py::arg("prefixes") = std::vector<std::string>{});

    py::class_<JoinedFiles, TensorFiles, std::shared_ptr<JoinedFiles>>(module, "JoinedFiles", py::dynamic_attr())
        .def(py::init(
                 [](const TensorFiles& first, const TensorFiles& second, const std::string& prefix,
                    const std::string& added) { return std::make_shared<JoinedFiles>(first, second, prefix, added); }),
             py::arg("first"), py::arg("second"), py::arg("prefix") = "", py::arg("added") = "");
    py::class_<RepackedFiles, TensorFiles, std::shared_ptr<RepackedFiles>>(module, "RepackedFiles", py::dynamic_attr())
        .def(py::init(&repack), py::arg("files"), py::arg("matrices"), py::arg("left_out"));
    py::class_<WhisperFile, TensorFiles, std::shared_ptr<WhisperFile>>(
        module, "WhisperFile", py::dynamic_attr(),
        "A memory-mapped model file of whisper.cpp; every length and offset has been checked.")
        .def(py::init(&open_whisper), py::arg("path"))
        .def_property_readonly("sizes", sizes)
        .def_property_readonly("tokens", tokens);

    module.def("dtypes", dtypes, "The table of tensor element types.");
    module.def("dequantize", dequantize, py::arg("dtype"), py::arg("data"), py::arg("n"),
               "Reference dequantisation of `n` elements to float32.");
    module.def("quantize", quantize, py::arg("dtype"), py::arg("data"), py::arg("columns"), py::kw_only(),
               py::arg("source") = "f32", py::arg("scales") = py::none(), py::arg("biases") = py::none(),
               py::arg("importance") = py::none(), py::arg("threads") = 0, py::arg("tensor") = "",
               py::arg("first_row") = 0, "Rows of `columns` elements of type `source` as rows of another type.");
}

}  // namespace akunu
