#include "cuda/host/streams.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/error.h"
#include "cuda/host/pack.h"

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
    out.streams =
        c.op == Op::kNormQkv && out.weights[2].codes && out.weights[2].reader != out.weights[0].reader ? 2 : 1;
}

std::vector<RingWeight> ring_weights(const DispatchTable& table, const Command& c) {
    std::vector<RingWeight> out;
    const auto [before, behind] = is_adapted(c) ? covered_by(c) : Covered{0, 0};
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
    s.rows = 1;
    s.rows_from = kRowsGiven;
    s.k = padded_inputs(weights[0].cols);
    const auto take_rows = [&](std::uint32_t rows, std::size_t offset) {
        s.rows = rows;
        for (u32 i = 0; i < command.n_patches; ++i) {
            if (command.patch_field[i] != offset / 4) continue;
            s.rows_from = command.patch_value[i];
            if (s.rows_from > kPatchKeys) throw UnsupportedError("a product has several rows for each of a step's");
        }
    };
    if (command.op == kOpMatmul) {
        take_rows(reinterpret_cast<const MatmulParams&>(command.params).rows, offsetof(MatmulParams, rows));
    }
    if (command.op == kOpGateUp) {
        take_rows(reinterpret_cast<const GateUpParams&>(command.params).rows, offsetof(GateUpParams, rows));
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
        if (c.streams == 2) out.push_back(stream_of(others.last(1), c, std::end(c.weights)[-1].reader, g));
    }
    return out;
}

}  // namespace akunu::cuda
