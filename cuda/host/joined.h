// What `fused` joins: a function returns the command that does the work of the first of `c`, which are
// compiled in `commands`; or nothing, where these are others, or say something that it would not do.
#pragma once

#include <optional>
#include <span>

#include "cuda/host/consumed.h"
#include "cuda/host/program.h"
#include "cuda/kernels/command.h"

namespace akunu::cuda {

// The norm before experts, their router and its choice, of one row; and those of a shared expert.
std::optional<Command> norm_route(std::span<const DispatchCmd> c, std::span<const Command> commands);
// The same as `route`, which norm_route made, and the products with gates and ups of the experts that are chosen, and
// of a shared expert. Where another norm of the same row stands before these, that of `route` is the router's own.
std::optional<Command> norm_experts(const Command& route, std::span<const DispatchCmd> c,
                                    std::span<const Command> commands);
// The last matrix of a row's experts, and that of a shared expert as one more choice.
std::optional<Command> shared_down(std::span<const DispatchCmd> c, std::span<const Command> commands);
// Norms of a sum, of what is added to it, and of both, which goes to the residual stream, of one row.
std::optional<Command> norm_sums(std::span<const DispatchCmd> c, std::span<const Command> commands);
// What latent attention keeps of a row, and its queries times their heads' weights.
std::optional<Command> latent_queries(std::span<const DispatchCmd> c, std::span<const Command> commands);
// What latent attention's splits have found of a row, joined, times the heads' weights, as the next matmul reads it.
std::optional<Command> latent_values(std::span<const DispatchCmd> c, std::span<const Command> commands);

// With what adapters add to them: q, k and v of a row's norm; gate, up and their activation, of a row's norm or of
// rows that stand there; and a matmul. Those that may have more than a row are of a table of so many at most.
std::optional<Command> adapted_qkv(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                   const Geometry& geometry);
// Of up to kByteRows rows the norm and the matmuls that alone read what it gives: q, k and v, or gate and up.
std::optional<Command> norm_of_rows(std::span<const DispatchCmd> c, std::span<const Command> commands);
std::optional<Command> adapted_gate_up(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                       const Geometry& geometry, u32 max_rows);
std::optional<Command> adapted_matmul(std::span<const DispatchCmd> c, std::span<const Command> commands,
                                      const Geometry& geometry, u32 max_rows);

inline void set_buffers(Command& out, std::span<const Binding> buffers) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i]) out.buffers[i] = reinterpret_cast<u64>(buffers[i].as());
    }
}
// Whether one of these reads what is there before another one has written it anew.
inline bool is_read(const Binding& of, std::span<const DispatchCmd> by) {
    for (const DispatchCmd& c : by) {
        bool written = false;
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            if (!of || !is_same_place(c.buffers[i], of)) continue;
            if (access_of(c, i) != Access::kWrite) return true;
            written = true;
        }
        if (written) return false;
    }
    return false;
}
inline u64 begin_of(const Binding& b) { return reinterpret_cast<u64>(b.as()); }
inline u64 end_of(const Binding& b) { return begin_of(b) + (b.end() - b.offset); }

}  // namespace akunu::cuda
