// What a tokenizer does with a whole vocabulary.
#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bind.h"
#include "bindings/gil.h"
#include "tokenizer/byte_merges.h"

namespace akunu {
namespace {

namespace py = pybind11;

// GPT-2's stand-ins for bytes are characters below U+0144: the byte of each, or -1.
using ByteOf = std::array<int, 0x144>;

ByteOf byte_of(const py::str& alphabet) {
    ByteOf bytes;
    bytes.fill(-1);
    if (PyUnicode_GET_LENGTH(alphabet.ptr()) != 256) throw py::value_error("alphabet: expected 256 characters");
    for (int byte = 0; byte < 256; ++byte) bytes.at(PyUnicode_READ_CHAR(alphabet.ptr(), byte)) = byte;
    return bytes;
}

// Appends the bytes that characters [begin, end) of a text stand for; false where one stands for none. Characters are
// read where they lie: as UTF-8, Python would keep a copy of each text.
bool append(py::handle text, Py_ssize_t begin, Py_ssize_t end, const ByteOf& byte_of, std::string& bytes) {
    const int kind = PyUnicode_KIND(text.ptr());
    const void* characters = PyUnicode_DATA(text.ptr());
    for (Py_ssize_t i = begin; i < end; ++i) {
        const Py_UCS4 character = PyUnicode_READ(kind, characters, i);
        if (character >= byte_of.size() || byte_of[character] < 0) return false;
        bytes.push_back(static_cast<char>(byte_of[character]));
    }
    return true;
}

py::handle checked(py::handle text) {
    if (!PyUnicode_Check(text.ptr())) throw py::type_error("expected a text");
    return text;
}

py::list bytes_of_texts(const py::list& texts, const py::str& alphabet) {
    const ByteOf bytes = byte_of(alphabet);
    py::list found(texts.size());
    std::string piece;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const py::handle text = checked(texts[i]);
        piece.clear();
        const bool all = append(text, 0, PyUnicode_GET_LENGTH(text.ptr()), bytes, piece);
        found[i] = all ? py::object(py::bytes(piece)) : py::none();
    }
    return found;
}

std::unique_ptr<ByteMerges> byte_merges(const py::list& tokens, const py::list& lines, const py::list& left_out,
                                        const py::str& alphabet, bool whole_first) {
    const ByteOf bytes = byte_of(alphabet);
    std::vector<bool> is_left_out(tokens.size());
    for (const py::handle id : left_out) is_left_out.at(id.cast<std::size_t>()) = true;
    ByteMerges::Strings texts, merges;
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const py::handle token = checked(tokens[i]);
        text.clear();
        if (is_left_out[i] || !append(token, 0, PyUnicode_GET_LENGTH(token.ptr()), bytes, text)) text.clear();
        texts.add(text);
    }
    for (const py::handle each : lines) {
        const py::handle line = checked(each);
        const Py_ssize_t length = PyUnicode_GET_LENGTH(line.ptr());
        const Py_ssize_t space = PyUnicode_FindChar(line.ptr(), ' ', 0, length, 1);
        std::string left, right;
        if (space < 0 || !append(line, 0, space, bytes, left) || !append(line, space + 1, length, bytes, right)) {
            left.clear();  // which no token is
        }
        merges.add(left);
        merges.add(right);
    }
    const GilRelease release;
    return std::make_unique<ByteMerges>(std::move(texts), merges, whole_first);
}

py::list encoded(const ByteMerges& merges, const py::iterable& pieces) {
    std::vector<std::uint32_t> ids;
    for (const py::handle piece : pieces) {
        Py_ssize_t length = 0;
        const char* text = PyUnicode_AsUTF8AndSize(checked(piece).ptr(), &length);
        if (text == nullptr) throw py::error_already_set();
        merges.encode({text, static_cast<std::size_t>(length)}, ids);
    }
    py::list found(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) found[i] = py::int_(ids[i]);
    return found;
}

}  // namespace

void bind_tokenizer(py::module_& m) {
    m.def("bytes_of", &bytes_of_texts, py::arg("texts"), py::arg("alphabet"));
    py::class_<ByteMerges>(m, "ByteMerges")
        .def(py::init(&byte_merges), py::arg("tokens"), py::arg("merges"), py::arg("left_out"), py::arg("alphabet"),
             py::arg("whole_first"))
        .def("encode", &encoded, py::arg("pieces"));
}

}  // namespace akunu
