// Commands that do the work of several: see DecodeAttentionParams.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cuda/host/consumed.h"
#include "cuda/host/joined.h"
#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/host/words.h"
#include "cuda/kernels/few_layout.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

namespace {

std::optional<Command> decode_attention(std::span<const DispatchCmd> c, std::span<const Command> commands, u32 max_rows,
                                        u32 blocks) {
    if (c.size() < 3 || c[0].op != Op::kPrepareHeads) return {};
    const bool split = c[1].op == Op::kAttentionSplit && c[2].op == Op::kAttentionMerge;
    if (!split && (c[1].op != Op::kAttention || c[2].op != Op::kQuantize)) return {};
    Consumed rope(c[0]), attention(c[1]), last(c[2]);
    using A = AttentionParams;
    using Q = QuantizeParams;
    DecodeAttentionParams p{.rows = 0,
                            .step = 0,
                            .keys = 0,
                            .n_heads = rope.take(&PrepareHeadsParams::n_heads),
                            .n_kv_heads = rope.take(&PrepareHeadsParams::n_kv_heads),
                            .head_dim = rope.take(&PrepareHeadsParams::head_dim),
                            .rope_dim = rope.take(&PrepareHeadsParams::rope_dim),
                            .style = rope.take(&PrepareHeadsParams::style),
                            .qk_norm = rope.take(&PrepareHeadsParams::qk_norm),
                            .eps = rope.take(&PrepareHeadsParams::eps),
                            .window = attention.take(&A::window),
                            .max_pages = rope.take(&PrepareHeadsParams::max_pages),
                            .page_words = rope.take(&PrepareHeadsParams::page_words),
                            .scale = attention.take(&A::scale),
                            .softcap = attention.take(&A::softcap),
                            .formats = split ? last.take(&A::formats) : last.take(&Q::formats),
                            .run = 1};
    rope.patched(&PrepareHeadsParams::rows, PatchSource::kRows);
    rope.patched(&PrepareHeadsParams::step, PatchSource::kStep);
    const auto same_attention = [&](Consumed& of) {
        of.patched(&A::rows, PatchSource::kRows);
        of.patched(&A::step, PatchSource::kStep);
        of.patched(&A::keys, PatchSource::kKeys);
        of.demand(&A::n_heads, p.n_heads);
        of.demand(&A::n_kv_heads, p.n_kv_heads);
        of.demand(&A::head_dim, p.head_dim);
        of.demand(&A::window, p.window);
        of.demand(&A::max_pages, p.max_pages);
        of.demand(&A::page_words, p.page_words);
        of.demand(&A::row_ends, 0u);
        of.demand(&A::scale, p.scale);
        of.demand(&A::softcap, p.softcap);
        of.demand(&A::formats, p.formats);
    };
    same_attention(attention);
    if (split) {
        same_attention(last);
    } else {
        last.patched(&Q::rows, PatchSource::kRows);
        last.demand(&Q::dim, p.n_heads * p.head_dim);
    }
    // Its own buffers are those of kPrepareHeads, then partial results, and outputs.
    std::array<Binding, 12> buffers;
    for (std::size_t i = 0; i < 8; ++i) buffers[i] = rope.buffer(i);
    const Binding &q = buffers[0], &kv = buffers[4], &rows = buffers[6], &pages = buffers[7];
    attention.demand_buffer(0, q);
    attention.demand_buffer(1, kv);
    attention.demand_buffer(3, rows);
    attention.demand_buffer(4, pages);
    buffers[8] = attention.buffer(2);
    last.demand_buffer(0, buffers[8]);
    buffers[9] = last.buffer(1);
    buffers[10] = last.buffer(2);
    buffers[11] = split ? last.buffer(4) : attention.buffer(5);
    if (split) last.demand_buffer(3, rows);
    const bool whole = rope.whole() && attention.whole() && last.whole() && c[0].kv == c[1].kv;
    if (!whole || !q || !buffers[1] || !buffers[2] || p.head_dim % 4 != 0 || p.head_dim > kMaxFusedDim) return {};
    // Where keys are split, units are no more than blocks.
    const u32 heads = group_part(p.n_heads / p.n_kv_heads);
    const std::uint64_t units = std::min(blocks, kMaxSplits * max_rows * (p.n_heads / heads));
    const std::uint64_t bytes = units * heads * (p.head_dim + 2) * sizeof(float);
    if (blocks > kMaxTickets || bytes > buffers[8].end() - buffers[8].offset) return {};
    Command out{};
    out.op = kOpDecodeAttention;
    out.barrier = commands[0].barrier;
    out.kv = commands[1].kv;
    out.n_patches = 3;
    for (u32 i = 0; i < 3; ++i) out.patch_field[i] = i;
    out.patch_value[0] = kPatchRows;
    out.patch_value[1] = kPatchStep;
    out.patch_value[2] = kPatchKeys;
    out.label = commands[1].label;
    if (max_rows != 1) p.run = decode_run(heads);
    std::memcpy(out.params, &p, sizeof p);
    set_buffers(out, buffers);
    return out;
}

// A matmul of a row and the sum of what all GPUs have made: its blocks exchange their results as they have them.
std::optional<Command> reduced_matmul(std::span<const DispatchCmd> c, const Command& command) {
    if (c.size() < 2 || c[0].op != Op::kMatmul || c[1].op != Op::kAllReduce) return {};
    if (command.streams != 1 || !command.barrier) return {};
    Consumed matmul(c[0]), sum(c[1]);
    using M = MatmulParams;
    using A = AllReduceParams;
    matmul.patched(&M::rows, PatchSource::kRows);
    const u32 n = matmul.take(&M::n);
    matmul.take(&M::k);
    matmul.take(&M::has_bias);
    matmul.demand(&M::y_stride, n);
    matmul.demand(&M::format, u32{kActF32});
    matmul.buffer(0);
    matmul.weight(1);
    const Binding& parts = matmul.buffer(2);
    matmul.buffer(3);
    sum.patched(&A::rows, PatchSource::kRows);
    sum.demand(&A::dim, n);
    sum.demand(&A::x_stride, n);
    sum.demand(&A::y_stride, n);
    const u32 accumulate = sum.take(&A::accumulate);
    sum.demand_buffer(0, parts);
    const Binding& y = sum.buffer(1);
    if (!matmul.whole() || !sum.whole()) return {};
    Command out = command;
    out.reduces = 1;
    reinterpret_cast<MatmulParams&>(out.params).accumulate = accumulate;
    out.buffers[2] = reinterpret_cast<u64>(y.as());
    return out;
}

}  // namespace

bool same_shape(const Command& a, const Command& b) {
    const auto& p = reinterpret_cast<const DecodeAttentionParams&>(a.params);
    const auto& q = reinterpret_cast<const DecodeAttentionParams&>(b.params);
    return a.kv == b.kv && a.buffers[6] == b.buffers[6] && a.buffers[7] == b.buffers[7] && p.window == q.window &&
           p.n_heads == q.n_heads && p.n_kv_heads == q.n_kv_heads && p.head_dim == q.head_dim;
}

namespace {

// Whether a command uses what one before it writes, or writes what that one uses.
bool depends(const DispatchTable& table, const Command& now, const Command& before) {
    const auto of = [&](const Command& c) {
        const auto [first, behind] = covered_by(c);
        return std::span(table.commands).subspan(c.label - first, first + 1 + behind);
    };
    const auto meet = [](const Binding& a, const Binding& b) {
        return a && b && begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
    };
    for (const DispatchCmd& c : of(now)) {
        for (const DispatchCmd& d : of(before)) {
            for (std::size_t i = 0; i < c.n_buffers; ++i) {
                for (std::size_t j = 0; j < d.n_buffers; ++j) {
                    const bool reads = access_of(c, i) == Access::kRead && access_of(d, j) == Access::kRead;
                    if (!reads && meet(c.buffers[i], d.buffers[j])) return true;
                }
            }
        }
    }
    return false;
}

// One command that does the work of several from the i-th on; nothing where that one stands alone.
std::optional<Command> joined(const DispatchTable& table, std::size_t i, std::span<const Command> commands,
                              const Geometry& geometry, bool few) {
    const auto from = std::span(table.commands).subspan(i);
    commands = commands.subspan(i);
    const bool of_sequences = table.max_rows == 1 || table.phase == "batch";  // those of prompts are of one
    if (of_sequences) {
        if (auto one = decode_attention(from, commands, table.max_rows, geometry.blocks)) return one;
        if (auto pair = adapted_gate_up(from, commands, geometry, table.max_rows)) return pair;
        if (auto sum = adapted_matmul(from, commands, geometry, table.max_rows)) return sum;
    }
    if (table.max_rows != 1) return few ? norm_of_rows(from, commands) : std::nullopt;
    if (auto qkv = adapted_qkv(from, commands, geometry)) return qkv;
    if (auto route = norm_route(from, commands)) {
        const auto experts = norm_experts(*route, from, commands);
        return experts ? experts : route;
    }
    if (auto down = shared_down(from, commands)) return down;
    if (auto norms = norm_sums(from, commands)) return norms;
    if (auto queries = latent_queries(from, commands)) return queries;
    if (auto values = latent_values(from, commands)) return values;
    return reduced_matmul(from, commands[0]);
}

// How long a matmul of kByteRows rows takes on so many blocks, in ns, where its inputs are dealt to blocks in so many
// parts: the block's steps of the products, its inputs, which it brings itself, and where there are several parts what
// it takes to leave and to add them up (docs/cuda-notes.md, "A few rows").
u32 split_cost(u32 tiles, u32 steps, u32 blocks, u32 parts) {
    constexpr u32 kProducts = 50, kInputs = 60, kJoin = 900;
    const u32 of_block = (tiles + blocks / parts - 1) / (blocks / parts), part = (steps + parts - 1) / parts;
    return of_block * part * kProducts + part * kInputs + (parts > 1 ? kJoin : 0);
}

// In how many parts the inputs of a matmul of a few rows are dealt to blocks.
u32 parts_of_inputs(const Command& c, u32 blocks) {
    if (c.op != kOpMatmul || c.streams != 1 || is_adapted(c) || rows_from(c) != kPatchRows) return 0;
    const auto& p = reinterpret_cast<const MatmulParams&>(c.params);
    const u32 tiles = static_cast<u32>(parts_of(p.n, kTileRows)), steps = padded_inputs(p.k) / kStepInputs;
    if (input_parts(c.weights[0].reader) != 1) return 0;
    u32 best = 1;
    for (const u32 parts : {2u, kMostSplit}) {
        const bool fits = parts <= blocks && parts * kSplitInputs <= p.k && split_words(tiles, parts) <= kSplitWords;
        if (fits && split_cost(tiles, steps, blocks, parts) < split_cost(tiles, steps, blocks, best)) best = parts;
    }
    return best > 1 ? best : 0;
}

// `few`: of up to kByteRows rows.
std::vector<Command> fused_of(const DispatchTable& table, std::span<const Command> commands, const Geometry& geometry,
                              bool few) {
    std::vector<Command> out;
    std::size_t stage = 0;       // begins at this command
    bool joins_several = false;  // that does the work of several, or one behind it
    for (std::size_t i = 0; i < commands.size(); ++i) {
        out.push_back(joined(table, i, commands, geometry, few).value_or(commands[i]));
        // Barriers among commands that are one now were those of what comes behind them, too.
        const auto since = std::span(out).subspan(stage, out.size() - 1 - stage);
        const auto meets = [&](const Command& c) { return depends(table, out.back(), c); };
        if (joins_several && !out.back().barrier) out.back().barrier = std::ranges::any_of(since, meets);
        // Blocks tell one another what an adapter's A gives, in words that those of a command behind it may replace.
        for (std::size_t at = out.size() - 1; is_adapted(out.back()) && at >= stage + kWordBuffers;) {
            at -= kWordBuffers;
            if (is_adapted(out[at])) out.back().barrier = 1;
        }
        if (out.back().barrier) {
            stage = out.size() - 1;
            joins_several = false;
        }
        const auto [before, behind] = covered_by(out.back());
        joins_several |= before + behind != 0;
        i += before + behind;
    }
    const Command* before = nullptr;
    for (Command& c : out) {
        if (c.op != kOpDecodeAttention) continue;
        c.as_before = before && same_shape(c, *before);
        before = &c;
    }
    for (std::size_t i = 0; few && i < out.size(); ++i) {
        if (const u32 parts = parts_of_inputs(out[i], geometry.blocks)) out[i].params[kSplitWord] = parts;
    }
    if (table.max_rows == 1 || few) set_words(out, few ? kByteRows : 1);
    return out;
}

}  // namespace

std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands, const Geometry& geometry) {
    return fused_of(table, commands, geometry, false);
}

std::vector<Command> fused_of_few(const DispatchTable& table, std::span<const Command> commands,
                                  const Geometry& geometry) {
    return fused_of(table, commands, geometry, true);
}

void note_merged(DispatchTable& table, std::span<const Command> fused) {
    for (DispatchCmd& c : table.commands) c.merged = true;
    for (const Command& c : fused) table.commands[c.label].merged = false;
}

}  // namespace akunu::cuda
