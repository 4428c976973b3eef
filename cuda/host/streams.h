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

// The weights of a command that has few rows come through the ring, where their types lie in tiles.
void set_streams(const DispatchCmd& c, const std::vector<WeightPlace>& places, Command& out, const Geometry& g);
// What commands read through the ring, in their order.
std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands, const Geometry& g);

}  // namespace akunu::cuda
