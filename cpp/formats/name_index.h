// Finds items by name. Sorted, not hashed: names come from a file, and chosen collisions must not
// turn its load quadratic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

class NameIndex {
  public:
    // Indexes `items` (anything with a `name`); returns a name that occurs twice, or null.
    template <typename Item>
    const std::string* build(const std::vector<Item>& items) {
        order_.resize(items.size());
        std::iota(order_.begin(), order_.end(), 0u);
        std::ranges::sort(order_, {}, [&](std::uint32_t i) { return std::string_view(items[i].name); });
        const auto twin =
            std::ranges::adjacent_find(order_, {}, [&](std::uint32_t i) { return std::string_view(items[i].name); });
        return twin == order_.end() ? nullptr : &items[*twin].name;
    }

    // The item of this name among those that `build` saw, or null.
    template <typename Item>
    const Item* find(const std::vector<Item>& items, std::string_view name) const {
        const auto at = std::ranges::lower_bound(order_, name, {},
                                                 [&](std::uint32_t i) { return std::string_view(items[i].name); });
        if (at == order_.end() || items[*at].name != name) return nullptr;
        return &items[*at];
    }

  private:
    std::vector<std::uint32_t> order_;
};

}  // namespace akunu
