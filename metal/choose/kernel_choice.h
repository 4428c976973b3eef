// Which MSL functions run a command, and how many threads of them: plain data, so that plans can be costed and tested
// where there is no Metal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dispatch.h"
#include "metal/choose/chip.h"
#include "metal/include/buffer_index.h"

namespace akunu::metal {

static_assert(kParamsIndex == kMaxBuffers, "a kernel finds its parameters behind a command's buffers");

constexpr std::uint32_t kSimdWidth = 32;  // threads of a SIMD-group, on every chip so far

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

// The value of a function constant.
struct Constant {
    enum class Type : std::uint8_t { kBool, kUint } type = Type::kUint;
    std::uint16_t index = 0;
    std::uint32_t value = 0;
    auto operator<=>(const Constant&) const = default;
};

// A threadgroup count that follows the replay: base · ceil(rows / rows_per) · min(ceil(keys / keys_per), keys_most), a
// divisor of 0 meaning "does not follow". `keys` are the most that any row sees: ReplayArgs::keys, or with a
// window at most window + keys_per - 1, since a window may begin inside a block. Where a row sees at most `few_keys`,
// it is base · ceil(rows / rows_per) · few. With `splits` the last factor is split_count of metal/include/kv_layout.h.
struct GroupCount {
    std::uint32_t base = 1;
    std::uint32_t rows_per = 0;
    std::uint32_t keys_per = 0;
    std::uint32_t keys_most = UINT32_MAX;
    std::uint32_t few_keys = 0;
    std::uint32_t few = 0;
    std::uint32_t splits = 0;  // 1: as said above
    // With other rows it is 0: passes of which one runs, by the rows of a replay.
    std::uint32_t rows_least = 0;
    std::uint32_t rows_most = UINT32_MAX;

    bool follows_keys() const { return keys_per != 0 || few_keys != 0; }
};

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
};

// One dispatch, or none where a count is 0.
struct Pass {
    std::string function;             // its host_name
    std::vector<Constant> constants;  // by rising index
    GroupCount x, y, z;
    Dim3 threads{32, 1, 1};  // of a threadgroup
    // The counts are the first three words of the scratch memory, where a pass before this one has written them.
    bool counted = false;
};

// A command's passes, in order, each of which sees what those before it wrote. Layers' commands have one; two-stage
// reductions over a large vocabulary have two.
struct KernelChoice {
    std::vector<Pass> passes;
    std::uint64_t scratch_bytes = 0;
};

// Each family's choice; empty when the op is not its own or has no kernel for these types and sizes.
std::optional<KernelChoice> choose_matmul(const DispatchCmd& cmd, const Chip& chip);     // embed, matmul, gate_up, ...
std::optional<KernelChoice> choose_attention(const DispatchCmd& cmd, const Chip& chip);  // attention and prepare_heads
std::optional<KernelChoice> choose_elementwise(const DispatchCmd& cmd, const Chip& chip);  // norms, rope tables, ...
std::optional<KernelChoice> choose_sampling(const DispatchCmd& cmd, const Chip& chip);

// The choice of whichever family has one; UnsupportedError when none has.
KernelChoice choose_kernels(const DispatchCmd& cmd, const Chip& chip);

}  // namespace akunu::metal
