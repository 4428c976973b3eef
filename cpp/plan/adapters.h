// Where the adapters of a model are, as its tables see them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/device.h"

namespace akunu {

struct AdapterPlan {
    // A layer's part of an adapter.
    struct Layer {
        std::uint64_t offset = 0;    // in bytes, from where the adapter begins
        std::uint32_t max_rank = 0;  // of all adapters; 0: none changes the layer
    };
    std::vector<Layer> parts;  // for each of Loader::linears
    Binding slots;             // adapters, one behind the other
    std::uint32_t slot_words = 0;
    Binding choices;                 // AdapterChoice of each sequence's slot
    std::array<Binding, 4> scratch;  // [rows, the greatest max_rank] f32 each, for layers that do not wait for another

    std::uint32_t max_rank(const Weight& w) const { return w.linear ? parts.at(w.linear - 1).max_rank : 0; }
};

}  // namespace akunu
