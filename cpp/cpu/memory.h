// Zero-filled memory of its own, lazily committed, in huge pages where the system has them.
//
// A page lies on the memory node of the thread that touches it first, unless it is spread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace akunu::cpu {

struct Unmap {
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    void operator()(std::byte*) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// Throws DeviceError when there is not so much; `remedy` ends the message.
Mapping map_memory(std::uint64_t bytes, const char* remedy);

// Gives the system's pages that lie wholly within a range of a mapping back; they are zeros from then on.
void give_back(std::byte* memory, std::uint64_t bytes);

// Spreads the pages of a mapping, untouched so far, over memory nodes in turn. Nothing happens for no nodes, where the
// user has chosen a policy for the process (`numactl`), or where the system forbids it (some containers).
void spread(std::byte* memory, std::uint64_t bytes, std::span<const int> nodes);

}  // namespace akunu::cpu
