// The dispatch table: a model's forward pass as a flat array of resolved commands.
//
// A table is built once and replayed. What changes from one replay to the next is data as well: a Patch says which u32
// of a command's parameters becomes `source + add` before the command runs. Labels and costs are kept apart from the
// hot array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/params.h"

namespace akunu {

// Memory on a device. `contents` is the host's view, null where there is none.
struct Buffer {
    void* handle = nullptr;
    std::byte* contents = nullptr;
    std::uint64_t size = 0;
};

struct Binding {
    Buffer buffer;
    std::uint64_t offset = 0;
    template <typename T = std::byte>
    T* as() const {
        return reinterpret_cast<T*>(buffer.contents + offset);
    }
    explicit operator bool() const { return buffer.size != 0; }
};

enum class Op : std::uint8_t {
    kEmbed,
    kRopeTable,
    kNorm,
    kNormAdd,
    kQuantize,
    kMatmul,
    kGateUp,
    kNormQkv,
    kNormGateUp,
    kGateAct,
    kRopeKv,
    kAttention,
    kAttentionSplit,
    kAttentionMerge,
    kArgmax,
    kSamplePrepare,
    kSampleSelect,
    kLogprobs,
    kCount,
};
std::string_view op_name(Op op);

// Replay variables that a patched parameter may follow.
enum class PatchSource : std::uint8_t {
    kPosition,  // position of the first row, + step in a chain
    kRows,      // rows of this replay
    kLastRow,   // rows - 1
    kStep,      // index within the chain
    kEnd,       // position + rows + step: where the next token goes
};

struct Patch {
    std::uint8_t offset = 0;  // byte offset in params
    PatchSource source = PatchSource::kPosition;
    std::uint16_t add = 0;
};

constexpr int kMaxBuffers = 8;
constexpr int kMaxParamBytes = 64;
constexpr int kMaxPatches = 4;

// One command. Plain data, no heap.
struct DispatchCmd {
    const void* kernel = nullptr;  // resolved by the device
    Op op = Op::kEmbed;
    std::uint8_t n_buffers = 0;
    std::uint8_t n_patches = 0;
    std::uint8_t param_bytes = 0;
    std::uint8_t n_weights = 0;
    bool barrier = true;  // must wait for the commands before it
    bool packed = false;  // the weight is in the device's own layout
    // Of all weights, but that the last may have a type of its own: v in kNormQkv.
    DType weight = DType::F32;
    DType last_weight = DType::F32;
    DType kv = DType::F16;
    std::uint32_t input_format = kActF32;
    std::array<Patch, kMaxPatches> patches{};
    alignas(8) std::array<std::byte, kMaxParamBytes> params{};
    std::array<Binding, kMaxBuffers> buffers{};

    template <typename P>
    void set_params(const P& p) {
        static_assert(sizeof(P) <= kMaxParamBytes && std::is_trivially_copyable_v<P>);
        std::memcpy(params.data(), &p, sizeof(P));
        param_bytes = sizeof(P);
    }
    // Notes the next weight's type and layout.
    void add_weight(DType dtype, bool is_packed) {
        if (n_weights++ == 0) weight = dtype;
        last_weight = dtype;
        packed = is_packed;
    }
};

// Bytes and FLOPs that a command must move and do:
// fixed + rows·per_row + (keys that any row sees)·per_key + (keys seen, summed over rows)·per_row_key; and partial
// results per key, up to a limit.
struct Cost {
    double weights = 0, kv_per_key = 0;  // of the bytes: what must be read whatever the kernels are
    double bytes = 0, bytes_per_row = 0, bytes_per_key = 0;
    double partials_per_key = 0, partials_most = 0;
    double flops = 0, flops_per_row = 0, flops_per_row_key = 0;
    std::uint32_t window = 0;
};

// Cold data of a command.
struct CommandLabel {
    std::string name;   // "attn_q"
    std::string shape;  // "2048x2048"
    int layer = -1;
    Cost cost;

    std::string full_name() const;  // "layers.3.attn_q"
};

struct ReplayArgs {
    std::uint32_t position = 0;  // of the first row
    std::uint32_t rows = 1;
    std::uint32_t steps = 1;  // tokens in the chain; more than one only with rows == 1
};

// What device and host share during a replay.
struct Control {
    std::uint32_t stop = 0;      // set by the sampler after an end-of-generation token; a device may set it to cancel
    std::uint32_t produced = 0;  // tokens sampled so far in this chain
};

struct DispatchTable {
    std::string phase;
    std::vector<DispatchCmd> commands;
    std::vector<CommandLabel> labels;
    std::uint32_t max_rows = 1;
};

// Value of a patch at chain index `step`.
constexpr std::uint32_t patch_value(const Patch& p, const ReplayArgs& a, std::uint32_t step) {
    switch (p.source) {
        case PatchSource::kPosition:
            return a.position + step + p.add;
        case PatchSource::kRows:
            return a.rows + p.add;
        case PatchSource::kLastRow:
            return a.rows - 1 + p.add;
        case PatchSource::kStep:
            return step + p.add;
        case PatchSource::kEnd:
            return a.position + a.rows + step + p.add;
    }
    return 0;
}

// Copies a command's parameters and applies its patches.
inline void patched_params(const DispatchCmd& c, const ReplayArgs& a, std::uint32_t step, std::byte* out) {
    std::memcpy(out, c.params.data(), c.param_bytes);
    for (int i = 0; i < c.n_patches; ++i) {
        const std::uint32_t v = patch_value(c.patches[i], a, step);
        std::memcpy(out + c.patches[i].offset, &v, sizeof v);
    }
}

double cost_bytes(const Cost& c, const ReplayArgs& a);
// The weights, and the keys and values.
double cost_minimum_bytes(const Cost& c, const ReplayArgs& a);
double cost_flops(const Cost& c, const ReplayArgs& a);

}  // namespace akunu
