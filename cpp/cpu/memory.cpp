#include "cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <limits>
#include <string>

#ifdef __linux__
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#endif

#include "core/error.h"

namespace akunu::cpu {

namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

}  // namespace

void Unmap::operator()(std::byte*) const { munmap(begin, bytes); }

Mapping map_memory(std::uint64_t bytes, const char* remedy) {
    // Memory that can have huge pages starts on one.
    const std::uint64_t spare = bytes >= kHugePage ? kHugePage : 0;
    void* p = bytes <= std::numeric_limits<std::uint64_t>::max() / 2
                  ? mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : MAP_FAILED;
    if (p == MAP_FAILED) {
        throw DeviceError("out of memory: could not allocate " + std::to_string(bytes) + " bytes; " + remedy);
    }
    auto* memory = static_cast<std::byte*>(p);
    const std::uint64_t before = spare ? -reinterpret_cast<std::uintptr_t>(memory) % kHugePage : 0;
#ifdef MADV_HUGEPAGE
    if (spare) madvise(memory + before, bytes, MADV_HUGEPAGE);
#endif
    return Mapping(memory + before, {memory, bytes + spare});
}

void give_back(std::byte* memory, std::uint64_t bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
    // A refusal leaves them where they are. Elsewhere than on Linux the system may take its time.
    if (first < last) static_cast<void>(madvise(memory + (first - begin), last - first, MADV_DONTNEED));
}

#ifdef __linux__

void spread(std::byte* memory, std::uint64_t bytes, std::span<const int> nodes) {
    int policy = MPOL_DEFAULT;
    if (nodes.empty() || syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0 || policy != MPOL_DEFAULT) {
        return;
    }
    constexpr std::size_t kMost = 1024, kWord = sizeof(unsigned long) * CHAR_BIT;  // the kernel's MAX_NUMNODES
    std::array<unsigned long, kMost / kWord> mask{};
    for (const int node : nodes) {
        const auto n = static_cast<std::size_t>(node);
        if (n < kMost) mask[n / kWord] |= 1UL << n % kWord;
    }
    // A refusal leaves the pages where threads touch them first.
    static_cast<void>(syscall(SYS_mbind, memory, bytes, MPOL_INTERLEAVE, mask.data(), kMost + 1, 0));
}

#else

void spread(std::byte*, std::uint64_t, std::span<const int>) {}

#endif

}  // namespace akunu::cpu
