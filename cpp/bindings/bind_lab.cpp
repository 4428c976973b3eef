// The kernel lab: runs or times one command of a device on NumPy arrays, for tests/kernels.
//
// Buffers are copied into device memory between guard bytes, and back; what only a device knows (packed weights, int8
// activations, the KV cache, attention's partial results) passes through as opaque bytes that its own ops fill and
// read.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/bind.h"
#include "bindings/gil.h"
#include "bindings/lab_command.h"
#include "core/device.h"
#include "core/error.h"
#include "core/q8.h"
#include "core/sampling.h"
#include "core/take_weight.h"
#include "engine/registry.h"

namespace py = pybind11;

namespace akunu {

namespace {

const DTypeInfo& dtype_named(const std::string& name) {
    const DTypeInfo* info = find_dtype(name);
    if (!info) throw UnsupportedError("unknown type '" + name + "'");
    return *info;
}

std::uint32_t format_named(const std::string& name) {
    if (name == "f32") return kActF32;
    if (name == "q8") return kActQ8;
    if (name == "f16") return kActF16;
    throw InvalidArgumentError("activation format is '" + name + "', expected f32, q8 or f16");
}

std::string format_name(std::uint32_t format) { return format == kActF32 ? "f32" : format == kActQ8 ? "q8" : "f16"; }

// A weight on the device; `copies` of it, so that a benchmark need not find it in a cache.
struct LabWeight {
    LabWeight() = default;
    LabWeight(LabWeight&&) = default;
    std::shared_ptr<Device> device;
    lab::SplitWeight host;  // what a mapped weight refers to
    std::vector<DeviceBuffer> owned;
    std::vector<Weight> copies;
    const Weight& copy(std::size_t i) const { return copies[i % copies.size()]; }
};

class Lab {
  public:
    Lab(const std::string& device, int threads, const std::string& isa) {
        if (isa.empty()) {
            device_ = open_device(device, threads);
            return;
        }
        if (device != "cpu") throw InvalidArgumentError("isa is an option of device 'cpu', not of '" + device + "'");
        device_ = open_processor(threads, isa);
    }

    Device& device() { return *device_; }

    LabWeight weight(const std::string& dtype, const py::buffer& data, std::uint64_t rows, std::uint64_t cols,
                     bool prepare, bool whole, std::uint64_t experts, std::size_t copies) {
        const DTypeInfo& info = dtype_named(dtype);
        const py::buffer_info view = data.request();
        const std::uint64_t count = std::max<std::uint64_t>(experts, 1),
                            expected = count * rows * row_bytes(info.id, cols);
        if (static_cast<std::uint64_t>(view.size * view.itemsize) != expected || copies == 0) {
            throw InvalidArgumentError("a weight of " + std::to_string(rows) + "x" + std::to_string(cols) + " " +
                                       dtype + " takes " + std::to_string(expected) + " bytes and at least one copy");
        }
        LabWeight w;
        w.device = device_;
        w.host = {info, static_cast<const std::byte*>(view.ptr), expected};
        HostTensor tensor = w.host.tensor(info.id, rows, cols);
        const std::vector<HostTensor> parts = lab::parts_of(tensor, experts);
        if (whole) tensor.whole = Whole::kSequences;
        const GilRelease release;
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < copies; ++i) {
            w.copies.push_back(experts ? device_->prepare_experts(parts)
                                       : take_weight(*device_, tensor, [&](const HostTensor& t) {
                                             return prepare ? device_->prepare_weight(t) : device_->map_weight(t);
                                         }));
            if (!w.copies.back().mapped) w.owned.emplace_back(*device_, w.copies.back().data.buffer);
        }
        if (w.owned.size() == copies) w.host = {};
        return w;
    }

    // Runs the command once; arrays then hold what it left in its buffers.
    void run(const std::string& op, const py::list& buffers, const std::string& params, const std::string& kv_dtype) {
        Bench bench(*this, op, buffers, params, kv_dtype, 1);
        Control control;
        {
            const GilRelease release;
            const std::lock_guard lock(mutex_);
            const Segment segment{bench.program.get(), bench.args};
            device_->replay({.segments = {&segment, 1}}, control, {}, {});
        }
        bench.check_guards(op);
        bench.copy_back(buffers);
    }

    // Seconds of each of `repeats` runs over `copies` copies of every buffer; the arrays stay as they are.
    std::vector<double> time(const std::string& op, const py::list& buffers, const std::string& params,
                             const std::string& kv_dtype, std::size_t repeats, std::size_t copies) {
        Bench bench(*this, op, buffers, params, kv_dtype, std::max<std::size_t>(copies, 1));
        const GilRelease release;
        const std::lock_guard lock(mutex_);
        const Segment segment{bench.program.get(), bench.args};
        std::vector<double> all, once(segment.program->table.commands.size());
        device_->profile({&segment, 1}, once);  // warm-up: first touch of the copies
        for (std::size_t i = 0; i < repeats; ++i) {
            std::fill(once.begin(), once.end(), 0.0);
            device_->profile({&segment, 1}, once);
            all.insert(all.end(), once.begin(), once.end());
        }
        bench.check_guards(op);
        return all;
    }

  private:
    struct Slot {
        std::size_t index;
        lab::GuardedMemory memory;
    };

    // One command per copy of the buffers.
    struct Bench {
        std::unique_ptr<Program> program;
        ReplayArgs args;
        std::vector<Slot> slots;

        Bench(Lab& lab, const std::string& op, const py::list& buffers, const std::string& params,
              const std::string& kv_dtype, std::size_t copies) {
            if (buffers.size() > kMaxBuffers) {
                throw InvalidArgumentError("more than " + std::to_string(kMaxBuffers) + " buffers");
            }
            DispatchCmd base;
            base.op = op_named(op);
            base.kv = to_kv_types(kv_dtype);
            args = lab::set_params(base, params);
            DispatchTable table;
            table.phase = args.rows == 1                                      ? "decode"
                          : args.rows <= lab.device_->traits().max_batch_rows ? "batch"
                                                                              : "prefill";
            table.max_rows = args.rows;
            for (std::size_t c = 0; c < copies; ++c) {
                DispatchCmd cmd = base;
                for (std::size_t i = 0; i < buffers.size(); ++i) bind(lab, cmd, buffers[i], i, c);
                lab::all_buffers(cmd);
                args.keys = lab::keys_of(cmd, args);
                table.commands.push_back(cmd);
                table.labels.push_back({op, "", -1, {}});
            }
            program = lab.device_->compile(std::move(table));
        }

        void bind(Lab& lab, DispatchCmd& cmd, const py::handle& item, std::size_t index, std::size_t copy) {
            Binding& binding = cmd.buffers.at(cmd.n_buffers++);
            if (item.is_none()) return;
            if (py::isinstance<LabWeight>(item)) {
                const auto& w = py::cast<const LabWeight&>(item);
                if (w.device != lab.device_) throw InvalidArgumentError("the weight belongs to another lab");
                binding = w.copy(copy).data;
                cmd.add_weight(w.copy(copy).dtype, w.copy(copy).packed, w.copy(copy).whole);
                lab::bind_planes(cmd, index, w.copy(copy));
                cmd.input_format = lab.device_->matmul_input(cmd.weight);
                return;
            }
            const py::array array = as_array(item);
            const auto* data = static_cast<const std::byte*>(array.data());
            slots.push_back({index, {*lab.device_, data, static_cast<std::size_t>(array.nbytes())}});
            binding = slots.back().memory.binding();
        }

        void check_guards(const std::string& op) const {
            for (const Slot& s : slots) {
                const std::string damage = s.memory.damage();
                if (damage.empty()) continue;
                throw DeviceError("[" + op + "] wrote outside buffer " + std::to_string(s.index) + " " + damage);
            }
        }

        void copy_back(const py::list& buffers) const {
            for (const Slot& s : slots) {
                py::array array = as_array(buffers[s.index]);
                std::memcpy(array.mutable_data(), s.memory.contents(), s.memory.bytes());
            }
        }
    };

    static py::array as_array(const py::handle& item) {
        if (!py::isinstance<py::array>(item)) throw InvalidArgumentError("a buffer is an array, a LabWeight or None");
        auto array = py::reinterpret_borrow<py::array>(item);
        if (!(array.flags() & py::array::c_style) || !array.writeable()) {
            throw InvalidArgumentError("a buffer must be a contiguous, writeable array");
        }
        return array;
    }

    std::shared_ptr<Device> device_;
    std::mutex mutex_;  // the device runs one job at a time; taken without the GIL, which its holder does not need
};

// The planes of an activation in the CPU's q8 format, each [rows, …].
py::dict q8_planes(const py::array_t<std::uint8_t, py::array::c_style>& raw, std::size_t rows, std::size_t dim) {
    const Q8Layout at(dim);
    if (static_cast<std::size_t>(raw.size()) != rows * at.stride) {
        throw InvalidArgumentError("a q8 activation of " + std::to_string(rows) + "x" + std::to_string(dim) +
                                   " takes " + std::to_string(rows * at.stride) + " bytes, not " +
                                   std::to_string(raw.size()));
    }
    auto* base = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(raw.data()));
    const auto plane = [&](std::size_t n, auto&& get) {
        using T = std::remove_pointer_t<decltype(get(Q8Row{base, at}))>;
        py::array_t<T> out({rows, n});
        for (std::size_t r = 0; r < rows; ++r) {
            std::memcpy(out.mutable_data(static_cast<py::ssize_t>(r), 0), get(Q8Row{base + r * at.stride, at}),
                        n * sizeof(T));
        }
        return out;
    };
    py::dict d;
    d["q"] = plane(dim, [](const Q8Row& r) { return r.q(); });
    d["d"] = plane(dim / 32, [](const Q8Row& r) { return r.d(); });
    d["s"] = plane(dim / 32, [](const Q8Row& r) { return r.s(); });
    d["s16"] = plane(dim / 16, [](const Q8Row& r) { return r.s16(); });
    return d;
}

// A NumPy type of 4-byte fields.
py::dtype struct_dtype(std::span<const FieldInfo> fields) {
    py::list names, formats, offsets;
    for (const FieldInfo& f : fields) {
        names.append(std::string(f.name));
        formats.append(f.is_float ? "f4" : "u4");
        offsets.append(f.offset);
    }
    return py::dtype(names, formats, offsets, static_cast<py::ssize_t>(4 * fields.size()));
}

void register_structs() {
    PYBIND11_NUMPY_DTYPE(Row, slot, position);
    PYBIND11_NUMPY_DTYPE(StateSpan, from, to);
    PYBIND11_NUMPY_DTYPE(LogitBias, id, bias);
    PYBIND11_NUMPY_DTYPE(SpeechRules, prompt, end, timestamp_begin, max_initial);
    PYBIND11_NUMPY_DTYPE(SamplerState, temperature, top_k, top_p, min_p, typical_p, top_n_sigma, xtc_probability,
                         xtc_threshold, min_keep, repeat_penalty, presence_penalty, frequency_penalty, penalty_window,
                         dry_multiplier, dry_base, dry_allowed, dry_window, dry_longest, has_dry_breakers, seed_lo,
                         seed_hi, want_logprobs, n_logprobs, n_end_ids, n_bias, masked, end_ids);
    PYBIND11_NUMPY_DTYPE(SlotState, stopped, produced, limit);
    PYBIND11_NUMPY_DTYPE(ChainRecord, start, steps, tokens);
    PYBIND11_NUMPY_DTYPE(LogprobRecord, chosen, ids, values);
    PYBIND11_NUMPY_DTYPE(Control, stop, active, yield);
}

// Parameter structs by op, and the structs in the step's buffers.
py::dict struct_dtypes() {
    // At the first call, not at import: it imports NumPy.
    [[maybe_unused]] static const bool once = (register_structs(), true);
    py::dict d;
    for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
        const OpInfo& op = op_info(static_cast<Op>(i));
        d[py::str(std::string(op.name))] = struct_dtype(op.fields);
    }
    d["Row"] = py::dtype::of<Row>();
    d["StateSpan"] = py::dtype::of<StateSpan>();
    d["LogitBias"] = py::dtype::of<LogitBias>();
    d["SamplerState"] = py::dtype::of<SamplerState>();
    d["SlotState"] = py::dtype::of<SlotState>();
    d["SpeechRules"] = py::dtype::of<SpeechRules>();
    d["ChainRecord"] = py::dtype::of<ChainRecord>();
    d["LogprobRecord"] = py::dtype::of<LogprobRecord>();
    d["Control"] = py::dtype::of<Control>();
    return d;
}

}  // namespace

void bind_lab(py::module_& m) {
    py::class_<LabWeight>(m, "LabWeight")
        .def_property_readonly("dtype",
                               [](const LabWeight& w) { return std::string(dtype_info(w.copy(0).dtype).name); })
        .def_property_readonly("rows", [](const LabWeight& w) { return w.copy(0).rows; })
        .def_property_readonly("cols", [](const LabWeight& w) { return w.copy(0).cols; })
        .def_property_readonly("packed", [](const LabWeight& w) { return w.copy(0).packed; })
        .def_property_readonly("whole", [](const LabWeight& w) { return w.copy(0).whole != Whole::kNone; });

    py::class_<Lab>(m, "Lab")
        .def(py::init<const std::string&, int, const std::string&>(), py::arg("device") = "cpu", py::kw_only(),
             py::arg("threads") = 0, py::arg("isa") = "")
        .def_property_readonly("name", [](Lab& l) { return l.device().name(); })
        .def_property_readonly("isa", [](Lab& l) { return l.device().isa(); })
        .def_property_readonly("threads", [](Lab& l) { return l.device().threads(); })
        .def_property_readonly("split_attention", [](Lab& l) { return l.device().traits().split_attention; })
        .def_property_readonly("mixed_qkv",
                               [](Lab& l) {
                                   const auto name = [](DType t) { return std::string(dtype_info(t).name); };
                                   py::list out;
                                   for (const MixedQkv& m : l.device().traits().mixed_qkv) {
                                       out.append(py::make_tuple(name(m.qk), name(m.v)));
                                   }
                                   return out;
                               })
        .def("matmul_input",
             [](Lab& l, const std::string& w) { return format_name(l.device().matmul_input(dtype_named(w).id)); })
        .def("activation_bytes",
             [](Lab& l, const std::string& format, std::uint64_t rows, std::uint64_t dim) {
                 return l.device().activation_bytes(format_named(format), rows, dim);
             })
        .def("kv_page_bytes",
             [](Lab& l, const std::string& kv_dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) {
                 const KvTypes types = to_kv_types(kv_dtype);
                 return l.device().kv_bytes(types.k, n_kv_heads, head_dim) +
                        l.device().kv_bytes(types.v, n_kv_heads, head_dim);
             })
        .def("attention_partial_bytes",
             [](Lab& l, std::uint32_t n_heads, std::uint32_t head_dim, std::uint32_t context) {
                 return l.device().attention_partial_bytes(n_heads, head_dim, context);
             })
        .def("supports_kv",
             [](Lab& l, const std::string& kv_dtype) { return l.device().supports_kv(to_kv_types(kv_dtype)); })
        .def("weight", &Lab::weight, py::arg("dtype"), py::arg("data"), py::arg("rows"), py::arg("cols"), py::kw_only(),
             py::arg("prepare") = true, py::arg("whole") = false, py::arg("experts") = 0, py::arg("copies") = 1)
        .def("run", &Lab::run, py::arg("op"), py::arg("buffers"), py::arg("params"), py::kw_only(),
             py::arg("kv_dtype") = "f16")
        .def("time", &Lab::time, py::arg("op"), py::arg("buffers"), py::arg("params"), py::kw_only(),
             py::arg("kv_dtype") = "f16", py::arg("repeats") = 8, py::arg("copies") = 1);

    m.def("lab_structs", struct_dtypes);
    m.def("lab_q8_planes", q8_planes, py::arg("raw"), py::arg("rows"), py::arg("dim"));
    m.def("cpu_instruction_sets", [] {
        py::list out;
        for (const InstructionSet& set : instruction_sets()) out.append(py::make_tuple(set.name, set.supported));
        return out;
    });
}

}  // namespace akunu
