// A whole file mapped read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace akunu {

// Another process may still change the file. Truncating it makes the pages beyond the new end fault
// (SIGBUS) on access; `check_size` finds a truncation that has already happened, and nothing in
// user space can close the race with one that happens during a read: a handler of that signal would be
// the whole process', which is not ours to give. Models check before each step. Rewriting it in place changes
// the bytes we see, so whoever parses them checks bounds on every read, also the second time.
class MappedFile {
  public:
    // ModelFileError when `path` cannot be opened, is not a regular file, or is empty.
    explicit MappedFile(std::string path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    const std::string& path() const noexcept { return path_; }

    // Lets the pages wholly inside the range leave memory; reading them again is correct, from the page cache or the
    // disk. What lies outside the file is ignored.
    void drop(std::uint64_t offset, std::uint64_t length) const noexcept;

    // ModelFileError when the file is now shorter than when it was mapped.
    void check_size() const;

  private:
    std::string path_;
    int descriptor_ = -1;
    std::span<const std::byte> bytes_;
};

}  // namespace akunu
