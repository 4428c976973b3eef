// Weights that come through the ring, and the shared memory that ops take of a block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/host/program.h"

namespace akunu::cuda {

constexpr std::uint64_t parts_of(std::uint64_t n, std::uint64_t of) { return (n + of - 1) / of; }

// The bytes of a block's memory that row_tiles (cuda/kernels/row_tiles.cuh) takes, by the weights that need the most.
std::uint64_t tile_op_bytes(const Command& c, std::uint64_t cols);
// Those that stage_input (cuda/kernels/matvec.cuh) takes.
std::uint64_t staged_bytes(std::uint64_t cols);

// What is left of a block's memory for an op, where the ring has its least slots.
std::uint64_t op_room(const Geometry& g);

// The word of a command's parameters that says how many rows it has whose weights could come through the ring, and
// where that number is from: a patch, or kRowsGiven.
std::size_t rows_word(const Command& c);
u32 rows_from(const Command& c);

// The weights of a command that has few rows come through the ring, where their types lie in tiles.
void set_streams(const DispatchCmd& c, const std::vector<WeightPlace>& places, Command& out, const Geometry& g);
// The matrices of a command that come through the ring, in their order: those of all commands of the table that it does
// the work of.
struct RingWeight {
    Binding at;
    std::uint64_t rows, cols;
};
std::vector<RingWeight> ring_weights(const DispatchTable& table, const Command& c);
// What commands read through the ring, in their order.
std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands, const Geometry& g);

}  // namespace akunu::cuda
