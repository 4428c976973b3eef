// The threadgroup counts of a pass for one replay, and what of a command they follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "metal/choose/kernel_choice.h"
#include "metal/choose/params.h"

namespace akunu::metal {

// Where the op's parameters hold the number of rows, if they do.
constexpr std::optional<std::size_t> rows_offset(Op op) {
    switch (op) {
        case Op::kEmbed:
            return offsetof(EmbedParams, rows);
        case Op::kRopeTable:
            return offsetof(RopeTableParams, rows);
        case Op::kNorm:
        case Op::kNormAdd:
            return offsetof(NormParams, rows);
        case Op::kQuantize:
            return offsetof(QuantizeParams, rows);
        case Op::kMatmul:
            return offsetof(MatmulParams, rows);
        case Op::kGateUp:
            return offsetof(GateUpParams, rows);
        case Op::kGateAct:
            return offsetof(GateActParams, rows);
        case Op::kRopeKv:
            return offsetof(RopeKvParams, rows);
        case Op::kAttention:
        case Op::kAttentionSplit:
        case Op::kAttentionMerge:
            return offsetof(AttentionParams, rows);
        default:
            return std::nullopt;
    }
}

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
    bool rows_follow = false;  // the replay's rows, not `rows`
    std::uint32_t window = 0;

    static Extent of(const DispatchCmd& cmd) {
        Extent e;
        if (const auto at = rows_offset(cmd.op)) {
            e.rows = param_u32(cmd, *at);
            for (int i = 0; i < cmd.n_patches; ++i) {
                e.rows_follow = e.rows_follow || cmd.patches[static_cast<std::size_t>(i)].offset == *at;
            }
        }
        if (is_attention(cmd.op)) e.window = param_u32(cmd, offsetof(AttentionParams, window));
        return e;
    }
};

// `position` is that of the replay's first row.
constexpr std::uint32_t groups(const GroupCount& c, const Extent& extent, std::uint32_t position,
                               std::uint32_t replay_rows) {
    std::uint32_t n = c.base;
    const std::uint32_t rows = extent.rows_follow ? replay_rows : extent.rows;
    if (c.rows_per) n *= ceil_div(rows, c.rows_per);
    if (c.keys_per) {
        std::uint32_t keys = position + rows;
        if (extent.window) keys = std::min(keys, extent.window + c.keys_per - 1);
        n *= std::min(ceil_div(keys, c.keys_per), c.keys_most);
    }
    return n;
}

// Whether the parameters are the same in every replay. A patched row count holds the most rows that the table runs, so
// where that is one it is always one.
inline bool is_static(const DispatchCmd& cmd) {
    for (int i = 0; i < cmd.n_patches; ++i) {
        const Patch& p = cmd.patches[static_cast<std::size_t>(i)];
        if (p.source != PatchSource::kRows || param_u32(cmd, p.offset) != 1) return false;
    }
    return true;
}

}  // namespace akunu::metal
