// The engine as Python sees it: what the files that bind its methods share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/loaded.h"
#include "core/error.h"
#include "engine/engine.h"

namespace akunu {

namespace py = pybind11;

using IdArray = py::array_t<std::uint32_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

// A `Part` as Python gives it: slot, rows, sample, limit, drafts.
using PyPart = std::tuple<std::uint32_t, std::uint32_t, bool, std::uint32_t, std::vector<std::uint32_t>>;

class PyEngine : public Exclusive<Engine> {
  public:
    using Exclusive::Exclusive;

    // Tokens of a slot's sequence that the cache holds.
    std::uint32_t length(std::uint32_t slot) {
        const Call call(*this);
        return call.model().sequence(slot).length;
    }
    // A step, and what the handler of a signal, or `masks`, raised meanwhile.
    py::tuple step(const std::vector<PyPart>& list, std::uint32_t steps, const py::object& masks);
    // A chain of steps, before each of which the model's head writes so many drafts, of (slot, limit) each; and what
    // the handler of a signal raised meanwhile.
    py::tuple draft_and_verify(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& list, std::uint32_t drafts,
                               std::uint32_t steps, bool common);
    // By the names of `linears`: A [rank, cols], B [rows, rank], and a scale of their product. Returns its number.
    std::uint32_t add_adapter(const std::map<std::string, std::tuple<Floats, Floats, float>>& tensors);
    // Drafts for each (slot, tokens), and what the handler of a signal raised meanwhile.
    py::tuple draft(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& sequences, bool common);
    void set_mask(std::uint32_t slot, const IdArray& masks) {
        if (!asks_for_masks_) throw InvalidArgumentError("masks are set when a step asks for them, by its `masks`");
        get().set_mask(slot, {masks.data(), static_cast<std::size_t>(masks.size())});
    }
    IdArray tokens(std::uint32_t slot) {
        const Call call(*this);
        const auto ids = call.model().tokens(slot);
        return IdArray(static_cast<py::ssize_t>(ids.size()), ids.data());
    }

  private:
    bool asks_for_masks_ = false;
};

inline AdapterChoice to_choice(std::optional<std::uint32_t> adapter, float scale) {
    return {adapter ? *adapter + 1 : 0, scale};
}

// What `Prefix` needs, kept while it is used: ids, a root, and hashes of what stands at positions.
struct PyPrefix {
    std::vector<std::uint32_t> ids;
    std::uint64_t root;
    std::vector<std::uint64_t> contents;
    Prefix view() const { return {ids, root, contents}; }
};

// `contents`: None, or an array of hashes.
PyPrefix to_prefix(std::vector<std::uint32_t> ids, std::uint64_t root, const py::object& contents);

// Methods of the class that have files of their own: pages of the cache, and runs whose results are the caller's.
void bind_engine_pages(py::class_<PyEngine>& engine);
void bind_engine_runs(py::class_<PyEngine>& engine);

}  // namespace akunu
