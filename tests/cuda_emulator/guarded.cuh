// The device's memory, as the emulator allocates it: between pages that nobody may touch. An access in front of it or
// behind it ends the process, as it ends a launch on a GPU. It holds no zeros, and numbers in it are NaN, as far as
// filling it takes no time.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace akunu::cuda::emulator {

constexpr std::size_t kPage = 4096, kFilled = 1 << 20;

struct GuardedSize {
    std::size_t bytes, pages;
    explicit GuardedSize(std::size_t n)
        : bytes(std::max<std::size_t>((n + 255) / 256 * 256, 256)), pages((bytes + kPage - 1) / kPage * kPage) {}
};

// Null: there is no such memory.
inline std::byte* allocate_guarded(std::size_t n) {
    const GuardedSize size(n);
    void* const all =
        mmap(nullptr, size.pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    std::byte* const first = static_cast<std::byte*>(all) + kPage;
    if (mprotect(first, size.pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
    std::byte* const at = first + (size.pages - size.bytes);
    std::memset(at, 0xFF, std::min(size.bytes, kFilled));
    return at;
}
inline void free_guarded(unsigned long long p, std::size_t n) {
    const GuardedSize size(n);
    munmap(reinterpret_cast<void*>(p + size.bytes - size.pages - kPage), size.pages + 2 * kPage);
}

}  // namespace akunu::cuda::emulator
