// One command from its op's name and parameters, in memory with guards: what the lab of the Python module and the
// kernel table's driver in tests/cpp share.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

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

inline Op op_named(const std::string& name) {
    for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
        if (op_name(static_cast<Op>(i)) == name) return static_cast<Op>(i);
    }
    throw InvalidArgumentError("unknown op '" + name + "'");
}

// Calls f with an object of the op's parameter type.
template <typename F>
auto with_params(Op op, F&& f) {
    switch (op) {
        case Op::kEmbed:
            return f(EmbedParams{});
        case Op::kRopeTable:
            return f(RopeTableParams{});
        case Op::kNorm:
        case Op::kNormAdd:
            return f(NormParams{});
        case Op::kQuantize:
            return f(QuantizeParams{});
        case Op::kMatmul:
            return f(MatmulParams{});
        case Op::kGateUp:
            return f(GateUpParams{});
        case Op::kNormQkv:
            return f(NormQkvParams{});
        case Op::kNormGateUp:
            return f(NormGateUpParams{});
        case Op::kGateAct:
            return f(GateActParams{});
        case Op::kRopeKv:
            return f(RopeKvParams{});
        case Op::kAttention:
        case Op::kAttentionSplit:
        case Op::kAttentionMerge:
            return f(AttentionParams{});
        case Op::kArgmax:
        case Op::kSamplePrepare:
        case Op::kSampleSelect:
        case Op::kLogprobs:
            return f(SampleParams{});
        case Op::kCount:
            break;
    }
    throw InvalidArgumentError("unknown op");
}

// Sets the parameters and, as the TableBuilder does, patches for the rows and the position.
template <typename P>
ReplayArgs set_params(DispatchCmd& cmd, const std::string& bytes) {
    if (bytes.size() != sizeof(P)) {
        throw InvalidArgumentError("parameters of " + std::string(op_name(cmd.op)) + " are " +
                                   std::to_string(bytes.size()) + " bytes, expected " + std::to_string(sizeof(P)));
    }
    P p;
    std::memcpy(&p, bytes.data(), sizeof p);
    cmd.set_params(p);
    const auto patch = [&](const u32& field, PatchSource source) {
        const auto offset = reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&p);
        cmd.patches.at(cmd.n_patches++) = {static_cast<std::uint8_t>(offset), source, 0};
    };
    ReplayArgs args;
    if constexpr (requires { p.rows; }) {
        args.rows = p.rows;
        patch(p.rows, PatchSource::kRows);
    }
    if constexpr (std::is_same_v<P, SampleParams>) {  // the row before the token to be written
        if (p.position == 0) throw InvalidArgumentError("a sampler's position is 0, expected at least 1");
        args.position = p.position - 1;
        patch(p.position, PatchSource::kEnd);
    } else if constexpr (requires { p.position; }) {
        args.position = p.position;
        patch(p.position, PatchSource::kPosition);
    }
    return args;
}

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
