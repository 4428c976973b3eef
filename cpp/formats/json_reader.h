// A strict cursor over JSON text whose structure the caller knows. Nothing is built and nothing recurses, so a hostile
// text costs no more than its length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace akunu {

class JsonReader {
  public:
    // `text` and `path` (for messages) must outlive the reader.
    JsonReader(std::string_view text, std::string_view path) : text_(text), path_(path) {}

    // Consumes the next character that is not white space, which must be `c`.
    void expect(char c);
    // Consumes it if it is `c`.
    bool accept(char c);
    // Consumes the value `null` if it is next.
    bool accept_null();
    // A string, its escapes resolved, of at most `limit` bytes.
    std::string string(std::size_t limit);
    // A non-negative integer: digits without a leading zero, fraction or exponent.
    std::uint64_t integer();
    // Only white space is left.
    void end();

    [[noreturn]] void fail(const std::string& problem) const;

    // Calls `member(key)` for each member of an object, with the cursor at its value.
    template <typename Member>
    void object(std::size_t key_limit, Member&& member) {
        expect('{');
        if (accept('}')) return;
        do {
            const std::string key = string(key_limit);
            expect(':');
            member(key);
        } while (accept(','));
        expect('}');
    }
    // Calls `item()` for each item of an array, with the cursor there.
    template <typename Item>
    void array(Item&& item) {
        expect('[');
        if (accept(']')) return;
        do {
            item();
        } while (accept(','));
        expect(']');
    }

  private:
    void skip_space();
    char32_t escape();
    std::uint32_t hex4();

    std::string_view text_;
    std::string_view path_;
    std::size_t at_ = 0;
};

}  // namespace akunu
