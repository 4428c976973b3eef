// One command from its op's name and parameters, in memory with guards: what the lab of the Python module and the
// kernel table's driver in tests/cpp share.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "core/sampling.h"

namespace akunu::lab {

// On both sides of every buffer. As f32, f16 or bf16 the pattern is a NaN: what is read there spoils the result.
constexpr std::size_t kGuardBytes = 256;
constexpr std::uint16_t kGuardPattern = 0xFFFE;

inline void fill_guard(std::byte* p, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) p[i] = static_cast<std::byte>(kGuardPattern >> (i % 2 * 8));
}

// Bytes that no longer hold the pattern.
inline std::size_t broken_guard(const std::byte* p, std::size_t bytes) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < bytes; ++i) n += p[i] != static_cast<std::byte>(kGuardPattern >> (i % 2 * 8));
    return n;
}

// Sets the parameters and, as the Emitter does, a patch for the rows. The step stays as given.
inline ReplayArgs set_params(DispatchCmd& cmd, const std::string& bytes) {
    const OpInfo& op = op_info(cmd.op);
    if (bytes.size() != op.param_bytes) {
        throw InvalidArgumentError("parameters of " + std::string(op.name) + " are " + std::to_string(bytes.size()) +
                                   " bytes, expected " + std::to_string(op.param_bytes));
    }
    std::memcpy(cmd.params.data(), bytes.data(), bytes.size());
    cmd.param_bytes = static_cast<std::uint8_t>(bytes.size());
    ReplayArgs args;
    if (const FieldInfo* rows = find_field(op, "rows")) {
        std::memcpy(&args.rows, bytes.data() + rows->offset, sizeof args.rows);
        args.logits = args.rows;
        cmd.patches.at(cmd.n_patches++) = {rows->offset, PatchSource::kRows};
    }
    if (const FieldInfo* keys = find_field(op, "keys")) {
        std::memcpy(&args.keys, bytes.data() + keys->offset, sizeof args.keys);
        cmd.patches.at(cmd.n_patches++) = {keys->offset, PatchSource::kKeys};
    }
    return args;
}

// The keys that the command's last row sees, from its buffer of rows, once it is bound.
inline std::uint32_t keys_of(const DispatchCmd& cmd, const ReplayArgs& args) {
    const OpInfo& op = op_info(cmd.op);
    std::uint32_t keys = 1, step = 0;
    if (const FieldInfo* f = find_field(op, "step")) std::memcpy(&step, cmd.params.data() + f->offset, sizeof step);
    for (std::size_t i = 0; i < cmd.n_buffers; ++i) {
        if (op.buffers[i].name != "rows" || !cmd.buffers[i]) continue;
        const auto* rows = cmd.buffers[i].host<Row>();
        const auto n = (cmd.buffers[i].end() - cmd.buffers[i].offset) / sizeof(Row);
        for (std::uint32_t r = 0; r < args.rows && r < n; ++r) keys = std::max(keys, rows[r].position + step + 1);
    }
    return keys;
}

// A weight whose planes were taken from its blocks.
struct SplitWeight {
    std::vector<std::byte> planes[3];

    SplitWeight() = default;
    SplitWeight(const DTypeInfo& info, const std::byte* blocks, std::uint64_t bytes) {
        const std::size_t sizes[3] = {info.planar() ? info.planes.codes : info.block_bytes, info.planes.scales,
                                      info.planes.biases};
        for (std::uint64_t at = 0; at < bytes;) {
            for (int i = 0; i < 3; at += sizes[i++])
                planes[i].insert(planes[i].end(), blocks + at, blocks + at + sizes[i]);
        }
    }
    HostTensor tensor(DType dtype, std::uint64_t rows, std::uint64_t cols) const {
        return {
            .dtype = dtype, .rows = rows, .cols = cols, .bytes = planes[0], .scales = planes[1], .biases = planes[2]};
    }
};

// The equal parts of a weight that follow each other, each of `tensor`'s rows: those of so many experts.
inline std::vector<HostTensor> parts_of(const HostTensor& tensor, std::uint64_t experts) {
    std::vector<HostTensor> parts;
    for (std::uint64_t i = 0; i < experts; ++i) {
        const auto part = [&](std::span<const std::byte> all) {
            return all.subspan(all.size() / experts * i, all.size() / experts);
        };
        HostTensor t = tensor;
        t.bytes = part(tensor.bytes);
        t.scales = part(tensor.scales);
        t.biases = part(tensor.biases);
        parts.push_back(t);
    }
    return parts;
}

// Binds the other planes of the weight that is in this buffer, where its op has places for them; `all_buffers` follows,
// once all are bound.
inline void bind_planes(DispatchCmd& cmd, std::size_t buffer, const Weight& w) {
    for (const WeightPlace& place : weight_places(op_info(cmd.op))) {
        if (place.buffer != buffer || !place.planar() || !w.scales) continue;
        cmd.buffers[place.scales] = w.scales;
        if (place.biases) cmd.buffers[place.biases] = w.biases;
    }
}

inline void all_buffers(DispatchCmd& cmd) { cmd.n_buffers = static_cast<std::uint8_t>(op_info(cmd.op).buffers.size()); }

// A buffer's memory on a device, with guards on both sides.
class GuardedMemory {
  public:
    GuardedMemory(Device& device, const std::byte* data, std::size_t bytes)
        : memory_(device, 2 * kGuardBytes + (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes), bytes_(bytes) {
        fill_guard(memory_.as<std::byte>(), kGuardBytes);
        if (bytes != 0) std::memcpy(contents(), data, bytes);
        fill_guard(contents() + bytes, after());
    }
    Binding binding() const { return memory_.at(kGuardBytes); }
    std::byte* contents() const { return memory_.as<std::byte>() + kGuardBytes; }
    std::size_t bytes() const { return bytes_; }

    // What was written outside of it; empty when nothing was.
    std::string damage() const {
        const std::size_t before = broken_guard(memory_.as<std::byte>(), kGuardBytes);
        const std::size_t behind = broken_guard(contents() + bytes_, after());
        if (before + behind == 0) return {};
        return "of " + std::to_string(bytes_) + " bytes: " + std::to_string(before) + " bytes before it and " +
               std::to_string(behind) + " after it";
    }

  private:
    std::size_t after() const { return memory_.size() - kGuardBytes - bytes_; }
    DeviceBuffer memory_;
    std::size_t bytes_;
};

}  // namespace akunu::lab
