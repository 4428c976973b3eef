// Core errors become the classes of the same name in the package akunu.
#include <pybind11/pybind11.h>

#include <exception>
#include <string_view>

#include "bindings/bind.h"
#include "core/error.h"

namespace akunu {
namespace {

namespace py = pybind11;

void raise(const char* class_name, const Error& error) {
    // A path in the message may hold any bytes.
    const std::string_view text = error.what();
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    if (!message) return;  // MemoryError is set
    py::set_error(py::module_::import("akunu").attr(class_name), message);
}

void translate(std::exception_ptr pointer) {
    try {
        if (pointer) std::rethrow_exception(pointer);
    } catch (const ModelFileError& error) {
        raise("ModelFileError", error);
    } catch (const UnsupportedError& error) {
        raise("UnsupportedError", error);
    } catch (const InvalidArgumentError& error) {
        raise("InvalidArgumentError", error);
    } catch (const ContextLengthError& error) {
        raise("ContextLengthError", error);
    } catch (const DeviceError& error) {
        raise("DeviceError", error);
    } catch (const Error& error) {
        raise("AkunuError", error);
    }
}

}  // namespace

void bind_errors(py::module_&) { py::register_local_exception_translator(translate); }

}  // namespace akunu
