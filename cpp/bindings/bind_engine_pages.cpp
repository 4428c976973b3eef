// Pages of the KV cache, for Python: what they hold, and their way to a disk and back.
#include <pybind11/stl.h>

#include <algorithm>
#include <span>

#include "bindings/engine.h"

namespace akunu {

PyPrefix to_prefix(std::vector<std::uint32_t> ids, std::uint64_t root, const py::object& contents) {
    if (contents.is_none()) return {std::move(ids), root, {}};
    const auto hashes = contents.cast<py::array_t<std::uint64_t, py::array::c_style>>();
    return {std::move(ids), root, {hashes.data(), hashes.data() + hashes.size()}};
}

namespace {

PyPrefix prefix_of(const IdArray& ids, std::uint64_t root, const py::object& contents) {
    return to_prefix(std::vector<std::uint32_t>(ids.data(), ids.data() + ids.size()), root, contents);
}

}  // namespace

void bind_engine_pages(py::class_<PyEngine>& engine) {
    engine
        .def_property_readonly("pages",
                               [](PyEngine& e) {
                                   const PyEngine::Call call(e);
                                   const PageUse u = call.model().cache().use();
                                   py::dict d;
                                   d["pages"] = u.pages;
                                   d["held"] = u.held;
                                   d["pinned"] = u.pinned;
                                   d["cached"] = u.cached;
                                   d["page_bytes"] = u.page_bytes;
                                   py::list windows;
                                   for (const WindowUse& w : u.windows) {
                                       py::dict of;
                                       of["positions"] = w.positions;
                                       of["pages"] = w.pages;
                                       of["held"] = w.held;
                                       of["pinned"] = w.pinned;
                                       of["cached"] = w.cached;
                                       of["most_held"] = w.most_held;
                                       of["page_bytes"] = w.page_bytes;
                                       windows.append(std::move(of));
                                   }
                                   d["windows"] = std::move(windows);
                                   d["checkpoints"] = u.checkpoints;
                                   d["state_bytes"] = u.state_bytes;
                                   return d;
                               })
        .def(
            "read_page",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents,
               const std::optional<std::vector<std::uint32_t>>& wanted) -> std::optional<py::list> {
                const PyPrefix prefix = prefix_of(ids, root, contents);
                const auto parts = e.call([&](Engine& engine, const Poll&) {
                    return engine.cache().read_page(prefix.view(), [&](std::size_t part) {
                        return !wanted || std::ranges::find(*wanted, part) != wanted->end();
                    });
                });
                if (!parts) return std::nullopt;
                std::optional<py::list> out(std::in_place);
                for (std::size_t i = 0; i < parts->size(); ++i) {
                    const auto& part = (*parts)[i];
                    if (part) {
                        out->append(ByteArray(static_cast<py::ssize_t>(part->size()),
                                              reinterpret_cast<const std::uint8_t*>(part->data())));
                    } else {
                        out->append(py::none());
                    }
                }
                return out;
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none(), py::arg("parts") = py::none())
        .def(
            "restore_page",
            [](PyEngine& e, std::uint32_t slot, const std::vector<std::optional<ByteArray>>& page) {
                std::vector<std::optional<std::span<const std::byte>>> parts;
                for (const auto& part : page) {
                    auto& bytes = parts.emplace_back();
                    if (part) bytes = std::as_bytes(std::span(part->data(), static_cast<std::size_t>(part->size())));
                }
                return e.call([&](Engine& engine, const Poll&) { return engine.cache().restore_page(slot, parts); });
            },
            py::arg("slot"), py::arg("page"))
        .def(
            "finish_restoring",
            [](PyEngine& e, std::uint32_t slot) {
                return e.call([&](Engine& engine, const Poll&) { return engine.cache().finish_restoring(slot); });
            },
            py::arg("slot"))
        .def_property_readonly("part_bytes", [](PyEngine& e) { return PyEngine::Call(e).model().cache().part_bytes(); })
        .def(
            "pin",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents) {
                const PyPrefix prefix = prefix_of(ids, root, contents);
                return PyEngine::Call(e).model().cache().pin(prefix.view());
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none())
        .def(
            "unpin",
            [](PyEngine& e, const IdArray& ids, std::uint64_t root, const py::object& contents) {
                const PyPrefix prefix = prefix_of(ids, root, contents);
                PyEngine::Call(e).model().cache().unpin(prefix.view());
            },
            py::arg("ids"), py::arg("root") = 0, py::arg("contents") = py::none())
        .def("forget", [](PyEngine& e) { PyEngine::Call(e).model().cache().forget(); })
        .def("discard_unused",
             [](PyEngine& e) { e.call([](Engine& engine, const Poll&) { engine.cache().discard_unused(); }); });
}

}  // namespace akunu
