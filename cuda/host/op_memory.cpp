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

// Tiles that one of so many blocks has of a command at most, those of a pair counted as two.
std::uint64_t tiles_of_block(const Stream& s, u32 blocks) {
    return s.pairs ? 2 * parts_of(s.tiles[0], blocks)
                   : parts_of(std::uint64_t{s.tiles[0]} + s.tiles[1] + s.tiles[2], blocks);
}

}  // namespace

namespace {

// What few rows times a stream's weights take: of a block's memory, and of a slot of the ring.
struct FewMemory {
    std::uint64_t bytes, slot_bytes;
};
FewMemory few_memory(const Geometry& g, const Stream& s, u32 rows) {
    const BlockSizes sizes = g.sizes();
    const auto tiles_of_pass = [&](u32 pass, u32 split) {
        return static_cast<u32>(std::min(std::uint64_t{pass} << s.pairs, tiles_of_block(s, g.blocks / split)));
    };
    const auto slot = [&](u32 chunk, u32 most) {
        const std::uint64_t part = std::uint64_t{s.tile_bytes} / (s.k / kStepInputs) * (chunk / kStepInputs);
        return std::min(std::uint64_t{most}, part);
    };
    if (rows <= kByteRows && s.byte_slot_bytes != 0) {
        const u32 chunk = byte_chunk(sizes, longest_part(s.k, s.split));
        return {byte_rows_bytes(chunk, rows, tiles_of_pass(byte_pass(sizes, s.pairs), std::max(s.split, 1u))),
                slot(chunk, s.byte_slot_bytes)};
    }
    return {few_bytes(sizes, tiles_of_pass(few_pass(sizes, s.pairs), 1)),
            slot(few_chunk(sizes, rows, s.k), s.slot_bytes)};
}

// The rows of a command whose weights could come through the ring.
u32 ring_rows(const Command& c, const ReplayArgs& args) {
    const u32 from = rows_from(c);
    return from == kPatchRows ? args.rows : from == kPatchLogits ? args.logits : c.params[rows_word(c)];
}

}  // namespace

OpMemory memory_of(const DispatchTable& table, const Schedules& schedules, std::span<const Command> commands,
                   std::span<const Stream> streams, const ReplayArgs& args) {
    OpMemory most{kOpBytes, 16, false, 0, 0};
    const auto take = [&](std::uint64_t bytes) { most.bytes = std::max(most.bytes, bytes); };
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
    }
    const Stream* stream = streams.data();
    for (const Command& c : commands) {
        if (c.streams == 0) continue;
        const u32 rows = ring_rows(c, args);
        // What adapters add is behind the rest, of one row, or of several, which gate and up have in turn.
        const std::uint64_t added = is_adapted(c) ? rank_bytes(ranks_of(c), rows) : 0;
        if (rows == 1) {
            ++most.streaming;
            if (added) take(tile_op_bytes(c, ring_weights(table, c)[0].cols) + added);
        }
        for (u32 i = 0; i < c.streams; ++i, ++stream) {
            if (rows > kFewRows) continue;
            FewMemory few{0, stream->slot_bytes};
            if (rows == 1) {
                most.streamed += tiles_of_block(*stream, 1) * stream->tile_bytes;
            } else {
                few = few_memory(schedules.geometry, *stream, rows);
                take(few.bytes + added);
            }
            most.slot_bytes = std::max(most.slot_bytes, few.slot_bytes);
        }
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
