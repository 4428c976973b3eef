#include "cuda/host/streams.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/error.h"
#include "cuda/host/pack.h"
#include "cuda/kernels/few_layout.h"

namespace akunu::cuda {

std::uint64_t tile_op_bytes(const Command& c, std::uint64_t cols) {
    constexpr std::uint64_t kFixed = 64, kSums = 2 * std::uint64_t{kThreads / kTileRows} * kWarps * kTileRows * 4;
    cols = padded_inputs(cols);
    u32 parts = 1;
    for (const WeightPlanes& w : c.weights) parts = std::max(parts, w.codes ? input_parts(w.reader) : 1);
    return kFixed + cols * (2 * parts) + cols / 4 + cols / 32 + kSums;
}

std::uint64_t staged_bytes(std::uint64_t cols) { return parts_of(cols, 32) * 36 * sizeof(float); }

std::uint64_t op_room(const Geometry& g) {
    const std::uint64_t taken = kSharedHead + kRingHead + std::uint64_t{kLeastSlots} * g.sizes().slot_bytes;
    return g.shared_bytes > taken ? g.shared_bytes - taken : 0;
}

std::size_t rows_word(const Command& c) {
    return c.op == kOpMatmul   ? offsetof(MatmulParams, rows) / 4
           : c.op == kOpGateUp ? offsetof(GateUpParams, rows) / 4
                               : kNormedRowsWord;
}

u32 rows_from(const Command& c) {
    for (u32 i = 0; i < c.n_patches; ++i) {
        if (c.patch_field[i] == rows_word(c)) return c.patch_value[i];
    }
    return kRowsGiven;
}

void set_streams(const DispatchCmd& c, const std::vector<WeightPlace>& places, Command& out, const Geometry& g) {
    const bool normed = c.op == Op::kNormQkv || c.op == Op::kNormGateUp;
    if (c.op != Op::kMatmul && c.op != Op::kGateUp && !normed) return;
    if (c.op == Op::kMatmul && c.params_as<MatmulParams>().activation) return;  // tiles of few rows have none
    const auto aligned = [&](std::size_t buffer) { return out.buffers[buffer] % 16 == 0; };
    if (!aligned(0) || (normed ? !aligned(1) : !out.half_input) || tile_op_bytes(out, places[0].cols) > op_room(g))
        return;
    for (const WeightPlanes& w : out.weights) {
        if (w.codes && !in_tiles(w.reader, places[0].cols)) return;
    }
    const bool two = c.op == Op::kNormQkv && out.weights[2].codes && out.weights[2].reader != out.weights[0].reader;
    if (two && !serves(out.weights[0].reader, out.weights[2].reader)) return;
    out.streams = two ? 2 : 1;
}

std::vector<RingWeight> ring_weights(const DispatchTable& table, const Command& c) {
    std::vector<RingWeight> out;
    const auto [before, behind] = is_adapted(c) || is_norm_of_rows(c) ? covered_by(c) : Covered{0, 0};
    for (std::size_t i = c.label - before; i <= c.label + behind; ++i) {
        const DispatchCmd& from = table.commands[i];
        for (const WeightPlace& w : weights_in(from)) out.push_back({from.buffers[w.buffer], w.rows, w.cols});
    }
    return out;
}

namespace {

// Of a command's weights those of one type.
Stream stream_of(std::span<const RingWeight> weights, const Command& command, u32 reader, const Geometry& g) {
    Stream s{};
    for (std::size_t i = 0; i < weights.size(); ++i) {
        s.at[i] = reinterpret_cast<u64>(weights[i].at.as());
        s.tiles[i] = static_cast<u32>(parts_of(weights[i].rows, kTileRows));
    }
    s.pairs = command.op == kOpGateUp || command.op == kOpNormGateUp;
    s.tile_bytes = static_cast<u32>(tile_bytes(reader, weights[0].cols));
    s.slot_bytes = tile_layout(reader).slot_units(g.sizes().slot_bytes) * tile_layout(reader).unit_bytes();
    s.k = padded_inputs(weights[0].cols);
    if (command.op == kOpMatmul) s.split = command.params[kSplitWord];
    if (input_parts(reader) == 1) {
        const TileLayout layout = tile_layout(reader);
        s.byte_slot_bytes = byte_slot_units(g.sizes(), layout, longest_part(s.k, s.split)) * layout.unit_bytes();
    }
    s.rows = command.params[rows_word(command)];
    s.rows_from = rows_from(command);
    if (s.rows_from != kRowsGiven && s.rows_from > kPatchKeys) {
        throw UnsupportedError("a product has several rows for each of a step's");
    }
    return s;
}

}  // namespace

std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands, const Geometry& g) {
    std::vector<Stream> out;
    for (const Command& c : commands) {
        if (c.streams == 0) continue;
        const auto weights = ring_weights(table, c);
        const auto first = std::span(weights).first(weights.size() - (c.streams - 1)), others = std::span(weights);
        out.push_back(stream_of(first, c, c.weights[0].reader, g));
        if (c.streams != 2) continue;
        out.push_back(stream_of(others.last(1), c, std::end(c.weights)[-1].reader, g));
        for (const u32 tiles : out[out.size() - 2].tiles) out.back().behind += tiles;
    }
    return out;
}

}  // namespace akunu::cuda
