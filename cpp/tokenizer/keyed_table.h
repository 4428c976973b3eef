// A hash table of a vocabulary: open addressing, one array. Its keys come from a file, so where they lie follows from
// a number that is drawn for each table: chosen collisions must not turn a load quadratic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace akunu {

class KeyedHash {
  public:
    KeyedHash() {
        std::random_device random;
        seed_ = std::uint64_t{random()} << 32 | random();
    }

    std::uint64_t operator()(std::uint64_t value) const { return mixed(seed_ ^ value); }

    std::uint64_t operator()(std::string_view bytes) const {
        std::uint64_t hash = seed_ ^ bytes.size();
        for (; bytes.size() > 8; bytes.remove_prefix(8)) hash = mixed(hash ^ word(bytes.substr(0, 8)));
        return mixed(hash ^ word(bytes));
    }

  private:
    static std::uint64_t word(std::string_view bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }

    // The finalizer of MurmurHash3: each bit of the result depends on each of the value.
    static std::uint64_t mixed(std::uint64_t value) {
        value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD;
        value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53;
        return value ^ value >> 33;
    }

    std::uint64_t seed_;
};

// Entries by a key that lies in them or elsewhere: `same` tells whether an entry has it.
template <typename Entry>
class KeyedTable {
  public:
    // Room for so many entries, at most half of the places.
    explicit KeyedTable(std::size_t entries) : places_(std::bit_ceil(2 * entries + 1)), used_(places_.size()) {}

    // The entry of a key, or null.
    template <typename Same>
    const Entry* find(std::uint64_t hash, Same same) const {
        for (std::size_t at = hash & last();; at = (at + 1) & last()) {
            if (!used_[at]) return nullptr;
            if (same(places_[at])) return &places_[at];
        }
    }

    // A new entry, or one in the place of that with the same key.
    template <typename Same>
    void put(std::uint64_t hash, const Entry& entry, Same same) {
        std::size_t at = hash & last();
        while (used_[at] && !same(places_[at])) at = (at + 1) & last();
        used_[at] = 1;
        places_[at] = entry;
    }

  private:
    std::size_t last() const { return places_.size() - 1; }

    std::vector<Entry> places_;
    std::vector<std::uint8_t> used_;
};

}  // namespace akunu
