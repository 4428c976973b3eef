// The device's memory, as the emulator allocates it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace akunu::cuda::emulator {

// Memory between pages that nobody may touch: an access in front of it or behind it ends the process, as it ends a
// launch on a GPU. It holds no zeros, and numbers in it are NaN, as far as filling it takes no time.
struct Guarded {
    static constexpr std::size_t kPage = 4096, kAlign = 256, kFilled = 1 << 20;
    std::byte* at = nullptr;

    explicit Guarded(std::size_t n) {
        const std::size_t bytes = of(n), pages = (bytes + kPage - 1) / kPage * kPage;
        void* const all =
            mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) return;
        std::byte* const first = static_cast<std::byte*>(all) + kPage;
        if (mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) return;
        at = first + (pages - bytes);
        std::memset(at, 0xFF, std::min(bytes, kFilled));
    }
    static void release(unsigned long long p, std::size_t n) {
        const std::size_t bytes = of(n), pages = (bytes + kPage - 1) / kPage * kPage;
        munmap(reinterpret_cast<void*>(p + bytes - pages - kPage), pages + 2 * kPage);
    }

  private:
    static std::size_t of(std::size_t n) { return std::max<std::size_t>((n + kAlign - 1) / kAlign * kAlign, kAlign); }
};

}  // namespace akunu::cuda::emulator
