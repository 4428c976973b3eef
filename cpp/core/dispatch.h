// The dispatch table: a model's forward pass as a flat array of resolved commands.
//
// A table is built once and replayed. What changes from one replay to the next is data as well: a Patch says which u32
// of a command's parameters becomes `source · times` before the command runs. Labels and costs are kept apart from the
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
#include "core/kv_types.h"
#include "core/ops.h"
#include "core/params.h"
#include "core/step_state.h"

namespace akunu {

// Memory on a device. `host` is the host's view of it, null where there is none; `device` is what the device's own code
// reads and writes it by, where that is a pointer.
struct Buffer {
    void* handle = nullptr;
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    std::uint64_t size = 0;
};

// A part of a buffer.
struct Binding {
    Buffer buffer;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // 0: to the buffer's end
    // For kernels of a device whose memory is the process'.
    template <typename T = std::byte>
    T* as() const {
        return reinterpret_cast<T*>(buffer.device + offset);
    }
    // For the host, in memory of a kind that it sees.
    template <typename T = std::byte>
    T* host() const {
        return reinterpret_cast<T*>(buffer.host + offset);
    }
    std::uint64_t end() const { return bytes ? offset + bytes : buffer.size; }
    explicit operator bool() const { return buffer.size != 0; }
};

// Replay variables that a patched parameter may follow.
enum class PatchSource : std::uint8_t {
    kRows,    // rows of this replay
    kLogits,  // of them, those whose logits are wanted
    kStep,    // how far positions are ahead of those that the rows have
    kKeys,    // that some row sees, at most
};

struct Patch {
    std::uint8_t offset = 0;  // byte offset in params
    PatchSource source = PatchSource::kRows;
    std::uint16_t times = 1;  // a factor: where each row of the step is so many rows of the command
};

constexpr int kMaxBuffers = 12;
constexpr int kMaxParamBytes = 128;
constexpr int kMaxPatches = 3;

// Whether a float weight is in a format of which a device sums up more products, and rounds them.
enum class Whole : std::uint8_t {
    kNone,
    // Only rows of whole sequences, or sounds, are multiplied with it: no other step computes one of them again, so
    // that the device may sum as it does for no other rows.
    kSequences,
    // Any rows: F16 and BF16, whose sums then do not depend on what other rows there are.
    kRows,
};

// One command. Plain data, no heap.
struct DispatchCmd {
    const void* kernel = nullptr;  // resolved by the device
    Op op = Op::kEmbed;
    std::uint8_t n_buffers = 0;
    std::uint8_t n_patches = 0;
    std::uint8_t param_bytes = 0;
    std::uint8_t n_weights = 0;
    bool barrier = true;  // must wait for the commands before it: see set_barriers
    bool packed = false;  // the weight is in the device's own layout
    Whole whole = Whole::kNone;
    bool paged = false;   // its weights are experts that stay in their file: set by the device
    bool merged = false;  // another command's kernel does its work where the whole table runs: set by the device
    // All weights have this type, but that the last may have one of its own: v in kNormQkv.
    DType weight = DType::F32;
    DType last_weight = DType::F32;
    KvTypes kv;
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
    template <typename P>
    P params_as() const {
        P p;
        std::memcpy(&p, params.data(), sizeof p);
        return p;
    }
    // Notes the next weight's type and layout.
    void add_weight(DType dtype, bool is_packed, Whole is_whole = Whole::kNone) {
        if (n_weights++ == 0) weight = dtype;
        last_weight = dtype;
        packed = is_packed;
        whole = is_whole;
    }
};

// Cold data of a command.
struct CommandLabel {
    std::string name;   // "attn_q"
    std::string shape;  // "2048x2048"
    int layer = -1;
    Cost cost;

    std::string full_name() const;  // "layers.3.attn_q"
};

// What changes from one run of a table to the next, besides what lies in the step's buffers (rows, page tables,
// tokens).
struct ReplayArgs {
    std::uint32_t rows = 1;
    std::uint32_t logits = 1;     // rows whose logits are wanted
    std::uint32_t step = 0;       // positions are so many ahead of those that the rows have
    std::uint32_t keys = 1;       // that some row sees, at most: the greatest position + 1
    std::uint32_t sequences = 1;  // whose rows they are, each as many, with keys of its own; 1 where they differ
};

struct DispatchTable {
    std::string phase;
    std::vector<DispatchCmd> commands;
    std::vector<CommandLabel> labels;
    std::uint32_t max_rows = 1;
    PatchSource rows = PatchSource::kRows;  // what its commands' rows are
};

// Value of a replay variable.
constexpr std::uint32_t source_value(PatchSource source, const ReplayArgs& a) {
    switch (source) {
        case PatchSource::kRows:
            return a.rows;
        case PatchSource::kLogits:
            return a.logits;
        case PatchSource::kStep:
            return a.step;
        case PatchSource::kKeys:
            return a.keys;
    }
    return 0;
}

// What a patch writes.
constexpr std::uint32_t patch_value(const Patch& p, const ReplayArgs& a) { return source_value(p.source, a) * p.times; }

// Copies a command's parameters and applies its patches.
inline void patched_params(const DispatchCmd& c, const ReplayArgs& a, std::byte* out) {
    std::memcpy(out, c.params.data(), c.param_bytes);
    for (int i = 0; i < c.n_patches; ++i) {
        const std::uint32_t v = patch_value(c.patches[i], a);
        std::memcpy(out + c.patches[i].offset, &v, sizeof v);
    }
}

// How a command uses a buffer: one that it may add to it overwrites where it does not add.
Access access_of(const DispatchCmd& command, std::size_t buffer);

// Sets each command's barrier where it needs one: where it reads or overwrites what a command since the last barrier
// wrote, or overwrites what one read. The first command has none.
void set_barriers(std::span<DispatchCmd> commands);

// One of a command's weights: its place among the buffers, and among the op's weights; its size; and where the scales
// and biases of a planar type are, 0 where the op takes none.
struct WeightPlace {
    std::size_t buffer, weight;
    std::uint64_t rows, cols;
    std::size_t scales = 0, biases = 0;
    bool planar() const { return scales != 0; }
};
// Those that the command has, in the op's order.
std::vector<WeightPlace> weights_in(const DispatchCmd& command);
// The places of all weights that the op may have, without sizes.
std::vector<WeightPlace> weight_places(const OpInfo& op);

// How many of n experts some row has chosen, where each of so many rows chooses k: what is expected of rows that choose
// at random.
double chosen_experts(double n, double k, double rows);

// Bytes of a replay of the rows of one sequence, or of several alike, the last of which sees `keys` keys.
double cost_bytes(const Cost& c, const ReplayArgs& a);
// Bytes that no kernel could avoid: the weights, and the keys and values.
double cost_minimum_bytes(const Cost& c, const ReplayArgs& a);
double cost_flops(const Cost& c, const ReplayArgs& a);

}  // namespace akunu
