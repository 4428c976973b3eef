#include "formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace akunu {
namespace {

std::string system_message(int code) { return std::generic_category().message(code); }

// Closes the descriptor unless the constructor succeeds.
class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return value_; }
    int release() { return std::exchange(value_, -1); }

  private:
    int value_;
};

std::uint64_t page_size() {
    static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
    if (path_.find('\0') != std::string::npos) {
        throw ModelFileError("the path of a model file holds a NUL byte");
    }
    // O_NONBLOCK: opening a named pipe must not wait for a writer.
    Descriptor descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (descriptor.get() < 0) {
        throw ModelFileError(path_ + ": cannot be opened: " + system_message(errno));
    }
    struct stat status{};
    if (::fstat(descriptor.get(), &status) != 0) {
        throw ModelFileError(path_ + ": cannot be read: " + system_message(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        throw ModelFileError(path_ +
                             (S_ISDIR(status.st_mode) ? ": is a folder, not a model file" : ": is not a regular file"));
    }
    if (status.st_size <= 0) {
        throw ModelFileError(path_ + ": is empty; the download did not finish");
    }
    if (static_cast<std::uint64_t>(status.st_size) > std::numeric_limits<std::size_t>::max() / 2) {
        throw ModelFileError(path_ + ": is too large to map");
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    // Shared, since a GPU that reads the pages where they are must not need copies of its own. Some network and FUSE
    // file systems only map privately, which the CPU reads as well.
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
    if (address == MAP_FAILED) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (address == MAP_FAILED) {
        throw ModelFileError(path_ + ": cannot map its " + std::to_string(size) + " bytes: " + system_message(errno));
    }
    bytes_ = {static_cast<const std::byte*>(address), size};
    descriptor_ = descriptor.release();
}

MappedFile::~MappedFile() {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    ::close(descriptor_);
}

void MappedFile::drop(std::uint64_t offset, std::uint64_t length) const noexcept {
    if (offset >= bytes_.size()) return;
    const std::uint64_t page = page_size();
    const std::uint64_t end = offset + std::min<std::uint64_t>(length, bytes_.size() - offset);
    const std::uint64_t first = (offset + page - 1) / page * page;
    // The last page of the file ends with the file.
    const std::uint64_t last = end == bytes_.size() ? end : end / page * page;
    if (first >= last) return;
    ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

void MappedFile::check_size() const {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) {
        throw ModelFileError(path_ + ": cannot be read any more: " + system_message(errno));
    }
    if (static_cast<std::uint64_t>(status.st_size) < bytes_.size()) {
        throw ModelFileError(path_ + ": was cut to " + std::to_string(status.st_size) +
                             " bytes after it was opened with " + std::to_string(bytes_.size()) + "; load it again");
    }
}

}  // namespace akunu
