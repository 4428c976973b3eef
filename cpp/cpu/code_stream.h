// The order of a packed weight's codes. A file's is a dense stream of bits, least significant first. Packed, 32 codes
// of b bits are b words, whose bytes i belong to the elements 4j + i:
//
//   b = 8              word j is quad j, the codes of elements 4j..4j+3
//   b & 4   4 words    nibbles: bits 0..3 of quad j, and those of quad j + 4 above them
//   b & 2   2 words    the next 2 bits (of 2, 3: the first) of quads j, j + 2, j + 4 and j + 6
//   b & 1   1 word     the last bit of quad j, at bit j
#pragma once

#include <cstddef>
#include <cstdint>

namespace akunu::cpu {

// What of a code one part holds: `bits` of it from `first` on, in words from `word` on.
struct CodePart {
    unsigned bits, first, word;
    unsigned words() const { return bits; }
};

template <typename F>
constexpr void for_code_parts(unsigned code_bits, F&& f) {
    unsigned first = 0;
    for (unsigned bits = 8; bits; bits /= 2) {
        if (!(code_bits & bits)) continue;
        f(CodePart{bits, first, first});
        first += bits;
    }
}

// Codes 4j..4j+3 of a stream, one a byte.
inline std::uint32_t stream_quad(const std::uint32_t* stream, unsigned bits, unsigned quad) {
    const unsigned at = quad * 4 * bits, word = at / 32, shift = at % 32;
    std::uint64_t v = stream[word] >> shift;
    if (shift + 4 * bits > 32) v |= std::uint64_t{stream[word + 1]} << (32 - shift);
    const std::uint32_t mask = (1u << bits) - 1;
    std::uint32_t out = 0;
    for (unsigned i = 0; i < 4; ++i) out |= (static_cast<std::uint32_t>(v >> (i * bits)) & mask) << (8 * i);
    return out;
}

inline void pack_codes(const std::uint32_t* stream, unsigned bits, std::uint32_t* packed) {
    std::uint32_t quads[8];
    for (unsigned j = 0; j < 8; ++j) quads[j] = stream_quad(stream, bits, j);
    for_code_parts(bits, [&](const CodePart& part) {
        const std::uint32_t mask = 0x01010101u * ((1u << part.bits) - 1);
        for (unsigned w = 0; w < part.words(); ++w) {
            std::uint32_t v = 0;
            for (unsigned j = w, shift = 0; j < 8; j += part.words(), shift += part.bits) {
                v |= (quads[j] >> part.first & mask) << shift;
            }
            packed[part.word + w] = v;
        }
    });
}

inline void unpack_codes(const std::uint32_t* packed, unsigned bits, std::uint32_t* stream) {
    for (unsigned w = 0; w < bits; ++w) stream[w] = 0;
    for (unsigned e = 0; e < 32; ++e) {
        const unsigned quad = e / 4, byte = e % 4;
        std::uint32_t code = 0;
        for_code_parts(bits, [&](const CodePart& part) {
            const unsigned shift = 8 * byte + quad / part.words() * part.bits;
            const std::uint32_t mask = (1u << part.bits) - 1;
            code |= (packed[part.word + quad % part.words()] >> shift & mask) << part.first;
        });
        const unsigned at = e * bits, word = at / 32, shift = at % 32;
        stream[word] |= code << shift;
        if (shift + bits > 32) stream[word + 1] |= code >> (32 - shift);
    }
}

}  // namespace akunu::cpu
