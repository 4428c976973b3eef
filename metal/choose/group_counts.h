// The threadgroup counts of a pass for one replay, and what of a command they follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "metal/choose/kernel_choice.h"
#include "metal/include/kv_layout.h"

namespace akunu::metal {

inline std::uint32_t param_u32(const DispatchCmd& cmd, std::size_t offset) {
    std::uint32_t v;
    std::memcpy(&v, cmd.params.data() + offset, sizeof v);
    return v;
}

inline bool is_attention(Op op) {
    return op == Op::kAttention || op == Op::kAttentionSplit || op == Op::kAttentionMerge;
}

// What a command's counts depend on.
struct Extent {
    std::uint32_t rows = 1;
    std::optional<Patch> follows;  // what they are, where not always `rows`
    std::uint32_t window = 0;

    static Extent of(const DispatchCmd& cmd) {
        Extent e;
        if (const FieldInfo* rows = find_field(op_info(cmd.op), "rows")) {
            e.rows = param_u32(cmd, rows->offset);
            for (std::size_t i = 0; i < cmd.n_patches; ++i) {
                if (cmd.patches[i].offset == rows->offset) e.follows = cmd.patches[i];
            }
        }
        if (is_attention(cmd.op)) e.window = param_u32(cmd, offsetof(AttentionParams, window));
        return e;
    }
};

constexpr std::uint32_t groups(const GroupCount& c, const Extent& extent, const ReplayArgs& args) {
    std::uint32_t n = c.base;
    const std::uint32_t rows = extent.follows ? patch_value(*extent.follows, args) : extent.rows;
    if (rows < c.rows_least || rows > c.rows_most) return 0;
    if (c.rows_per) n *= ceil_div(rows, c.rows_per);
    std::uint32_t keys = args.keys;
    const std::uint32_t seen = extent.window ? std::min(keys, extent.window) : keys;
    if (seen <= c.few_keys) return n * c.few;
    if (c.keys_per) {
        if (extent.window) keys = std::min(keys, extent.window + c.keys_per - 1);
        const std::uint32_t blocks = ceil_div(keys, c.keys_per);
        n *= c.splits ? split_count(blocks, c.keys_most) : std::min(blocks, c.keys_most);
    }
    return n;
}

// Names of the passes of a command that are dispatched with these.
inline std::vector<std::string> names_of(const KernelChoice& choice, const DispatchCmd& cmd, const ReplayArgs& args) {
    const Extent extent = Extent::of(cmd);
    std::vector<std::string> names;
    for (const Pass& p : choice.passes) {
        const bool runs =
            p.counted || (groups(p.x, extent, args) && groups(p.y, extent, args) && groups(p.z, extent, args));
        if (runs) names.push_back(p.function);
    }
    return names;
}

// Whether the parameters are the same in every replay. A patched row count holds the most rows that the table runs, so
// where those are of one row they are always as many.
inline bool is_static(const DispatchCmd& cmd) {
    for (int i = 0; i < cmd.n_patches; ++i) {
        const Patch& p = cmd.patches[static_cast<std::size_t>(i)];
        if (p.source == PatchSource::kStep || param_u32(cmd, p.offset) != p.times) return false;
    }
    return true;
}

}  // namespace akunu::metal
