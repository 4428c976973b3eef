#include "engine/cache_sizes.h"

#include "engine/records.h"

namespace akunu {

namespace {

template <typename Count>
std::uint64_t total(std::span<const CacheNeed> needs, Count&& count) {
    std::uint64_t sum = 0;
    for (const CacheNeed& need : needs) {
        if (__builtin_add_overflow(sum, checked_product({need.bytes, count(need)}), &sum)) {
            throw InvalidArgumentError("sizes of this model overflow 64 bits");
        }
    }
    return sum;
}

}  // namespace

std::uint64_t least_bytes(std::span<const CacheNeed> needs) {
    return total(needs, [](const CacheNeed& need) { return need.least; });
}

std::uint64_t bytes_for(std::span<const CacheNeed> needs, std::uint64_t sequences) {
    return total(needs, [&](const CacheNeed& need) { return need.usual + (sequences - 1) * need.each; });
}

std::vector<std::uint64_t> dealt_out(std::span<const CacheNeed> needs, std::uint64_t memory) {
    const std::uint64_t least = least_bytes(needs), usual = bytes_for(needs, 1);
    const std::uint64_t each = total(needs, [](const CacheNeed& need) { return need.each; });
    const bool little = memory < usual;
    const auto share = [](std::uint64_t part, std::uint64_t of) {
        return of ? static_cast<double>(part) / static_cast<double>(of) : 0.0;
    };
    const double more = little ? share(memory - least, usual - least) : share(memory - usual, each);
    std::vector<std::uint64_t> counts;
    std::uint64_t others = 0;
    for (const CacheNeed& need : needs) {
        const std::uint64_t from = little ? need.least : need.usual, step = little ? need.usual - from : need.each;
        // Not one less for the sake of what a quotient was rounded by.
        counts.push_back(from + static_cast<std::uint64_t>(static_cast<double>(step) * more + 1e-6));
        if (counts.size() > 1) others += counts.back() * need.bytes;
    }
    if (needs[0].bytes != 0 && memory > others) counts[0] = (memory - others) / needs[0].bytes;
    return counts;
}

}  // namespace akunu
