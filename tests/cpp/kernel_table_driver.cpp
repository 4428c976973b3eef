// Runs the kernel test table from a file that tests/kernels/case_file.py wrote (its docstring has the format), on one
// instruction set of the CPU. For what Python cannot run: Arm under emulation, and sanitizers.
//
//     kernel_table_driver FILE ISA
//
// Prints what is wrong, one line per failure, and "N problems, M failed on ISA". Exit status 0 when M is 0, 3 when
// the processor does not support the set.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/lab_command.h"
#include "core/q8.h"
#include "cpu/cpu_device.h"

namespace {

using namespace akunu;

class Reader {
  public:
    explicit Reader(const char* path) {
        std::ifstream in(path, std::ios::binary);
        data_.assign(std::istreambuf_iterator<char>(in), {});
        if (take(8) != "AKTABLE1") throw std::runtime_error(std::string(path) + " is not a kernel table");
    }
    std::string take(std::size_t n) {
        if (n > data_.size() - at_) throw std::runtime_error("the kernel table is truncated");
        at_ += n;
        return data_.substr(at_ - n, n);
    }
    template <typename T>
    T number() {
        T v;
        std::memcpy(&v, take(sizeof v).data(), sizeof v);
        return v;
    }
    std::uint32_t u32() { return number<std::uint32_t>(); }
    std::string string() { return take(u32()); }
    std::string bytes() { return take(number<std::uint64_t>()); }
    bool done() const { return at_ == data_.size(); }

  private:
    std::string data_;
    std::size_t at_ = 0;
};

// Values of an array at any alignment.
template <typename T>
std::vector<T> values(const std::string& bytes) {
    std::vector<T> v(bytes.size() / sizeof(T));
    std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
    return v;
}

const DTypeInfo& dtype_named(const std::string& name) {
    const DTypeInfo* info = find_dtype(name);
    if (!info) throw std::runtime_error("unknown type " + name);
    return *info;
}

struct Buffer {
    std::unique_ptr<lab::GuardedMemory> memory;  // of all but weights
    std::string original;                        // of an array that must not change
    bool constant = false;
    lab::SplitWeight host;
    Weight weight;
    DeviceBuffer packed;
    std::uint32_t rows = 0, dim = 0;  // of an activation
};

struct Check {
    std::uint32_t buffer;
    std::string kind;
    double nmse;
    std::uint64_t offset;
    std::string expected;
};

class Problem {
  public:
    Problem(cpu::CpuDevice& device, Reader& in) : device_(device), name_(in.string()) {
        buffers_.resize(in.u32());
        for (Buffer& b : buffers_) read_buffer(b, in);
        for (std::uint32_t left = in.u32(); left > 0; --left) run_command(in);
        for (std::uint32_t left = in.u32(); left > 0; --left) {
            Check c{in.u32(), in.string(), in.number<double>(), in.number<std::uint64_t>(), in.bytes()};
            const std::string wrong = failure(c);
            if (!wrong.empty()) fail("buffer " + std::to_string(c.buffer) + ": " + wrong);
        }
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            const Buffer& b = buffers_[i];
            if (b.constant && std::memcmp(b.memory->contents(), b.original.data(), b.original.size()) != 0) {
                fail("buffer " + std::to_string(i) + ": an input was changed");
            }
        }
    }
    bool failed() const { return failed_; }

  private:
    void fail(const std::string& what) {
        failed_ = true;
        std::printf("%s: %s\n", name_.c_str(), what.c_str());
    }

    // As tests/kernels/problem.py: poison is a NaN as f32 and as f16.
    void opaque(Buffer& b, std::uint64_t bytes) {
        std::vector<std::byte> poison(bytes);
        lab::fill_guard(poison.data(), poison.size());
        b.memory = std::make_unique<lab::GuardedMemory>(device_, poison.data(), poison.size());
    }

    void read_buffer(Buffer& b, Reader& in) {
        const std::string kind = in.string();
        if (kind == "array") {
            b.constant = in.u32() == 0;
            b.original = in.bytes();
            const auto* data = reinterpret_cast<const std::byte*>(b.original.data());
            b.memory = std::make_unique<lab::GuardedMemory>(device_, data, b.original.size());
        } else if (kind == "weight") {
            const DTypeInfo& info = dtype_named(in.string());
            const std::uint32_t rows = in.u32(), cols = in.u32(), prepared = in.u32();
            b.original = in.bytes();
            const auto* data = reinterpret_cast<const std::byte*>(b.original.data());
            b.host = {info, data, b.original.size()};
            const HostTensor tensor = b.host.tensor(info.id, rows, cols);
            b.weight = prepared ? device_.prepare_weight(tensor) : device_.map_weight(tensor);
            if (prepared) b.packed = DeviceBuffer(device_, b.weight.data.buffer);
        } else if (kind == "activation") {
            const std::string format = in.string();
            b.rows = in.u32();
            b.dim = in.u32();
            opaque(b, device_.activation_bytes(format == "q8" ? kActQ8 : kActF32, b.rows, b.dim));
        } else if (kind == "cache") {
            opaque(b, in.u32());
        } else {
            const std::uint32_t heads = in.u32(), head_dim = in.u32(), context = in.u32();
            opaque(b, device_.attention_partial_bytes(heads, head_dim, context));
        }
    }

    void run_command(Reader& in) {
        DispatchCmd cmd;
        const std::string op = in.string();
        cmd.op = op_named(op);
        cmd.kv = kv_named(in.string(), [](const std::string& name) { return dtype_named(name).id; });
        for (std::uint32_t left = in.u32(); left > 0; --left) {
            const auto index = in.number<std::int32_t>();
            Binding& binding = cmd.buffers.at(cmd.n_buffers++);
            if (index < 0) continue;
            const Buffer& b = buffers_.at(static_cast<std::size_t>(index));
            if (b.memory) {
                binding = b.memory->binding();
                continue;
            }
            binding = b.weight.data;
            cmd.add_weight(b.weight.dtype, b.weight.packed);
            lab::bind_planes(cmd, cmd.n_buffers - 1u, b.weight);
            cmd.input_format = device_.matmul_input(cmd.weight);
        }
        lab::all_buffers(cmd);
        const std::string params = in.string();
        DispatchTable table;
        ReplayArgs args = lab::set_params(cmd, params);
        args.keys = lab::keys_of(cmd, args);
        table.max_rows = args.rows;
        table.commands.push_back(cmd);
        table.labels.emplace_back();
        const auto program = device_.compile(std::move(table));
        const Segment segment{program.get(), args};
        Control control;
        device_.replay({.segments = {&segment, 1}}, control, {}, {});
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            if (!buffers_[i].memory) continue;
            const std::string damage = buffers_[i].memory->damage();
            if (!damage.empty()) fail("[" + op + "] wrote outside buffer " + std::to_string(i) + " " + damage);
        }
    }

    std::string failure(const Check& c) const {
        const Buffer& b = buffers_.at(c.buffer);
        const std::byte* got = b.memory->contents() + c.offset;
        const std::size_t room = b.memory->bytes() - c.offset;
        if (c.kind == "bits") {
            if (c.expected.size() > room) return "the check is larger than the buffer";
            return std::memcmp(got, c.expected.data(), c.expected.size()) == 0 ? "" : "bytes differ";
        }
        if (c.kind == "close") return close(c, got, room);
        return q8(c, b);
    }

    static std::string close(const Check& c, const std::byte* got, std::size_t room) {
        const auto expected = values<double>(c.expected);
        if (expected.size() * sizeof(float) > room) return "the check is larger than the buffer";
        double error = 0, scale = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            float f;
            std::memcpy(&f, got + i * sizeof f, sizeof f);
            const double v = static_cast<double>(f), e = expected[i];
            if (!std::isfinite(e)) {
                if (v != e) return "an infinity differs";
                continue;
            }
            error += (v - e) * (v - e);
            scale += e * e;
        }
        error /= scale > 0 ? scale : 1.0;
        if (error <= c.nmse) return "";  // false for NaN
        return "NMSE " + std::to_string(error * 1e12) + "e-12, at most " + std::to_string(c.nmse * 1e12) + "e-12";
    }

    // Sums are those of q, and each value is the nearest to x / d: as _check_q8 of tests/kernels/runner.py.
    static std::string q8(const Check& c, const Buffer& b) {
        const Q8Layout at(b.dim);
        const std::size_t blocks = b.dim / 32;
        const std::size_t count = std::size_t{b.rows} * b.dim;
        const bool bits = c.kind == "q8bits";
        const auto expected = bits ? std::vector<double>(count) : values<double>(c.expected);
        if (c.expected.size() != (bits ? count + count / 8 : count * sizeof(double))) return "wrong size of the check";
        const double slack = 4 * std::sqrt(c.nmse);
        for (std::size_t r = 0; r < b.rows; ++r) {
            const Q8Row row{b.memory->contents() + r * at.stride, at};
            if (bits) {
                const auto d =
                    values<float>(c.expected.substr(count + r * blocks * sizeof(float), blocks * sizeof(float)));
                if (std::memcmp(row.q(), c.expected.data() + r * b.dim, b.dim) != 0) return "q differs";
                if (!std::equal(d.begin(), d.end(), row.d())) return "d differs";  // 0 and -0 are the same
            }
            for (std::size_t k = 0; k < blocks; ++k) {
                int half[2] = {0, 0};
                for (std::size_t i = 0; i < 32; ++i) half[i / 16] += row.q()[k * 32 + i];
                const double d = static_cast<double>(row.d()[k]);
                const auto wrong = [](float found, int sum) { return found != static_cast<float>(sum); };
                if (wrong(row.s()[k], half[0] + half[1])) return "s is wrong";
                if (wrong(row.s16()[2 * k], half[0]) || wrong(row.s16()[2 * k + 1], half[1])) return "s16 is wrong";
                if (bits) continue;
                const double* x = expected.data() + r * b.dim + k * 32;
                double top = 0;
                for (std::size_t i = 0; i < 32; ++i) top = std::max(top, std::abs(x[i]));
                if (!(std::abs(d - top / 127) <= slack * top / 127 + 1e-35)) return "d is not max|x| / 127";
                for (std::size_t i = 0; i < 32; ++i) {
                    if (!(std::abs(d * row.q()[k * 32 + i] - x[i]) <= d / 2 + slack * top)) {
                        return "a value is not the nearest to x / d";
                    }
                }
            }
        }
        return "";
    }

    cpu::CpuDevice& device_;
    std::string name_;
    std::vector<Buffer> buffers_;
    bool failed_ = false;
};

int run(const char* file, const char* isa) {
    const auto sets = cpu::kernel_sets();
    const auto set = std::find_if(sets.begin(), sets.end(), [&](const auto* s) { return s->isa == isa; });
    if (set != sets.end() && !(*set)->supported()) {
        std::printf("this processor does not support %s\n", isa);
        return 3;
    }
    cpu::CpuDevice device(2, cpu::kernel_set(isa, "isa"));
    Reader in(file);
    const std::uint32_t total = in.u32();
    std::uint32_t failed = 0;
    for (std::uint32_t i = 0; i < total; ++i) failed += Problem(device, in).failed();
    if (!in.done()) throw std::runtime_error("the kernel table has bytes left over");
    std::printf("%u problems, %u failed on %s\n", total, failed, isa);
    return failed != 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s FILE ISA\n", argv[0]);
        return 2;
    }
    try {
        return run(argv[1], argv[2]);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
