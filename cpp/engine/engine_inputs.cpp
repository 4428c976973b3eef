// Engine: rows that an encoder made of something that is no text, where a text has them in the place of tokens.
#include <algorithm>

#include "core/error.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace akunu {

namespace {

// The rows that stand at a place of a text; null where a token does.
const PlacedRows* rows_at(const Sequence& s, std::uint32_t position) {
    if (position >= s.contents.size() || s.contents[position] == 0) return nullptr;
    const auto behind = std::ranges::upper_bound(s.inputs.rows, position, {}, &PlacedRows::start);
    if (behind == s.inputs.rows.begin()) return nullptr;
    const PlacedRows& placed = *std::prev(behind);
    return position < placed.end() ? &placed : nullptr;
}

}  // namespace

std::uint32_t next_position(const TextInputs& inputs) {
    std::uint32_t next = 0;
    for (const auto& position : inputs.positions) next = std::max(next, 1 + *std::ranges::max_element(position));
    return next;
}

void Engine::check_inputs(const Prefix& text, const TextInputs& inputs) const {
    const std::size_t n = text.ids.size();
    if (!inputs.rows.empty() && config_.encoded_parts == 0) {
        throw UnsupportedError("this model takes tokens alone, and the prompt has rows of an encoder");
    }
    if (inputs.positions.size() > n || (!inputs.positions.empty() && !config_.has_axes())) {
        throw InvalidArgumentError("positions of " + std::to_string(inputs.positions.size()) +
                                   " places, of a text of " + std::to_string(n) +
                                   (config_.has_axes() ? "" : " that turns by its places alone"));
    }
    const std::uint32_t width = config_.dim * config_.encoded_parts;
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
                                       ", which do not fit behind those before, or in the text of " +
                                       std::to_string(n) + " tokens");
        }
        end = placed.end();
        for (std::uint32_t i = placed.start; i < end; ++i) {
            // Else its pages would be found for other texts that have the same token there.
            if (i < text.contents.size() && text.contents[i] != 0) continue;
            throw InvalidArgumentError(at + " have no hash among the text's contents at " + std::to_string(i));
        }
    }
}

void Engine::allocate_encoded() {
    if (step_.encoded) return;
    if (config_.encoded_parts == 0) throw UnsupportedError("this model takes tokens alone, no encoded rows");
    const std::uint64_t bytes =
        checked_product({step_.max_rows, config_.dim, config_.encoded_parts, std::uint64_t{sizeof(float)}});
    step_.sources = own(checked_product({step_.max_rows, sizeof(u32)}), &MemoryUse::scratch);
    step_.ends = own(checked_product({step_.max_rows, sizeof(u32)}), &MemoryUse::scratch);
    step_.encoded = own(bytes, &MemoryUse::scratch, MemoryKind::kDevice);
}

bool Engine::is_encoded(const Sequence& s, std::uint32_t n) const {
    if (s.inputs.rows.empty()) return false;
    for (std::uint32_t i = 0; i < n; ++i) {
        if (rows_at(s, s.length + i)) return true;
    }
    return false;
}

void Engine::check_whole_images(const Sequence& s, std::uint32_t n) const {
    if (config_.whole_image_rows == 0 || n == 0) return;
    const std::uint32_t end = s.length + n;
    const PlacedRows* last = rows_at(s, end - 1);
    if (!last || last->end() == end) return;
    throw InvalidArgumentError("a step ends at " + std::to_string(end) + ", within an image at " +
                               std::to_string(last->start) + " to " + std::to_string(last->end()) +
                               ", all of whose rows see each other");
}

void Engine::place_axes(const StepBuffers& step, std::uint32_t row, const Sequence& s, std::uint32_t at) const {
    if (!config_.has_axes()) return;
    auto* positions = step.positions.host<u32>() + std::size_t{row} * kPositionAxes;
    const auto& known = s.inputs.positions;
    if (at < known.size()) {
        std::ranges::copy(known[at], positions);
    } else {
        std::fill_n(positions, kPositionAxes, s.next_position + static_cast<u32>(at - known.size()));
    }
}

void Engine::place_inputs(std::uint32_t row, const Sequence& s, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) place_axes(step_, row + i, s, s.length + i);
    if (!step_.encoded) return;
    u32 *sources = step_.sources.host<u32>() + row, *ends = step_.ends.host<u32>() + row;
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
        device_->upload(
            {step_.encoded.buffer, (row + i) * bytes, count * bytes},
            std::as_bytes(
                std::span(rows.values).subspan(std::size_t{first} * rows.width, std::size_t{count} * rows.width)));
        for (std::uint32_t k = 0; k < count; ++k) sources[i + k] = row + i + k;
        std::fill_n(ends + i, count, placed->end());
        i += count;
    }
}

}  // namespace akunu
