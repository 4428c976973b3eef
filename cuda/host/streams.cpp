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

namespace {

// What is left of a block's memory for an op, where the ring has its least slots.
std::uint64_t op_room(const Geometry& g) {
    const std::uint64_t taken = kSharedHead + kRingHead + std::uint64_t{kLeastSlots} * g.sizes().slot_bytes;
    return g.shared_bytes > taken ? g.shared_bytes - taken : 0;
}

}  // namespace

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

namespace {

// Of a command's weights of one type, those from `first` on and before `end`.
Stream stream_of(const DispatchCmd& c, const Command& command, std::size_t first, std::size_t end, const Geometry& g) {
    Stream s{};
    const auto places = weights_in(c);
    const u32 reader = command.weights[first].reader;
    std::size_t n = 0;
    for (const WeightPlace& place : places) {
        if (place.weight < first || place.weight >= end) continue;
        s.at[n] = command.weights[place.weight].codes;
        s.tiles[n++] = static_cast<u32>(parts_of(place.rows, kTileRows));
    }
    s.pairs = c.op == Op::kGateUp || c.op == Op::kNormGateUp;
    s.tile_bytes = static_cast<u32>(tile_bytes(reader, places[0].cols));
    s.slot_bytes = tile_layout(reader).slot_units(g.sizes().slot_bytes) * tile_layout(reader).unit_bytes();
    s.rows = 1;
    s.rows_from = kRowsGiven;
    s.k = padded_inputs(places[0].cols);
    const auto take_rows = [&](std::uint32_t rows, std::size_t offset) {
        s.rows = rows;
        for (u32 i = 0; i < command.n_patches; ++i) {
            if (command.patch_field[i] != offset / 4) continue;
            s.rows_from = command.patch_value[i];
            if (s.rows_from > kPatchKeys) throw UnsupportedError("a product has several rows for each of a step's");
        }
    };
    if (c.op == Op::kMatmul) take_rows(c.params_as<MatmulParams>().rows, offsetof(MatmulParams, rows));
    if (c.op == Op::kGateUp) take_rows(c.params_as<GateUpParams>().rows, offsetof(GateUpParams, rows));
    return s;
}

}  // namespace

std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands, const Geometry& g) {
    std::vector<Stream> out;
    for (const Command& c : commands) {
        const DispatchCmd& from = table.commands[c.label];
        const std::size_t all = std::size(c.weights);
        if (c.streams != 0) out.push_back(stream_of(from, c, 0, c.streams == 2 ? all - 1 : all, g));
        if (c.streams == 2) out.push_back(stream_of(from, c, all - 1, all, g));
    }
    return out;
}

}  // namespace akunu::cuda
