// Rows of a prompt by the experts that they were sent to: how the scratch memory of such a command is laid out, for its
// passes and for the host. All sizes are in words.
//
// A tile is some choices of one expert. The first pass writes how many threadgroups the second one has, the choices in
// the order of their experts, and two words for each tile: where its choices begin in that order, and its expert with
// how many there are. Behind them is room for a result of every choice.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu::metal {
using uint = std::uint32_t;
#else
#include <metal_stdlib>
#endif

enum ExpertTiles : uint {
    kOrderWord = 4,         // behind the counts of threadgroups in x, y and z
    kMostTileChoices = 8,   // products of a tile's choices with the rows of a SIMD-group: one for each lane
    kMostExperts = 1024,
    kTileCountShift = 16,   // of a tile's second word
};

constexpr uint tiles_word(uint choices) { return kOrderWord + choices; }
// There are no more tiles than choices.
constexpr uint results_word(uint choices) { return tiles_word(choices) + 2 * choices; }

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#else
// Goes through a row's choices by the numbers of their experts: the one after `least`, which is 0 at first.
static inline uint next_choice(device const uint* ids, uint chosen, thread uint& least, thread uint& id) {
    uint choice = 0;
    id = ~0u;
    for (uint c = 0; c < chosen; ++c) {
        const uint other = ids[c];
        if (other >= least && other < id) {
            id = other;
            choice = c;
        }
    }
    least = id + 1;
    return choice;
}
#endif
