// A bounded cursor over little-endian bytes from an untrusted file.
//
// Nothing is read, and no count believed, before it is known to fit into what is left; every check
// divides or subtracts, so it cannot overflow.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/quote.h"

namespace akunu {

static_assert(std::endian::native == std::endian::little, "GGUF is read in host byte order");

class ByteReader {
  public:
    static constexpr std::string_view kDamaged = "the file is incomplete or damaged, fetch it again";

    // `bytes` and `path` (for messages) must outlive the reader, as must `at_end`: the remedy to
    // name when something does not fit.
    ByteReader(std::span<const std::byte> bytes, std::string_view path, std::string_view at_end = kDamaged)
        : bytes_(bytes), path_(path), at_end_(at_end) {}

    // What is being read now, for messages: kind "metadata key", name "general.name".
    void describe(std::string_view kind, std::string_view name = {}) {
        kind_ = kind;
        name_ = name;
    }

    std::uint64_t remaining() const { return bytes_.size() - position_; }
    std::uint64_t offset() const { return position_; }

    std::span<const std::byte> take(std::uint64_t count) {
        if (count > remaining()) fail_truncated(count);
        const auto taken = bytes_.subspan(position_, count);
        position_ += count;
        return taken;
    }

    template <typename T>
        requires std::integral<T> || std::floating_point<T>
    T read() {
        T value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

    // A 64-bit length, then that many bytes.
    std::string_view read_string() {
        const auto chars = take(read<std::uint64_t>());
        return {reinterpret_cast<const char*>(chars.data()), chars.size()};
    }

    // Refuses a count of items of at least `min_size` bytes each that cannot all be there.
    void check_count(std::uint64_t count, std::uint64_t min_size) const {
        if (count > remaining() / min_size) {
            fail("announces " + std::to_string(count) + " items, but only " + std::to_string(remaining()) +
                     " bytes are left for them",
                 at_end_);
        }
    }

    [[noreturn]] void fail(const std::string& problem, std::string_view remedy = kDamaged) const {
        std::string what(kind_);
        if (!name_.empty()) what += " " + quoted(name_);
        throw ModelFileError(std::string(path_) + ": " + what + " " + problem + " (at byte " +
                             std::to_string(offset()) + "); " + std::string(remedy));
    }

  private:
    [[noreturn]] void fail_truncated(std::uint64_t count) const {
        fail("needs " + std::to_string(count) + " bytes where " + std::to_string(remaining()) + " are left", at_end_);
    }

    std::span<const std::byte> bytes_;
    std::string_view path_;
    std::string_view at_end_;
    std::string_view kind_ = "the header";
    std::string_view name_;
    std::size_t position_ = 0;
};

}  // namespace akunu
