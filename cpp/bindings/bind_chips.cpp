// What is known about Apple's and NVIDIA's chips, for predictions.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/lab_command.h"
#include "core/error.h"
#include "cuda/host/chip.h"
#include "metal/choose/chip.h"
#include "metal/choose/group_counts.h"

namespace py = pybind11;

namespace akunu {

namespace {

py::dict to_dict(const metal::Chip& c) {
    py::dict d;
    d["name"] = std::string(c.name);
    d["family"] = c.family;
    d["gpu_cores"] = c.gpu_cores;
    d["bytes_per_second"] = c.bandwidth;
    d["flops"] = c.f16_flops;
    return d;
}

DType weight_named(const std::string& name) {
    const DTypeInfo* info = find_dtype(name);
    if (!info) throw UnsupportedError("unknown type '" + name + "'");
    return info->id;
}

// The dispatches of one command on a chip, as choose_kernels has them: with every buffer but those `without`, which
// are none. `keys` are those that the first step sees.
py::list passes_of(const std::string& chip, const std::string& op, const std::string& params, const std::string& weight,
                   const std::string& last_weight, const std::string& kv_dtype, const std::vector<std::size_t>& without,
                   std::uint32_t keys) {
    static std::byte memory[64];
    DispatchCmd cmd;
    cmd.op = op_named(op);
    cmd.kv = to_kv_types(kv_dtype);
    cmd.add_weight(weight_named(weight), false);
    if (!last_weight.empty()) cmd.add_weight(weight_named(last_weight), false);
    ReplayArgs args = lab::set_params(cmd, params);
    if (keys) args.keys = keys;
    cmd.n_buffers = static_cast<std::uint8_t>(op_info(cmd.op).buffers.size());
    for (std::size_t i = 0; i < cmd.n_buffers; ++i) {
        if (std::ranges::find(without, i) == without.end())
            cmd.buffers[i] = {{memory, memory, memory, sizeof memory}, 0};
    }
    const metal::KernelChoice choice = metal::choose_kernels(cmd, metal::find_chip(chip));
    const metal::Extent extent = metal::Extent::of(cmd);
    py::list out;
    for (const metal::Pass& p : choice.passes) {
        const auto count = [&](const metal::GroupCount& c) { return metal::groups(c, extent, args); };
        py::dict constants, d;
        for (const metal::Constant& c : p.constants) constants[py::int_(c.index)] = c.value;
        d["function"] = p.function;
        d["constants"] = constants;
        d["groups"] = py::make_tuple(count(p.x), count(p.y), count(p.z));
        d["threads"] = p.threads.x * p.threads.y * p.threads.z;
        out.append(d);
    }
    return out;
}

}  // namespace

void bind_chips(py::module_& m) {
    m.def("apple_chips", [] {
        py::list all;
        for (const metal::Chip& c : metal::chips()) all.append(to_dict(c));
        return all;
    });
    m.def("nvidia_chips", [] {
        py::list all;
        for (const cuda::Chip& c : cuda::kChips) {
            py::dict d;
            d["name"] = std::string(c.name);
            d["arch"] = std::string(c.arch);
            d["device"] = std::string(c.device);
            d["multiprocessors"] = c.multiprocessors;
            d["bytes_per_second"] = c.bandwidth;
            d["flops"] = c.f16_flops;
            all.append(d);
        }
        return all;
    });
    m.def("find_apple_chip", [](const std::string& name) { return to_dict(metal::find_chip(name)); }, py::arg("name"));
    m.def("lab_apple_passes", passes_of, py::arg("chip"), py::arg("op"), py::arg("params"), py::kw_only(),
          py::arg("weight") = "f32", py::arg("last_weight") = "", py::arg("kv_dtype") = "f16",
          py::arg("without") = std::vector<std::size_t>{}, py::arg("keys") = 0);
}

}  // namespace akunu
