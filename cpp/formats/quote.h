// Names from a file, made safe for a message or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace akunu {

// 'text' with everything but printable ASCII as \xNN, cut after `limit` bytes.
inline std::string quoted(std::string_view text, std::size_t limit = 80) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text.substr(0, limit)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7F || c == '\'' || c == '\\') {
            out += "\\x";
            out += digits[byte >> 4];
            out += digits[byte & 15];
        } else {
            out += c;
        }
    }
    out += text.size() > limit ? "…'" : "'";
    return out;
}

// For std::string the compiler looks into its namespace too, and would take std::quoted where that is declared.
inline std::string quoted(const std::string& text, std::size_t limit = 80) {
    return quoted(std::string_view(text), limit);
}

}  // namespace akunu
