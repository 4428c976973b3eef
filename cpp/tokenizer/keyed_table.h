// A hash table of a vocabulary: open addressing, one array. Its keys come from a file, so where they lie follows from
// a number that is drawn for each table: chosen collisions must not turn a load quadratic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

    // Up to eight bytes as a number.
    static std::uint64_t word(std::string_view bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }

  private:
    // The finalizer of MurmurHash3: each bit of the result depends on each of the value.
    static std::uint64_t mixed(std::uint64_t value) {
        value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD;
        value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53;
        return value ^ value >> 33;
    }

    std::uint64_t seed_;
};

constexpr std::uint32_t kNoToken = ~std::uint32_t{0};

// Entries that say which `token` has a key, which lies in them or elsewhere: `same` tells whether an entry has it.
template <typename Entry>
class KeyedTable {
  public:
    // Room for so many entries, at most two thirds of the places.
    explicit KeyedTable(std::size_t entries) : places_(std::bit_ceil(entries + entries / 2 + 1)) {}

    // The entry of a key, or one of no token.
    template <typename Same>
    const Entry& find(std::uint64_t hash, Same same) const {
        return places_[place(hash, same)];
    }

    // A new entry, or one in the place of that with the same key.
    template <typename Same>
    void put(std::uint64_t hash, const Entry& entry, Same same) {
        places_[place(hash, same)] = entry;
    }

  private:
    template <typename Same>
    std::size_t place(std::uint64_t hash, Same same) const {
        const std::size_t last = places_.size() - 1;
        std::size_t at = hash & last;
        while (places_[at].token != kNoToken && !same(places_[at])) at = (at + 1) & last;
        return at;
    }

    std::vector<Entry> places_;
};

}  // namespace akunu
