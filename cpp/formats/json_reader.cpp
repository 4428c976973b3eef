#include "formats/json_reader.h"

#include <limits>

#include "core/error.h"
#include "formats/quote.h"

namespace akunu {

namespace {

void append_utf8(std::string& out, char32_t c) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | c >> 6);
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
}

bool JsonReader::accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
}

bool JsonReader::accept_null() {
    skip_space();
    if (!text_.substr(at_).starts_with("null")) return false;
    at_ += 4;
    return true;
}

void JsonReader::expect(char c) {
    if (accept(c)) return;
    fail((at_ == text_.size() ? "ends" : "has " + quoted(text_.substr(at_, 1))) + " where '" + c + "' was expected");
}

std::string JsonReader::string(std::size_t limit) {
    expect('"');
    std::string out;
    for (;;) {
        if (at_ == text_.size()) fail("ends inside a string");
        if (out.size() > limit) fail("has a string of more than " + std::to_string(limit) + " bytes");
        const char c = text_[at_++];
        if (c == '"') return out;
        if (static_cast<unsigned char>(c) < 0x20) fail("has a control character in a string");
        if (c == '\\') {
            append_utf8(out, escape());
        } else {
            out += c;
        }
    }
}

char32_t JsonReader::escape() {
    if (at_ == text_.size()) fail("ends inside a string");
    const char c = text_[at_++];
    switch (c) {
        case '"':
        case '\\':
        case '/':
            return static_cast<char32_t>(c);
        case 'b':
            return U'\b';
        case 'f':
            return U'\f';
        case 'n':
            return U'\n';
        case 'r':
            return U'\r';
        case 't':
            return U'\t';
        case 'u':
            break;
        default:
            fail("has an unknown escape in a string");
    }
    const std::uint32_t high = hex4();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || text_.substr(at_, 2) != "\\u") fail("has half of a surrogate pair in a string");
    at_ += 2;
    const std::uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("has half of a surrogate pair in a string");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

std::uint32_t JsonReader::hex4() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
        const char c = at_ < text_.size() ? text_[at_++] : '\0';
        const auto digit = is_digit(c)            ? c - '0'
                           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : -1;
        if (digit < 0) fail("has an escape without four hexadecimal digits");
        value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    return value;
}

std::uint64_t JsonReader::integer() {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
        const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
        if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) fail("has a number beyond 64 bits");
        value = value * 10 + digit;
    }
    const std::size_t digits = at_ - start;
    const bool goes_on = at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos;
    if (digits == 0 || goes_on || (digits > 1 && text_[start] == '0')) {
        fail("has " + quoted(text_.substr(start, digits + 1), 24) + " where a non-negative integer was expected");
    }
    return value;
}

void JsonReader::end() {
    skip_space();
    if (at_ != text_.size()) fail("goes on with " + quoted(text_.substr(at_, 1)) + " after its end");
}

void JsonReader::fail(const std::string& problem) const {
    throw ModelFileError(std::string(path_) + ": the header " + problem + " (at its byte " + std::to_string(at_) +
                         "); the file is damaged, fetch it again");
}

}  // namespace akunu
