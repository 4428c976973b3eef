// The shared memory that a launch's commands take of a block, and the buffers that host and device both use.
#include <algorithm>
#include <cstddef>

#include "cuda/host/program.h"
#include "cuda/host/streams.h"
#include "cuda/kernels/few_layout.h"

namespace akunu::cuda {

namespace {

// The rows of a command in a launch that has so many; 1 of one that has no such number.
u32 rows_of(const DispatchCmd& from, const Command& c, const ReplayArgs& args) {
    const FieldInfo* field = find_field(op_info(from.op), "rows");
    if (!field) return 1;
    for (u32 i = 0; i < c.n_patches; ++i) {
        if (c.patch_field[i] != field->offset / 4) continue;
        const u32 rows = (c.patch_value[i] & kPatchSourceMask) == kPatchRows ? args.rows : args.logits;
        return rows * (1 + (c.patch_value[i] >> kPatchTimesShift));
    }
    return c.params[field->offset / 4];
}

// Tiles that a block has of a command at most, those of a pair counted as two.
std::uint64_t tiles_of_block(const Stream& s, u32 blocks) {
    return s.pairs ? 2 * parts_of(s.tiles[0], blocks)
                   : parts_of(std::uint64_t{s.tiles[0]} + s.tiles[1] + s.tiles[2], blocks);
}

}  // namespace

OpMemory memory_of(const DispatchTable& table, const Schedules& schedules, const ReplayArgs& args) {
    const BlockSizes sizes = schedules.geometry.sizes();
    OpMemory most{kOpBytes, 16, false, 0, 0};
    const auto take = [&](std::uint64_t bytes) { most.bytes = std::max(most.bytes, bytes); };
    const Stream* stream = schedules.streams.data();
    for (std::size_t i = 0; i < table.commands.size(); ++i) {
        const DispatchCmd& from = table.commands[i];
        const Command& c = schedules.plain[i];
        const u32 rows = rows_of(from, c, args);
        const bool few = c.streams != 0 && rows <= kFewRows;
        if (from.op != Op::kEmbed) {
            for (const WeightPlace& w : weights_in(from)) {
                if (!few) take(staged_bytes(w.cols));
                if (few && rows == 1) take(tile_op_bytes(c, w.cols));
            }
        }
        const bool tiles = (from.op == Op::kMatmul || from.op == Op::kGateUp) && !few && rows > kTileOfRows;
        const auto takes_runs = [&](const AttentionParams& p) {
            return rows >= kTileOfRows || p.bidirectional || p.latent;
        };
        const bool runs = from.op == Op::kAttention && takes_runs(from.params_as<AttentionParams>());
        const bool experts = (from.op == Op::kExpertsGateUp || from.op == Op::kExpertsDown) && rows > 1;
        if (tiles || runs || experts) take(kManyRowsBytes);
        most.stages |= tiles;
        most.streaming += few && rows == 1;
        for (u32 k = 0; k < c.streams; ++k, ++stream) {
            if (!few) continue;
            if (rows == 1) most.streamed += tiles_of_block(*stream, 1) * stream->tile_bytes;
            std::uint64_t slot = stream->slot_bytes;
            if (rows > 1) {
                const u32 chunk = few_chunk(sizes, rows, stream->k);
                const std::uint64_t pass = std::uint64_t{few_pass(sizes, stream->pairs)} << stream->pairs;
                take(few_bytes(sizes,
                               static_cast<u32>(std::min(pass, tiles_of_block(*stream, schedules.geometry.blocks)))));
                slot = std::min(slot,
                                std::uint64_t{stream->tile_bytes} / (stream->k / kStepInputs) * (chunk / kStepInputs));
            }
            most.slot_bytes = std::max(most.slot_bytes, slot);
        }
    }
    // Behind what its matmul takes, as rows or as one, which gate and up have in turn.
    for (const Command& c : schedules.fused) {
        if (!is_adapted(c)) continue;
        const auto weights = ring_weights(table, c);
        const u32 rows = c.n_patches == 0 ? 1 : args.rows;
        const auto tiles = static_cast<u32>(parts_of(parts_of(weights[0].rows, kTileRows), schedules.geometry.blocks));
        const u32 pass =
            c.op == kOpGateUp ? 2 * std::min(few_pass(sizes, 1), tiles) : std::min(few_pass(sizes, 0), tiles);
        take((rows == 1 ? tile_op_bytes(c, weights[0].cols) : few_bytes(sizes, pass)) + rank_bytes(ranks_of(c), rows));
    }
    return most;
}

std::uint64_t result_bytes(const DispatchTable& table) {
    std::uint64_t most = 0;
    for (const DispatchCmd& c : table.commands) {
        if (c.op != Op::kExpertsDown) continue;
        const auto p = c.params_as<ExpertsDownParams>();
        const std::uint64_t rows = std::max(table.max_rows, p.rows);
        if (rows > 1 && p.chosen > 1) most = std::max(most, rows * p.chosen * p.n * sizeof(float));
    }
    return most;
}

std::vector<Mirror> mirrors_of(const DispatchTable& table) {
    std::vector<Mirror> out;
    for (const DispatchCmd& c : table.commands) {
        const auto buffers = op_info(c.op).buffers;
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            if (!c.buffers[i]) continue;
            const Allocation& a = Memory::allocation(c.buffers[i].buffer);
            if (!a.host) continue;
            auto found = std::ranges::find(out, a.device, &Mirror::device);
            if (found == out.end()) found = out.insert(found, Mirror{a.device, a.host_seen, a.bytes, 0, 0});
            if (buffers[i].access != Access::kRead && !a.borrowed) found->back = 1;
        }
    }
    return out;
}

}  // namespace akunu::cuda
