#include "plan/activations.h"

#include <algorithm>

#include "core/error.h"

namespace akunu {

void Activations::reserve(const std::string& name, std::uint64_t dim, std::uint32_t formats, std::uint64_t per_row) {
    Need& n = needs_[name];
    n.dim = std::max(n.dim, dim);
    n.formats |= formats | (wide_ ? kActF32 : 0u);
    n.per_row = std::max(n.per_row, per_row);
}

void Activations::reserve_merged(const std::string& name, std::uint64_t dim, std::uint32_t formats,
                                 std::uint64_t rows_of_one) {
    const bool known = needs_.contains(name);
    reserve(name, dim, formats);
    std::uint64_t& rows = needs_[name].rows_of_one;
    rows = known ? std::min(rows, rows_of_one) : rows_of_one;
}

void Activations::reserve_bytes(const std::string& name, std::uint64_t bytes) {
    Need& n = needs_[name];
    n.bytes = std::max(n.bytes, bytes);
}

std::uint64_t Activations::allocate(Device& device, std::uint64_t rows) {
    rows_ = rows;
    std::uint64_t total = 0;
    const auto own = [&](std::uint64_t bytes) {
        owned_.emplace_back(device, std::max<std::uint64_t>(bytes, 64), MemoryKind::kDevice);
        total += bytes;
        return owned_.back().at();
    };
    for (const auto& [name, n] : needs_) {
        std::uint64_t elements = 0;
        const std::uint64_t all = (rows + n.rows_of_one - 1) / n.rows_of_one * n.per_row;
        if (__builtin_mul_overflow(all, n.dim, &elements) || elements > (std::uint64_t{1} << 60)) {
            throw InvalidArgumentError("activation '" + name + "' of " + std::to_string(all) + "x" +
                                       std::to_string(n.dim) + " overflows 64 bits");
        }
        Act& a = acts_[name];
        if (n.bytes && !a.f32) a.f32 = own(n.bytes);
        if (n.formats & kActF32 && !a.f32) a.f32 = own(device.activation_bytes(kActF32, all, n.dim));
        if (n.formats & ~kActF32 && !a.compact)
            a.compact = own(device.activation_bytes(n.formats & ~kActF32, all, n.dim));
    }
    return total;
}

}  // namespace akunu
