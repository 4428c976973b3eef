#include "tokenizer/byte_merges.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace akunu {
namespace {

std::uint64_t head_of(std::string_view bytes) { return KeyedHash::word(bytes.substr(0, 8)); }

}  // namespace

ByteMerges::ByteMerges(Strings tokens, const Strings& merges, bool whole_first)
    : tokens_(std::move(tokens)), whole_first_(whole_first), ids_(tokens_.size()), merges_(merges.size() / 2) {
    for (std::uint32_t id = 0; id < tokens_.size(); ++id) {
        const std::string_view bytes = tokens_[id];
        if (bytes.empty()) continue;
        ids_.put(hash_(bytes), {head_of(bytes), static_cast<std::uint32_t>(bytes.size()), id},
                 [&](const Id& other) { return has(other, bytes); });
    }
    std::string both;
    for (std::size_t i = 0; i + 1 < merges.size(); i += 2) {
        const std::uint32_t left = token_of(merges[i]), right = token_of(merges[i + 1]);
        if (left == kNoToken || right == kNoToken) continue;
        both.assign(merges[i]).append(merges[i + 1]);
        const std::uint32_t token = token_of(both);
        if (token == kNoToken) continue;
        merges_.put(hash_(std::uint64_t{left} << 32 | right), {left, right, static_cast<std::uint32_t>(i / 2), token},
                    [&](const Merge& other) { return other.left == left && other.right == right; });
    }
    for (int byte = 0; byte < 256; ++byte) {
        const char text = static_cast<char>(byte);
        of_byte_.push_back(token_of({&text, 1}));
    }
}

bool ByteMerges::has(const Id& id, std::string_view bytes) const {
    return id.head == head_of(bytes) && id.size == bytes.size() && (bytes.size() <= 8 || tokens_[id.token] == bytes);
}

std::uint32_t ByteMerges::token_of(std::string_view bytes) const {
    if (bytes.empty()) return kNoToken;
    return ids_.find(hash_(bytes), [&](const Id& id) { return has(id, bytes); }).token;
}

const ByteMerges::Merge& ByteMerges::merge_of(std::uint32_t left, std::uint32_t right) const {
    return merges_.find(hash_(std::uint64_t{left} << 32 | right),
                        [&](const Merge& merge) { return merge.left == left && merge.right == right; });
}

void ByteMerges::encode(std::string_view piece, std::vector<std::uint32_t>& ids) const {
    if (whole_first_) {
        if (const std::uint32_t token = token_of(piece); token != kNoToken) return ids.push_back(token);
    }
    struct Symbol {
        std::uint32_t token;
        std::size_t before, after;  // neighbours; `count` beyond the ends
    };
    struct Pair {
        std::uint32_t rank, token;
        std::size_t at, bytes;
    };
    std::vector<Symbol> symbols;
    std::vector<std::size_t> bytes;  // of each symbol; 0 once it is part of the one before
    for (const char byte : piece) {
        const std::uint32_t token = of_byte_[static_cast<unsigned char>(byte)];
        if (token == kNoToken) continue;
        symbols.push_back({token, symbols.size() - 1, symbols.size() + 1});
        bytes.push_back(1);
    }
    const std::size_t count = symbols.size();
    std::vector<Pair> heap;
    const auto later = [](const Pair& a, const Pair& b) { return std::tie(a.rank, a.at) > std::tie(b.rank, b.at); };
    const auto pair_at = [&](std::size_t at) {
        const std::size_t next = symbols[at].after;
        if (next >= count) return;
        if (const Merge& merge = merge_of(symbols[at].token, symbols[next].token); merge.token != kNoToken) {
            heap.push_back({merge.rank, merge.token, at, bytes[at] + bytes[next]});
        }
    };
    for (std::size_t at = 0; at < count; ++at) pair_at(at);
    std::ranges::make_heap(heap, later);
    const auto push = [&](std::size_t at) {
        const std::size_t pairs = heap.size();
        pair_at(at);
        if (heap.size() > pairs) std::ranges::push_heap(heap, later);
    };
    while (!heap.empty()) {
        std::ranges::pop_heap(heap, later);
        const Pair pair = heap.back();
        heap.pop_back();
        const std::size_t at = pair.at, next = symbols[at].after;
        // Stale when a side was merged meanwhile: symbols only grow, so the length tells.
        if (bytes[at] == 0 || next >= count || bytes[at] + bytes[next] != pair.bytes) continue;
        symbols[at].token = pair.token;
        bytes[at] = pair.bytes;
        bytes[next] = 0;
        symbols[at].after = symbols[next].after;
        if (symbols[at].after < count) symbols[symbols[at].after].before = at;
        push(at);
        if (symbols[at].before < count) push(symbols[at].before);
    }
    for (std::size_t at = 0; at < count; at = symbols[at].after) ids.push_back(symbols[at].token);
}

}  // namespace akunu
