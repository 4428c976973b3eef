#include "engine/encoded_inputs.h"

#include <algorithm>

#include "engine/records.h"

namespace akunu {

namespace {

// The rows that stand at a place of a sequence; null where a token does.
const PlacedRows* rows_at(const Sequence& s, std::uint32_t position) {
    if (position >= s.contents.size() || s.contents[position] == 0) return nullptr;
    const auto behind = std::ranges::upper_bound(s.inputs.rows, position, {}, &PlacedRows::start);
    if (behind == s.inputs.rows.begin()) return nullptr;
    const PlacedRows& placed = *std::prev(behind);
    return position < placed.end() ? &placed : nullptr;
}

}  // namespace

std::uint32_t next_position(const SequenceInputs& inputs) {
    std::uint32_t next = 0;
    for (const auto& position : inputs.positions) next = std::max(next, 1 + *std::ranges::max_element(position));
    return next;
}

void EncodedInputs::check(const Prefix& prefix, const SequenceInputs& inputs) const {
    const std::size_t n = prefix.ids.size();
    if (!inputs.rows.empty() && engine_.config.encoded_parts == 0) {
        throw UnsupportedError("this model takes tokens alone, and the prompt has rows of an encoder");
    }
    if (inputs.positions.size() > n || (!inputs.positions.empty() && !engine_.config.has_axes())) {
        throw InvalidArgumentError("positions of " + std::to_string(inputs.positions.size()) +
                                   " places, of a sequence of " + std::to_string(n) +
                                   (engine_.config.has_axes() ? "" : " that turns by its places alone"));
    }
    const std::uint32_t width = engine_.config.dim * engine_.config.encoded_parts;
    std::uint32_t end = 0;
    for (const PlacedRows& placed : inputs.rows) {
        const std::string at = "the encoded rows at " + std::to_string(placed.start);
        if (placed.rows->width != width) {
            throw InvalidArgumentError(at + " have " + std::to_string(placed.rows->width) + " values each, expected " +
                                       std::to_string(width));
        }
        const std::uint64_t there = placed.rows->count;
        if (placed.count == 0 || placed.count > there || placed.first > there - placed.count) {
            throw InvalidArgumentError(at + " are " + std::to_string(placed.count) + " from " +
                                       std::to_string(placed.first) + " on, of " + std::to_string(there));
        }
        if (placed.start < end || placed.count > n || placed.start > n - placed.count) {
            throw InvalidArgumentError(at + " are " + std::to_string(placed.count) +
                                       ", which do not fit behind those before, or in the sequence of " +
                                       std::to_string(n) + " tokens");
        }
        end = placed.end();
        for (std::uint32_t i = placed.start; i < end; ++i) {
            // Else its pages would be found for other sequences that have the same token there.
            if (i < prefix.contents.size() && prefix.contents[i] != 0) continue;
            throw InvalidArgumentError(at + " have no hash among the sequence's contents at " + std::to_string(i));
        }
    }
}

void EncodedInputs::reserve() const {
    if (engine_.step.encoded) return;
    if (engine_.config.encoded_parts == 0) throw UnsupportedError("this model takes tokens alone, no encoded rows");
    const std::uint64_t bytes = checked_product(
        {engine_.step.max_rows, engine_.config.dim, engine_.config.encoded_parts, std::uint64_t{sizeof(float)}});
    engine_.step.sources = engine_.own(checked_product({engine_.step.max_rows, sizeof(u32)}), &MemoryUse::scratch);
    engine_.step.ends = engine_.own(checked_product({engine_.step.max_rows, sizeof(u32)}), &MemoryUse::scratch);
    engine_.step.encoded = engine_.own(bytes, &MemoryUse::scratch, MemoryKind::kDevice);
}

bool EncodedInputs::is_encoded(const Sequence& s, std::uint32_t n) const {
    if (s.inputs.rows.empty()) return false;
    for (std::uint32_t i = 0; i < n; ++i) {
        if (rows_at(s, s.length + i)) return true;
    }
    return false;
}

void EncodedInputs::check_whole_images(const Sequence& s, std::uint32_t n) const {
    if (engine_.config.whole_image_rows == 0 || n == 0) return;
    const std::uint32_t end = s.length + n;
    const PlacedRows* last = rows_at(s, end - 1);
    if (!last || last->end() == end) return;
    throw InvalidArgumentError("a step ends at " + std::to_string(end) + ", within an image at " +
                               std::to_string(last->start) + " to " + std::to_string(last->end()) +
                               ", all of whose rows see each other");
}

void EncodedInputs::place_axes(const StepBuffers& step, std::uint32_t row, const Sequence& s, std::uint32_t at) const {
    if (!engine_.config.has_axes()) return;
    auto* positions = step.positions.host<u32>() + std::size_t{row} * kPositionAxes;
    const auto& known = s.inputs.positions;
    if (at < known.size()) {
        std::ranges::copy(known[at], positions);
    } else {
        std::fill_n(positions, kPositionAxes, s.next_position + static_cast<u32>(at - known.size()));
    }
}

void EncodedInputs::place(std::uint32_t row, const Sequence& s, std::uint32_t n) const {
    for (std::uint32_t i = 0; i < n; ++i) place_axes(engine_.step, row + i, s, s.length + i);
    if (!engine_.step.encoded) return;
    u32 *sources = engine_.step.sources.host<u32>() + row, *ends = engine_.step.ends.host<u32>() + row;
    std::fill_n(sources, n, u32{kNoSource});
    std::fill_n(ends, n, 0u);
    if (s.inputs.rows.empty()) return;
    for (std::uint32_t i = 0; i < n;) {
        const PlacedRows* placed = rows_at(s, s.length + i);
        if (!placed) {
            if (s.length + i < s.contents.size() && s.contents[s.length + i] != 0) {
                throw InvalidArgumentError("what stands at " + std::to_string(s.length + i) +
                                           " is no token, and no encoded row was given for it");
            }
            ++i;
            continue;
        }
        const EncodedRows& rows = *placed->rows;
        const std::uint32_t skipped = s.length + i - placed->start, first = placed->first + skipped,
                            count = std::min(n - i, placed->count - skipped);
        const std::uint64_t bytes = std::uint64_t{rows.width} * sizeof(float);
        engine_.device.upload(
            {engine_.step.encoded.buffer, (row + i) * bytes, count * bytes},
            std::as_bytes(
                std::span(rows.values).subspan(std::size_t{first} * rows.width, std::size_t{count} * rows.width)));
        for (std::uint32_t k = 0; k < count; ++k) sources[i + k] = row + i + k;
        std::fill_n(ends + i, count, placed->end());
        i += count;
    }
}

}  // namespace akunu
