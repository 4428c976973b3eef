// How the memory of a cache is dealt out to what blocks keep: pages, pages of layers with a window, copies of states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace akunu {

// One kind of what is kept: bytes of one, and how many there are.
struct CacheNeed {
    std::uint64_t bytes = 0;
    std::uint64_t least = 0;  // without which a sequence could not fill the context
    std::uint64_t usual = 0;  // for one sequence, and what others may find of those before
    std::uint64_t each = 0;   // for every further sequence
};

// Bytes of the least, and of what so many sequences would have.
std::uint64_t least_bytes(std::span<const CacheNeed> needs);
std::uint64_t bytes_for(std::span<const CacheNeed> needs, std::uint64_t sequences);

// How many of each `memory` bytes are enough for, which are the least at least. What is left is the first kind's.
std::vector<std::uint64_t> dealt_out(std::span<const CacheNeed> needs, std::uint64_t memory);

}  // namespace akunu
